"""Root ids: 62 bits, their owner recovered, never used twice by two incarnations."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.core.roots import ID_BITS, MAX_TASK, Roots, spout_task

_COUNTERS = 1 << 34

tasks = st.integers(1, MAX_TASK)


class Bits:
    """A generator that answers with what it is given: the incarnation, then the counter."""

    def __init__(self, incarnation: int, counter: int) -> None:
        self._answers = [(12, incarnation), (34, counter)]

    def getrandbits(self, k: int, /) -> int:
        bits, answer = self._answers.pop(0)
        assert k == bits
        return answer


@given(tasks, st.integers(0, (1 << 12) - 1), st.integers(0, _COUNTERS - 1))
def test_a_root_names_its_spout_task_in_62_bits(task: int, incarnation: int, counter: int) -> None:
    roots = Roots(task, Bits(incarnation, counter))
    found = [roots.next() for _ in range(5)]
    assert ID_BITS == 62
    assert all(0 < root < 1 << 62 for root in found)
    assert {spout_task(root) for root in found} == {task}
    assert len(set(found)) == 5


@given(tasks, st.integers(0, 20))
def test_the_counter_wraps_without_touching_the_rest(task: int, before: int) -> None:
    roots = Roots(task, Bits((1 << 12) - 1, _COUNTERS - 1 - before))
    found = [roots.next() for _ in range(before + 3)]
    assert len(set(found)) == before + 3
    assert {root >> 34 for root in found} == {found[0] >> 34}
    assert [root & (_COUNTERS - 1) for root in found[-3:]] == [0, 1, 2]


def test_no_root_is_zero_even_if_all_its_random_bits_are() -> None:
    roots = Roots(1, Bits(0, _COUNTERS - 1))
    assert roots.next() == 1 << 46


@given(tasks, st.integers(0, _COUNTERS - 1))
def test_two_incarnations_share_no_root(task: int, counter: int) -> None:
    old, new = Roots(task, Bits(17, counter)), Roots(task, Bits(18, counter))
    assert not {old.next() for _ in range(50)} & {new.next() for _ in range(50)}


def test_generators_with_different_seeds_give_different_incarnations() -> None:
    bases = {Roots(7, random.Random(seed)).next() >> 34 for seed in range(20)}
    assert len(bases) > 15


@given(tasks, tasks)
def test_two_tasks_share_no_root(one: int, other: int) -> None:
    first, second = Roots(one, Bits(5, 5)).next(), Roots(other, Bits(5, 5)).next()
    assert (first == second) == (one == other)


@pytest.mark.parametrize("task", [0, -1, MAX_TASK + 1])
def test_a_task_that_does_not_fit_is_refused(task: int) -> None:
    with pytest.raises(ValueError, match=rf"task {task} does not fit .*1 to 65535"):
        Roots(task, random.Random(1))
