"""Every grouping at once: who emitted what to whom, as the emitter was told and as it arrived."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    CustomStreamGrouping,
    GlobalStreamId,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

from .reporting import report, whereabouts

#: Consumers by grouping, and their number of tasks; "mix" subscribes to two streams, and "lone" has
#: a task in one of two workers only.
CONSUMERS = {
    "shuffle": 4,
    "fields": 3,
    "all": 3,
    "global": 3,
    "direct": 3,
    "mix": 2,
    "local": 4,
    "lone": 1,
    "none": 4,
    "partial": 6,
    "custom": 4,
}


class Strides(CustomStreamGrouping):
    """Two tasks by the tuple's key, or nobody; says in which process it was prepared."""

    def __init__(self, width: int) -> None:
        self.width = width

    def prepare(
        self, context: TopologyContext, stream: GlobalStreamId, target_tasks: list[int]
    ) -> None:
        self.tasks = target_tasks
        report("prepared", **whereabouts(context), stream=str(stream), tasks=target_tasks)

    def choose_tasks(self, task_id: int, values: list[Any]) -> list[int]:
        key = values[1]
        if key % 5 == 0:
            return []
        return [self.tasks[(key + n) % len(self.tasks)] for n in range(self.width)]


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
        self.here = whereabouts(context)
        self.collector = collector
        self.receivers = context.component_tasks("direct")
        self.strangers = context.component_tasks("shuffle")
        self.told: dict[str, list[int]] = {}
        self.number = 0

    def next_tuple(self) -> None:
        number = self.number
        if number == self.total:
            report("told", **self.here, told=self.told)
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
        self.here = whereabouts(context)
        self.told: dict[str, list[int]] = {}

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        id_ = f"m{tup['id']}"
        self.told[id_] = list(collector.emit([id_, tup["key"]]))

    def end_of_input(self, collector: BasicOutputCollector) -> None:
        report("told", **self.here, told=self.told)


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
        report("got", **whereabouts(self.context), ids=self.ids)


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
    for id_ in ("local", "lone", "none", "partial", "custom"):
        executors = min(2, CONSUMERS[id_])
        bolt = builder.set_bolt(id_, Receiver(), executors).set_num_tasks(CONSUMERS[id_])
        for producer in ("source", "middle"):
            if id_ == "partial":
                bolt.partial_key_grouping(producer, ["key"])
            elif id_ == "custom":
                bolt.custom_grouping(producer, Strides(2))
            elif id_ == "none":
                bolt.none_grouping(producer)
            else:
                bolt.local_or_shuffle_grouping(producer)
    return builder


class Deadly(CustomStreamGrouping):
    """Takes turns by a count of its own; kills its process once, when the count is 20."""

    def __init__(self, mark: str) -> None:
        self.mark = Path(mark)
        self.calls = 0

    def prepare(
        self, context: TopologyContext, stream: GlobalStreamId, target_tasks: list[int]
    ) -> None:
        self.tasks = target_tasks
        report("prepared", **whereabouts(context), calls=self.calls)

    def choose_tasks(self, task_id: int, values: list[Any]) -> list[int]:
        self.calls += 1
        if self.calls == 20 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [self.tasks[self.calls % len(self.tasks)]]


def deadly_grouping(
    mark: Path, total: int, conf: Mapping[str, object] | None = None
) -> TopologyBuilder:
    """A source whose grouping kills it once; it begins anew and so does the grouping.

    It is left alone if `mark` exists. `conf` is the source's own configuration.
    """
    builder = TopologyBuilder()
    builder.set_spout("source", Source(total)).add_configurations(conf or {})
    sink = builder.set_bolt("shuffle", Receiver(), 2)
    sink.custom_grouping("source", Deadly(str(mark)))
    builder.set_bolt("direct", Receiver()).direct_grouping("source", "chosen")
    return builder
