"""Nimbus as a process: what stops it from starting, how it ends, and what kill -9 does."""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storm_py.cluster.records import TopologyStatus
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.cluster.zookeeper import ZooKeeperStorage
from storm_py.config import configuration
from storm_py.dev_zookeeper import DevZooKeeper
from storm_py.rpc.client import ThriftClient
from storm_py.rpc.definitions import KillOptions
from tests.helpers import wait_until
from tests.real_nimbuses import GENEROUS_SECS, free_port, make_archive, submit, supervisor
from tests.zookeepers import HOST, settings

PROGRAM = """
import json, sys
from storm_py.errors import StormPyError
from storm_py.nimbus.main import run
try:
    run(json.loads(sys.argv[1]))
except StormPyError as error:
    sys.exit(f"refused: {error}")
"""


class Process:
    """A nimbus, and what it logs."""

    def __init__(self, conf: dict[str, object], log: Path) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, json.dumps(configuration(None, conf))], stderr=file
            )

    def wait_for(self, words: str) -> None:
        wait_until(lambda: words in self.log.read_text(), GENEROUS_SECS, words)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(GENEROUS_SECS)


Start = Callable[..., Process]


@pytest.fixture
def port() -> Iterator[int]:
    reserved, found = free_port()
    yield found
    reserved.close()


@pytest.fixture
def root() -> str:
    return f"/{uuid.uuid4().hex}"


@pytest.fixture
def start(zookeeper: DevZooKeeper, tmp_path: Path, root: str, port: int) -> Iterator[Start]:
    """Start nimbus, always with the same disk, address and port, unless the test says otherwise."""
    started: list[Process] = []

    def start(**changes: object) -> Process:
        conf: dict[str, object] = {
            "storm.local.dir": str(tmp_path / "local"),
            "storm.local.hostname": HOST,
            "nimbus.thrift.port": port,
            "storm.zookeeper.servers": [HOST],
            "storm.zookeeper.port": zookeeper.port,
            "storm.zookeeper.root": root,
            **changes,
        }
        started.append(Process(conf, tmp_path / f"log-{len(started)}"))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


@pytest.fixture
def state(zookeeper: DevZooKeeper, root: str) -> Iterator[ClusterState]:
    storage = ZooKeeperStorage(settings(zookeeper.port, root))
    storage.start()
    yield ClusterState(storage)
    storage.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_what_it_does_and_ends_in_order(
    start: Start, port: int, state: ClusterState, number: signal.Signals
) -> None:
    found = start()
    found.wait_for(f"nimbus listens at {HOST}:{port}, and looks for ZooKeeper at {HOST}:")
    found.wait_for(f"nimbus at {HOST}:{port} leads")
    assert found.end(number) == 0
    assert f"nimbus at {HOST}:{port} has ended" in found.log.read_text()
    assert (state.nimbuses(), state.leader_info()) == ((), None)
    lines = found.log.read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO ", line) for line in lines)


def test_after_kill_9_it_goes_on_from_what_is_stored(
    start: Start, port: int, state: ClusterState, tmp_path: Path
) -> None:
    state.supervisor_heartbeat("s1", supervisor())
    first = start()
    first.wait_for("leads")
    with ThriftClient(HOST, port) as client:
        archive = make_archive(tmp_path)
        id_ = submit(client.nimbus, archive)
        other = submit(client.nimbus, archive, "other")
        location = client.nimbus.beginFileUpload()
        client.nimbus.uploadChunk(location, b"half of it")
        wait_until(lambda: len(state.assignments()) == 2, GENEROUS_SECS, "the assignments")
        client.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=1))
        first.end(signal.SIGKILL)
        base = state.storm_base(id_)
        assert base is not None
        assert base.status is TopologyStatus.KILLED
        second = start()
        second.wait_for(f"an earlier nimbus at {HOST}:{port} did not end in order")
        second.wait_for(f"{id_} is removed")
        assert client.nimbus.getTopologySummaries()[0].id == other
        assignment = state.assignment(other)
        assert assignment is not None
        assert assignment.version == 1
        assert list((tmp_path / "local" / "nimbus" / "inbox").iterdir()) == []
    assert second.end(signal.SIGTERM) == 0


def test_a_port_in_use(start: Start, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = start(**{"nimbus.thrift.port": port})
        assert found.process.wait(GENEROUS_SECS) == 1
    assert found.log.read_text() == (
        f"refused: nimbus cannot listen at {HOST}:{port}: Address already in use; stop what "
        "listens there, or choose another port; the address is storm.local.hostname, the port "
        "nimbus.thrift.port\n"
    )


def test_a_folder_in_use(start: Start, tmp_path: Path) -> None:
    start().wait_for("leads")
    reserved, port = free_port()
    second = start(**{"nimbus.thrift.port": port})
    assert second.process.wait(GENEROUS_SECS) == 1
    reserved.close()
    assert second.log.read_text() == (
        f"refused: another nimbus uses {tmp_path / 'local' / 'nimbus'}: stop it, or have "
        "storm.local.dir name another folder for this one\n"
    )


def test_no_zookeeper(start: Start) -> None:
    reserved, port = free_port()
    found = start(**{"storm.zookeeper.port": port, "storm.zookeeper.connection.timeout": 300})
    assert found.process.wait(GENEROUS_SECS) == 1
    reserved.close()
    assert (
        f"refused: no ZooKeeper answers at {HOST}:{port} within 0.3 s: start it, or set "
        "storm.zookeeper.servers and storm.zookeeper.port\n"
    ) in found.log.read_text()


def test_it_can_be_told_to_end_while_it_waits_for_zookeeper(start: Start) -> None:
    reserved, port = free_port()
    found = start(**{"storm.zookeeper.port": port, "storm.zookeeper.connection.timeout": 600_000})
    found.wait_for("looks for ZooKeeper")
    assert found.end(signal.SIGTERM) == 0
    reserved.close()


def test_idle_clients_do_not_take_the_files_that_nimbus_needs(start: Start, port: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
    try:
        found = start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    found.wait_for("leads")
    idle = [socket.create_connection((HOST, port)) for _ in range(200)]
    with ThriftClient(HOST, port) as client:
        assert client.nimbus.getTopologySummaries() == []
    for each in idle:
        each.close()
    assert found.end(signal.SIGTERM) == 0
    assert "open files" not in found.log.read_text()
