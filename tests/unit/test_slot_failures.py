"""SlotMachine: workers that fail, and workers that have to end."""

from __future__ import annotations

import pytest

from storm_py.supervisor.slot import BACKOFF_SECS
from storm_py.supervisor.slot_actions import (
    CannotKill,
    Cleanup,
    Launch,
    Localize,
    Release,
    SlotTimeouts,
)
from storm_py.supervisor.slot_states import KillReason
from tests.slots import (
    OTHER,
    WORDS,
    Slot,
    assignment,
    kill,
    launched,
    running,
    term,
)
from tests.unit.test_slot import S

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
