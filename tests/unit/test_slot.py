"""SlotMachine: what becomes of the worker of one port."""

from __future__ import annotations

import pytest

from storm_py.errors import InvalidTransition
from storm_py.supervisor.slot import BACKOFF_SECS, SlotMachine
from storm_py.supervisor.slot_actions import (
    CannotKill,
    Cleanup,
    FoundWorker,
    Launch,
    Localize,
    Release,
    SlotTimeouts,
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


# ---- a worker that fails -----------------------------------------------------------------------


def test_a_worker_that_exits_is_swept_up_and_launched_again() -> None:
    slot = running()
    assert slot.exited(returncode=-9) == [kill("w1")]
    assert slot.state() is S.KILL_AND_RELAUNCH
    assert slot.gone() == [Cleanup("w1"), Launch("w2", WORDS)]
    assert slot.state() is S.WAITING_FOR_WORKER_START


def test_a_worker_that_exits_before_it_is_up_is_launched_again() -> None:
    slot = launched()
    assert slot.exited(returncode=127) == [kill("w1")]
    assert slot.gone() == [Cleanup("w1"), Launch("w2", WORDS)]


def test_a_worker_that_is_gone_without_an_exit_is_launched_again() -> None:
    assert running().gone() == [Cleanup("w1"), Launch("w2", WORDS)]


def test_a_worker_that_could_not_be_launched_is_tried_again() -> None:
    slot = launched()
    assert slot.launch_failed() == [Cleanup("w1"), Launch("w2", WORDS)]
    assert slot.launch_failed("w2") == [Cleanup("w2")]
    assert slot.state() is S.KILL_AND_RELAUNCH
    assert slot.next_timeout == 1000.5


def test_a_worker_over_its_memory_is_launched_again() -> None:
    slot = running()
    assert slot.memory_violation() == [term("w1")]
    assert slot.state() is S.KILL_AND_RELAUNCH
    assert slot.memory_violation() == []


def test_a_worker_that_falls_silent_is_launched_again_after_thirty_seconds() -> None:
    slot = running()
    slot.at(1010.0).heartbeat()
    assert slot.next_timeout == 1040.0
    assert slot.at(1039.9).tick() == []
    assert slot.at(1040.0).tick() == [term("w1")]
    assert slot.state() is S.KILL_AND_RELAUNCH
    assert slot.machine.statistics().killed[KillReason.HB_TIMEOUT] == 1


def test_a_worker_that_goes_on_is_left_alone() -> None:
    slot = running()
    for now in range(1001, 1301):
        assert slot.at(now).heartbeat() == []
        assert slot.tick() == []
    assert slot.state() is S.RUNNING
    assert slot.next_timeout == 1330.0


def test_a_worker_that_never_comes_up_is_launched_again_after_two_minutes() -> None:
    slot = launched()
    assert slot.next_timeout == 1120.0
    assert slot.at(1119.9).tick() == []
    assert slot.at(1120.0).tick() == [term("w1")]
    assert slot.state() is S.KILL_AND_RELAUNCH


def test_a_worker_may_be_as_long_in_coming_up_as_it_may_be_silent() -> None:
    slot = Slot(SlotTimeouts(start_secs=10.0, worker_secs=60.0))
    slot.assign(WORDS)
    slot.localized()
    assert slot.next_timeout == 1060.0


def test_a_worker_that_keeps_dying_is_launched_later_each_time() -> None:
    slot = launched()
    delays = []
    for number in range(1, 11):
        died_at = slot.now
        slot.exited(f"w{number}")
        actions = slot.gone(f"w{number}")
        if slot.state() is S.KILL_AND_RELAUNCH:
            assert actions == [Cleanup(f"w{number}")]
            at = slot.next_timeout
            assert at is not None
            actions = slot.at(at).tick()
        assert actions[-1] == Launch(f"w{number + 1}", WORDS)
        delays.append(slot.now - died_at)
    assert delays == pytest.approx([*BACKOFF_SECS, BACKOFF_SECS[-1], BACKOFF_SECS[-1]])


def test_a_worker_that_was_well_for_a_minute_starts_anew() -> None:
    slot = running()
    slot.exited()
    slot.gone()
    slot.heartbeat("w2")
    for now in range(1001, 1061):
        slot.at(now).heartbeat("w2")
        slot.tick()
    assert slot.machine.statistics().failures == 0
    slot.exited("w2")
    assert slot.gone("w2") == [Cleanup("w2"), Launch("w3", WORDS)]


def test_time_that_is_spent_on_ending_a_worker_counts_for_the_wait() -> None:
    slot = running()
    slot.exited()
    slot.gone()
    slot.exited("w2")
    assert slot.after(0.4).gone("w2") == [Cleanup("w2")]
    assert slot.next_timeout == 1000.5
    assert slot.after(0.1).tick() == [Launch("w3", WORDS)]


def waiting_for_relaunch() -> Slot:
    slot = running()
    slot.exited()
    slot.gone()
    slot.exited("w2")
    slot.gone("w2")
    assert slot.state() is S.KILL_AND_RELAUNCH
    return slot


def test_a_slot_that_waits_for_a_relaunch_can_be_emptied() -> None:
    slot = waiting_for_relaunch()
    assert slot.assign(None) == [Release(WORDS.code)]
    assert slot.state() is S.EMPTY
    assert slot.next_timeout is None


def test_a_slot_that_waits_for_a_relaunch_takes_another_topology_at_once() -> None:
    slot = waiting_for_relaunch()
    assert slot.assign(OTHER) == [Release(WORDS.code), Localize(OTHER.code)]
    assert slot.localized(OTHER.code) == [Launch("w3", OTHER)]


def test_a_slot_that_waits_for_a_relaunch_takes_newer_code_at_once() -> None:
    slot = waiting_for_relaunch()
    newer = assignment(version=2, checksum="c9")
    assert slot.assign(newer) == [Release(WORDS.code), Localize(newer.code)]
    assert slot.state() is S.WAITING_FOR_BLOB_UPDATE
    assert slot.localized(newer.code) == [Launch("w3", newer)]


def test_a_slot_that_waits_for_a_relaunch_launches_the_newest_version() -> None:
    slot = waiting_for_relaunch()
    newer = assignment(version=2)
    assert slot.assign(newer) == []
    assert slot.at(1000.5).tick() == [Launch("w3", newer)]


# ---- ending ------------------------------------------------------------------------------------


def test_kill_follows_term_after_three_seconds_again_and_again() -> None:
    slot = running()
    assert slot.assign(None) == [term("w1")]
    assert slot.next_timeout == 1003.0
    assert slot.at(1002.9).tick() == []
    assert slot.at(1003.0).tick() == [kill("w1")]
    assert slot.at(1006.0).tick() == [kill("w1")]
    assert slot.gone() == [Cleanup("w1"), Release(WORDS.code)]


def test_without_a_wait_before_kill_it_still_does_not_spin() -> None:
    slot = Slot(SlotTimeouts(shutdown_secs=0.0))
    slot.assign(WORDS)
    slot.localized()
    assert slot.assign(None) == [term("w1")]
    assert slot.tick() == [kill("w1")]
    assert slot.next_timeout == 1001.0


def test_what_cannot_be_killed_is_reported_once() -> None:
    slot = running()
    slot.assign(None)
    found = []
    for now in range(1001, 1301):
        found += [each for each in slot.at(now).tick() if each != kill("w1")]
    assert found == [CannotKill("w1", 120.0)]
    assert slot.state() is S.KILL


def test_an_assignment_that_comes_back_while_its_worker_ends_gets_a_new_one() -> None:
    slot = running()
    slot.assign(OTHER)
    assert slot.assign(WORDS) == [Release(OTHER.code)]
    assert slot.gone() == [Cleanup("w1"), Launch("w2", WORDS)]


def test_a_worker_that_is_ending_cannot_fail_any_more() -> None:
    slot = running()
    slot.assign(None)
    assert slot.heartbeat() == []
    assert slot.memory_violation() == []
    assert slot.state() is S.KILL


def test_news_of_other_workers_are_ignored() -> None:
    slot = running()
    for event in (slot.exited, slot.gone, slot.heartbeat, slot.memory_violation):
        assert event("w0") == []
    assert slot.launch_failed("w0") == []
    assert slot.state() is S.RUNNING


# ---- a supervisor that comes back --------------------------------------------------------------


def found(alive: bool = True, beat: float | None = 999.0) -> FoundWorker:
    return FoundWorker("w0", WORDS, alive, beat)


def test_a_living_worker_of_the_assignment_is_running_at_once() -> None:
    slot = Slot()
    assert slot.recover(WORDS, found()) == [Localize(WORDS.code)]
    assert slot.state() is S.RUNNING
    assert slot.next_timeout == 1029.0
    assert slot.localized() == []
    assert slot.heartbeat("w0") == []
    assert slot.next_timeout == 1030.0


def test_a_living_worker_of_an_older_version_is_told() -> None:
    slot = Slot()
    newer = assignment(version=2)
    assert slot.recover(newer, found()) == [Localize(WORDS.code), Tell("w0", newer)]
    assert slot.state() is S.RUNNING


def test_a_living_worker_that_was_told_of_a_newer_version_knows_better() -> None:
    slot = Slot()
    older = assignment(version=0)
    assert slot.recover(older, found()) == [Localize(WORDS.code)]
    assert slot.machine.statistics().wanted == WORDS
    assert slot.assign(older) == []


def test_a_living_worker_of_something_else_is_killed() -> None:
    slot = Slot()
    assert slot.recover(OTHER, found()) == [term("w0"), Localize(OTHER.code)]
    assert slot.state() is S.KILL
    assert slot.localized(OTHER.code) == []
    assert slot.gone("w0") == [Cleanup("w0"), Launch("w1", OTHER)]


def test_a_living_worker_of_nothing_is_killed() -> None:
    slot = Slot()
    assert slot.recover(None, found()) == [term("w0")]
    assert slot.gone("w0") == [Cleanup("w0")]
    assert slot.state() is S.EMPTY


def test_a_living_worker_of_older_code_is_killed() -> None:
    slot = Slot()
    newer = assignment(version=2, checksum="c9")
    assert slot.recover(newer, found()) == [term("w0"), Localize(newer.code)]
    assert slot.state() is S.KILL_BLOB_UPDATE


def test_a_worker_that_died_meanwhile_is_launched_again() -> None:
    slot = Slot()
    assert slot.recover(WORDS, found(alive=False)) == [kill("w0"), Localize(WORDS.code)]
    assert slot.state() is S.KILL_AND_RELAUNCH
    assert slot.gone("w0") == [Cleanup("w0")]
    assert slot.state() is S.WAITING_FOR_BLOB_LOCALIZATION
    assert slot.localized() == [Launch("w1", WORDS)]


def test_newer_code_may_come_while_that_of_a_dead_worker_is_fetched() -> None:
    slot = Slot()
    slot.recover(WORDS, found(alive=False))
    slot.gone("w0")
    newer = assignment(version=2, checksum="c9")
    assert slot.assign(newer) == [Release(WORDS.code), Localize(newer.code)]
    assert slot.state() is S.WAITING_FOR_BLOB_LOCALIZATION
    assert slot.localized(newer.code) == [Launch("w1", newer)]


def test_what_a_dead_worker_of_nothing_left_is_swept_up() -> None:
    slot = Slot()
    assert slot.recover(None, found(alive=False)) == [kill("w0")]
    assert slot.gone("w0") == [Cleanup("w0")]
    assert slot.state() is S.EMPTY


def test_a_living_worker_that_never_came_up_is_launched_again() -> None:
    slot = Slot()
    assert slot.recover(WORDS, found(beat=None)) == [term("w0"), Localize(WORDS.code)]
    assert slot.state() is S.KILL_AND_RELAUNCH
    assert slot.machine.statistics().killed[KillReason.HB_NULL] == 1


def test_a_living_worker_that_was_silent_for_too_long_is_launched_again() -> None:
    slot = Slot()
    assert slot.recover(WORDS, found(beat=970.0)) == [term("w0"), Localize(WORDS.code)]
    assert slot.machine.statistics().killed[KillReason.HB_TIMEOUT] == 1


def test_a_heartbeat_of_the_future_counts_as_one_of_now() -> None:
    slot = Slot()
    slot.recover(WORDS, found(beat=5000.0))
    assert slot.next_timeout == 1030.0


def test_a_worker_is_found_first_or_not_at_all() -> None:
    slot = Slot()
    slot.assign(WORDS)
    slot.localized()
    with pytest.raises(InvalidTransition) as caught:
        slot.recover(WORDS, found())
    assert str(caught.value).splitlines() == [
        "slot 6700: no transition for ADOPT in state WAITING_FOR_WORKER_START; what came before:",
        "1000.000 EMPTY: assign words-1-1 v1",
        "  FETCH: EMPTY -> WAITING_FOR_BLOB_LOCALIZATION",
        "1000.000 WAITING_FOR_BLOB_LOCALIZATION: localized words-1-1",
        "  LAUNCH: WAITING_FOR_BLOB_LOCALIZATION -> WAITING_FOR_WORKER_START",
        f"1000.000 WAITING_FOR_WORKER_START: recover words-1-1 v1, {found()}",
    ]


def test_the_story_has_an_end() -> None:
    slot = running()
    for version in range(2, 100):
        slot.assign(assignment(version=version))
    with pytest.raises(InvalidTransition) as caught:
        slot.recover(WORDS, found())
    assert len(str(caught.value).splitlines()) == 31


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
