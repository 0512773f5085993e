"""A fast spout before a slow bolt, beside a branch with a spout that keeps to a rate."""

from __future__ import annotations

import os
import time
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

#: Calls over which the eager spout measures what one of them costs.
_MEASURED_CALLS = 200


class EagerSpout(BaseRichSpout):
    """Emits as fast as it is let; says at the end what one tuple costs it at its best."""

    def __init__(self, payload: str) -> None:
        self.payload = payload

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "payload")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.number = 0
        self.secs = 0.0
        self.best_secs = float("inf")

    def next_tuple(self) -> None:
        began = time.perf_counter()
        self.collector.emit([self.number, self.payload])
        self.number += 1
        self.secs += time.perf_counter() - began
        if self.number % _MEASURED_CALLS == 0:
            self.best_secs = min(self.best_secs, self.secs / _MEASURED_CALLS)
            self.secs = 0.0

    def close(self) -> None:
        report("eager", emitted=self.number, secs_each=self.best_secs)


class SteadySpout(BaseRichSpout):
    """Emits `rate` tuples a second, making up for time in which it was not called."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "sent_at")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.number = 0
        self.began: float | None = None

    def next_tuple(self) -> None:
        now = time.monotonic()
        if self.began is None:
            self.began = now
        while self.number < (now - self.began) * self.rate:
            self.collector.emit([self.number, time.monotonic()])
            self.number += 1


class TrackedSpout(EagerSpout):
    """Emits with message ids, as fast as it is let, and says what became of them."""

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        super().open(conf, context, collector)
        self.acks = self.fails = 0

    def next_tuple(self) -> None:
        self.collector.emit([self.number, self.payload], msg_id=self.number)
        self.number += 1

    def ack(self, msg_id: object) -> None:
        self.acks += 1

    def fail(self, msg_id: object) -> None:
        self.fails += 1

    def close(self) -> None:
        report("tracked", emitted=self.number, acks=self.acks, fails=self.fails)


class PassBolt(BaseBasicBolt):
    """Passes tuples on, so that pressure has to go through it."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "payload")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit(tup.values)


class SlowBolt(BaseRichBolt):
    """Takes `secs_each` for a tuple, until a file exists: then it hurries, to have the run end."""

    def __init__(self, secs_each: float, hurry: str) -> None:
        self.secs_each = secs_each
        self.hurry = hurry

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.number = 0
        self.hurried = False

    def execute(self, tup: Tuple) -> None:
        if tup["number"] != self.number:
            raise AssertionError(f"{tup['number']} came instead of {self.number}")
        self.number += 1
        self.hurried = self.hurried or os.path.exists(self.hurry)
        if not self.hurried:
            time.sleep(self.secs_each)
        self.collector.ack(tup)


class SteadyBolt(BaseRichBolt):
    """Says how many tuples came, and how old the oldest of them was on arrival."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.count = 0
        self.oldest_secs = 0.0

    def execute(self, tup: Tuple) -> None:
        self.count += 1
        self.oldest_secs = max(self.oldest_secs, time.monotonic() - tup["sent_at"])
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        report("steady-bolt", count=self.count, oldest_secs=self.oldest_secs)


def pressure(payload_bytes: int, slow_secs: float, rate: float, hurry: str) -> TopologyBuilder:
    """Two branches that share nothing but the stream managers.

    Executors are dealt out in the order of their names, so that with two workers every tuple
    crosses from one to the other.
    """
    builder = TopologyBuilder()
    builder.set_spout("a-eager", EagerSpout("x" * payload_bytes))
    builder.set_bolt("b-pass", PassBolt()).global_grouping("a-eager")
    builder.set_bolt("c-slow", SlowBolt(slow_secs, hurry)).global_grouping("b-pass")
    builder.set_spout("d-steady", SteadySpout(rate))
    builder.set_bolt("e-steady", SteadyBolt()).global_grouping("d-steady")
    return builder


def tracked(relays: int, slow_secs: float, hurry: str) -> TopologyBuilder:
    """A spout with message ids before a slow bolt, with so many fast bolts between the two."""
    builder = TopologyBuilder()
    builder.set_spout("spout", TrackedSpout("x"))
    last = "spout"
    for n in range(relays):
        builder.set_bolt(f"pass-{n}", PassBolt()).shuffle_grouping(last)
        last = f"pass-{n}"
    builder.set_bolt("slow", SlowBolt(slow_secs, hurry)).shuffle_grouping(last)
    return builder
