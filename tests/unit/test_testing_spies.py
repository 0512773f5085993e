"""What spies see of each kind of component, and that the component sees nothing of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from storm_py.api.tuples import TupleContext
from storm_py.constants import SYSTEM_COMPONENT_ID, SYSTEM_TICK_STREAM_ID
from storm_py.testing import Emitted, Outcome, TopologyDriver
from storm_py.testing.spies import BasicBoltSpy, BoltSpy, Log, SpoutSpy, spy_on
from tests.driven import Count, Grumble, Late, Sentences, Split


class Declares:
    """A direct stream, and one that is not."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare_stream("picked", "what", direct=True)
        declarer.declare_stream("spread", "what")

    def second_task(self, context: TopologyContext, consumer: str) -> int:
        """The task of the consumer that is picked."""
        return context.component_tasks(consumer)[1]


class Spout(Declares, BaseRichSpout):
    """Emits once on each stream."""

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.to = self.second_task(context, "rich")
        self.returned: list[object] = []

    def next_tuple(self) -> None:
        if not self.returned:
            self.collector.emit_direct(self.to, ["s"], 7, "picked")
            self.returned.append(self.collector.emit(["s"], stream="spread"))


class Rich(Declares, BaseRichBolt):
    """Emits what it receives, and its name."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.to = self.second_task(context, "basic")

    def execute(self, tup: Tuple) -> None:
        self.collector.emit_direct(self.to, [tup[0] + "r"], tup, stream="picked")
        self.collector.emit([tup[0] + "r"], [tup], "spread")
        self.collector.ack(tup)


class Basic(Declares, BaseBasicBolt):
    """Emits what it receives, and its name."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.to = self.second_task(context, "end")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit_direct(self.to, [tup[0] + "b"], "picked")
        collector.emit([tup[0] + "b"], stream="spread")


def test_every_way_to_emit_is_seen() -> None:
    builder = TopologyBuilder()
    builder.set_spout("spout", Spout())
    builder.set_bolt("rich", Rich(), 2).direct_grouping("spout", "picked")
    builder.set_bolt("basic", Basic(), 2).direct_grouping("rich", "picked")
    builder.set_bolt("end", Late(), 2).direct_grouping("basic", "picked")
    with TopologyDriver(builder) as driver:
        driver.run()
        basic, end, rich, spout = (1, 2), (3, 4), (5, 6), 7
        [to_rich], [to_basic], [to_end] = (driver.tuples(c) for c in ("rich", "basic", "end"))
        assert driver.emitted("spout") == [
            Emitted("spout", spout, "picked", ["s"], 7, (), (rich[1],)),
            Emitted("spout", spout, "spread", ["s"], None, (), ()),
        ]
        assert driver.emitted("rich") == [
            Emitted("rich", rich[1], "picked", ["sr"], None, (to_rich,), (basic[1],)),
            Emitted("rich", rich[1], "spread", ["sr"], None, (to_rich,), ()),
        ]
        assert driver.emitted("basic") == [
            Emitted("basic", basic[1], "picked", ["srb"], None, (to_basic,), (end[1],)),
            Emitted("basic", basic[1], "spread", ["srb"], None, (to_basic,), ()),
        ]
        assert driver.received("end", task_index=0) == []
        assert driver.received("end", task_index=1) == [["srb"]]
        assert to_end.source_component == "basic"
        assert driver.component("spout").returned == [()]
        assert driver.pending() == [7]


def test_what_was_acked_or_failed_is_not_unanswered() -> None:
    class Answers(Late):
        def execute(self, tup: Tuple) -> None:
            (self.collector.ack if tup[0] == "ack" else self.collector.fail)(tup)

    with TopologyDriver.for_bolt(Answers(), "how") as driver:
        driver.feed("input", ["ack"], 1)
        driver.feed("input", ["fail"], 2)
        assert driver.unanswered("bolt") == []
        assert (driver.acked(), driver.failed()) == ([1], [2])


def test_ticks_are_among_the_tuples_but_not_among_the_values() -> None:
    with TopologyDriver.for_bolt(Late(), "word") as driver:
        tick = TupleContext(SYSTEM_COMPONENT_ID, SYSTEM_TICK_STREAM_ID, -1, Fields("rate_secs"))
        spy = spy_on(driver.component("bolt"), log := Log())
        assert isinstance(spy, BoltSpy)
        spy.task = 1
        spy.execute(Tuple([2], tick))
        spy.execute(Tuple(["a"], TupleContext("input", "default", 2, Fields("word"))))
        outcome = Outcome(driver.plan, log, [])
        assert [tup.values for tup in outcome.tuples("bolt")] == [[2], ["a"]]
        assert outcome.received("bolt") == [["a"]]


def test_what_is_emitted_at_the_end_of_the_input_has_no_anchor() -> None:
    class AtTheEnd(Split):
        def end_of_input(self, collector: BasicOutputCollector) -> None:
            collector.emit(["end"])

    with TopologyDriver.for_bolt(AtTheEnd(), "sentence") as driver:
        driver.feed("input", ["a fail"])
        driver.end_of_input()
        assert [(each.values, len(each.anchors)) for each in driver.emitted("bolt")] == [
            (["a"], 1),
            (["end"], 0),
        ]


@pytest.mark.parametrize(
    ("component", "kind", "base"),
    [
        (Sentences(), SpoutSpy, BaseRichSpout),
        (Count(), BoltSpy, BaseRichBolt),
        (Split(), BasicBoltSpy, BaseBasicBolt),
    ],
)
def test_no_hook_is_swallowed(component: object, kind: type, base: type) -> None:
    """Whatever hooks a base class has, a spy hands each on to its component."""
    spy = spy_on(component, Log())
    assert type(spy) is kind
    for name in [n for n, hook in vars(base).items() if callable(hook) and n[0] != "_"]:
        called: list[str] = []
        setattr(component, name, lambda *args, called=called: called.append("yes"))
        count = getattr(base, name).__code__.co_argcount - 1
        args = [_Anything() for _ in range(count)]
        getattr(spy, name)(*args)
        assert called == ["yes"], name


class _Anything:
    """A context, a tuple, a configuration: what a hook is called with."""

    this_component_id = "c"
    this_task_id = 1
    values: tuple[object, ...] = ()
    message_id = None


def test_reported_errors_and_other_calls_reach_the_collector() -> None:
    with TopologyDriver.for_bolt(Grumble(), "what") as driver:
        driver.feed("input", ["report"])
        assert [(e.where, e.message) for e in driver.errors] == [
            ("report_error", "ValueError: odd")
        ]


def test_what_is_no_component_has_no_spy() -> None:
    with pytest.raises(TypeError, match="'text' is neither a spout nor a bolt"):
        spy_on("text", Log())
