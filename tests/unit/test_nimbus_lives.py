"""Kill and rebalance over a cluster in memory, and what a successor makes of what is stored."""

from __future__ import annotations

import logging

import pytest

from storm_py.cluster.records import (
    TopologyStatus,
)
from storm_py.errors import ConnectionLost, NotALeader
from storm_py.nimbus import lifecycle
from storm_py.nimbus.blobstore import keys_of
from storm_py.rpc.definitions import KillOptions, RebalanceOptions
from tests.cluster_records import error_info
from tests.helpers import wait_until
from tests.real_nimbuses import (
    Bench,
    assignment,
    base,
    status,
    submit,
)


class TestKill:
    def test_it_waits_and_removes_everything(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.state.claim_worker(id_, 1)
        bench.state.report_error(id_, "count", error_info())
        bench.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=7))
        bench.tick(6)
        assert status(bench, id_) is TopologyStatus.KILLED
        assert assignment(bench, id_).version == 1
        bench.tick(1)
        state = bench.state
        assert (state.storms(), state.assignments(), state.registered_workers(id_)) == ((), (), ())
        assert (state.error_storms(), state.heartbeat_storms()) == ((), ())

    def test_the_blobs_stay_for_a_while(self, bench: Bench, archive: bytes) -> None:
        id_ = submit(bench.nimbus, archive)
        bench.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=0))
        bench.tick()
        bench.tick(299)
        assert bench.data.blobs.has_all(id_)
        bench.tick(10)
        assert bench.data.blobs.keys() == frozenset()

    def test_without_a_wait_of_its_own_it_waits_for_the_message_timeout(
        self, bench: Bench, archive: bytes
    ) -> None:
        id_ = submit(bench.nimbus, archive, conf={"topology.message.timeout.secs": 12})
        bench.nimbus.killTopology("words")
        bench.tick(11)
        assert status(bench, id_) is TopologyStatus.KILLED
        bench.tick(1)
        assert bench.state.storms() == ()

    def test_who_waits_gets_its_slots_at_once(self, bench: Bench, archive: bytes) -> None:
        bench.join("s1", (6700,))
        submit(bench.nimbus, archive)
        bench.tick()
        waiting = submit(bench.nimbus, archive, "waiting")
        bench.tick()
        assert bench.state.assignment(waiting) is None
        bench.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=3))
        bench.tick(3)
        assert assignment(bench, waiting).version == 1

    def test_one_that_is_killed_is_not_assigned_anew(self, bench: Bench, archive: bytes) -> None:
        bench.join("s1", (6700,))
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=500))
        bench.join("s2", (6700,))
        bench.tick(300)
        assert assignment(bench, id_).version == 1
        other = submit(bench.nimbus, archive, "other")
        bench.tick()
        assert set(assignment(bench, other).executor_node_port.values()) == {("s2", 6700)}

    def test_the_log_has_no_wait_below_zero(
        self, bench: Bench, archive: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        id_ = submit(bench.nimbus, archive)
        asked = bench.clocks.passed()
        bench.clocks.passed.advance(0.01)  # until the loop has time
        with caplog.at_level(logging.INFO):
            bench.term.kill("words", lifecycle.KillOptions(0), asked)
        assert f"{id_}: REMOVE in 0 s" in caplog.messages


class TestRebalance:
    def test_more_executors_after_the_wait(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive, active=False)
        bench.tick()
        before = assignment(bench, id_)
        options = RebalanceOptions(wait_secs=9, num_executors={"count": 4}, num_workers=2)
        bench.nimbus.rebalance("words", options)
        assert status(bench, id_) is TopologyStatus.REBALANCING
        bench.tick(8)
        assert assignment(bench, id_) == before
        bench.tick(1)
        assert status(bench, id_) is TopologyStatus.INACTIVE
        assert base(bench, id_).component_executors == {"lines": 1, "count": 4}
        after = assignment(bench, id_)
        assert after.version == 2
        assert set(after.executor_node_port) == {(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)}
        assert set(after.worker_numbers.values()) == {1, 2}
        line = next(e for e in before.executor_node_port if e in after.executor_node_port)
        assert after.executor_start_time_secs[line] == before.executor_start_time_secs[line]

    def test_more_executors_than_tasks_are_as_many_as_tasks(
        self, bench: Bench, archive: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        id_ = submit(bench.nimbus, archive)
        bench.nimbus.rebalance("words", RebalanceOptions(wait_secs=0, num_executors={"count": 9}))
        bench.tick()
        assert base(bench, id_).component_executors == {"lines": 1, "count": 4}
        assert f"{id_}: count was asked to have 9 executors and gets 4" in caplog.text

    def test_what_asks_for_nothing_new_writes_no_assignment(
        self, bench: Bench, archive: bytes
    ) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.nimbus.rebalance("words", RebalanceOptions(wait_secs=0))
        bench.tick()
        bench.tick(10)
        assert (status(bench, id_), assignment(bench, id_).version) == (TopologyStatus.ACTIVE, 1)

    def test_spouts_go_on_when_the_new_places_are_known(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.nimbus.rebalance("words", RebalanceOptions(wait_secs=0, num_workers=2))
        seen = []

        def look() -> None:
            seen.append((status(bench, id_), assignment(bench, id_).version))

        bench.state.watch_storm(id_, look)
        bench.tick()
        wait_until(lambda: len(seen) >= 2)
        assert seen[-1] == (TopologyStatus.ACTIVE, 2)
        assert (TopologyStatus.ACTIVE, 1) not in seen


class TestSuccessors:
    def test_a_kill_is_waited_for_anew(self, bench: Bench, archive: bytes) -> None:
        submit(bench.nimbus, archive)
        bench.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=7))
        bench.tick(6)
        bench.succeed()
        bench.tick(6)
        assert len(bench.state.storms()) == 1
        bench.tick(1)
        assert bench.state.storms() == ()

    def test_a_rebalance_is_waited_for_anew(self, bench: Bench, archive: bytes) -> None:
        id_ = submit(bench.nimbus, archive, active=False)
        bench.nimbus.rebalance("words", RebalanceOptions(wait_secs=7, num_workers=2))
        bench.succeed()
        bench.tick(7)
        found = base(bench, id_)
        assert (found.status, found.num_workers) == (TopologyStatus.INACTIVE, 2)

    def test_a_removal_that_was_begun_is_ended(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=0))
        bench.state.remove_assignment(id_)  # and there the first nimbus was killed
        bench.succeed()
        bench.tick()
        assert bench.state.storms() == ()

    def test_what_a_removal_left_is_swept(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.state.remove_storm(id_)
        bench.state.setup_registrations(id_)  # as a worker leaves them that starts at that moment
        bench.succeed()
        state = bench.state
        assert (state.error_storms(), state.heartbeat_storms(), state.assignments()) == ((), (), ())
        assert state.registration_storms() == ()
        bench.tick(299)
        assert bench.data.blobs.has_all(id_)
        bench.tick(10)
        assert bench.data.blobs.keys() == frozenset()

    def test_a_submission_that_was_never_stored_is_swept(self, bench: Bench) -> None:
        id_ = bench.term.reserve("words")
        bench.data.blobs.put(keys_of(id_)[1], b"x")
        bench.tick(1000)
        assert bench.data.blobs.keys() == {keys_of(id_)[1]}  # it is under way
        bench.succeed()
        assert bench.data.blobs.keys() == frozenset()

    def test_registrations_that_should_have_gone_go(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        for number in (1, 9):
            bench.state.claim_worker(id_, number)
        bench.succeed()
        assert bench.state.registered_workers(id_) == (1,)

    def test_the_same_assignment_is_not_written_again(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.tick()
        bench.succeed()
        bench.tick()
        assert assignment(bench, id_).version == 1


class TestConnections:
    @pytest.mark.parametrize("done", [True, False])
    def test_a_kill_of_which_nobody_knows_whether_it_was_stored(
        self, bench: Bench, archive: bytes, done: bool
    ) -> None:
        id_ = submit(bench.nimbus, archive)
        bench.storage.fail_next("write", done)
        with pytest.raises(ConnectionLost):
            bench.term.kill("words", lifecycle.KillOptions(0), bench.clocks.passed())
        assert bench.term.stale
        with pytest.raises(NotALeader, match="is not a leader right now"):
            bench.term.activate("words", bench.clocks.passed())
        bench.begin()
        assert status(bench, id_) is (TopologyStatus.KILLED if done else TopologyStatus.ACTIVE)
        bench.tick()
        assert bool(bench.state.storms()) is not done

    @pytest.mark.parametrize("done", [True, False])
    def test_a_submission_of_which_nobody_knows_whether_it_was_stored(
        self, bench: Bench, archive: bytes, done: bool
    ) -> None:
        bench.storage.fail_next("create", done)
        with pytest.raises(Exception, match="the connection broke"):
            submit(bench.nimbus, archive)
        bench.begin()
        bench.tick(300)
        assert len(bench.state.storms()) == len(bench.data.blobs.topologies()) == int(done)

    def test_a_leader_that_may_not_act_writes_nothing(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.acts = False
        bench.tick()
        assert bench.state.assignment(id_) is None
        with pytest.raises(NotALeader):
            bench.term.kill("words", lifecycle.KillOptions(0), bench.clocks.passed())
        with pytest.raises(NotALeader):
            bench.term.reserve("other")

    def test_a_round_that_breaks_is_not_the_last(self, bench: Bench, archive: bytes) -> None:
        bench.join()
        id_ = submit(bench.nimbus, archive)
        bench.storage.fail_next("children", False)
        with pytest.raises(ConnectionLost):
            bench.tick()
        bench.begin()
        bench.tick()
        assert assignment(bench, id_).version == 1
