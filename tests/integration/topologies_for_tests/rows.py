"""Large rows and rows of every type: what arrives is what was sent."""

from __future__ import annotations

import datetime as dt
import hashlib
import random
import uuid
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    Config,
    EmitError,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from tests.value_types import Cash, Colour, Level, Money, Slotted

from .reporting import report

VALUES: list[object] = [
    None,
    True,
    -(2**80),
    2**64 - 1,
    1.5,
    "größe \U0001f600",
    b"\x00\xff",
    [1, [2, {"a": (3, None)}]],
    {1: "one", "two": 2, None: ()},
    (1, "a", (2.0,)),
    {1, 2, 3},
    frozenset({"x", "y"}),
    dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
    dt.datetime(2026, 1, 2),
    dt.date(2026, 1, 2),
    dt.time(23, 59, 59, 999999),
    dt.timedelta(days=-1, microseconds=1),
    Decimal("1.10"),
    uuid.UUID(int=2**127),
    1 - 2j,
    dt.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    [Colour.RED, {Colour.RED: Level.HUGE}],
    Level.HIGH,
    Money(5, Colour.BLUE),
    [Slotted("a"), Money(2**70, (1, {Slotted("b")}))],
    np.float32(0.5),
    {np.int64(1): [np.str_("a")]},
    Cash(7),
    [(Cash(8),)],
    Fraction(1, 3),
]


def digest(data: bytes | str) -> str:
    """Short enough to report."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


class RowSpout(BaseRichSpout):
    """Emits rows of the sizes given, in bytes of payload, alternately as bytes and as text."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "payload", "digest")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.number = 0
        self.rng = random.Random(context.this_task_id)

    def next_tuple(self) -> None:
        if self.number == len(self.sizes):
            self.collector.end_of_input()
            return
        data = self.rng.randbytes(self.sizes[self.number])
        payload: bytes | str = data.hex()[: len(data)] if self.number % 2 else data
        self.collector.emit([self.number, payload, digest(payload)])
        self.number += 1


class RowRelay(BaseBasicBolt):
    """Checks a row and passes it on."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "payload", "digest")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        if digest(tup["payload"]) != tup["digest"]:
            raise AssertionError(f"row {tup['number']} was damaged")
        collector.emit(tup.values)


class RowSink(BaseRichBolt):
    """Reports the size of every row that was intact."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.sizes: list[int] = []

    def execute(self, tup: Tuple) -> None:
        if digest(tup["payload"]) != tup["digest"]:
            raise AssertionError(f"row {tup['number']} was damaged")
        self.sizes.append(len(tup["payload"]))
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        report("sizes", sizes=self.sizes)


class TooLargeSpout(BaseRichSpout):
    """Emits rows of one size, then one that is too large; it heeds the error or does not."""

    def __init__(self, size: int, heed: bool) -> None:
        self.size = size
        self.heed = heed

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare_stream("big ones", "payload")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        for size in (10, self.size, 20):
            try:
                self.collector.emit(["x" * size], stream="big ones")
            except EmitError as error:
                if not self.heed:
                    raise
                report("refused", text=str(error))
        self.collector.end_of_input()


class LengthSink(BaseRichBolt):
    """Reports the lengths of what arrived."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.lengths: list[int] = []

    def execute(self, tup: Tuple) -> None:
        self.lengths.append(len(tup["payload"]))
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        report("lengths", lengths=self.lengths)


class ValueSpout(BaseRichSpout):
    """Emits each of VALUES."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("index", "value")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        for index, value in enumerate(VALUES):
            self.collector.emit([index, value])
        self.collector.end_of_input()


class ValueSink(BaseRichBolt):
    """Reports which values arrived equal and of the same type."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        index, value = tup
        same = value == VALUES[index] and type(value) is type(VALUES[index])
        report("value", index=index, same=same, shown=repr(value))
        self.collector.ack(tup)


def large(sizes: list[int]) -> TopologyBuilder:
    """Rows from one worker to another and back."""
    builder = TopologyBuilder()
    builder.set_spout("a", RowSpout(sizes), 2)
    builder.set_bolt("b", RowRelay(), 2).shuffle_grouping("a")
    builder.set_bolt("c", RowSink()).global_grouping("b")
    return builder


def too_large(size: int, heed: bool) -> TopologyBuilder:
    """One row that may not be sent, among others."""
    builder = TopologyBuilder()
    builder.set_spout("source", TooLargeSpout(size, heed))
    sink = builder.set_bolt("sink", LengthSink()).shuffle_grouping("source", "big ones")
    sink.add_configuration(Config.STORM_PY_FUSE, False)  # what is handed over has no size
    return builder


def every_type() -> TopologyBuilder:
    """A value of every type."""
    builder = TopologyBuilder()
    builder.set_spout("a", ValueSpout())
    builder.set_bolt("b", ValueSink()).shuffle_grouping("a")
    return builder
