"""The loop of a nimbus: elections, connections that break, blobs that are missing, and the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storm_py.cluster import paths
from storm_py.cluster.memory import MemoryCluster, MemoryStorage
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.errors import NotALeader, RemoteError
from storm_py.rpc.definitions import KillOptions
from tests.helpers import wait_until
from tests.real_nimbuses import (
    GENEROUS_SECS,
    RunningNimbus,
    make_archive,
    submit,
    supervisor,
    upload,
)

Make = Callable[..., RunningNimbus]


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def make(cluster: MemoryCluster, tmp_path: Path) -> Iterator[Make]:
    """Have one more nimbus, not started, with a disk of its own, or that of another one."""
    made: list[RunningNimbus] = []

    def make(folder: str | None = None, **conf: object) -> RunningNimbus:
        path = tmp_path / (folder or f"nimbus-{len(made)}")
        made.append(RunningNimbus(path, cluster.storage(), conf))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def leader(make: Make) -> RunningNimbus:
    found = make().start()
    found.wait_leads()
    return found


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    return make_archive(tmp_path)


def memory(nimbus: RunningNimbus) -> MemoryStorage:
    assert isinstance(nimbus.storage, MemoryStorage)
    return nimbus.storage


def other_state(cluster: MemoryCluster) -> ClusterState:
    storage = cluster.storage()
    storage.start()
    return ClusterState(storage)


def stored(nimbus: RunningNimbus) -> set[tuple[str, bytes]]:
    blobs = nimbus.data.blobs
    return set(zip(blobs.keys(), map(blobs.read, blobs.keys()), strict=True))


class TestElections:
    def test_one_leads_and_says_so(self, leader: RunningNimbus, make: Make) -> None:
        assert leader.state.leader_info() == leader.data.me
        follower = make().start()
        wait_until(lambda: len(leader.state.nimbuses()) == 2, GENEROUS_SECS, "both")
        with pytest.raises(RemoteError) as caught:
            follower.nimbus.killTopology("words")
        assert (
            f"nimbus at {follower.id} is not a leader, current leader is {leader.id}: ask that one"
        ) in str(caught.value)
        with pytest.raises(RemoteError, match="is not a leader, current leader is"):
            follower.nimbus.beginFileUpload()
        assert follower.nimbus.getLeader().port == leader.data.me.port

    def test_another_one_follows_who_stops(
        self, leader: RunningNimbus, make: Make, archive: bytes
    ) -> None:
        follower = make().start()
        id_ = submit(leader.nimbus, archive)
        wait_until(lambda: follower.data.blobs.has_all(id_), GENEROUS_SECS, "the blobs")
        leader.stop()
        follower.wait_leads()
        assert follower.state.leader_info() == follower.data.me
        follower.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=0))
        wait_until(lambda: not follower.state.storms(), GENEROUS_SECS, "the removal")

    def test_who_was_killed_is_followed_at_once_by_who_has_its_address(
        self, make: Make, cluster: MemoryCluster
    ) -> None:
        found = make()
        killed = cluster.storage()
        killed.start()
        lock = f"{paths.LEADER_LOCK}/00-latch-"
        killed.create(lock, found.id.encode(), ephemeral=True, sequence=True)
        ClusterState(killed).add_nimbus(found.data.me)
        ClusterState(killed).set_leader_info(found.data.me)
        found.start()
        found.wait_leads()
        killed.expire()
        assert found.state.leader_info() == found.data.me
        assert found.state.nimbuses() == (found.data.me,)

    def test_a_stranger_in_the_election_is_left_alone(
        self, make: Make, cluster: MemoryCluster
    ) -> None:
        other = other_state(cluster)
        other.leader_latch("elsewhere:6627", lambda leads: None).start()
        found = make().start()
        wait_until(lambda: len(other.nimbuses()) == 1, GENEROUS_SECS, "it is there")
        with pytest.raises(NotALeader):
            found.service.check_leads()


class TestConnections:
    def test_a_connection_that_comes_back(
        self, leader: RunningNimbus, archive: bytes, cluster: MemoryCluster
    ) -> None:
        id_ = submit(leader.nimbus, archive)
        memory(leader).suspend()
        with pytest.raises(RemoteError) as caught:
            leader.nimbus.killTopology("words")
        assert "its connection to ZooKeeper is SUSPENDED; see that ZooKeeper runs" in str(
            caught.value
        )
        memory(leader).resume()
        other_state(cluster).supervisor_heartbeat("s1", supervisor())
        wait_until(lambda: leader.state.assignment(id_), GENEROUS_SECS, "the assignment")
        leader.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=0))
        wait_until(lambda: not leader.state.storms(), GENEROUS_SECS, "the removal")

    def test_a_session_that_is_lost(self, leader: RunningNimbus, archive: bytes) -> None:
        submit(leader.nimbus, archive)
        memory(leader).expire()
        leader.wait_leads(False)
        with pytest.raises(RemoteError, match="its connection to ZooKeeper is LOST"):
            leader.nimbus.activate("words")
        memory(leader).resume()
        leader.wait_leads()
        wait_until(lambda: leader.state.leader_info(), GENEROUS_SECS, "that it leads")
        wait_until(lambda: leader.state.nimbuses(), GENEROUS_SECS, "that it is there")
        leader.nimbus.activate("words")

    def test_another_one_leads_when_the_session_is_lost(
        self, leader: RunningNimbus, make: Make
    ) -> None:
        follower = make().start()
        wait_until(lambda: len(leader.state.nimbuses()) == 2, GENEROUS_SECS, "both")
        memory(leader).expire()
        follower.wait_leads()
        memory(leader).resume()
        wait_until(lambda: len(follower.state.nimbuses()) == 2, GENEROUS_SECS, "both again")
        leader.wait_leads(False)
        follower.wait_leads()

    @pytest.mark.parametrize("operation", ["read", "children", "write"])
    def test_an_operation_that_breaks_is_no_end(
        self, leader: RunningNimbus, archive: bytes, cluster: MemoryCluster, operation: str
    ) -> None:
        id_ = submit(leader.nimbus, archive)
        memory(leader).fail_next(operation, False)
        other = other_state(cluster)
        other.supervisor_heartbeat("s1", supervisor())
        wait_until(lambda: other.assignment(id_), GENEROUS_SECS, "the assignment")
        leader.wait_leads()


class TestBlobs:
    def test_who_has_no_blobs_does_not_lead(
        self,
        leader: RunningNimbus,
        make: Make,
        archive: bytes,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        id_ = submit(leader.nimbus, archive)
        leader.stop()
        empty = make().start()
        wait_until(lambda: "cannot lead: the blobs of" in caplog.text, GENEROUS_SECS, "the log")
        assert (
            f"cannot lead: the blobs of {id_} are not in {empty.data.blobs.folder}" in caplog.text
        )
        assert not empty.service.leads
        assert caplog.text.count("cannot lead") == 1
        whole = make("nimbus-0").start()  # one of them is elected, and has or fetches them
        wait_until(lambda: whole.service.leads or empty.service.leads, GENEROUS_SECS, "a leader")
        wait_until(lambda: empty.data.blobs.has_all(id_), GENEROUS_SECS, "the blobs")
        assert [one.id for one in empty.nimbus.getTopologySummaries()] == [id_]

    def test_a_follower_has_what_there_is_and_nothing_besides(
        self, make: Make, archive: bytes
    ) -> None:
        briefly = {"nimbus.topology.blobstore.deletion.delay.ms": 1}
        leader, follower = make(**briefly).start(), make(**briefly).start()
        leader.wait_leads()
        id_ = submit(leader.nimbus, archive)
        wait_until(lambda: follower.data.blobs.has_all(id_), GENEROUS_SECS, "the blobs")
        assert stored(follower) == stored(leader)
        assert len(stored(leader)) == 3
        leader.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=0))
        wait_until(lambda: not follower.data.blobs.keys(), GENEROUS_SECS, "their removal")


class TestLoop:
    def test_a_supervisor_that_comes_is_used_at_once(
        self, make: Make, archive: bytes, cluster: MemoryCluster
    ) -> None:
        nimbus = make(**{"nimbus.monitor.freq.secs": 3600}).start()
        nimbus.wait_leads()
        id_ = submit(nimbus.nimbus, archive)
        other_state(cluster).supervisor_heartbeat("s1", supervisor())
        wait_until(lambda: nimbus.state.assignment(id_), GENEROUS_SECS, "the assignment")

    def test_uploads_that_are_too_old_go(self, make: Make, archive: bytes) -> None:
        nimbus = make(
            **{"nimbus.cleanup.inbox.freq.secs": 1, "nimbus.inbox.jar.expiration.secs": 3600}
        ).start()
        nimbus.wait_leads()
        old, new = upload(nimbus.nimbus, archive), upload(nimbus.nimbus, archive)
        os.utime(old, (1000, 1000))
        wait_until(lambda: not Path(old).exists(), GENEROUS_SECS, "the end of the old one")
        assert Path(new).exists()

    def test_who_stops_is_out_of_the_election(
        self, leader: RunningNimbus, cluster: MemoryCluster
    ) -> None:
        leader.service.stop()
        watcher = cluster.storage()
        watcher.start()
        wait_until(
            lambda: (
                not watcher.children(paths.LEADER_LOCK)
                and not watcher.children(paths.NIMBUSES)
                and watcher.read(paths.LEADER_INFO) is None
            ),
            GENEROUS_SECS,
            "that nothing of it is left",
        )
        with pytest.raises(RemoteError, match="does not lead yet"):
            leader.nimbus.killTopology("words")
