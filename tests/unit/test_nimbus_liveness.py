"""Liveness: who is silent for too long is dead, by the clock of who listens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.nimbus.liveness import (
    Action,
    Alive,
    Dead,
    Liveness,
    LivenessStatistics,
    Timeouts,
    executor_timeouts,
)

TASKS = Timeouts(launch_secs=120, beat_secs=30)


@pytest.fixture
def liveness() -> Iterator[Liveness[str]]:
    """With `a` and `b`, of which beats are expected from 1000 on."""
    core = Liveness[str]()
    core.expect("a", TASKS, now=1000)
    core.expect("b", TASKS, now=1000)
    yield core
    core.check()


class TestSilence:
    def test_before_the_first_beat_there_is_time_to_launch(self, liveness: Liveness[str]) -> None:
        assert liveness.next_timeout() == 1120
        assert liveness.tick(1119.9) == []
        assert liveness.tick(1120) == [Dead(("a", "b"))]

    def test_after_the_first_beat_there_is_less(self, liveness: Liveness[str]) -> None:
        assert liveness.beat("a", 1, now=1001) == []
        assert liveness.next_timeout() == 1031
        assert liveness.tick(1030.9) == []
        assert liveness.tick(1031) == [Dead(("a",))]

    def test_a_first_beat_that_comes_late_counts_from_when_it_came(
        self, liveness: Liveness[str]
    ) -> None:
        liveness.beat("a", 1, now=1119)
        assert liveness.tick(1120) == [Dead(("b",))]
        assert liveness.next_timeout() == 1149

    def test_who_beats_lives(self, liveness: Liveness[str]) -> None:
        liveness.forget("b")
        for now in range(1010, 2000, 29):
            assert liveness.beat("a", now, now) == []
            assert liveness.tick(now) == []

    def test_a_death_is_told_once(self, liveness: Liveness[str]) -> None:
        liveness.tick(1120)
        assert liveness.tick(1200) == []
        assert liveness.next_timeout() is None
        assert liveness.dead == {"a", "b"}
        assert liveness.statistics() == LivenessStatistics(expected=2, dead=2)

    def test_the_dead_may_come_back(self, liveness: Liveness[str]) -> None:
        liveness.tick(1120)
        assert liveness.beat("a", 1, now=1121) == [Alive("a")]
        assert liveness.dead == {"b"}
        assert liveness.tick(1151) == [Dead(("a",))]

    def test_with_nobody_there_is_nothing_to_wait_for(self) -> None:
        nobody = Liveness[str]()
        assert nobody.next_timeout() is None
        assert nobody.tick(5) == []


class TestWhatCounts:
    def test_the_senders_clock_does_not(self, liveness: Liveness[str]) -> None:
        liveness.beat("a", 999_999, now=1001)
        liveness.beat("b", -5, now=1001)
        assert liveness.tick(1030) == []
        assert liveness.tick(1031) == [Dead(("a", "b"))]

    def test_a_beat_read_again_does_not(self, liveness: Liveness[str]) -> None:
        liveness.beat("a", 7, now=1001)
        assert liveness.beat("a", 7, now=1030) == []
        assert liveness.tick(1031) == [Dead(("a",))]
        assert liveness.beat("a", 7, now=1032) == []
        assert liveness.dead == {"a"}

    def test_a_senders_clock_that_was_set_back_does(self, liveness: Liveness[str]) -> None:
        liveness.beat("a", 7, now=1001)
        liveness.beat("a", 3, now=1030)
        assert liveness.next_timeout() == 1060

    def test_a_beat_of_one_who_was_replaced_does_not(self, liveness: Liveness[str]) -> None:
        liveness.expect("a", TASKS, now=1010, incarnation=2)
        assert liveness.beat("a", 1, now=1020, incarnation=1) == []
        assert liveness.tick(1120) == [Dead(("b",))]
        assert liveness.tick(1130) == [Dead(("a",))]
        assert liveness.beat("a", 2, now=1131, incarnation=1) == []

    def test_a_beat_of_a_successor_counts_before_it_is_expected(
        self, liveness: Liveness[str]
    ) -> None:
        liveness.beat("a", 1, now=1001, incarnation=3)
        liveness.beat("a", 1, now=1002, incarnation=4)
        assert liveness.beat("a", 2, now=1010, incarnation=3) == []
        assert liveness.next_timeout() == 1032

    def test_a_beat_of_one_whom_nobody_expects_does_not(self, liveness: Liveness[str]) -> None:
        liveness.forget("a")
        assert liveness.beat("a", 1, now=1001) == []
        assert liveness.statistics() == LivenessStatistics(expected=1, dead=0)


class TestExpectations:
    def test_to_expect_the_same_again_gives_no_time(self, liveness: Liveness[str]) -> None:
        liveness.expect("a", TASKS, now=1100)
        assert liveness.tick(1120) == [Dead(("a", "b"))]
        liveness.expect("a", TASKS, now=1121)
        assert liveness.dead == {"a", "b"}

    def test_but_other_timeouts_apply_at_once(self, liveness: Liveness[str]) -> None:
        liveness.beat("a", 1, now=1001)
        liveness.expect("a", Timeouts(launch_secs=600, beat_secs=300), now=1002)
        assert liveness.tick(1300) == [Dead(("b",))]
        assert liveness.next_timeout() == 1301

    def test_a_new_assignment_begins_anew(self, liveness: Liveness[str]) -> None:
        liveness.beat("a", 1, now=1001)
        liveness.tick(1120)
        liveness.expect("a", TASKS, now=1121, incarnation=1)
        assert liveness.dead == {"b"}
        assert liveness.next_timeout() == 1241


class TestClock:
    def test_set_back_it_makes_nobody_older_and_nobody_younger(
        self, liveness: Liveness[str]
    ) -> None:
        liveness.beat("a", 1, now=1010)
        assert liveness.tick(1030) == []
        assert liveness.tick(30) == []
        assert liveness.next_timeout() == 40
        assert liveness.tick(39) == []
        assert liveness.tick(40) == [Dead(("a",))]


class TestTimeouts:
    @pytest.mark.parametrize(
        ("worker_timeout_secs", "expected"),
        [
            (None, Timeouts(launch_secs=120, beat_secs=30)),
            (10, Timeouts(launch_secs=120, beat_secs=30)),
            (90, Timeouts(launch_secs=120, beat_secs=90)),
            (300, Timeouts(launch_secs=300, beat_secs=300)),
            (9000, Timeouts(launch_secs=600, beat_secs=600)),
        ],
    )
    def test_a_topology_may_ask_for_more_patience_up_to_a_limit(
        self, worker_timeout_secs: int | None, expected: Timeouts
    ) -> None:
        assert executor_timeouts(30, 120, worker_timeout_secs, 600) == expected


#: Seconds that pass, then who beats, if anybody.
scripts = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["a", "b", "c", None])))
SHORT = Timeouts(launch_secs=50, beat_secs=20)


def played(script: list[tuple[int, str | None]], jumps: list[int]) -> list[list[Action[str]]]:
    """What is said after each step; in each the clock is set back by a jump, if one is left."""
    core = Liveness[str]()
    now = 0
    for id_ in "abc":
        core.expect(id_, SHORT, now)
    said = []
    for i, (secs, who) in enumerate(script):
        now += secs
        said.append(core.tick(now))
        now -= jumps[i] if i < len(jumps) else 0
        said.append(core.beat(who, i, now) if who else core.tick(now))
        core.check()
    return said


@given(scripts, st.lists(st.integers(0, 10**6)))
def test_setting_the_clock_back_changes_nothing(
    script: list[tuple[int, str | None]], jumps: list[int]
) -> None:
    assert played(script, jumps) == played(script, [])


@given(scripts)
def test_who_is_dead_has_been_silent_for_too_long_and_nobody_else(
    script: list[tuple[int, str | None]],
) -> None:
    core = Liveness[str]()
    ends = {}
    for id_ in "abc":
        core.expect(id_, SHORT, 0)
        ends[id_] = SHORT.launch_secs
    now = 0
    for i, (secs, who) in enumerate(script):
        now += secs
        core.tick(now)
        assert core.dead == {id_ for id_, end in ends.items() if now >= end}
        if who:
            core.beat(who, i, now)
            ends[who] = now + SHORT.beat_secs
        alive = [end for end in ends.values() if end > now]
        assert core.next_timeout() == min(alive, default=None)


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0.5, 600))
def test_a_tick_at_the_time_that_was_said_finds_the_dead(
    start: float, jump: float, secs: float
) -> None:
    core = Liveness[str]()
    core.expect("a", Timeouts(secs, secs), start)
    core.tick(start - jump)
    due = core.next_timeout()
    assert due is not None
    assert core.tick(due) == [Dead(("a",))]
