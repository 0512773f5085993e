"""A term of leadership over a cluster in memory: submissions, and what rounds assign when."""

from __future__ import annotations

import errno
import logging
from dataclasses import replace

import pytest

from storm_py import TopologyBuilder
from storm_py.bundle import StormCode, without_objects
from storm_py.cluster.records import (
    TopologyStatus,
    WorkerHeartbeat,
    WorkerRegistration,
)
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.components import pack
from storm_py.errors import AlreadyAliveException, RemoteError
from storm_py.nimbus.blobstore import keys_of
from storm_py.nimbus.catalogue import Submitted
from storm_py.rpc.definitions import KillOptions, RebalanceOptions
from tests.cluster_records import error_info
from tests.real_nimbuses import (
    Bench,
    Count,
    Lines,
    assignment,
    status,
    submit,
    supervisor,
)


class TestSubmissions:
    def test_one_is_assigned_at_once(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        bench.tick()
        id_ = submit(bench.nimbus, archive, conf={"topology.workers": 2})
        bench.tick()
        found = assignment(bench, id_)
        assert found.version == 1
        assert found.executor_node_port == {
            (1, 2): ("s1", 6700),
            (3, 4): ("s1", 6701),
            (5, 5): ("s1", 6700),
        }
        assert found.node_host == {"s1": "host-s1"}
        assert found.code_checksum == bench.data.blobs.info(keys_of(id_)[0]).sha256
        assert bench.state.claim_worker(id_, 1) == 1  # there is a place for registrations
        bench.state.report_error(id_, "count", error_info())  # and for errors

    def test_without_a_supervisor_it_waits_for_one(
        self, bench: Bench, archive: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        assert bench.state.assignment(id_) is None
        complaint = f"{id_} wants 1 slots and has 0, 3 executors have none: start another"
        assert (bench.nimbus.getTopologySummary(id_).sched_status or "").startswith(complaint)
        bench.tick(10)
        assert caplog.text.count(complaint) == 1
        bench.join()
        bench.request_round()
        bench.tick()
        assert assignment(bench, id_).version == 1
        assert bench.nimbus.getTopologySummary(id_).sched_status is None

    def test_an_inactive_one_is_assigned_as_well(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive, active=False)
        bench.tick()
        assert status(bench, id_) is TopologyStatus.INACTIVE
        assert assignment(bench, id_).version == 1

    def test_a_name_is_taken_until_the_topology_is_removed(
        self, bench: Bench, archive: bytes
    ) -> None:
        first = submit(bench.nimbus, archive)
        with pytest.raises(AlreadyAliveException):
            submit(bench.nimbus, archive)
        bench.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=5))
        with pytest.raises(AlreadyAliveException):
            submit(bench.nimbus, archive)
        bench.tick(5)
        assert submit(bench.nimbus, archive) != first

    def test_no_id_is_given_out_twice(self, bench: Bench) -> None:
        ids = []
        for _ in range(3):
            ids.append(bench.term.reserve("words"))
            bench.term.give_up("words")
        assert len(set(ids)) == 3

    def test_no_id_is_given_out_twice_by_two_terms(self, bench: Bench) -> None:
        first = bench.term.reserve("words")
        bench.begin()
        assert bench.term.reserve("words") != first

    def test_what_cannot_be_managed_is_not_stored(self, bench: Bench, archive: bytes) -> None:
        def unreadable(topology_id: str) -> Submitted:
            raise OSError(errno.EMFILE, "Too many open files")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bench.data.catalogue, "get", unreadable)
            with pytest.raises(RemoteError, match="Too many open files"):
                submit(bench.nimbus, archive)
        assert bench.state.storms() == ()
        assert bench.data.blobs.keys() == frozenset()
        submit(bench.nimbus, archive)  # the name is free

    def test_blobs_that_cannot_be_removed_do_not_keep_the_name(
        self, bench: Bench, archive: bytes
    ) -> None:
        def refuse(topology_id: str) -> None:
            raise OSError(errno.EIO, "Input/output error")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bench.data.blobs, "delete_topology", refuse)
            with pytest.raises(RemoteError, match="Input/output error"):
                submit(bench.nimbus, b"no archive")
        submit(bench.nimbus, archive)

    def test_two_of_one_name_at_the_same_time(self, bench: Bench) -> None:
        bench.term.reserve("words")
        with pytest.raises(AlreadyAliveException, match="already exists on the cluster"):
            bench.term.reserve("words")
        bench.term.give_up("words")
        bench.term.reserve("words")


class TestRounds:
    def test_nothing_is_written_while_nothing_changes(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        node = bench.storage.read(f"/assignments/{id_}")
        for _ in range(5):
            bench.beat(id_, "s1")
            bench.tick(10)
        assert bench.storage.read(f"/assignments/{id_}") == node

    def test_executors_that_are_silent_move(self, bench: Bench, archive: bytes) -> None:
        bench.join("s1", (6700,))
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.beat(id_, "s1")
        bench.join("s2", (6700,))
        bench.tick(29)
        assert set(assignment(bench, id_).executor_node_port.values()) == {("s1", 6700)}
        bench.tick(1)
        after = assignment(bench, id_)
        assert set(after.executor_node_port.values()) == {("s2", 6700)}
        assert (after.version, after.worker_numbers) == (2, {("s2", 6700): 2})
        assert set(after.executor_start_time_secs.values()) == {int(bench.clocks.wall())}

    def test_the_registrations_of_workers_that_are_no_more_go(
        self, bench: Bench, archive: bytes
    ) -> None:
        bench.join("s1", (6700,))
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.state.claim_worker(id_, 1)
        bench.state.register(id_, WorkerRegistration(1, 1))
        bench.join("s2", (6700,))
        bench.tick(120)
        assert assignment(bench, id_).version == 2
        assert bench.state.registered_workers(id_) == ()

    def test_a_worker_whose_supervisor_is_gone_goes_on(self, bench: Bench, archive: bytes) -> None:
        leaving = bench.join("s1", (6700,))
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.join("s2", (6700,))
        leaving.close()
        for _ in range(20):
            bench.beat(id_, "s1")
            bench.tick(10)
        assert assignment(bench, id_).version == 1

    def test_without_another_slot_everything_stays(self, bench: Bench, archive: bytes) -> None:
        bench.join("s1", (6700,))
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.tick(200)
        assert assignment(bench, id_).version == 1

    def test_heartbeats_in_zookeeper_count_too(self, bench: Bench, archive: bytes) -> None:
        joined = bench.join("s1", (6700,))
        bench.join("s2", (6700,))
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        first = assignment(bench, id_)
        [(node, port)] = set(first.executor_node_port.values())
        for _ in range(30):
            now = int(bench.clocks.wall())
            beat = WorkerHeartbeat(id_, 1, tuple(first.executor_node_port), now, 1)
            beats = {port: beat}
            info = replace(supervisor(node, (6700,), now), worker_heartbeats=beats)
            ClusterState(joined).supervisor_heartbeat(node, info)
            bench.tick(10)
        assert assignment(bench, id_).version == 1

    def test_what_is_broken_about_one_topology_does_not_keep_others_from_running(
        self, bench: Bench, archive: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        bench.join()
        broken = submit(bench.nimbus, archive, "broken")
        bench.storage.create(f"/assignments/{broken}", b"nonsense")
        good = submit(bench.nimbus, archive, "good")
        with caplog.at_level(logging.ERROR):
            bench.tick()
        assert f"{broken} is left out of this round: /assignments/{broken}: expected" in caplog.text
        assert assignment(bench, good).version == 1
        assert not bench.term.stale


def test_a_fused_chain_stays_together(bench: Bench, archive: bytes) -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(), 4)
    builder.set_bolt("count", Count(), 4).local_or_shuffle_grouping("lines")
    topology = builder.create_topology()
    code = StormCode(without_objects(topology), pack(topology))
    bench.join()
    id_ = submit(bench.nimbus, archive, conf={"topology.workers": 2}, code=code)
    bench.tick()
    where = assignment(bench, id_).executor_node_port
    for i in range(1, 5):  # count has the tasks 1 to 4, lines 5 to 8
        assert where[i, i] == where[i + 4, i + 4]
    assert len(set(where.values())) == 2
    bench.nimbus.rebalance(
        "words", RebalanceOptions(wait_secs=0, num_executors={"count": 2, "lines": 2})
    )
    bench.tick()
    where = assignment(bench, id_).executor_node_port
    assert set(where) == {(1, 2), (3, 4), (5, 6), (7, 8)}
    assert where[1, 2] == where[5, 6]
