"""The numbers of workers: kept with the slot, and never given out twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storm_py.nimbus.worker_numbers import WorkerNumbers

A, B, C = ("s1", 6700), ("s1", 6701), ("s2", 6700)

slots = st.sets(st.tuples(st.sampled_from(["s1", "s2", "s3"]), st.integers(6700, 6703)))


def test_the_first_ones_are_given_out_in_the_slots_order() -> None:
    assert WorkerNumbers().renumber([C, A, B, A]) == WorkerNumbers({A: 1, B: 2, C: 3}, 4)


def test_a_slot_that_is_kept_keeps_its_number() -> None:
    before = WorkerNumbers({A: 1, B: 2}, 3)
    assert before.renumber([B, C]) == WorkerNumbers({B: 2, C: 3}, 4)


def test_a_slot_that_is_used_again_gets_another_one() -> None:
    once = WorkerNumbers().renumber([A])
    assert once.renumber([B]).renumber([A]) == WorkerNumbers({A: 3}, 4)


@given(st.lists(slots, min_size=1, max_size=8))
def test_no_number_is_ever_given_to_two(rounds: list[set[tuple[str, int]]]) -> None:
    found = WorkerNumbers()
    given_out: dict[int, tuple[str, int]] = {}
    before: set[tuple[str, int]] = set()
    for wanted in rounds:
        after = found.renumber(wanted)
        assert set(after.numbers) == wanted
        for slot, number in after.numbers.items():
            if slot in before:
                assert number == found.numbers[slot]
            else:
                assert number not in given_out
                given_out[number] = slot
            assert number < after.next_number
        found, before = after, wanted
