"""A supervisor with real workers, and a cluster in memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storm_py.cluster.memory import MemoryCluster
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.errors import LocalStateError
from storm_py.supervisor.folders import LocalFolder
from storm_py.worker_spec import WorkerSpec
from tests.helpers import wait_until
from tests.integration.harness import GENEROUS_SECS
from tests.integration.supervising import (
    HOST,
    PORTS,
    FakeNimbus,
    InProcess,
    Node,
    archive,
    is_there,
    sha256,
)

PORT, OTHER = PORTS
WORDS = "words-1-1"


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def state(cluster: MemoryCluster) -> Iterator[ClusterState]:
    storage = cluster.storage()
    storage.start()
    yield ClusterState(storage)
    storage.close()


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


@pytest.fixture
def start(node: Node, cluster: MemoryCluster) -> Iterator[Callable[..., InProcess]]:
    """Starts a supervisor; workers that are left end with the last of them."""
    started: list[InProcess] = []

    def start(**changes: Any) -> InProcess:
        started.append(InProcess(node.folder, cluster, **changes))
        return started[-1]

    yield start
    for each in started:
        each.supervisor.stop(end_workers=True)
        each.join()


def test_a_worker_from_its_assignment_to_its_end(
    node: Node, start: Callable[..., InProcess]
) -> None:
    start()
    node.wait_for_none()
    node.assign(WORDS, 1)
    first = node.wait_for(WORDS, 1)
    info = node.info()
    assert info is not None
    assert (info.hostname, info.assignment_id) == (HOST, node.supervisor_id)
    assert (info.meta, info.used_ports) == (PORTS, (PORT,))
    assert info.worker_heartbeats[PORT].executors == ((1, 1),)

    node.assign(WORDS, 2, ports=PORTS)
    assert node.wait_for(WORDS, 2) == first, "told, not killed"
    node.wait_for(WORDS, 2, OTHER)

    os.kill(first, signal.SIGKILL)
    node.wait_for_another(first)
    second = node.wait_for(WORDS, 2)

    node.state.remove_assignment(WORDS)
    node.wait_for_none()
    assert not is_there(second)
    assert list(node.folder.workers.iterdir()) == []
    assert list(node.folder.stormdist.iterdir()) == []
    assert node.folder.logs(WORDS, PORT).is_dir()


def test_what_a_worker_is_told(node: Node, start: Callable[..., InProcess]) -> None:
    start()
    node.assign(WORDS, 1)
    pid = node.wait_for(WORDS, 1)
    [worker] = node.folder.workers.iterdir()
    spec = WorkerSpec.read(node.folder.spec(worker.name))
    code = node.folder.stormdist / WORDS / sha256(archive())
    assert spec == WorkerSpec(
        worker_id=worker.name,
        supervisor_id=node.supervisor_id,
        host=HOST,
        port=PORT,
        topology_id=WORDS,
        code_checksum=sha256(archive()),
        code_folder=str(code),
        log_folder=str(node.folder.logs(WORDS, PORT)),
        heartbeat=str(node.folder.heartbeat(worker.name)),
        supervisor_lock=str(node.folder.local_state.with_name("localstate.json.lock")),
        conf={"ui.port": 1},
    )
    assert (code / "stormcode.ser").read_bytes() == b"code"
    assert Path(f"/proc/{pid}/cwd").readlink() == code / "code"


def test_nimbus_hears_of_workers(
    node: Node, nimbus: FakeNimbus, start: Callable[..., InProcess]
) -> None:
    start(heartbeat_secs=0.01)
    node.assign(WORDS, 3)
    wait_until(lambda: nimbus.heartbeats, GENEROUS_SECS, "heartbeats")
    heartbeats = nimbus.heartbeats[0]
    assert heartbeats.supervisor_id == node.supervisor_id
    [worker] = heartbeats.worker_heartbeats
    assert worker.storm_id == WORDS
    assert [(each.task_start, each.task_end) for each in worker.executors] == [(1, 1)]
    assert worker.statistics == "[[1,1,7,4711,1,2,3,4,5,6]]"


def test_a_second_supervisor_on_the_same_folder_is_refused(
    node: Node, start: Callable[..., InProcess], cluster: MemoryCluster
) -> None:
    start()
    node.wait_for_none()
    second = InProcess(node.folder, cluster)
    second.join()
    assert isinstance(second.error, LocalStateError)
    assert "another supervisor uses the folder" in str(second.error)


def test_workers_live_on_without_their_supervisor(
    node: Node, start: Callable[..., InProcess]
) -> None:
    first = start()
    node.assign(WORDS, 1)
    pid = node.wait_for(WORDS, 1)
    first.stop()
    assert is_there(pid)
    assert node.info() is None
    node.assign(WORDS, 2)
    second = start()
    assert node.wait_for(WORDS, 2) == pid
    second.stop(end_workers=True)
    assert not is_there(pid)
    os.waitpid(pid, 0)  # the child of this process, whoever adopted it
