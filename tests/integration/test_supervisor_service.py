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
from storm_py.supervisor import cluster_watch
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.slot_actions import SlotTimeouts
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
OTHERS = "others-2-2"


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
    nimbus.store(OTHERS, archive())
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


def test_a_topology_whose_code_is_not_there_yet_is_tried_again(
    node: Node,
    nimbus: FakeNimbus,
    start: Callable[..., InProcess],
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = "jokes-2-2"
    start()
    node.assign(late, 1)
    wait_until(lambda: "nimbus has no blob jokes-2-2-stormjar.jar" in caplog.text, GENEROUS_SECS)
    nimbus.store(late, archive())
    node.wait_for(late, 1)


def test_another_code_of_a_topology_is_another_worker(
    node: Node, nimbus: FakeNimbus, start: Callable[..., InProcess]
) -> None:
    start()
    node.assign(WORDS, 1)
    first = node.wait_for(WORDS, 1)
    nimbus.store(WORDS, archive("new"))
    node.assign(WORDS, 2, jar=archive("new"))
    assert node.wait_for(WORDS, 2) != first
    assert not is_there(first)
    folders = node.folder.stormdist / WORDS
    assert [path.name for path in folders.iterdir()] == [sha256(archive("new"))]


def test_a_worker_that_does_not_follow_is_replaced(
    node: Node, nimbus: FakeNimbus, start: Callable[..., InProcess]
) -> None:
    late = "late-2-2"
    nimbus.store(late, archive())
    start(timeouts=SlotTimeouts(GENEROUS_SECS, 2.0, 0.5))
    node.assign(late, 1)
    first = node.wait_for(late, 1)
    node.assign(late, 2)
    assert node.wait_for(late, 2) != first


def test_a_worker_that_never_comes_up_is_replaced(
    node: Node, nimbus: FakeNimbus, start: Callable[..., InProcess]
) -> None:
    mute = "mute-2-2"
    nimbus.store(mute, archive())
    start(timeouts=SlotTimeouts(0.5, 0.5, 0.5))
    node.assign(mute, 1)
    wait_until(node.pid, GENEROUS_SECS, "a worker")
    node.wait_for_another(node.pid())


def test_a_worker_that_falls_silent_is_replaced(
    node: Node, start: Callable[..., InProcess]
) -> None:
    start(timeouts=SlotTimeouts(GENEROUS_SECS, 2.0, 0.5))
    node.assign(WORDS, 1)
    first = node.wait_for(WORDS, 1)
    os.kill(first, signal.SIGSTOP)
    node.wait_for_another(first)
    node.wait_for(WORDS, 1)
    assert not is_there(first)


def test_a_worker_that_cannot_be_started_is_tried_again(
    node: Node, start: Callable[..., InProcess], caplog: pytest.LogCaptureFixture
) -> None:
    start()
    node.wait_for_none()
    node.folder.workers.write_text("no folder")
    node.assign(WORDS, 1)
    wait_until(lambda: "a worker of words-1-1 v1 cannot be started" in caplog.text, GENEROUS_SECS)
    node.folder.workers.unlink()
    node.wait_for(WORDS, 1)


def test_an_assignment_that_cannot_be_read_ends_no_worker(
    node: Node,
    cluster: MemoryCluster,
    start: Callable[..., InProcess],
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = start()
    node.assign(WORDS, 1)
    pid = node.wait_for(WORDS, 1)
    first.stop()
    storage = cluster.storage()
    storage.start()
    storage.write(f"/assignments/{WORDS}", b"of another age")
    second = start()
    wait_until(lambda: "what runs of this topology goes on" in caplog.text, GENEROUS_SECS)
    node.assign(OTHERS, 1, ports=[OTHER])
    node.wait_for(OTHERS, 1, OTHER)
    assert node.follows(PORT) == (WORDS, 1)
    assert node.pid() == pid
    storage.delete(f"/assignments/{WORDS}")
    storage.close()
    wait_until(lambda: not is_there(pid), GENEROUS_SECS, "the end of the worker")
    second.stop(end_workers=True)
    os.waitpid(pid, 0)  # the child of this process, whoever adopted it


def test_code_of_topologies_that_are_gone_is_removed_by_the_next_supervisor(
    node: Node, start: Callable[..., InProcess]
) -> None:
    old = node.folder.stormdist / "old-1-1" / "00ff"
    old.mkdir(parents=True)
    start()
    wait_until(lambda: not old.exists(), GENEROUS_SECS, "the end of the old code")


def test_a_worker_that_is_well_is_seldom_looked_at(
    node: Node, start: Callable[..., InProcess]
) -> None:
    running = start()
    node.assign(WORDS, 1)
    node.wait_for(WORDS, 1)
    slots = running.supervisor._slots
    due = slots.next_timeout()
    assert due is not None
    # A third of the time after which it would be taken for silent; far more than 0.1 s.
    assert due - slots._slots[PORT].looked == pytest.approx(GENEROUS_SECS / 3)


def test_an_error_of_ours_ends_the_supervisor_and_no_worker(
    node: Node, start: Callable[..., InProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    node.assign(WORDS, 1)
    pid = node.wait_for(WORDS, 1)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(cluster_watch, "claims_of", broken)
        node.assign(WORDS, 2)
        running.join()
    assert isinstance(running.error, ZeroDivisionError)
    assert is_there(pid)
    next_one = start()
    assert node.wait_for(WORDS, 2) == pid
    next_one.stop(end_workers=True)
    os.waitpid(pid, 0)  # the child of this process, whoever adopted it
