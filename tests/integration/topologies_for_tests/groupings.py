"""Every grouping at once: who emitted what to whom, as the emitter was told and as it arrived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

from .reporting import report

#: Consumers by grouping, and their parallelism; "mix" subscribes to two streams.
CONSUMERS = {"shuffle": 4, "fields": 3, "all": 3, "global": 3, "direct": 3, "mix": 2}


class Source(BaseRichSpout):
    """Emits numbered tuples, on the default stream, a direct one and one that nobody reads."""

    def __init__(self, total: int) -> None:
        self.total = total

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("id", "key")
        declarer.declare_stream("chosen", "id", "key", direct=True)
        declarer.declare_stream("unheard", "id")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.task = context.this_task_id
        self.collector = collector
        self.receivers = context.component_tasks("direct")
        self.strangers = context.component_tasks("shuffle")
        self.told: dict[str, list[int]] = {}
        self.number = 0

    def next_tuple(self) -> None:
        number = self.number
        if number == self.total:
            report("told", task=self.task, told=self.told)
            self.collector.end_of_input()
            return
        self.number += 1
        id_ = f"{self.task}-{number}"
        self.told[id_] = list(self.collector.emit([id_, number % 31]))
        receiver = self.receivers[number % len(self.receivers)]
        self.collector.emit_direct(receiver, [f"d{id_}", 0], stream="chosen")
        self.told[f"d{id_}"] = [receiver]
        # A task whose component does not read the stream: nothing is sent.
        self.collector.emit_direct(self.strangers[0], [f"x{id_}", 0], stream="chosen")
        self.told[f"u{id_}"] = list(self.collector.emit([f"u{id_}"], stream="unheard"))


class Middle(BaseBasicBolt):
    """A bolt that emits, so that bolts are seen to route as spouts do."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("id", "key")

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.task = context.this_task_id
        self.told: dict[str, list[int]] = {}

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        id_ = f"m{tup['id']}"
        self.told[id_] = list(collector.emit([id_, tup["key"]]))

    def end_of_input(self, collector: BasicOutputCollector) -> None:
        report("told", task=self.task, told=self.told)


class Receiver(BaseRichBolt):
    """Remembers the ids it received."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.context = context
        self.collector = collector
        self.ids: list[str] = []

    def execute(self, tup: Tuple) -> None:
        self.ids.append(tup["id"])
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        context = self.context
        report("got", task=context.this_task_id, component=context.this_component_id, ids=self.ids)


def groupings(total: int) -> TopologyBuilder:
    """Three sources and two middles before one consumer of each grouping."""
    builder = TopologyBuilder()
    builder.set_spout("source", Source(total), 3)
    builder.set_bolt("middle", Middle(), 2).shuffle_grouping("source")
    for id_ in ("shuffle", "fields", "all", "global"):
        bolt = builder.set_bolt(id_, Receiver(), CONSUMERS[id_])
        for producer in ("source", "middle"):
            if id_ == "shuffle":
                bolt.shuffle_grouping(producer)
            elif id_ == "fields":
                bolt.fields_grouping(producer, ["key"])
            elif id_ == "all":
                bolt.all_grouping(producer)
            else:
                bolt.global_grouping(producer)
    builder.set_bolt("direct", Receiver(), CONSUMERS["direct"]).direct_grouping("source", "chosen")
    mix = builder.set_bolt("mix", Receiver(), CONSUMERS["mix"]).fields_grouping("source", ["key"])
    mix.shuffle_grouping("middle")
    return builder
