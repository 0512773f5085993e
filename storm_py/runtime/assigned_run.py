"""AssignedRun: the run folder of one worker of a cluster, made of its code and its assignment.

In local mode one folder serves all workers of a run; here each has its own, as workers may live on
different nodes. It begins anew with each start of the worker.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from storm_py.archive import Manifest
from storm_py.bundle import StormCode, load_code, load_conf
from storm_py.cluster.records import Assignment
from storm_py.core.assigned import assigned_plan
from storm_py.core.plan import PhysicalPlan
from storm_py.errors import BlobError
from storm_py.worker_spec import WorkerSpec

from .folder import RunFolder, UserCode

#: In the folder of a topology's code, see `storm_py.supervisor.localizer`.
CODE: Final = "code"
STORMCODE: Final = "stormcode.ser"
STORMCONF: Final = "stormconf.ser"


@dataclass(frozen=True, slots=True)
class LocalCode:
    """What a node has of a topology."""

    code: StormCode
    conf: Mapping[str, Any]
    user: UserCode

    @classmethod
    def read(cls, folder: Path, version: str) -> LocalCode:
        """Read what the supervisor has put there; `version` is that of storm_py on this node.

        Raises BlobError for what cannot be run here, and says what to do about that.
        """
        code = load_code((folder / STORMCODE).read_bytes(), str(folder / STORMCODE))
        conf = load_conf((folder / STORMCONF).read_bytes(), str(folder / STORMCONF))
        manifest = Manifest.read(folder / CODE)
        if manifest is None:
            raise BlobError(
                f"{folder / CODE} has no manifest: storm_py did not pack it, so its components are "
                "programs of their own, as streamparse's are; this version keeps such topologies, "
                "and does not run them: kill it"
            )
        _check_versions(manifest, version)
        return cls(code, conf, UserCode(manifest.module, str(folder / CODE / manifest.sys_path)))


def _check_versions(manifest: Manifest, version: str) -> None:
    if manifest.storm_py != version:
        raise BlobError(
            f"submitted by storm_py {manifest.storm_py}, and this node has {version}: install the "
            "same version on both, then submit it again"
        )
    here = sys.version_info[:2]
    if manifest.python.split(".")[:2] != [str(part) for part in here]:
        raise BlobError(
            f"submitted by Python {manifest.python}, and this node runs {here[0]}.{here[1]}: use "
            "the same minor version on both, then submit it again"
        )


class AssignedRun:
    """What a worker runs, under one version of the assignment after the other."""

    def __init__(
        self, spec: WorkerSpec, local: LocalCode, assignment: Assignment, incarnation: int
    ) -> None:
        self._slot = spec.supervisor_id, spec.port
        self._topology_id = spec.topology_id
        self._local = local
        #: The number of this worker.
        self.worker = assignment.worker_numbers[self._slot]
        #: Of this start of it.
        self.incarnation = incarnation
        #: The newest plan.
        self.plan = self._planned(assignment)
        self.folder = RunFolder.create()
        self.folder.write_run(self.plan, local.user, dict(local.code.components))

    def has_worker(self, assignment: Assignment) -> bool:
        """Whether this worker is still in it."""
        return assignment.worker_numbers.get(self._slot) == self.worker

    def adopt(self, assignment: Assignment) -> PhysicalPlan:
        """Write the plan of a newer assignment into the folder, and return it."""
        plan = self._planned(assignment)
        self.folder.write_plan(plan)
        self.plan = plan
        return plan

    def _planned(self, assignment: Assignment) -> PhysicalPlan:
        workers = {
            executor: assignment.worker_numbers[slot]
            for executor, slot in assignment.executor_node_port.items()
        }
        return assigned_plan(
            self._topology_id,
            assignment.version,
            self._local.code.topology,
            self._local.conf,
            workers,
        )
