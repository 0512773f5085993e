"""A nimbus over real ZooKeeper and real connections: from submit to removal, and its successor."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storm_py.cluster.records import TopologyStatus
from storm_py.cluster.zookeeper import ZooKeeperStorage
from storm_py.dev_zookeeper import DevZooKeeper
from storm_py.errors import (
    RemoteError,
)
from storm_py.rpc import definitions
from tests.helpers import wait_until
from tests.real_nimbuses import GENEROUS_SECS, RunningNimbus, make_archive, submit, supervisor
from tests.zookeepers import Proxy, settings

Start = Callable[..., RunningNimbus]


@pytest.fixture
def root() -> str:
    return f"/{uuid.uuid4().hex}"


@pytest.fixture
def start(zookeeper: DevZooKeeper, tmp_path: Path, root: str) -> Iterator[Start]:
    """Have one more nimbus, with a disk of its own."""
    running: list[RunningNimbus] = []

    def start(**conf: object) -> RunningNimbus:
        folder = tmp_path / f"nimbus-{len(running)}"
        found = RunningNimbus(folder, ZooKeeperStorage(settings(zookeeper.port, root)), conf)
        running.append(found)
        return found.start()

    yield start
    for one in running:
        one.stop()


@pytest.fixture
def leader(start: Start) -> RunningNimbus:
    found = start()
    found.wait_leads()
    return found


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    return make_archive(tmp_path)


def test_from_submit_to_removal(leader: RunningNimbus, archive: bytes) -> None:
    nimbus, state = leader.nimbus, leader.state
    state.supervisor_heartbeat("s1", supervisor())
    id_ = submit(nimbus, archive, conf={"topology.workers": 2})
    wait_until(lambda: state.assignment(id_), GENEROUS_SECS, "the assignment")
    [summary] = nimbus.getTopologySummaries()
    assert (summary.name, summary.status, summary.num_workers) == ("words", "ACTIVE", 2)
    assert json.loads(nimbus.getTopologyConf(id_))["storm.id"] == id_
    assert nimbus.getLeader().port == leader.data.me.port
    [one] = nimbus.getClusterInfo().supervisors
    assert (one.supervisor_id, one.num_workers, one.num_used_workers) == ("s1", 2, 2)

    nimbus.deactivate("words")
    assert nimbus.getTopologySummary(id_).status == "INACTIVE"
    nimbus.rebalance("words", definitions.RebalanceOptions(wait_secs=0, num_executors={"count": 4}))
    wait_until(lambda: len(_executors(leader, id_)) == 5, GENEROUS_SECS, "the new executors")
    assert state.assignment(id_).version == 2  # type: ignore[union-attr]
    # It is paused until what moves is assigned.
    wait_until(lambda: nimbus.getTopologySummary(id_).status == "INACTIVE", GENEROUS_SECS)

    nimbus.killTopologyWithOpts("words", definitions.KillOptions(wait_secs=0))
    wait_until(lambda: not state.storms(), GENEROUS_SECS, "the removal")
    assert state.assignments() == ()
    assert nimbus.getTopologySummaries() == []


def _executors(nimbus: RunningNimbus, topology_id: str) -> set[tuple[int, int]]:
    found = nimbus.state.assignment(topology_id)
    return set() if found is None else set(found.executor_node_port)


def test_a_second_nimbus_takes_over(start: Start, archive: bytes) -> None:
    first = start()
    first.wait_leads()
    second = start()
    id_ = submit(first.nimbus, archive)
    wait_until(lambda: second.data.blobs.has_all(id_), GENEROUS_SECS, "the blobs")
    with pytest.raises(RemoteError) as caught:
        second.nimbus.killTopology("words")
    assert f"nimbus at {second.id} is not a leader, current leader is {first.id}" in str(
        caught.value
    )
    assert [summary.id for summary in second.nimbus.getTopologySummaries()] == [id_]
    first.nimbus.killTopologyWithOpts("words", definitions.KillOptions(wait_secs=1))
    base = first.state.storm_base(id_)
    assert base is not None
    assert base.status is TopologyStatus.KILLED
    first.stop()
    second.wait_leads()
    wait_until(lambda: not second.state.storms(), GENEROUS_SECS, "the removal")


def test_who_could_not_be_heard_is_not_taken_for_dead(
    zookeeper: DevZooKeeper, tmp_path: Path, root: str, archive: bytes
) -> None:
    proxy = Proxy(zookeeper.port)
    storage = ZooKeeperStorage(settings(proxy.port, root))
    nimbus = RunningNimbus(tmp_path, storage, {"nimbus.task.timeout.secs": 1})
    try:
        nimbus.start()
        nimbus.wait_leads()
        nimbus.state.supervisor_heartbeat("s1", supervisor("s1", (6700,)))
        first = submit(nimbus.nimbus, archive)
        wait_until(lambda: nimbus.state.assignment(first), GENEROUS_SECS, "the assignment")
        executors = [
            definitions.ExecutorInfo(task_start=a, task_end=b) for a, b in _executors(nimbus, first)
        ]
        beat = definitions.SupervisorWorkerHeartbeat(
            storm_id=first, executors=executors, time_secs=1
        )
        nimbus.nimbus.sendSupervisorWorkerHeartbeats(
            definitions.SupervisorWorkerHeartbeats(supervisor_id="s1", worker_heartbeats=[beat])
        )
        nimbus.state.supervisor_heartbeat("s2", supervisor("s2", (6700, 6701)))
        proxy.cut()
        dead_at = nimbus.data.beats.next_timeout()
        assert dead_at is not None
        wait_until(lambda: nimbus.data.clock() > dead_at + 0.5, GENEROUS_SECS, "a long silence")
        assert not nimbus.service.leads
        proxy.mend()
        nimbus.wait_leads()
        second = submit(nimbus.nimbus, archive, "second")
        wait_until(lambda: nimbus.state.assignment(second), GENEROUS_SECS, "a round")
        assert nimbus.state.assignment(first).version == 1  # type: ignore[union-attr]
    finally:
        nimbus.stop()
        proxy.close()
