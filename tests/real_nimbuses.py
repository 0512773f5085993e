"""Nimbuses for tests: without threads over a cluster in memory, or whole ones over ZooKeeper."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from storm_py import BaseRichBolt, BaseRichSpout, OutputFieldsDeclarer, TopologyBuilder, Tuple
from storm_py.archive import FileEntry, Manifest, write_archive
from storm_py.bundle import StormCode, without_objects
from storm_py.cluster.base import StateStorage
from storm_py.cluster.memory import MemoryCluster, MemoryStorage
from storm_py.cluster.records import (
    Assignment,
    NimbusSummary,
    StormBase,
    SupervisorInfo,
    TopologyStatus,
)
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.components import pack
from storm_py.config import configuration
from storm_py.nimbus.data import NimbusData
from storm_py.nimbus.handler import NimbusHandler
from storm_py.nimbus.service import NimbusService
from storm_py.nimbus.term import Term
from storm_py.rpc import definitions
from storm_py.rpc.client import ThriftClient
from storm_py.rpc.dispatch import Dispatcher
from storm_py.rpc.interface import Nimbus
from storm_py.rpc.server import ThriftServer
from storm_py.testing import FakeClock
from storm_py.thrift_topology import to_thrift
from tests.helpers import wait_until
from tests.zookeepers import HOST

T = TypeVar("T")

GENEROUS_SECS: Final = 60.0
#: Seconds since 1970 when the fake clocks begin.
BEGIN_SECS: Final = 1_700_000_000


class Lines(BaseRichSpout):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line")

    def next_tuple(self) -> None:
        pass


class Count(BaseRichBolt):
    def execute(self, tup: Tuple) -> None:
        pass


def words(count_tasks: int = 4, count_executors: int = 2) -> StormCode:
    """A spout of one task, and a bolt."""
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    count = builder.set_bolt("count", Count(), count_executors).set_num_tasks(count_tasks)
    count.fields_grouping("lines", ["line"])
    topology = builder.create_topology()
    return StormCode(without_objects(topology), pack(topology))


def make_archive(folder: Path) -> bytes:
    """The bytes of an archive of one file."""
    source = folder / "flow.py"
    source.write_text("X = 1\n")
    manifest = Manifest("0.1.0", "3.11.0", "flow", ".", "project")
    entry = FileEntry("flow.py", source, source.stat().st_size, False)
    made = write_archive(folder / "archive.zip", [entry], manifest, 1 << 20)
    return made.path.read_bytes()


def upload(nimbus: Nimbus, data: bytes) -> str:
    """Upload in two pieces; the location."""
    location = nimbus.beginFileUpload()
    half = len(data) // 2
    for piece in (data[:half], data[half:]):
        nimbus.uploadChunk(location, piece)
    nimbus.finishFileUpload(location)
    return location


def submit(
    nimbus: Nimbus,
    archive: bytes,
    name: str = "words",
    conf: Mapping[str, object] | None = None,
    code: StormCode | None = None,
    active: bool = True,
) -> str:
    """Submit a topology; its id."""
    status = definitions.TopologyInitialStatus
    nimbus.submitTopologyWithOpts(
        name,
        upload(nimbus, archive),
        json.dumps(configuration(None, dict(conf or {}))),
        to_thrift(code or words()),
        definitions.SubmitOptions(initial_status=status.ACTIVE if active else status.INACTIVE),
    )
    return nimbus.getTopologySummaryByName(name).id


def supervisor(name: str = "s1", ports: tuple[int, ...] = (6700, 6701), time_secs: int = 1) -> Any:
    """A supervisor that offers these ports."""
    return SupervisorInfo(
        time_secs=time_secs,
        hostname=f"host-{name}",
        assignment_id=name,
        used_ports=(),
        meta=ports,
        uptime_secs=5,
        version="0.1.0",
    )


class Clocks:
    """Seconds that pass, and seconds since 1970."""

    def __init__(self) -> None:
        self.passed = FakeClock(100.0)

    def wall(self) -> float:
        return BEGIN_SECS + self.passed()


class WiredClient(ThriftClient):
    """Calls a handler through all of Storm's bytes, without a connection."""

    def __init__(self, handler: object) -> None:
        super().__init__("wired", 0)
        self._dispatcher = Dispatcher(handler)

    def _connected(self) -> socket.socket:
        return cast(socket.socket, None)

    def _exchange(self, sock: socket.socket, name: str, message: bytes) -> bytes:
        return self._dispatcher.answer(message)


class Bench:
    """A nimbus without threads: a handler whose leader is a term that this test ticks."""

    def __init__(self, folder: Path, conf: Mapping[str, object] | None = None) -> None:
        self.cluster = MemoryCluster()
        self.clocks = Clocks()
        self.folder = folder
        self.conf = configuration(None, dict(conf or {}))
        self.storage = self.started()
        self.state = ClusterState(self.storage)
        self.me = NimbusSummary("here", 6627, BEGIN_SECS, "0.1.0")
        self.acts = True
        self.succeed()

    def started(self) -> MemoryStorage:
        """Another process's connection."""
        storage = self.cluster.storage()
        storage.start()
        return storage

    def succeed(self) -> None:
        """Have a nimbus that knows nothing but disk and cluster take over."""
        self.data = NimbusData.make(
            self.conf, self.me, self.state, self.folder, self.clocks.passed, self.clocks.wall
        )
        self.begin()
        handler = NimbusHandler(self.data, self, lambda id_: self.term.complaint(id_))
        self.nimbus: Nimbus = WiredClient(handler).nimbus

    def begin(self) -> None:
        """Begin a term."""
        self.term = Term(self.data, lambda: self.acts)
        self.term.begin(self.clocks.passed())

    def tick(self, secs: float = 0.0) -> None:
        """Let time pass, and have done what is due then."""
        self.clocks.passed.advance(secs)
        self.term.tick(self.clocks.passed())

    def join(self, name: str = "s1", ports: tuple[int, ...] = (6700, 6701)) -> MemoryStorage:
        """Have a supervisor on a connection of its own."""
        storage = self.started()
        ClusterState(storage).supervisor_heartbeat(name, supervisor(name, ports))
        return storage

    def beat(self, topology_id: str, *nodes: str) -> None:
        """Have the workers of these supervisors say that all of their executors live."""
        assignment = self.state.assignment(topology_id)
        assert assignment is not None
        for node in nodes:
            own = [e for e, slot in assignment.executor_node_port.items() if slot[0] == node]
            executors = [definitions.ExecutorInfo(task_start=a, task_end=b) for a, b in own]
            beat = definitions.SupervisorWorkerHeartbeat(
                storm_id=topology_id, executors=executors, time_secs=int(self.clocks.wall())
            )
            self.nimbus.sendSupervisorWorkerHeartbeats(
                definitions.SupervisorWorkerHeartbeats(supervisor_id=node, worker_heartbeats=[beat])
            )

    # ---- storm_py.nimbus.commands.Leadership ---------------------------------------------------

    def lead(self, do: Callable[[Term], T]) -> T:
        return do(self.term)

    def check_leads(self) -> None:
        pass

    def check_listens(self) -> None:
        pass

    def request_round(self) -> None:
        self.term.request_round(0.0)


def assignment(bench: Bench, topology_id: str) -> Assignment:
    """What runs where, of a topology that is assigned."""
    found = bench.state.assignment(topology_id)
    assert found is not None
    return found


def base(bench: Bench, topology_id: str) -> StormBase:
    """A topology that is there."""
    found = bench.state.storm_base(topology_id)
    assert found is not None
    return found


def status(bench: Bench, topology_id: str) -> TopologyStatus:
    """Its status."""
    return base(bench, topology_id).status


def free_port() -> tuple[socket.socket, int]:
    """A port that nobody else is given while the socket is open; a server can listen there."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind((HOST, 0))
    return reserved, reserved.getsockname()[1]


class RunningNimbus:
    """A whole nimbus in this process, on a storage that is not started yet; stop it."""

    def __init__(
        self, folder: Path, storage: StateStorage, conf: Mapping[str, object] | None = None
    ) -> None:
        self._reserved, port = free_port()
        self.storage = storage
        self.state = ClusterState(storage)
        me = NimbusSummary(HOST, port, int(time.time()), "0.1.0")
        whole = configuration(None, {"nimbus.monitor.freq.secs": 1, **(conf or {})})
        self.data = NimbusData.make(whole, me, self.state, folder, time.monotonic, time.time)
        self.service = NimbusService(self.data, storage)
        handler = NimbusHandler(self.data, self.service, self.service.complaint)
        self._server = ThriftServer(handler, HOST, port, name="nimbus")
        self._thread = threading.Thread(target=self.service.run, name="nimbus", daemon=True)
        self._client = ThriftClient(HOST, port)
        self.nimbus = self._client.nimbus

    def start(self) -> RunningNimbus:
        self._server.start()
        self.storage.start()
        self._thread.start()
        return self

    @property
    def id(self) -> str:
        return self.data.me.nimbus_id

    def wait_leads(self, leads: bool = True) -> None:
        wait_until(lambda: self.service.leads is leads, GENEROUS_SECS, f"{self.id} leads: {leads}")

    def stop(self) -> None:
        self._client.close()
        self.service.stop()
        self._thread.join(GENEROUS_SECS)
        assert not self._thread.is_alive()
        self._server.stop()
        self.storage.close()
        self.data.downloads.close()
        self._reserved.close()
