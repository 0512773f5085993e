"""SlotMachine: what a supervisor that comes back makes of the workers that it finds."""

from __future__ import annotations

import pytest

from storm_py.errors import InvalidTransition
from storm_py.supervisor.slot_actions import (
    Cleanup,
    FoundWorker,
    Launch,
    Localize,
    Release,
    Tell,
)
from storm_py.supervisor.slot_states import KillReason
from tests.slots import (
    OTHER,
    WORDS,
    Slot,
    assignment,
    kill,
    running,
    term,
)
from tests.unit.test_slot import S


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
