"""Lingering: small frames are held back only while processors are crowded."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storm_py.engine.lingering import (
    CROWDED,
    LONGEST_SECS,
    LOOK_SECS,
    SHORTEST_SECS,
    Lingering,
)


class Process:
    """One that looks at itself as often as it may."""

    def __init__(self) -> None:
        self.lingering = Lingering()
        self.now = self.ran = self.waited = 0.0

    def lives(self, looks: int, ran: float, waited: float) -> list[float]:
        """Linger times after each of so many looks, between which it ran and waited so long."""
        found = []
        for _ in range(looks):
            self.now += 1.25 * LOOK_SECS
            self.ran += ran
            self.waited += waited
            assert self.lingering.due(self.now)
            self.lingering.look(self.now, self.ran, self.waited)
            assert not self.lingering.due(self.now + 0.9 * LOOK_SECS)
            found.append(self.lingering.secs)
        return found


def test_it_grows_while_most_of_the_time_is_spent_waiting_for_a_processor() -> None:
    found = Process().lives(8, ran=0.001, waited=0.050)
    assert found == [0.008, 0.016, 0.032, 0.064, 0.128, 0.25, 0.25, 0.25]


def test_it_shrinks_to_nothing_when_that_is_over() -> None:
    process = Process()
    process.lives(4, ran=0.001, waited=0.050)
    assert process.lives(5, ran=0.010, waited=0.001) == [0.032, 0.016, 0.008, 0, 0]


@pytest.mark.parametrize(
    ("ran", "waited"),
    [
        (0.0, 0.0),  # it slept, or the kernel does not say
        (0.1, 0.0),  # busy on a free processor
        (0.04, 0.06),  # five processes that share two processors
        (0.035, 0.065),
    ],
)
def test_not_at_all_on_a_machine_that_is_idle_or_merely_busy(ran: float, waited: float) -> None:
    assert Process().lives(20, ran, waited) == [0.0] * 20


def test_one_that_is_given_stays() -> None:
    lingering = Lingering(0.02)
    assert not lingering.due(10.0)
    assert lingering.secs == 0.02
    assert Lingering(0.0).secs == 0.0


@given(st.lists(st.tuples(st.floats(0, 0.1), st.floats(0, 0.1)), max_size=40))
@example([(0.0, 0.0625)] * 6 + [(0.0, 0.0)] * 6)
def test_within_its_bounds_whatever_happens(life: list[tuple[float, float]]) -> None:
    process = Process()
    before = 0.0
    for ran, waited in life:
        (secs,) = process.lives(1, ran, waited)
        assert secs == 0 or SHORTEST_SECS <= secs <= LONGEST_SECS
        if ran > 0.001 and abs(waited - CROWDED * (ran + waited)) > 1e-6:
            crowded = waited > CROWDED * (ran + waited)
            assert secs >= before if crowded else secs <= before
        before = secs
