"""A tuple that user code keeps stays what it was; one that nobody keeps serves the next row."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import FailedException, Fields, Tuple
from storm_py.api.tuples import TrackedTuple, TupleContext
from storm_py.core.batching import Root
from storm_py.engine.acking import Acks
from storm_py.engine.calls import Calls
from storm_py.engine.port import Watch
from storm_py.engine.reports import Reports
from storm_py.engine.reuse import ALONE
from storm_py.engine.tasks import BoltTask
from tests.builders import FakeClock, Numbers, Recorder, bolt, plan_of, settings_of, spout
from tests.instance import ScriptedBasicBolt, ScriptedBolt

PLAN = plan_of(spout("words", "word"), bolt("count", "words", "word"))
CONTEXT = TupleContext("words", "default", 2, Fields("word"))

Keep = Callable[[int], bool]


class Bench:
    """A bolt of one kind under one way of tracking, which keeps the tuples that it is told to."""

    def __init__(self, make: Callable[..., object], tracked: bool) -> None:
        self.kept: list[tuple[int, Tuple]] = []
        self.objects: list[int] = []
        self.acks = Acks(Numbers()) if tracked else None
        self._keep: Keep = lambda row: False
        self._fail: Keep = lambda row: False
        clock = FakeClock()
        self._task = BoltTask(
            PLAN,
            1,
            make(Recorder(), self._execute),
            settings_of(PLAN),
            lambda batch, task: None,
            Reports(PLAN.conf, clock, lambda report: None),
            self.acks,
            clock,
            Calls(Watch()),
        )
        self._task.open()

    def _execute(self, component: Any, tup: Tuple) -> None:
        row = tup[0]
        self.objects.append(id(tup))
        if self._keep(row):
            self.kept.append((row, tup))
        if self._fail(row):
            raise FailedException("no")

    def run(self, rows: int, keep: Keep, fail: Keep = lambda row: False) -> None:
        self._keep, self._fail = keep, fail
        tracking: tuple[list[int] | None, list[int]] = (None, [])
        if self.acks is not None:
            tracking = ([1000 + row for row in range(rows)], [2000 + row for row in range(rows)])
        values: Iterator[list[object]] = iter([[row] for row in range(rows)])
        self._task.run(values, CONTEXT, *tracking)


WAYS = [
    pytest.param(make, tracked, id=f"{make.__name__}-{'tracked' if tracked else 'plain'}")
    for make in (ScriptedBolt, ScriptedBasicBolt)
    for tracked in (False, True)
]


@pytest.mark.parametrize(("make", "tracked"), WAYS)
@given(kept=st.sets(st.integers(0, 7)))
def test_kept_tuples_keep_their_values(make: Any, tracked: bool, kept: set[int]) -> None:
    bench = Bench(make, tracked)
    bench.run(8, kept.__contains__)
    assert [row for row, _ in bench.kept] == sorted(kept)
    assert [tup.values for _, tup in bench.kept] == [[row] for row in sorted(kept)]
    assert len({id(tup) for _, tup in bench.kept}) == len(kept)


@pytest.mark.parametrize("tracked", [False, True])
@given(failed=st.sets(st.integers(0, 7)))
def test_tuples_kept_by_a_basic_bolt_that_fails_them(tracked: bool, failed: set[int]) -> None:
    bench = Bench(ScriptedBasicBolt, tracked)
    bench.run(8, lambda row: True, failed.__contains__)
    assert [tup.values for _, tup in bench.kept] == [[row] for row in range(8)]
    if bench.acks is not None:
        assert bench.acks.fails == [1000 + row for row in sorted(failed)]
        assert bench.acks.acks == {1000 + r: 2000 + r for r in range(8) if r not in failed}


@given(kept=st.sets(st.integers(0, 7)), late=st.permutations(range(8)))
def test_kept_tuples_are_acked_for_themselves(kept: set[int], late: list[int]) -> None:
    bench = Bench(ScriptedBolt, tracked=True)
    assert bench.acks is not None
    bench.run(8, kept.__contains__)
    tuples = dict(bench.kept)
    for row in late:
        if row in kept:
            bench.acks.ack(tuples[row])
    assert bench.acks.acks == {1000 + row: 2000 + row for row in kept}


@pytest.mark.parametrize(("make", "tracked"), WAYS)
def test_a_tuple_that_nobody_keeps_serves_the_next_row(make: Any, tracked: bool) -> None:
    bench = Bench(make, tracked)
    bench.run(8, lambda row: row == 3)
    assert len(set(bench.objects[:4])) == 1
    assert len(set(bench.objects[4:])) == 1
    assert bench.objects[3] != bench.objects[4]


def test_rows_of_several_roots_and_of_none_in_an_object_that_had_one() -> None:
    bench = Bench(ScriptedBasicBolt, tracked=True)
    assert bench.acks is not None
    roots: list[Root] = [4, ((5, 50), (6, 60)), 0, 7]
    bench._task.run(iter([[0], [1], [2], [3]]), CONTEXT, roots, [40, 0, 0, 70])
    assert len(set(bench.objects)) == 1
    assert bench.acks.acks == {4: 40, 5: 50, 6: 60, 7: 70}


def test_the_count_of_a_local_alone() -> None:
    tup = TrackedTuple([], CONTEXT, 0, 0)
    assert sys.getrefcount(tup) == ALONE
    held = [tup]
    assert sys.getrefcount(tup) == ALONE + len(held)
