"""TopologyDriver: what a test does to a topology, and what it sees come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    EmitError,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    TopologyFailed,
    Tuple,
)
from storm_py.testing import FakeClock, FeederSpout, HoldingBolt, TopologyDriver
from tests.driven import Count, Late, Sentences, Split, word_count

TIMEOUT = {"topology.message.timeout.secs": 10}


class TestABolt:
    def test_what_it_emits_for_what_it_is_fed(self) -> None:
        with TopologyDriver.for_bolt(Split(), "sentence") as driver:
            driver.feed("input", ["to be or"])
            driver.feed("input", ["not"])
            assert driver.outputs("bolt") == [["to"], ["be"], ["or"], ["not"]]
            assert driver.received("bolt") == [["to be or"], ["not"]]

    def test_acks_and_fails(self) -> None:
        with TopologyDriver.for_bolt(Split(), "sentence") as driver:
            for number, sentence in enumerate(["a", "fail", "b"]):
                driver.feed("input", [sentence], number)
            assert (driver.acked(), driver.failed(), driver.pending()) == ([0, 2], [1], [])

    def test_figures_count_what_a_spout_was_told(self) -> None:
        with TopologyDriver.for_bolt(Split(), "sentence") as driver:
            for number, sentence in enumerate(["a", "fail", "b"]):
                driver.feed("input", [sentence], number)
            driver.feed("input", ["untracked"])
            found = {each.component_id: (each.acked, each.failed) for each in driver.figures()}
            assert found == {"input": (2, 1), "bolt": (0, 0), "sink": (0, 0)}

    def test_several_inputs(self) -> None:
        with TopologyDriver.for_bolt(Late(), {"left": "a", "right": ["b", "c"]}) as driver:
            driver.feed("left", [1])
            driver.feed("right", [2, 3])
            sources = [(t.source_component, t.fields.to_list()) for t in driver.tuples("bolt")]
            assert sources == [("left", ["a"]), ("right", ["b", "c"])]

    def test_results_at_the_end_of_the_input(self) -> None:
        with TopologyDriver.for_bolt(Count(), "word") as driver:
            driver.feed("input", ["a"])
            assert driver.outputs("bolt", "totals") == []
            driver.end_of_input()
            assert driver.outputs("bolt", "totals") == [[{"a": 1}]]
            assert driver.ended

    def test_what_it_emits_at_the_end_is_untracked(self) -> None:
        class Tracked(BaseBasicBolt):
            streams: ClassVar[dict[str, bool]] = {}

            def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
                self.streams[tup.source_stream_id] = bool(tup.message_id)

        builder = TopologyBuilder()
        builder.set_spout("words", FeederSpout("word"))
        builder.set_bolt("count", Count()).shuffle_grouping("words")
        tracked = builder.set_bolt("tracked", Tracked())
        tracked.shuffle_grouping("count").shuffle_grouping("count", "totals")
        with TopologyDriver(builder) as driver:
            driver.feed("words", ["a"], msg_id=1)
            driver.end_of_input()
            assert driver.component("tracked").streams == {"default": True, "totals": False}

    def test_what_it_emits_is_checked_as_if_somebody_subscribed(self) -> None:
        class Odd(Split):
            def execute(self, tup: Tuple, collector: Any) -> None:
                collector.emit([object()])

        with TopologyDriver.for_bolt(Odd(), "sentence") as driver:
            with pytest.raises(EmitError, match="component 'bolt', stream 'default'"):
                driver.feed("input", ["a"])
            assert driver.outputs("bolt") == []

    def test_a_value_seen_does_not_change_with_what_the_bolt_does_to_it(self) -> None:
        class Reuse(Split):
            def __init__(self) -> None:
                self.row = [["first"]]

            def execute(self, tup: Tuple, collector: Any) -> None:
                tup.values[0].append("changed")
                collector.emit(self.row)
                self.row[0][0] = "second"

        with TopologyDriver.for_bolt(Reuse(), "sentence") as driver:
            driver.feed("input", [["a"]])
            assert driver.received("bolt") == [[["a"]]]
            assert driver.outputs("bolt") == [[["first"]]]


class TestASpout:
    def test_it_runs_until_it_says_nothing(self) -> None:
        with TopologyDriver.for_spout(Sentences("a", *[""] * 6, "b")) as driver:
            driver.run()
            assert driver.outputs("spout") == [["a"], ["b"]]
            assert driver.pending() == [0, 7]

    def test_the_test_answers_it(self) -> None:
        with TopologyDriver.for_spout(Sentences("a", "b", "c")) as driver:
            driver.run()
            driver.ack("spout", 1)
            driver.fail("spout", 0)
            assert driver.component("spout").answers == ["activate", "ack 1", "fail 0"]
            assert (driver.acked(), driver.failed(), driver.pending()) == ([1], [0], [2])

    def test_its_calls_can_be_counted_out(self) -> None:
        with TopologyDriver.for_spout(Sentences("a", "b", "c")) as driver:
            driver.run(calls=2)
            assert driver.outputs("spout") == [["a"], ["b"]]
            driver.run(calls=0)
            assert len(driver.outputs("spout")) == 2

    def test_one_that_never_stops_is_no_hang(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("storm_py.testing.driver.MAX_CALLS", 50)
        with TopologyDriver.for_spout(Sentences(*["a"] * 100)) as driver:
            with pytest.raises(TopologyFailed, match=r"'spout' still emits after 50 calls of next"):
                driver.run()
            driver.run(calls=60)
            assert len(driver.outputs("spout")) == 100

    def test_max_spout_pending(self) -> None:
        conf = {"topology.max.spout.pending": 2}
        with TopologyDriver.for_spout(Sentences("a", "b", "c", "d"), conf) as driver:
            driver.run()
            assert driver.pending() == [0, 1]
            driver.fail("spout", 0)
            driver.run()
            assert driver.pending() == [1, 2]

    def test_deactivated_it_is_not_called(self) -> None:
        with TopologyDriver.for_spout(Sentences("a")) as driver:
            driver.deactivate()
            driver.run()
            assert driver.outputs("spout") == []
            driver.activate()
            driver.run()
            assert driver.outputs("spout") == [["a"]]
            assert driver.component("spout").answers == ["activate", "deactivate", "activate"]


class TestATopology:
    def test_from_the_first_tuple_to_the_last_end(self) -> None:
        with TopologyDriver(word_count(["a b a", "b a"])) as driver:
            driver.run()
            assert driver.ended
            assert driver.acked("sentences") == [0, 1]
            totals = Counter[str]()
            for [counts] in driver.outputs("count", "totals"):
                totals.update(counts)
            assert totals == {"a": 3, "b": 2}
            assert driver.unended == []

    def test_equal_keys_meet_in_one_task(self) -> None:
        words = [f"w{i % 20}" for i in range(100)]
        with TopologyDriver(word_count([" ".join(words)], tasks=4)) as driver:
            driver.run()
            owners = [set(driver.component("count", i).counts) for i in range(4)]
            assert sum(map(len, owners)) == len(set.union(*owners)) == 20
            assert all(len(owner) < 20 for owner in owners)
            for i in range(4):
                received = driver.received("count", task_index=i)
                assert {word for [word] in received} == owners[i]

    @pytest.mark.parametrize("rows", [1, 3, 256])
    def test_same_calls_same_results(self, rows: int) -> None:
        def outcome() -> list[Any]:
            sentences = [f"{i} {i % 3} {i % 7}" for i in range(50)]
            with TopologyDriver(word_count(sentences), {"storm_py.batch.rows": rows}) as driver:
                driver.run(calls=20)
                driver.advance(7, calls=5)
                driver.run()
                ids = (driver.acked(), driver.failed())
                return [ids, *map(driver.outputs, ("sentences", "split", "count"))]

        assert outcome() == outcome()

    def test_the_seed_decides_the_ids_that_the_engine_draws(self) -> None:
        def ids(seed: int) -> list[object]:
            builder = TopologyBuilder()
            builder.set_spout("sentences", Sentences("a", "b"))
            builder.set_bolt("hold", HoldingBolt()).shuffle_grouping("sentences")
            with TopologyDriver(builder, seed=seed) as driver:
                driver.run()
                return [tup.message_id for tup in driver.unanswered("hold")]

        assert ids(1) == ids(1) != ids(2)

    def test_the_configuration_limits_tasks(self) -> None:
        with TopologyDriver(word_count(), {"topology.max.task.parallelism": 2}) as driver:
            assert [each.tasks for each in driver.figures()] == [1, 2, 2]

    def test_feeding_in_place_of_a_spout(self) -> None:
        with TopologyDriver(word_count(["not", "these"]), mock_sources="sentences") as driver:
            driver.feed("sentences", ["a b"], "id")
            driver.feed("sentences", ["b"])
            assert driver.outputs("sentences") == [["a b"], ["b"]]
            assert sorted(driver.outputs("count")) == [["a", 1], ["b", 1], ["b", 2]]
            assert driver.acked() == ["id"]

    def test_feeding_beside_a_spout(self) -> None:
        with TopologyDriver(word_count(["a"], ends=False)) as driver:
            driver.feed("sentences", ["b"], "mine")
            assert driver.outputs("sentences") == [["b"], ["a"]]
            answers = driver.component("sentences").answers
            assert sorted(answers) == ["ack 0", "ack mine", "activate"]

    def test_feeding_without_running(self) -> None:
        with TopologyDriver(word_count(), mock_sources=["sentences"]) as driver:
            driver.feed("sentences", ["a"], run=False)
            driver.feed("sentences", ["b"], run=False)
            assert driver.outputs("sentences") == []
            driver.run()
            assert driver.outputs("sentences") == [["a"], ["b"]]

    def test_clear_forgets_what_was_seen(self) -> None:
        with TopologyDriver(word_count(), mock_sources=["sentences"]) as driver:
            driver.feed("sentences", ["a"], 1)
            driver.clear()
            driver.feed("sentences", ["a"], 2)
            assert (driver.outputs("count"), driver.acked()) == ([["a", 2]], [2])

    def test_without_acking_message_ids_are_acked_at_once(self) -> None:
        conf = {"topology.acker.executors": 0}
        with TopologyDriver(word_count(["fail"]), conf) as driver:
            driver.run()
            assert (driver.acked(), driver.failed()) == ([0], [])

    def test_a_backlog_above_the_mark_is_worked_off_while_time_stands_still(self) -> None:
        conf = {"storm_py.backpressure.high.bytes": 1024}
        with TopologyDriver(word_count(["many words " * 5] * 2000), conf) as driver:
            driver.run()
            assert driver.ended
            assert len(driver.acked()) == 2000


class Both(BaseRichBolt):
    """Emits on two streams, anchored to the last two inputs."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("pair")
        declarer.declare_stream("side", "word")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.last: list[Tuple] = []

    def execute(self, tup: Tuple) -> None:
        self.last.append(tup)
        self.collector.emit([tup.values[0].upper()], stream="side")
        if len(self.last) == 2:
            self.collector.emit([[each.values[0] for each in self.last]], self.last)
            for each in self.last:
                self.collector.ack(each)
            self.last.clear()


class TestTrees:
    @pytest.fixture
    def driver(self) -> TopologyDriver:
        builder = TopologyBuilder()
        builder.set_spout("words", Sentences(ends=False))
        builder.set_bolt("both", Both()).shuffle_grouping("words")
        builder.set_bolt("one", Late()).shuffle_grouping("both").shuffle_grouping("both", "side")
        builder.set_bolt("two", Late()).shuffle_grouping("both")
        return TopologyDriver(builder, TIMEOUT)

    def test_a_tuple_of_several_anchors_finishes_all_their_trees(
        self, driver: TopologyDriver
    ) -> None:
        driver.feed("words", ["x"], 1)
        driver.feed("words", ["y"], 2)
        [emitted] = [each for each in driver.emitted("both") if each.stream == "default"]
        assert [tup.values for tup in emitted.anchors] == [["x"], ["y"]]
        assert driver.outputs("both", "side") == [["X"], ["Y"]]
        assert driver.pending() == [1, 2]
        for bolt in ("one", "two"):
            held = driver.component(bolt)
            [tracked] = driver.unanswered(bolt)
            held.collector.ack(tracked)
            driver.run()
            assert driver.acked() == ([] if bolt == "one" else [1, 2])
        assert driver.unanswered("one") == []

    def test_one_branch_that_fails_fails_all_its_roots(self, driver: TopologyDriver) -> None:
        driver.feed("words", ["x"], 1)
        driver.feed("words", ["y"], 2)
        driver.component("two").collector.fail(driver.unanswered("two")[0])
        driver.run()
        assert (driver.acked(), driver.failed()) == ([], [1, 2])


class TestTime:
    def test_a_tuple_that_nobody_acks_fails_between_one_and_two_timeouts(self) -> None:
        with TopologyDriver.for_bolt(Late(), "word", TIMEOUT) as driver:
            driver.advance(5)
            driver.feed("input", ["never"], 1)
            driver.advance(10)
            assert driver.failed() == []
            driver.advance(10)
            assert (driver.failed(), driver.pending()) == ([1], [])

    def test_an_ack_in_time_counts(self) -> None:
        with TopologyDriver.for_bolt(Late(), "word", TIMEOUT) as driver:
            driver.feed("input", ["later"], 1)
            driver.advance(19)
            assert [tup.values for tup in driver.unanswered("bolt")] == [["later"]]
            driver.feed("input", ["now"], 2)
            driver.advance(20)
            assert (driver.acked(), driver.failed()) == ([1, 2], [])

    def test_one_long_step_is_as_good_as_many_short_ones(self) -> None:
        for steps in ([100.0], [0.25] * 400):
            with TopologyDriver.for_bolt(Late(), "word", TIMEOUT) as driver:
                driver.feed("input", ["never"], 1)
                for secs in steps:
                    driver.advance(secs)
                assert (driver.clock.now, driver.failed()) == (100.0, [1])

    def test_time_goes_on_from_where_the_clock_stands(self) -> None:
        clock = FakeClock(1_000_000.25)
        with TopologyDriver(word_count(["a"]), clock=clock) as driver:
            driver.advance(0.5)
            driver.advance(0)
            assert driver.clock.now == clock.now == 1_000_000.75
            assert driver.ended

    def test_components_can_share_the_clock(self) -> None:
        class Stamp(BaseRichSpout):
            def __init__(self, clock: FakeClock) -> None:
                self.clock = clock
                self.due = 3.0

            def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
                declarer.declare("secs")

            def open(
                self, conf: Mapping[str, Any], context: Any, collector: SpoutOutputCollector
            ) -> None:
                self.collector = collector

            def next_tuple(self) -> None:
                if self.clock() >= self.due:
                    self.due += 3
                    self.collector.emit([self.clock()])

        clock = FakeClock()
        builder = TopologyBuilder()
        builder.set_spout("stamp", Stamp(clock))
        with TopologyDriver(builder, clock=clock) as driver:
            driver.advance(10)
            assert driver.outputs("stamp") == [[3.0], [6.0], [9.0]]
