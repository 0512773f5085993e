"""Aligner: a wave is complete once, when every channel has been heard."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.core.aligner import Aligner

markers = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), max_size=40)


class Oracle:
    """The same from the whole history."""

    def __init__(self, channels: frozenset[int]) -> None:
        self.channels = channels
        self.history: list[tuple[int, int]] = []
        self.completed: list[int] = []

    def marker(self, src: int, wave: int) -> bool:
        self.history.append((src, wave))
        newest = max((w for s, w in self.history if s in self.channels), default=0)
        heard = {s for s, w in self.history if w == newest and s in self.channels}
        complete = heard == self.channels and newest > max(self.completed, default=0)
        if complete:
            self.completed.append(newest)
        return complete


@settings(max_examples=100)
@given(st.frozensets(st.integers(1, 3), max_size=3), markers)
def test_it_agrees_with_history(channels: frozenset[int], sent: list[tuple[int, int]]) -> None:
    aligner, oracle = Aligner(channels), Oracle(channels)
    for src, wave in sent:
        assert aligner.marker(src, wave) == oracle.marker(src, wave)
        assert aligner.aligned == max(oracle.completed, default=0)
        aligner.check()
    assert oracle.completed == sorted(set(oracle.completed))


@given(st.permutations([(src, wave) for src in (1, 2, 3) for wave in (1, 2)]))
def test_waves_overtaken_by_a_higher_one_are_given_up(sent: list[tuple[int, int]]) -> None:
    """Each channel sends its waves in any order: the last wave completes, at the right moment."""
    aligner = Aligner([1, 2, 3])
    answers = [aligner.marker(src, wave) for src, wave in sent]
    last = max(i for i, (_, wave) in enumerate(sent) if wave == 2)
    assert answers[last] is True
    assert not any(answers[last + 1 :])
    assert aligner.aligned == 2


class TestExamples:
    def test_a_dialogue(self) -> None:
        aligner = Aligner([7, 8])
        assert aligner.missing() == {7, 8}
        assert aligner.marker(7, 1) is False
        assert aligner.missing() == {8}
        assert aligner.marker(8, 2) is False  # somebody died: a new wave, the count starts anew
        assert aligner.missing() == {7}
        assert aligner.marker(8, 1) is False
        assert aligner.marker(7, 2) is True
        assert (aligner.aligned, aligner.missing()) == (2, frozenset())
        assert aligner.marker(7, 2) is False  # only once
        assert aligner.marker(7, 3) is False
        assert aligner.marker(8, 3) is True

    def test_strangers_count_for_nothing(self) -> None:
        aligner = Aligner([7])
        assert aligner.marker(9, 5) is False
        assert aligner.marker(7, 1) is True

    def test_a_task_without_channels_never_aligns(self) -> None:
        aligner = Aligner([])
        assert aligner.marker(1, 1) is False
        assert aligner.aligned == 0

    @pytest.mark.parametrize("wave", [0, -1])
    def test_waves_are_numbered_from_one(self, wave: int) -> None:
        aligner = Aligner([7])
        assert aligner.marker(7, wave) is False
        aligner.check()
