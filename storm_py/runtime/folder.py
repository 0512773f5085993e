"""RunFolder: the private folder of one run - plan, components, sockets, pages, logs.

Processes of a run find everything through it; its path is all they are given. It is made with mode
0700 below a short path, as an ipc address may be no longer than 107 bytes. Names are in this file
only.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from storm_py.core.plan import PhysicalPlan, dump_plan, load_plan
from storm_py.transport.zeromq import ipc

#: Longest $XDG_RUNTIME_DIR that leaves room for /storm-py/run-PID-RANDOM/s/ and a socket's name in
#: the 107 bytes of an address.
_LONGEST_BYTES = 45


@dataclass(frozen=True, slots=True)
class UserCode:
    """Where the module of the topology is found."""

    module: str
    sys_path: str


def base_folder() -> Path:
    """Where run folders live: $XDG_RUNTIME_DIR/storm-py if that is short, else in /tmp."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK) and len(os.fsencode(runtime)) <= _LONGEST_BYTES:
        base = Path(runtime) / "storm-py"
    else:
        base = Path("/tmp") / f"storm-py-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    info = base.stat()
    if info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise PermissionError(
            f"{base} must belong to user {os.getuid()} with mode 0700: remove it or mend it"
        )
    return base


def sweep(base: Path) -> None:
    """Remove folders of runs whose process is gone: it was killed before it could."""
    for folder in base.glob("run-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class InstanceLogs:
    """Where what an instance says goes: its standard output, its standard error, its log.

    In local mode log and standard error are one file; on a cluster the log is rotated, which only
    its writer can do.
    """

    out: Path
    err: Path
    log: Path


def instance_logs(logs: Path, plan: PhysicalPlan, instance: int, rotated: bool) -> InstanceLogs:
    """The files of an instance in the log folder of its worker."""
    executor = plan.executor(instance)
    # Cut, as a file's name may have 255 bytes; the task keeps it unique.
    name = f"{quote(executor.component_id, safe='')[:200]}-{executor.tasks[0]}"
    log = logs / f"{name}.log"
    return InstanceLogs(logs / f"{name}.out", logs / f"{name}.err" if rotated else log, log)


class RunFolder:
    """The layout of a run folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls) -> RunFolder:
        """A new folder of this process."""
        base = base_folder()
        sweep(base)
        folder = cls(Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=base)))
        for sub in ("components", "pages", "logs", "s"):
            (folder.path / sub).mkdir(mode=0o700)
        return folder

    def remove(self) -> None:
        """Remove it with all it holds."""
        shutil.rmtree(self.path, ignore_errors=True)

    # ---- what is written once ------------------------------------------------------------------

    def write_run(self, plan: PhysicalPlan, user: UserCode, components: dict[str, bytes]) -> None:
        """Write the first plan, where user code lives, and each component's pickled object."""
        self.write_plan(plan)
        code = {"module": user.module, "sys_path": user.sys_path}
        (self.path / "user.json").write_text(json.dumps(code))
        for i, component in enumerate(sorted(components)):
            self._component(i).write_bytes(components[component])

    def write_plan(self, plan: PhysicalPlan) -> None:
        """Write a plan, for those who are told of its version from now on."""
        self._plan(plan.version).write_bytes(dump_plan(plan))

    def read_plan(self, version: int) -> PhysicalPlan:
        """A version of the plan that has been written."""
        return load_plan(self._plan(version).read_bytes())

    def _plan(self, version: int) -> Path:
        return self.path / f"plan.{version}.json"

    def read_user(self) -> UserCode:
        """Where user code lives."""
        return UserCode(**json.loads((self.path / "user.json").read_text()))

    def read_component(self, plan: PhysicalPlan, component_id: str) -> bytes:
        """A component's pickled object."""
        return self._component(sorted(plan.topology.components).index(component_id)).read_bytes()

    def _component(self, index: int) -> Path:
        return self.path / "components" / f"{index}.pickle"

    # ---- addresses and files -------------------------------------------------------------------

    @property
    def parent_address(self) -> str:
        """The control channel between the parent of the run and its workers."""
        return ipc(self.path / "s", "p")

    def worker_address(self, worker: int, incarnation: int) -> str:
        """The control channel of a worker."""
        return ipc(self.path / "s", f"w{worker}.{incarnation}")

    def inlet_addresses(self, peer: str, worker_incarnation: int, incarnation: int) -> list[str]:
        """Data and control address of an instance or stream manager, new for each incarnation."""
        name = f"{peer}.{worker_incarnation}.{incarnation}"
        return [ipc(self.path / "s", f"{name}{kind}") for kind in "dc"]

    def page(self, executor: int, worker_incarnation: int, incarnation: int) -> Path:
        """The statistics page of one incarnation of an executor; they outlive its worker."""
        return self.path / "pages" / f"{executor}.{worker_incarnation}.{incarnation}"

    def pages(self, executor: int) -> list[Path]:
        """The pages of all incarnations of an executor so far."""
        return list((self.path / "pages").glob(f"{executor}.*"))
