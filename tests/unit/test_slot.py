"""SlotMachine: what becomes of the worker of one port."""

from __future__ import annotations

from storm_py.supervisor.slot import SlotMachine
from storm_py.supervisor.slot_actions import (
    Cleanup,
    Launch,
    Localize,
    Release,
    Tell,
)
from storm_py.supervisor.slot_states import TRANSITIONS, KillReason, MachineState, Step
from tests.slots import (
    OTHER,
    TIMEOUTS,
    WORDS,
    Slot,
    assignment,
    kill,
    launched,
    names,
    running,
    term,
)

S = MachineState


# ---- the life of a worker ----------------------------------------------------------------------


def test_nothing_is_assigned_and_nothing_happens() -> None:
    slot = Slot()
    assert slot.assign(None) == []
    assert slot.tick() == []
    assert slot.state() is S.EMPTY
    assert slot.next_timeout is None


def test_code_is_fetched_before_the_worker_is_launched() -> None:
    slot = Slot()
    assert slot.assign(WORDS) == [Localize(WORDS.code)]
    assert slot.state() is S.WAITING_FOR_BLOB_LOCALIZATION
    assert slot.localized() == [Launch("w1", WORDS)]
    assert slot.state() is S.WAITING_FOR_WORKER_START
    assert slot.heartbeat() == []
    assert slot.state() is S.RUNNING


def test_a_slot_that_loses_its_assignment_ends_empty() -> None:
    slot = running()
    assert slot.assign(None) == [term("w1")]
    assert slot.state() is S.KILL
    assert slot.exited(returncode=0) == [kill("w1")]  # it obeyed: sweep up its children
    assert slot.gone() == [Cleanup("w1"), Release(WORDS.code)]
    assert slot.state() is S.EMPTY
    assert slot.next_timeout is None


def test_another_topology_is_fetched_while_the_worker_ends() -> None:
    slot = running()
    assert slot.assign(OTHER) == [term("w1"), Localize(OTHER.code)]
    assert slot.localized(OTHER.code) == []
    assert slot.gone() == [Cleanup("w1"), Release(WORDS.code), Launch("w2", OTHER)]
    assert slot.state() is S.WAITING_FOR_WORKER_START


def test_another_topology_that_is_not_there_when_the_worker_is_gone_is_waited_for() -> None:
    slot = running()
    slot.assign(OTHER)
    assert slot.gone() == [Cleanup("w1"), Release(WORDS.code)]
    assert slot.state() is S.WAITING_FOR_BLOB_LOCALIZATION
    assert slot.localized(OTHER.code) == [Launch("w2", OTHER)]


def test_another_owner_is_another_topology() -> None:
    slot = running()
    bobs = assignment(version=2, owner="bob")
    assert slot.assign(bobs) == [term("w1"), Localize(bobs.code)]
    assert slot.state() is S.KILL


def test_newer_code_ends_the_worker_and_is_waited_for() -> None:
    slot = running()
    newer = assignment(version=2, checksum="c9")
    assert slot.assign(newer) == [term("w1"), Localize(newer.code)]
    assert slot.state() is S.KILL_BLOB_UPDATE
    assert slot.gone() == [Cleanup("w1"), Release(WORDS.code)]
    assert slot.state() is S.WAITING_FOR_BLOB_UPDATE
    assert slot.localized(newer.code) == [Launch("w2", newer)]


def test_newer_code_that_is_there_in_time_is_launched_at_once() -> None:
    slot = running()
    newer = assignment(version=2, checksum="c9")
    slot.assign(newer)
    assert slot.localized(newer.code) == []
    assert slot.gone() == [Cleanup("w1"), Release(WORDS.code), Launch("w2", newer)]


def test_code_that_is_newer_still_replaces_the_newer() -> None:
    slot = running()
    newer, newest = assignment(version=2, checksum="c9"), assignment(version=3, checksum="c10")
    slot.assign(newer)
    slot.gone()
    assert slot.assign(newest) == [Release(newer.code), Localize(newest.code)]
    assert slot.state() is S.WAITING_FOR_BLOB_UPDATE
    assert slot.assign(OTHER) == [Release(newest.code), Localize(OTHER.code)]
    assert slot.state() is S.WAITING_FOR_BLOB_LOCALIZATION


# ---- code --------------------------------------------------------------------------------------


def test_what_is_not_wanted_any_more_is_given_back() -> None:
    slot = Slot()
    slot.assign(WORDS)
    assert slot.assign(None) == [Release(WORDS.code)]
    assert slot.state() is S.EMPTY
    assert slot.localized() == []
    assert slot.state() is S.EMPTY


def test_an_assignment_that_changes_while_code_is_fetched_is_followed_at_once() -> None:
    slot = Slot()
    slot.assign(WORDS)
    assert slot.assign(OTHER) == [Release(WORDS.code), Localize(OTHER.code)]
    assert slot.localized(WORDS.code) == []
    assert slot.localized(OTHER.code) == [Launch("w1", OTHER)]


def test_a_newer_version_needs_no_other_code() -> None:
    slot = Slot()
    slot.assign(WORDS)
    newer = assignment(version=2)
    assert slot.assign(newer) == []
    assert slot.localized() == [Launch("w1", newer)]


def test_code_that_cannot_be_fetched_again_and_again_is_tried_less_often() -> None:
    slot = Slot()
    slot.assign(WORDS)
    now, waits = 1000.0, []
    for _ in range(9):
        assert slot.localize_failed() == []
        due = slot.next_timeout
        assert due is not None
        waits.append(due - now)
        now = due
        assert slot.at(now).tick() == [Localize(WORDS.code)]
    assert waits == [3, 3, 3, 5, 10, 20, 30, 30, 30]
    slot.assign(OTHER)  # a code of its own
    slot.localize_failed(OTHER.code)
    assert slot.next_timeout == now + 3


def test_code_that_cannot_be_fetched_is_tried_again_after_three_seconds() -> None:
    slot = Slot()
    slot.assign(WORDS)
    assert slot.localize_failed() == []
    assert slot.state() is S.WAITING_FOR_BLOB_LOCALIZATION
    assert slot.next_timeout == 1003.0
    assert slot.at(1002.9).tick() == []
    assert slot.at(1003.0).tick() == [Localize(WORDS.code)]
    assert slot.next_timeout is None
    assert slot.localized() == [Launch("w1", WORDS)]


def test_code_that_could_not_be_fetched_is_not_held() -> None:
    slot = Slot()
    slot.assign(WORDS)
    slot.localize_failed()
    assert slot.assign(None) == []
    assert slot.state() is S.EMPTY
    assert slot.next_timeout is None


def test_an_answer_that_comes_twice_counts_once() -> None:
    slot = Slot()
    slot.assign(WORDS)
    slot.localize_failed()
    assert slot.localized() == []  # of what failed: it was asked for once
    assert slot.after(3).tick() == [Localize(WORDS.code)]
    assert slot.localized() == [Launch("w1", WORDS)]
    assert slot.localized() == []
    assert slot.localize_failed() == []
    assert slot.state() is S.WAITING_FOR_WORKER_START


# ---- a new version of the same -----------------------------------------------------------------


def test_a_running_worker_is_told_of_a_new_version_and_lives() -> None:
    slot = running()
    newer = assignment(version=2, executors=((1, 1), (2, 3)))
    assert slot.assign(newer) == [Tell("w1", newer)]
    assert slot.state() is S.RUNNING
    assert slot.heartbeat(version=2) == []
    assert slot.next_timeout == 1030.0  # nothing but its silence


def test_other_executors_alone_are_told_as_well() -> None:
    slot = running()
    other = assignment(executors=((2, 2),))
    assert slot.assign(other) == [Tell("w1", other)]
    assert slot.heartbeat(version=1) == []
    assert slot.next_timeout == 1030.0


def test_the_order_of_executors_says_nothing() -> None:
    slot = running(assignment(executors=((1, 1), (2, 2))))
    assert slot.assign(assignment(executors=((2, 2), (1, 1)))) == []


def test_a_worker_is_told_again_until_it_follows() -> None:
    slot = running()
    newer = assignment(version=2)
    slot.assign(newer)
    assert slot.heartbeat(version=1) == []
    assert slot.next_timeout == 1003.0
    assert slot.at(1003.0).tick() == [Tell("w1", newer)]
    assert slot.at(1006.0).tick() == [Tell("w1", newer)]
    assert slot.heartbeat(version=2) == []
    assert slot.at(1009.0).tick() == []


def test_a_worker_that_never_follows_is_killed_and_launched_anew() -> None:
    slot = running()
    newer = assignment(version=2)
    slot.assign(newer)
    for now in range(1001, 1030):
        slot.at(now).heartbeat(version=1)
        slot.tick()
    slot.at(1030.0).heartbeat(version=1)
    assert term("w1") in slot.tick()
    assert slot.state() is S.KILL
    assert slot.gone() == [Cleanup("w1"), Launch("w2", newer)]
    assert slot.machine.statistics().killed[KillReason.ASSIGNMENT_CHANGED] == 1


def test_a_worker_that_follows_late_has_its_time_anew_for_each_version() -> None:
    slot = running()
    slot.assign(assignment(version=2))
    slot.at(1020.0).heartbeat(version=1)
    newest = assignment(version=3)
    assert slot.assign(newest) == [Tell("w1", newest)]
    assert slot.at(1029.0).heartbeat(version=2) == [Tell("w1", newest)]
    assert term("w1") not in slot.at(1030.0).tick()
    slot.at(1058.0).heartbeat(version=2)
    assert slot.at(1059.0).tick() == [Tell("w1", newest), term("w1")]


def test_a_version_that_comes_while_the_worker_starts_is_told_when_it_is_up() -> None:
    slot = launched()
    newer = assignment(version=2)
    assert slot.assign(newer) == []
    assert slot.heartbeat(version=1) == [Tell("w1", newer)]
    assert slot.state() is S.RUNNING


def test_a_version_older_than_the_one_known_is_ignored() -> None:
    slot = running(assignment(version=5))
    assert slot.assign(assignment(version=4)) == []
    assert slot.assign(assignment(version=4, checksum="c0")) == []
    assert slot.state() is S.RUNNING
    assert slot.machine.statistics().wanted == assignment(version=5)


def test_a_worker_that_follows_a_newer_version_than_its_supervisor_knows_is_left_alone() -> None:
    slot = running()
    assert slot.heartbeat(version=7) == []
    assert slot.next_timeout == 1030.0


# ---- time --------------------------------------------------------------------------------------


def test_a_clock_that_goes_back_takes_the_deadlines_with_it() -> None:
    slot = running()
    assert slot.at(1020.0).tick() == []
    assert slot.at(520.0).tick() == []
    assert slot.next_timeout == 530.0
    assert slot.at(529.9).tick() == []
    assert slot.at(530.0).tick() == [term("w1")]


def test_what_is_due_at_once_is_done_in_order_and_once() -> None:
    slot = running()
    slot.assign(assignment(version=2))
    slot.at(1029.0).heartbeat(version=1)
    # told again at 1003, its time for that over at 1030: late, both are due
    assert slot.at(1031.0).tick() == [Tell("w1", assignment(version=2)), term("w1")]
    assert slot.state() is S.KILL
    assert slot.next_timeout == 1034.0


# ---- the table ---------------------------------------------------------------------------------


def test_every_state_can_be_left_and_reached() -> None:
    assert set(TRANSITIONS) == set(S)
    reached = {state for ways in TRANSITIONS.values() for state in ways.values()}
    assert reached == set(S)
    assert all(TRANSITIONS.values())


def test_only_a_slot_without_worker_launches_one() -> None:
    launching = {state for state, ways in TRANSITIONS.items() if Step.LAUNCH in ways}
    assert launching == set(S) - {S.EMPTY, S.RUNNING, S.WAITING_FOR_WORKER_START}


def test_each_reason_leads_where_storms_does() -> None:
    for state in (S.RUNNING, S.WAITING_FOR_WORKER_START):
        ways = TRANSITIONS[state]
        assert ways[KillReason.ASSIGNMENT_CHANGED] is S.KILL
        assert ways[KillReason.BLOB_CHANGED] is S.KILL_BLOB_UPDATE
        for reason in (KillReason.PROCESS_EXIT, KillReason.MEMORY_VIOLATION, KillReason.HB_TIMEOUT):
            assert ways[reason] is S.KILL_AND_RELAUNCH


def test_statistics_tell_what_runs() -> None:
    slot = running()
    slot.exited()
    slot.gone()
    found_statistics = slot.machine.statistics()
    assert found_statistics.port == 6700
    assert found_statistics.state is S.WAITING_FOR_WORKER_START
    assert found_statistics.wanted == WORDS
    assert found_statistics.worker_id == "w2"
    assert found_statistics.failures == 1
    assert found_statistics.launched == 2
    assert found_statistics.killed == {**dict.fromkeys(KillReason, 0), KillReason.PROCESS_EXIT: 1}


def test_a_new_machine_is_empty() -> None:
    machine = SlotMachine(6701, TIMEOUTS, names())
    assert machine.state is S.EMPTY
    assert machine.next_timeout() is None
    machine.check()
