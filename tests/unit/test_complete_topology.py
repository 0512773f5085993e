"""complete_topology in one thread: results of what completes, reasons of what does not."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import (
    BasicOutputCollector,
    OutputFieldsDeclarer,
    TopologyBuilder,
    TopologyFailed,
    Tuple,
)
from storm_py.testing import FixedTuple, HoldingBolt, Outcome, complete_topology, read_tuples
from tests.driven import Late, Sentences, Split, word_count

SENTENCES = [["a b a"], ["b a"]]


class TwoStreams(Sentences):
    """A spout to be replaced, with a second stream."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word")
        declarer.declare_stream("side", "word")


class DropsFirst(Late):
    """Neither acks nor fails the first tuple, and acks the others."""

    seen = 0

    def execute(self, tup: Tuple) -> None:
        self.seen += 1
        if self.seen == 1:
            self.first(tup)
        else:
            self.collector.ack(tup)

    def first(self, tup: Tuple) -> None:
        """Forget it."""


class FailsFirst(DropsFirst):
    """Fails the first tuple, and acks the others."""

    def first(self, tup: Tuple) -> None:
        self.collector.fail(tup)


class Echo(Split):
    """Emits what it receives."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit(tup.values)


class TestCompletes:
    def test_mock_sources_give_the_tuples(self) -> None:
        result = complete_topology(word_count(["not this"]), {"sentences": SENTENCES})
        assert isinstance(result, Outcome)
        assert read_tuples(result, "sentences") == SENTENCES
        assert Counter(map(tuple, read_tuples(result, "count"))) == Counter(
            [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]
        )
        totals = [counts for [counts] in read_tuples(result, "count", "totals") if counts]
        assert sorted(word for counts in totals for word in counts) == ["a", "b"]
        assert sorted(result.acked("sentences"), key=repr) == [0, 1]

    @given(
        sentences=st.lists(st.lists(st.sampled_from("abcd")).map(" ".join)),
        tasks=st.integers(1, 4),
        rows=st.sampled_from([1, 2, 256]),
        pending=st.none() | st.integers(1, 3),
    )
    def test_whatever_the_layout_each_word_counts_once_and_each_tuple_is_acked_once(
        self, sentences: list[str], tasks: int, rows: int, pending: int | None
    ) -> None:
        conf = {"storm_py.batch.rows": rows, "topology.max.spout.pending": pending}
        mock = {"sentences": [[sentence] for sentence in sentences]}
        result = complete_topology(word_count(tasks=tasks), mock, conf)
        totals = Counter[str]()
        for [counts] in read_tuples(result, "count", "totals"):
            totals.update(counts)
        assert totals == Counter(word for sentence in sentences for word in sentence.split())
        assert Counter(result.acked()) == Counter(range(len(sentences)))
        assert read_tuples(result, "sentences") == [[sentence] for sentence in sentences]

    def test_a_spout_that_ends_itself_needs_no_mock(self) -> None:
        result = complete_topology(word_count(["a", "b"]))
        assert sorted(read_tuples(result, "split")) == [["a"], ["b"]]

    def test_no_tuples_at_all(self) -> None:
        assert read_tuples(complete_topology(word_count(), {"sentences": []}), "count") == []

    def test_a_mock_with_several_tasks_and_streams(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("words", TwoStreams(), 3)
        builder.set_bolt("all", Late()).shuffle_grouping("words").shuffle_grouping("words", "side")
        tuples = [["a"], ["b"], ["c"], FixedTuple(["x"], "side"), ["d"]]
        conf = {"topology.acker.executors": 0}
        result = complete_topology(builder, {"words": tuples}, conf)
        assert sorted(result.received("all")) == [["a"], ["b"], ["c"], ["d"], ["x"]]
        assert read_tuples(result, "words", "side") == [["x"]]

    def test_what_fails_once_is_replayed(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("words", Sentences())
        builder.set_bolt("fails", FailsFirst()).shuffle_grouping("words")
        result = complete_topology(builder, {"words": [["a"], ["b"]]})
        assert (result.failed(), result.acked()) == ([0], [1, 0])
        assert result.received("fails") == [["a"], ["b"], ["a"]]

    def test_time_passes_when_that_helps(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("words", Sentences())
        builder.set_bolt("drops", DropsFirst()).shuffle_grouping("words")
        conf = {"topology.message.timeout.secs": 3}
        result = complete_topology(builder, {"words": [["a"], ["b"]]}, conf)
        assert result.failed() == [0]
        assert sorted(result.acked(), key=repr) == [0, 1]
        assert result.received("drops") == [["a"], ["b"], ["a"]]


class TestDoesNotComplete:
    def test_a_bolt_that_never_acks_is_named_with_what_it_holds(self) -> None:
        builder = word_count()
        builder.set_bolt("store", HoldingBolt()).shuffle_grouping("count")
        with pytest.raises(TopologyFailed) as raised:
            complete_topology(builder, {"sentences": SENTENCES}, timeout_secs=3)
        assert str(raised.value).splitlines() == [
            "the topology is not complete after 3 s of its clock",
            "- spout 'sentences': ['a b a'], ['b a'] not acked",
            "- bolt 'store' was given ['a', 1], ['a', 2], ['b', 1], ... (5 tuples) and has neither "
            "acked nor failed it",
        ]

    def test_a_tuple_that_always_fails_is_named(self) -> None:
        with pytest.raises(TopologyFailed) as raised:
            complete_topology(word_count(), {"sentences": [["a"], ["fail"]]}, timeout_secs=3)
        assert str(raised.value).splitlines() == [
            "the topology is not complete after 3 s of its clock",
            "- spout 'sentences': ['fail'] not acked; ['fail'] failed 1,000 times",
        ]

    def test_a_spout_that_goes_silent_is_named(self) -> None:
        with pytest.raises(TopologyFailed) as raised:
            complete_topology(word_count(["a"], ends=False), timeout_secs=1)
        assert str(raised.value).splitlines() == [
            "the topology is not complete after 1 s of its clock",
            "- spout 'sentences' has not called end_of_input; let it, or replace it: "
            "mock_sources={'sentences': [...]}",
        ]

    def test_a_spout_that_never_stops_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("storm_py.testing.driver.MAX_CALLS", 50)
        with pytest.raises(TopologyFailed) as raised:
            complete_topology(word_count(["a"] * 100))
        lines = str(raised.value).splitlines()
        assert lines[0].startswith("spout 'sentences' still emits after 50 calls of next_tuple")
        assert lines[-1].startswith("- spout 'sentences' has not called end_of_input")

    def test_a_topology_that_goes_in_circles(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("storm_py.testing.driver._MAX_ROUNDS", 100)
        builder = TopologyBuilder()
        builder.set_spout("s", Sentences("a"))
        builder.set_bolt("one", Echo()).shuffle_grouping("s").shuffle_grouping("two")
        builder.set_bolt("two", Echo()).shuffle_grouping("one")
        with pytest.raises(TopologyFailed, match=r"never gets quiet; .* in circles \(one, two\)"):
            complete_topology(builder)

    def test_what_user_code_raises_comes_out_as_it_is(self) -> None:
        with pytest.raises(KeyError, match="as told"):
            complete_topology(word_count(), {"sentences": [["raise"]]})
