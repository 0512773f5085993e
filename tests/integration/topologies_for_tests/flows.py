"""Plain flows of numbers: spouts that count, bolts that pass on, sinks that say what arrived."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
)

from .reporting import report, whereabouts


class NumberSpout(BaseRichSpout):
    """Each task emits 0 .. total-1, each on the next of its streams, then ends its input."""

    def __init__(self, total: int, streams: Sequence[str] = ("default",)) -> None:
        self.total = total
        self.streams = tuple(streams)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream in self.streams:
            declarer.declare_stream(stream, "number", "key")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.context = context
        self.collector = collector
        self.number = 0

    def next_tuple(self) -> None:
        number = self.number
        if number == self.total:
            self.collector.end_of_input()
            return
        stream = self.streams[number % len(self.streams)]
        self.collector.emit([number, number % 97], stream=stream)
        self.number = number + 1


class GatedSpout(BaseRichSpout):
    """Each task emits numbers for as long as a file does not exist, then ends its input.

    So a test decides when the input ends, however fast or slow the machine is. With `pause_secs`
    the spout waits that long between tuples.
    """

    def __init__(self, gate: str, pause_secs: float = 0.0) -> None:
        self.gate = gate
        self.pause_secs = pause_secs

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "key")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        report("opened", **whereabouts(context))
        self.collector = collector
        self.number = 0

    def next_tuple(self) -> None:
        if self.number % 64 == 0 and os.path.exists(self.gate):
            self.collector.end_of_input()
            return
        self.collector.emit([self.number, self.number % 97])
        self.number += 1
        if self.pause_secs:
            time.sleep(self.pause_secs)


class EmptySpout(BaseRichSpout):
    """Ends its input at the first call."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "key")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        self.collector.end_of_input()


class Relay(BaseBasicBolt):
    """Passes every tuple on, on a stream of the same name; with `renumber` under its own count."""

    def __init__(self, streams: Sequence[str] = ("default",), renumber: bool = False) -> None:
        self.streams = tuple(streams)
        self.renumber = renumber
        self.count = 0

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream in self.streams:
            declarer.declare_stream(stream, "number", "key")

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        report("opened", **whereabouts(context))

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        number, key = tup.values
        collector.emit([self.count if self.renumber else number, key], tup.source_stream_id)
        self.count += 1


class Sink(BaseRichBolt):
    """Checks the order per producer task and says at the end what has arrived.

    Reports "sink" with, per task: count, sum of the numbers, counts per source component and per
    stream, how many numbers were not above the one before from the same producer, and - for
    `remember` - all numbers.
    """

    def __init__(self, remember: bool = False, pause_secs: float = 0.0, every: int = 1) -> None:
        self.remember = remember
        self.pause_secs = pause_secs
        self.every = every

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        report("opened", **whereabouts(context))
        self.context = context
        self.collector = collector
        self.last: defaultdict[int, int] = defaultdict(lambda: -1)
        self.by_source: Counter[str] = Counter()
        self.by_stream: Counter[str] = Counter()
        self.count = self.sum = self.disorder = 0
        self.numbers: list[int] = []

    def execute(self, tup: Tuple) -> None:
        number: int = tup.values[0]
        source = tup.source_task
        if number <= self.last[source]:
            self.disorder += 1
        self.last[source] = number
        self.count += 1
        self.sum += number
        self.by_source[tup.source_component] += 1
        self.by_stream[tup.source_stream_id] += 1
        if self.remember:
            self.numbers.append(number)
        if self.pause_secs and self.count % self.every == 0:
            time.sleep(self.pause_secs)
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        report(
            "sink",
            **whereabouts(self.context),
            count=self.count,
            sum=self.sum,
            disorder=self.disorder,
            sources=dict(self.by_source),
            streams=dict(self.by_stream),
            numbers=self.numbers,
        )
