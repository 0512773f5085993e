"""The typed state of a cluster over every storage."""

from __future__ import annotations

import dataclasses

import pytest

from storm_py.cluster.base import ConnectionState, StateStorage
from storm_py.cluster.records import (
    ErrorInfo,
    LogConfig,
    LogLevel,
    StormBase,
    TopologyStatus,
    WorkerRegistration,
)
from storm_py.cluster.storm_cluster_state import MAX_ERROR_CHARS, MAX_ERRORS, ClusterState
from storm_py.errors import (
    ConnectionLost,
    InvalidRecord,
    NodeExists,
    NoNode,
    VersionMismatch,
)
from tests.cluster_records import (
    assignment,
    error_info,
    nimbus_summary,
    storm_base,
    supervisor_info,
    worker_heartbeat,
)
from tests.contract.conftest import GENEROUS_SECS, Calls, Cluster
from tests.helpers import wait_until

ID = "words-1-2"


@pytest.fixture
def state(storage: StateStorage) -> ClusterState:
    return ClusterState(storage)


@pytest.fixture
def others(other: StateStorage) -> ClusterState:
    return ClusterState(other)


class Told:
    """A watcher that knows whether it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1

    def wait(self) -> None:
        """Return once it was called since the last time."""
        wait_until(lambda: self.calls, GENEROUS_SECS, "a call")
        self.calls = 0


# ---- topologies ----------------------------------------------------------------------------------


def test_a_topology_is_there_once_it_was_activated(
    state: ClusterState, others: ClusterState
) -> None:
    assert state.storms() == ()
    assert state.storm_base(ID) is None
    state.activate_storm(ID, storm_base())
    assert others.storms() == (ID,)
    assert others.storm_base(ID) == storm_base()
    with pytest.raises(NodeExists):
        others.activate_storm(ID, storm_base("another"))


def test_a_topology_is_changed_from_what_it_is(state: ClusterState, others: ClusterState) -> None:
    """Also if somebody else changes it between the look and the change."""
    state.activate_storm(ID, storm_base())
    rivals = [TopologyStatus.INACTIVE]

    def more_workers(base: StormBase) -> StormBase:
        if rivals:
            status = rivals.pop()
            others.update_storm(ID, lambda found: dataclasses.replace(found, status=status))
        return dataclasses.replace(base, num_workers=base.num_workers + 1)

    changed = state.update_storm(ID, more_workers)
    assert (changed.num_workers, changed.status) == (3, TopologyStatus.INACTIVE)
    assert state.storm_base(ID) == changed


def test_a_topology_that_is_not_there_is_not_changed(state: ClusterState) -> None:
    with pytest.raises(NoNode, match=f"there is no topology {ID}"):
        state.update_storm(ID, lambda base: base)


def test_a_topology_goes_with_all_that_was_set_for_it(
    state: ClusterState, storage: StateStorage
) -> None:
    state.activate_storm(ID, storm_base())
    state.set_assignment(ID, assignment())
    for parent in ("credentials", "logconfigs", "profilerconfigs"):
        storage.create(f"/{parent}/{ID}/x")
    state.setup_errors(ID)
    state.remove_storm(ID)
    state.remove_storm(ID)
    assert state.storms() == ()
    assert state.assignments() == ()
    for parent in ("credentials", "logconfigs", "profilerconfigs"):
        assert storage.children(f"/{parent}") == ()
    assert state.error_storms() == (ID,)


def test_watchers_of_topologies(state: ClusterState, others: ClusterState) -> None:
    storms, storm = Told(), Told()
    state.watch_storms(storms)
    state.watch_storm(ID, storm)
    others.activate_storm(ID, storm_base())
    storms.wait()
    storm.wait()
    others.update_storm(ID, lambda base: base)
    storm.wait()
    others.remove_storm(ID)
    storms.wait()


# ---- assignments ---------------------------------------------------------------------------------


def test_an_assignment_is_replaced_by_newer_ones_only(
    state: ClusterState, others: ClusterState
) -> None:
    assert state.assignment(ID) is None
    state.set_assignment(ID, assignment(1))
    others.set_assignment(ID, assignment(3))
    assert state.assignments() == (ID,)
    for version in (2, 3):
        with pytest.raises(VersionMismatch, match=f"has version 3; expected one below {version}"):
            state.set_assignment(ID, assignment(version))
    assert state.assignment(ID) == assignment(3)
    others.remove_assignment(ID)
    assert state.assignment(ID) is None


def test_watchers_of_assignments(state: ClusterState, others: ClusterState) -> None:
    every, one = Told(), Told()
    state.watch_assignments(every)
    cancel = state.watch_assignment(ID, one)
    others.set_assignment(ID, assignment(1))
    every.wait()
    one.wait()
    others.set_assignment(ID, assignment(2))
    one.wait()
    cancel()
    others.remove_assignment(ID)
    every.wait()
    assert one.calls == 0


# ---- supervisors and workers ---------------------------------------------------------------------


def test_a_supervisor_lives_as_long_as_its_session(
    cluster: Cluster, state: ClusterState, others: ClusterState, other: StateStorage
) -> None:
    told = Told()
    state.watch_supervisors(told)
    for secs in (1, 2):
        others.supervisor_heartbeat("s1", supervisor_info("s1", secs))
    told.wait()
    assert state.supervisors() == ("s1",)
    assert state.supervisor_info("s1") == supervisor_info("s1", 2)
    cluster.expire(other)
    wait_until(lambda: state.supervisor_info("s1") is None, GENEROUS_SECS)
    told.wait()
    others.supervisor_heartbeat("s1", supervisor_info("s1", 3))
    told.wait()
    assert state.supervisor_info("s1") == supervisor_info("s1", 3)


def test_a_supervisor_that_starts_anew_outlives_its_old_session(
    state: ClusterState, others: ClusterState, other: StateStorage
) -> None:
    others.supervisor_heartbeat("s1", supervisor_info())
    state.supervisor_heartbeat("s1", supervisor_info(uptime_secs=9))
    other.close()
    assert state.supervisor_info("s1") == supervisor_info(uptime_secs=9)


def test_heartbeats_of_workers(state: ClusterState, others: ClusterState) -> None:
    state.setup_heartbeats(ID)
    state.setup_heartbeats(ID)
    assert state.heartbeat_storms() == (ID,)
    assert state.worker_heartbeats(ID) == {}
    for secs in (1, 2):
        others.worker_heartbeat(("s-1", 6700), worker_heartbeat(ID, secs))
    others.worker_heartbeat(("s2", 6701), worker_heartbeat(ID, 5))
    assert state.worker_heartbeats(ID) == {
        ("s-1", 6700): worker_heartbeat(ID, 2),
        ("s2", 6701): worker_heartbeat(ID, 5),
    }
    state.remove_worker_heartbeat(ID, ("s2", 6701))
    assert set(state.worker_heartbeats(ID)) == {("s-1", 6700)}
    state.teardown_heartbeats(ID)
    assert state.heartbeat_storms() == ()
    assert state.worker_heartbeats(ID) == {}


# ---- errors --------------------------------------------------------------------------------------


def test_the_newest_errors_of_each_component_are_kept(state: ClusterState) -> None:
    state.setup_errors(ID)
    for number in range(MAX_ERRORS + 3):
        state.report_error(ID, "count/a", error_info(number))
    state.report_error(ID, "other", error_info(99))
    newest = [error_info(number) for number in range(MAX_ERRORS + 2, 2, -1)]
    assert state.errors(ID, "count/a") == newest
    assert state.last_error(ID, "count/a") == newest[0]
    assert state.errors(ID, "other") == [error_info(99)]
    assert state.errors(ID, "count") == []
    assert state.last_error(ID, "count") is None


def test_a_long_error_is_kept_in_part(state: ClusterState) -> None:
    state.setup_errors(ID)
    text = "ValueError: " + "\N{GRINNING FACE}" * 500_000 + "the end"
    state.report_error(ID, "count", ErrorInfo(text, 1))
    found = state.last_error(ID, "count")
    assert found is not None
    assert state.errors(ID, "count") == [found]
    left_out = len(text) - MAX_ERROR_CHARS
    half = MAX_ERROR_CHARS // 2
    assert found.error == f"{text[:half]}\n... {left_out} characters ...\n{text[-half:]}"


def test_an_error_is_text_that_everybody_can_be_told(state: ClusterState) -> None:
    state.setup_errors(ID)
    state.report_error(
        ID, "count", ErrorInfo("no file b\udcff, b\N{LATIN SMALL LETTER U WITH DIAERESIS}", 1)
    )
    found = state.last_error(ID, "count")
    assert found is not None
    assert found.error == "no file b\\udcff, b\N{LATIN SMALL LETTER U WITH DIAERESIS}"


def test_errors_are_torn_down_for_good(state: ClusterState, others: ClusterState) -> None:
    state.setup_errors(ID)
    others.report_error(ID, "count", error_info())
    assert state.error_storms() == (ID,)
    state.teardown_errors(ID)
    assert state.error_storms() == ()
    with pytest.raises(NoNode, match=f"there is no topology {ID}, to take an error of 'count'"):
        others.report_error(ID, "count", error_info())
    assert state.error_storms() == ()


# ---- how workers find each other -----------------------------------------------------------------


def test_a_worker_counts_its_starts(state: ClusterState, others: ClusterState) -> None:
    state.setup_registrations(ID)
    assert state.registered_workers(ID) == ()
    assert [state.claim_worker(ID, 3), others.claim_worker(ID, 3), state.claim_worker(ID, 10)] == [
        1,
        2,
        1,
    ]
    assert others.registered_workers(ID) == (3, 10)
    assert others.registration(ID, 3) == WorkerRegistration(3, 2)


def test_a_registration_of_an_older_start_changes_nothing(
    state: ClusterState, others: ClusterState
) -> None:
    state.setup_registrations(ID)
    first = WorkerRegistration(3, state.claim_worker(ID, 3), 7, "tcp://a", "tcp://b")
    assert state.register(ID, first)
    assert others.claim_worker(ID, 3) == 2
    # Who claims it knows no stream manager yet: the last one is down, and named.
    claimed = WorkerRegistration(3, 2, 7)
    assert state.registration(ID, 3) == claimed
    assert not state.register(ID, first)
    assert state.registration(ID, 3) == claimed
    assert others.register(ID, WorkerRegistration(3, 2, 8, "tcp://c", "tcp://d"))


def test_registrations_are_told_of(state: ClusterState, others: ClusterState) -> None:
    state.setup_registrations(ID)
    changed = Calls()
    state.watch_registration(ID, 3, changed)
    others.claim_worker(ID, 3)
    changed.wait_for(1)
    others.register(ID, WorkerRegistration(3, 1, 1, "tcp://a", "tcp://b"))
    changed.wait_for(2)


def test_all_workers_share_the_number_of_a_wave(state: ClusterState, others: ClusterState) -> None:
    with pytest.raises(NoNode, match=f"there is no topology {ID}"):
        state.renew_wave(ID)
    state.setup_registrations(ID)
    changed = Calls()
    state.watch_wave(ID, changed)
    assert state.wave(ID) == 1
    assert [state.renew_wave(ID), others.renew_wave(ID), state.wave(ID)] == [2, 3, 3]
    changed.wait_for(1)
    state.setup_registrations(ID)
    assert others.wave(ID) == 3


def test_registrations_end_with_their_topology(state: ClusterState, others: ClusterState) -> None:
    state.setup_registrations(ID)
    state.activate_storm(ID, storm_base())
    state.claim_worker(ID, 3)
    state.claim_worker(ID, 4)
    state.remove_registration(ID, 4)
    assert state.registered_workers(ID) == (3,)
    assert state.registration_storms() == (ID,)
    others.remove_storm(ID)
    assert state.registered_workers(ID) == ()
    assert state.registration_storms() == ()
    with pytest.raises(NoNode, match=f"there is no topology {ID}"):
        state.claim_worker(ID, 3)
    with pytest.raises(NoNode, match=f"there is no topology {ID}"):
        state.register(ID, WorkerRegistration(3, 1, 1))
    assert state.registered_workers(ID) == ()


# ---- nimbuses ------------------------------------------------------------------------------------


def test_levels_of_loggers(state: ClusterState, others: ClusterState) -> None:
    told = Told()
    state.watch_topology_log_config(ID, told)
    assert state.topology_log_config(ID) == LogConfig()
    for level in (LogLevel("DEBUG", 30, 1_700_000_030, "INFO"), LogLevel("WARN")):
        others.set_topology_log_config(ID, LogConfig({"kazoo": level}))
        told.wait()
        assert state.topology_log_config(ID) == LogConfig({"kazoo": level})


def test_nimbuses_live_as_long_as_their_sessions(
    state: ClusterState, others: ClusterState, other: StateStorage
) -> None:
    state.add_nimbus(nimbus_summary("one"))
    others.add_nimbus(nimbus_summary("two"))
    others.set_leader_info(nimbus_summary("two"))
    assert state.nimbuses() == (nimbus_summary("one"), nimbus_summary("two"))
    assert state.leader_info() == nimbus_summary("two")
    other.close()
    assert state.nimbuses() == (nimbus_summary("one"),)
    assert state.leader_info() is None
    state.remove_nimbus("one:6627")
    assert state.nimbuses() == ()


def test_the_election_of_nimbuses(state: ClusterState, others: ClusterState) -> None:
    told: list[tuple[str, bool]] = []
    one = state.leader_latch("one:6627", lambda leads: told.append(("one", leads)))
    two = others.leader_latch("two:6627", lambda leads: told.append(("two", leads)))
    one.start()
    two.start()
    assert two.leader() == "one:6627"
    one.withdraw()
    wait_until(lambda: two.is_leader, GENEROUS_SECS)
    assert told == [("one", True), ("one", False), ("two", True)]


# ---- what may be wrong ---------------------------------------------------------------------------


def test_a_node_that_holds_something_else_is_named(
    state: ClusterState, storage: StateStorage
) -> None:
    storage.create(f"/storms/{ID}", b"\x80 a message of Thrift")
    with pytest.raises(InvalidRecord, match=f"^/storms/{ID}: expected the JSON of StormBase; "):
        state.storm_base(ID)


def test_the_connection_is_seen_through_the_state(
    cluster: Cluster, state: ClusterState, storage: StateStorage
) -> None:
    states: list[ConnectionState] = []
    state.listen(states.append)
    before = state.connection
    cluster.suspend(storage)
    after = state.connection
    assert (before, after) == (ConnectionState.CONNECTED, ConnectionState.SUSPENDED)
    wait_until(lambda: states == [ConnectionState.SUSPENDED], GENEROUS_SECS)
    with pytest.raises(ConnectionLost, match="children /storms: "):
        state.storms()
