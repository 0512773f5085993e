"""What tests of a supervisor have around it: a nimbus with blobs, assignments, and its workers.

A supervisor is either an object in a thread of the test, with a cluster in memory (`InProcess`), or
a process of its own: `python -m tests.integration.supervising CONF END_WORKERS`.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Self

from storm_py.bundle import code_key, conf_key, jar_key
from storm_py.cluster.memory import MemoryCluster
from storm_py.cluster.records import Assignment, NimbusSummary, SupervisorInfo
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.config import defaults
from storm_py.errors import KeyNotFoundException
from storm_py.rpc.definitions import (
    BeginDownloadResult,
    ReadableBlobMeta,
    SettableBlobMeta,
    SupervisorWorkerHeartbeats,
)
from storm_py.rpc.server import ThriftServer
from storm_py.supervisor import main
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.local_state import LocalState
from storm_py.supervisor.process_table import process_info
from storm_py.supervisor.service import Supervisor
from storm_py.supervisor.settings import SupervisorSettings
from storm_py.supervisor.slot_actions import SlotTimeouts
from storm_py.supervisor.worker_record import WorkerRecord
from tests.helpers import wait_until
from tests.integration.harness import GENEROUS_SECS, ROOT

HOST = "127.0.0.1"
PORTS = (6700, 6701)
#: Topologies that nimbus has, in a `Cell`.
WORDS, OTHERS = "words-1-1", "others-2-2"
COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("fake_worker.py")))
ENVIRONMENT = {"PYTHONPATH": str(ROOT)}
#: Long enough for a machine that is busy.
TIMEOUTS = SlotTimeouts(GENEROUS_SECS, GENEROUS_SECS, 0.5)


def archive(text: str = "") -> bytes:
    """A code archive; another text, another archive."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr(zipfile.ZipInfo("words.py"), text)  # which has no time of its own
    return buffer.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class FakeNimbus:
    """Serves blobs in small pieces, and remembers heartbeats."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.heartbeats: list[SupervisorWorkerHeartbeats] = []
        self._sessions: dict[str, list[bytes]] = {}
        self.server = ThriftServer(self, HOST).start()

    def store(self, topology_id: str, jar: bytes) -> None:
        """Have the three blobs of a topology."""
        self.blobs |= {jar_key(topology_id): jar}
        self.blobs |= {code_key(topology_id): b"code", conf_key(topology_id): b"{}"}

    @property
    def summary(self) -> NimbusSummary:
        """What it says of itself in ZooKeeper."""
        return NimbusSummary(*self.server.address, start_time_secs=1, version="0.1")

    # ---- calls ---------------------------------------------------------------------------------

    def getBlobMeta(self, key: str) -> ReadableBlobMeta:
        settable = SettableBlobMeta(acl=[])
        return ReadableBlobMeta(settable=settable, version=1, sha256=sha256(self._blob(key)))

    def beginBlobDownload(self, key: str) -> BeginDownloadResult:
        data = self._blob(key)
        session = f"s{len(self._sessions)}"
        self._sessions[session] = [data[at : at + 50] for at in range(0, len(data), 50)]
        return BeginDownloadResult(version=1, session=session)

    def downloadBlobChunk(self, session: str) -> bytes:
        chunks = self._sessions[session]
        return chunks.pop(0) if chunks else b""

    def sendSupervisorWorkerHeartbeats(self, heartbeats: SupervisorWorkerHeartbeats) -> None:
        self.heartbeats.append(heartbeats)

    def _blob(self, key: str) -> bytes:
        if key not in self.blobs:
            raise KeyNotFoundException(key)
        return self.blobs[key]


def assignment(
    supervisor_id: str, version: int, ports: Iterable[int] = PORTS[:1], jar: bytes | None = None
) -> Assignment:
    """One executor on each of these ports."""
    slots = [(supervisor_id, port) for port in ports]
    executors = {(n, n): slot for n, slot in enumerate(slots, 1)}
    return Assignment(
        version=version,
        owner="ann",
        master_code_dir="",
        code_checksum=sha256(archive() if jar is None else jar),
        node_host={supervisor_id: HOST},
        executor_node_port=executors,
        executor_start_time_secs=dict.fromkeys(executors, 1),
        worker_numbers={slot: n for n, slot in enumerate(slots, 1)},
        next_worker_number=len(slots) + 1,
    )


class Node:
    """The local folder of a supervisor, seen from outside; and the cluster, as nimbus sees it."""

    def __init__(self, folder: LocalFolder, state: ClusterState) -> None:
        self.folder = folder
        self.state = state

    @cached_property
    def supervisor_id(self) -> str:
        wait_until(self.folder.local_state.exists, GENEROUS_SECS, "a local state")
        found: str = json.loads(self.folder.local_state.read_bytes())["supervisor_id"]
        return found

    def assign(self, topology_id: str, version: int, **options: Any) -> None:
        """Assign a topology to this node."""
        self.state.set_assignment(topology_id, assignment(self.supervisor_id, version, **options))

    def records(self) -> dict[int, WorkerRecord]:
        """The workers that there are records of."""
        found = {}
        for path in self.folder.workers.glob("*/worker.json"):
            try:
                record = WorkerRecord.read(path)
            except FileNotFoundError:
                continue  # removed meanwhile
            found[record.port] = record
        return found

    def pid(self, port: int = PORTS[0]) -> int:
        """The process of the worker on a port, 0 for none."""
        record = self.records().get(port)
        return 0 if record is None else record.process.pid

    def wait_for_another(self, pid: int, port: int = PORTS[0]) -> None:
        """Until the worker of a port is another than that."""
        wait_until(lambda: self.pid(port) not in (0, pid), GENEROUS_SECS, "another worker")

    def info(self) -> SupervisorInfo | None:
        """What the supervisor says of itself."""
        return self.state.supervisor_info(self.supervisor_id)

    def follows(self, port: int) -> tuple[str, int] | None:
        """The topology, and the version of its assignment, that the worker of a port follows."""
        info = self.info()
        beat = None if info is None else info.worker_heartbeats.get(port)
        return None if beat is None else (beat.storm_id, beat.assignment_version)

    def wait_for(self, topology_id: str, version: int, port: int = PORTS[0]) -> int:
        """Until the worker of a port follows this version; its process id."""
        wanted = (topology_id, version)
        wait_until(lambda: self.follows(port) == wanted, GENEROUS_SECS, f"{wanted} on {port}")
        return self.pid(port)

    def wait_for_none(self) -> None:
        """Until there are no workers, and the supervisor says so."""

        def none() -> bool:
            info = self.info()
            return not self.records() and info is not None and info.used_ports == ()

        wait_until(none, GENEROUS_SECS, "no worker")


class InProcess:
    """A supervisor in a thread, with a cluster in memory."""

    def __init__(self, folder: LocalFolder, cluster: MemoryCluster, **changes: Any) -> None:
        settings = SupervisorSettings(
            host=HOST,
            ports=PORTS,
            timeouts=TIMEOUTS,
            monitor_secs=GENEROUS_SECS,
            heartbeat_secs=GENEROUS_SECS,
            statistics_secs=GENEROUS_SECS,
            conf={"ui.port": 1},
            environment={**os.environ, **ENVIRONMENT},
            command=COMMAND,
        )
        self.storage = cluster.storage()
        self.supervisor = Supervisor(folder, replace(settings, **changes), lambda: self.storage)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.supervisor.run()
        except BaseException as error:  # noqa: BLE001 - for the test to see
            self.error = error

    def stop(self, end_workers: bool = False) -> None:
        """End it, and see that it ended well."""
        self.supervisor.stop(end_workers)
        self.join()
        if self.error is not None:
            raise self.error

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join(GENEROUS_SECS)
        assert not self._thread.is_alive()


class Cell(Node):
    """A node, its nimbus, and a cluster in memory; supervisors and workers end with it."""

    def __init__(self, folder: LocalFolder) -> None:
        self.cluster = MemoryCluster()
        self._storage = self.cluster.storage()
        self._storage.start()
        super().__init__(folder, ClusterState(self._storage))
        self.nimbus = FakeNimbus()
        for topology_id in (WORDS, OTHERS):
            self.nimbus.store(topology_id, archive())
        self.state.set_leader_info(self.nimbus.summary)
        self._started: list[InProcess] = []

    def start(self, **changes: Any) -> InProcess:
        """Start a supervisor, with some settings changed."""
        self._started.append(InProcess(self.folder, self.cluster, **changes))
        return self._started[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._started:
            each.supervisor.stop(end_workers=True)
            each.join()
        self.nimbus.server.stop()
        self._storage.close()


def is_there(pid: int) -> bool:
    """Whether a process has not ended."""
    info = process_info(pid)
    return info is not None and not info.ended


def approve(folder: LocalFolder, workers: Mapping[str, int]) -> None:
    """As if an earlier supervisor had approved these workers."""
    state = LocalState(folder.local_state)
    for worker_id, port in workers.items():
        state.approve(worker_id, port)
    state.close()


if __name__ == "__main__":
    conf = {**defaults(), **json.loads(sys.argv[1])}
    main.run(conf, end_workers_on_stop=sys.argv[2] == "end", command=COMMAND)
