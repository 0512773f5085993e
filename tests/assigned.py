"""Workers of a cluster without nimbus and supervisors: a test assigns, launches and kills them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from storm_py import TopologyBuilder, __version__
from storm_py.archive import MANIFEST, Manifest
from storm_py.bundle import dump_code, dump_conf
from storm_py.cluster.records import Assignment, StormBase, TopologyStatus
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.components import pack
from storm_py.config import Config, defaults
from storm_py.heartbeat import Heartbeat
from storm_py.runtime.assigned_run import CODE, STORMCODE, STORMCONF
from storm_py.worker_spec import WorkerSpec
from tests.helpers import wait_until

ID = "words-1-1"
NODE = "node-1"
CHECKSUM = "00ff"
GENEROUS_SECS = 60.0

Ranges = Mapping[tuple[int, int], int]
"""The port of each executor."""


class Assigned:
    """One topology whose workers all live on one node, each in a process that this one launched."""

    def __init__(
        self,
        folder: Path,
        state: ClusterState,
        conf: Mapping[str, object],
        builder: TopologyBuilder,
        module: str,
        sys_path: Path,
        topology_conf: Mapping[str, object],
    ) -> None:
        self._folder = folder
        self.state = state
        self._conf = conf
        self._environment = {**os.environ, "PYTHONPATH": str(sys_path)}
        self._version = 0
        self._numbers: dict[tuple[str, int], int] = {}
        self._next_number = 1
        self._launched = 0
        #: storm.local.hostname of who is launched
        self.host = "localhost"
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self._specs: dict[int, WorkerSpec] = {}
        topology = builder.create_topology()
        code = folder / "stormdist"
        (code / CODE).mkdir(parents=True)
        (code / STORMCODE).write_bytes(dump_code(topology, pack(topology)))
        (code / STORMCONF).write_bytes(dump_conf({**defaults(), **topology_conf}))
        python = ".".join(map(str, sys.version_info[:3]))
        manifest = Manifest(__version__, python, module, ".", "tests")
        self.manifest = code / CODE / MANIFEST
        self.manifest.write_bytes(manifest.to_bytes())
        self._code = code
        state.setup_registrations(ID)
        state.setup_errors(ID)
        state.activate_storm(ID, _base(TopologyStatus.ACTIVE))

    def assign(self, ranges: Ranges) -> None:
        """Write another version of the assignment."""
        self._version += 1
        slots = {executor: (NODE, port) for executor, port in ranges.items()}
        for slot in sorted(set(slots.values()) - self._numbers.keys()):
            self._numbers[slot] = self._next_number
            self._next_number += 1
        self._numbers = {slot: self._numbers[slot] for slot in sorted(set(slots.values()))}
        self.state.set_assignment(
            ID,
            Assignment(
                version=self._version,
                owner="somebody",
                master_code_dir="",
                code_checksum=CHECKSUM,
                node_host={NODE: "localhost"},
                executor_node_port=slots,
                executor_start_time_secs=dict.fromkeys(slots, 1),
                worker_numbers=dict(self._numbers),
                next_worker_number=self._next_number,
            ),
        )

    def set_status(self, status: TopologyStatus) -> None:
        """Have the topology be active, or not."""
        self.state.update_storm(ID, lambda _: _base(status))

    def launch(self, port: int) -> None:
        """Start the worker of a slot, as a supervisor does."""
        self._launched += 1
        own = self._folder / f"worker-{self._launched}"
        logs = self._folder / "logs" / str(port)
        logs.mkdir(parents=True, exist_ok=True)
        own.mkdir()
        spec = self._specs[port] = WorkerSpec(
            worker_id=f"w{self._launched}",
            supervisor_id=NODE,
            host=self.host,
            port=port,
            topology_id=ID,
            code_checksum=CHECKSUM,
            code_folder=str(self._code),
            log_folder=str(logs),
            heartbeat=str(own / "heartbeat"),
            supervisor_lock=str(own / "lock"),
            conf=self._conf,
        )
        spec.write(own / "spec.json")
        command = [sys.executable, "-P", "-m", "storm_py.runtime.cluster_worker"]
        with (logs / "worker.log.err").open("ab") as err:
            self.processes[port] = subprocess.Popen(
                [*command, str(own / "spec.json")],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
                start_new_session=True,
            )

    def heartbeat(self, port: int) -> Heartbeat | None:
        """The newest heartbeat of the worker of a slot."""
        return Heartbeat.read(Path(self._specs[port].heartbeat))

    def wait_until_followed(self, *ports: int) -> None:
        """Until the workers of these slots say that they follow the newest version."""

        def followed() -> bool:
            beats = [self.heartbeat(port) for port in ports]
            return all(beat is not None and beat.version == self._version for beat in beats)

        wait_until(followed, GENEROUS_SECS, f"version {self._version} is followed")

    def is_over(self) -> bool:
        """Whether all workers have passed the END wave of now."""
        wave = self.state.wave(ID)
        found = [self.state.registration(ID, number) for number in self._numbers.values()]
        return all(
            each is not None
            and each.assignment_version == self._version
            and each.ended_wave >= wave
            for each in found
        )

    def kill(self, port: int) -> None:
        """End a worker as hard as it gets, with what it started (it is a session of its own)."""
        process = self.processes.pop(port)
        process.kill()
        process.wait()

    def stop(self, port: int) -> int:
        """End a worker as a supervisor does; its exit code."""
        process = self.processes.pop(port)
        process.terminate()
        return process.wait(GENEROUS_SECS)

    def left(self, port: int) -> int:
        """Wait until a worker has left by itself; its exit code."""
        return self.processes.pop(port).wait(GENEROUS_SECS)

    def stop_all(self) -> None:
        """End all workers."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(GENEROUS_SECS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
        self.processes.clear()

    def log(self, port: int) -> str:
        """The log of the workers of a slot."""
        return (self._folder / "logs" / str(port) / "worker.log").read_text()


def _base(status: TopologyStatus) -> StormBase:
    previous = TopologyStatus.ACTIVE if status is TopologyStatus.REBALANCING else None
    return StormBase(
        name="words",
        status=status,
        launch_time_secs=int(time.time()),
        num_workers=1,
        component_executors={},
        owner="somebody",
        topology_version=None,
        storm_py_version=__version__,
        prev_status=previous,
    )


def cluster_conf(port: int, root: str, local_dir: Path) -> dict[str, object]:
    """The configuration of a node that finds ZooKeeper at a port of this machine."""
    return {
        **defaults(),
        Config.STORM_ZOOKEEPER_SERVERS: ["127.0.0.1"],
        Config.STORM_ZOOKEEPER_PORT: port,
        Config.STORM_ZOOKEEPER_ROOT: root,
        Config.STORM_ZOOKEEPER_SESSION_TIMEOUT: 10_000,
        Config.STORM_LOCAL_DIR: str(local_dir),
    }
