"""A supervisor as a process, with a real ZooKeeper: it is killed, and so are its workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storm_py.cluster.base import ConnectionState
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.cluster.zookeeper import ZooKeeperStorage
from storm_py.dev_zookeeper import DevZooKeeper
from storm_py.supervisor.folders import LocalFolder
from tests.helpers import wait_until
from tests.integration.harness import GENEROUS_SECS, ROOT
from tests.integration.supervising import HOST, PORTS, WORDS, FakeNimbus, Node, archive, is_there
from tests.zookeepers import SESSION_SECS, Proxy, settings

PORT, OTHER = PORTS


@pytest.fixture
def storage(zookeeper: DevZooKeeper) -> Iterator[ZooKeeperStorage]:
    storage = ZooKeeperStorage(settings(zookeeper.port))
    storage.start()
    yield storage
    storage.close()


@pytest.fixture
def proxy(zookeeper: DevZooKeeper) -> Iterator[Proxy]:
    """The way of supervisors to ZooKeeper."""
    proxy = Proxy(zookeeper.port)
    yield proxy
    proxy.close()


@pytest.fixture
def state(storage: ZooKeeperStorage) -> ClusterState:
    return ClusterState(storage)


@pytest.fixture
def nimbus(state: ClusterState) -> Iterator[FakeNimbus]:
    nimbus = FakeNimbus()
    nimbus.store(WORDS, archive())
    state.set_leader_info(nimbus.summary)
    yield nimbus
    nimbus.server.stop()


@pytest.fixture
def node(tmp_path: Path, state: ClusterState, nimbus: FakeNimbus) -> Node:
    return Node(LocalFolder(tmp_path / "local"), state)


class Daemon:
    """A supervisor in a process of its own."""

    def __init__(self, conf: dict[str, Any], log: Path, end_workers: bool) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.integration.supervising",
                    json.dumps(conf),
                    "end" if end_workers else "leave",
                ],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        """What it has written so far."""
        return self.log.read_text()

    def wait_for(self, text: str) -> None:
        """Until it has written this."""
        wait_until(
            lambda: text in self.output or self.process.poll() is not None, GENEROUS_SECS, text
        )
        assert text in self.output, self.output

    def kill(self) -> None:
        """As an operator who has lost patience."""
        self.process.kill()
        self.process.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """In order: its exit code."""
        self.process.send_signal(number)
        return self.process.wait(GENEROUS_SECS)


Start = Callable[..., Daemon]


@pytest.fixture
def start(node: Node, storage: ZooKeeperStorage, proxy: Proxy, tmp_path: Path) -> Iterator[Start]:
    """Starts a supervisor; in the end it and all workers are ended."""
    started: list[Daemon] = []

    def start(end_workers: bool = False, **conf: Any) -> Daemon:
        whole = {
            "storm.local.dir": str(node.folder.path),
            "storm.local.hostname": HOST,
            "storm.zookeeper.servers": [HOST],
            "storm.zookeeper.port": proxy.port,
            "storm.zookeeper.root": storage._root,
            "storm.zookeeper.session.timeout": int(SESSION_SECS * 1000),
            "storm.zookeeper.connection.timeout": 60_000,
            "supervisor.slots.ports": list(PORTS),
            "supervisor.heartbeat.frequency.secs": 1,
            "supervisor.worker.shutdown.sleep.secs": 1,
            **conf,
        }
        log = tmp_path / f"supervisor-{len(started)}.log"
        started.append(Daemon(whole, log, end_workers))
        return started[-1]

    yield start
    for daemon in started:
        daemon.kill()
    for record in node.records().values():
        if is_there(record.process.pid):
            os.kill(record.process.pid, signal.SIGKILL)


def test_a_supervisor_that_is_killed_finds_its_workers_again(node: Node, start: Start) -> None:
    first = start()
    node.assign(WORDS, 1, ports=PORTS)
    pid = node.wait_for(WORDS, 1)
    other = node.wait_for(WORDS, 1, OTHER)
    supervisor_id = node.supervisor_id
    assert f"supervisor {supervisor_id} on 127.0.0.1, ports 6700, 6701, is up" in first.output

    first.kill()
    assert is_there(pid)
    os.kill(other, signal.SIGKILL)
    node.assign(WORDS, 2, ports=PORTS)
    second = start()
    assert node.wait_for(WORDS, 2) == pid
    assert node.wait_for(WORDS, 2, OTHER) != other
    assert "nimbus gets no heartbeats" not in second.output
    # Its node is that of its session, not of the one of the supervisor that was killed.
    assert node.state.supervisors() == (supervisor_id,)


def test_a_worker_that_is_assigned_no_more_ends_also_with_the_next_supervisor(
    node: Node, start: Start
) -> None:
    first = start()
    node.assign(WORDS, 1)
    pid = node.wait_for(WORDS, 1)
    first.kill()
    node.state.remove_assignment(WORDS)
    start()
    wait_until(lambda: not is_there(pid), GENEROUS_SECS, "the end of the worker")
    wait_until(lambda: not node.records(), GENEROUS_SECS, "nothing left of it")


def test_a_worker_that_nobody_approved_is_ended(node: Node, start: Start) -> None:
    first = start()
    node.assign(WORDS, 1)
    pid = node.wait_for(WORDS, 1)
    first.kill()
    known = json.loads(node.folder.local_state.read_bytes())
    known["approved_workers"] = {}
    node.folder.local_state.write_text(json.dumps(known))
    second = start()
    node.wait_for_another(pid)
    assert not is_there(pid)
    assert "is none that this node should have" in second.output
    node.wait_for(WORDS, 1)


def test_workers_go_on_without_zookeeper(node: Node, start: Start, proxy: Proxy) -> None:
    first = start()
    node.assign(WORDS, 1, ports=PORTS)
    pid = node.wait_for(WORDS, 1)
    other = node.wait_for(WORDS, 1, OTHER)
    proxy.cut()
    first.wait_for("the connection to ZooKeeper is SUSPENDED")
    node.state.remove_assignment(WORDS)  # which nobody can tell the supervisor
    os.kill(other, signal.SIGKILL)
    node.wait_for_another(other, OTHER)
    assert is_there(pid)

    proxy.mend()
    node.wait_for_none()
    assert not is_there(pid)


def test_a_supervisor_that_starts_without_zookeeper_looks_after_its_workers(
    node: Node, start: Start, proxy: Proxy
) -> None:
    first = start()
    node.assign(WORDS, 1, ports=PORTS)
    pid = node.wait_for(WORDS, 1)
    other = node.wait_for(WORDS, 1, OTHER)
    first.kill()
    proxy.cut()
    os.kill(other, signal.SIGKILL)
    second = start(**{"storm.zookeeper.connection.timeout": 1000})
    node.wait_for_another(other, OTHER)
    second.wait_for("looks after its workers without ZooKeeper")
    assert is_there(pid)
    proxy.mend()
    node.assign(WORDS, 2, ports=PORTS)
    assert node.wait_for(WORDS, 2) == pid
    node.wait_for(WORDS, 2, OTHER)


def test_without_zookeeper_and_without_workers_there_is_nothing_to_do(
    start: Start, proxy: Proxy
) -> None:
    proxy.cut()
    daemon = start(**{"storm.zookeeper.connection.timeout": 500})
    assert daemon.process.wait(GENEROUS_SECS) == 1
    assert "ConnectionLost: no ZooKeeper answers at 127.0.0.1:" in daemon.output


def test_a_supervisor_whose_session_is_lost_says_again_that_it_lives(
    node: Node, start: Start, proxy: Proxy, storage: ZooKeeperStorage
) -> None:
    daemon = start(**{"storm.zookeeper.session.timeout": 4000})
    node.assign(WORDS, 1)
    pid = node.wait_for(WORDS, 1)
    proxy.cut()
    wait_until(lambda: node.info() is None, GENEROUS_SECS, "the end of its session")
    proxy.mend()
    assert node.wait_for(WORDS, 1) == pid
    daemon.wait_for(f"the connection to ZooKeeper is {ConnectionState.LOST}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_workers_outlive_a_supervisor_that_is_stopped(
    node: Node, start: Start, number: signal.Signals
) -> None:
    daemon = start()
    node.assign(WORDS, 1)
    pid = node.wait_for(WORDS, 1)
    assert daemon.stop(number) == 0, daemon.output
    assert is_there(pid)
    assert node.info() is None


def test_workers_are_ended_where_that_is_asked_for_and_started_again(
    node: Node, nimbus: FakeNimbus, start: Start
) -> None:
    stubborn = "stubborn-2-2"
    nimbus.store(stubborn, archive())
    daemon = start(end_workers=True)
    node.assign(WORDS, 1)
    node.assign(stubborn, 1, ports=[OTHER])
    pids = [node.wait_for(WORDS, 1), node.wait_for(stubborn, 1, OTHER)]
    assert daemon.stop() == 0, daemon.output
    assert "workers that are to end: 2" in daemon.output
    assert not any(map(is_there, pids))
    assert node.records() == {}

    nimbus.server.stop()  # the code is on the disk still
    start()
    assert node.wait_for(WORDS, 1) not in pids
    assert node.wait_for(stubborn, 1, OTHER) not in pids


def test_a_supervisor_that_waits_for_zookeeper_can_be_stopped(
    node: Node, start: Start, proxy: Proxy
) -> None:
    first = start()
    node.assign(WORDS, 1)
    pid = node.wait_for(WORDS, 1)
    first.kill()
    proxy.cut()
    second = start()
    second.wait_for("goes on: words-1-1 v1")
    assert second.stop() == 0, second.output
    assert is_there(pid)
