"""The sliding counter of the example `rolling_top_words`."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given

from storm_py.topologies.rolling_top_words import SlidingCounter, top_of


def test_a_word_counts_while_it_is_in_the_window_then_once_with_zero() -> None:
    counter = SlidingCounter(3)
    counter.add("the")
    counter.add("the")
    assert [counter.advance() for _ in range(5)] == [
        {"the": 2},
        {"the": 2},
        {"the": 2},
        {"the": 0},
        {},
    ]


@given(st.integers(1, 4), st.lists(st.lists(st.sampled_from("abc"))))
def test_counts_are_those_of_the_last_slots(slots: int, words: list[list[str]]) -> None:
    counter = SlidingCounter(slots)
    for i, slot in enumerate(words):
        for word in slot:
            counter.add(word)
        window = words[max(0, i + 1 - slots) : i + 1]
        found = counter.advance()
        assert +Counter(found) == Counter(word for each in window for word in each)
        left = {word for each in words[: i + 1] for word in each}
        assert found.keys() <= left


def test_equal_counts_are_ranked_by_the_alphabet() -> None:
    assert top_of({"b": 2, "c": 3, "a": 2, "d": 1}, 3) == [("c", 3), ("a", 2), ("b", 2)]
