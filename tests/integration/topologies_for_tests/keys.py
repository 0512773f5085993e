"""Fields grouping over every kind of key: which task received which key, from whom."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from storm_py import (
    BaseRichBolt,
    BaseRichSpout,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

from .reporting import report, whereabouts


class Colour(enum.StrEnum):
    """A str and an Enum: as a key it equals its text."""

    RED = "red"


_NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)

#: Each list holds what Python calls one and the same key; different lists are different keys.
EQUAL_KEYS: list[list[object]] = [
    [1, 1.0, True, Decimal(1), Decimal("1.00"), 1 + 0j],
    [0, 0.0, -0.0, False, Decimal(0)],
    [2**70, float(2**70), Decimal(2**70)],
    [-5, -5.0],
    [0.5, Decimal("0.5")],
    [Decimal("0.1")],
    [0.1],
    [None],
    ["1"],
    [b"1"],
    ["red", Colour.RED],
    ["größe"],
    [""],
    [(1, "a"), (1.0, "a"), (True, "a")],
    [("a", 1)],
    [()],
    [frozenset({"a", "b", "c", "d"}), frozenset({"d", "c", "b", "a"}), {"b", "d", "a", "c"}],
    [frozenset({1, 2.0}), frozenset({2, True})],
    [dt.date(2026, 1, 2)],
    [dt.datetime(2026, 1, 2)],
    [_NOON, _NOON.astimezone(dt.timezone(dt.timedelta(hours=3)))],
    [dt.timedelta(days=1), dt.timedelta(hours=24)],
    [uuid.UUID(int=7)],
    [3 - 2j],
]


class KeySpout(BaseRichSpout):
    """Each task emits every key of every class, alone and as the second of two fields."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("class", "key", "other")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.context = context
        self.collector = collector
        # Tasks differ in where they begin, so that caches are filled in different orders.
        shift = 5 * context.this_task_index
        keys = [(index, key) for index, same in enumerate(EQUAL_KEYS) for key in same]
        self.left = (keys[shift:] + keys[:shift]) * self.rounds
        self.told: list[tuple[int, list[int]]] = []

    def next_tuple(self) -> None:
        if not self.left:
            report("emitted", **whereabouts(self.context), told=self.told)
            self.collector.end_of_input()
            return
        index, key = self.left.pop()
        self.told.append((index, list(self.collector.emit([index, key, index % 3]))))


class KeySink(BaseRichBolt):
    """Reports how often it received each class of keys."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.context = context
        self.collector = collector
        self.received: dict[int, int] = {}

    def execute(self, tup: Tuple) -> None:
        index: int = tup["class"]
        # What arrives is still the same key.
        if not any(tup["key"] == key for key in EQUAL_KEYS[index]):
            raise AssertionError(f"class {index} arrived as {tup['key']!r}")
        self.received[index] = self.received.get(index, 0) + 1
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        report("received", **whereabouts(self.context), counts=self.received)


def keys(rounds: int) -> TopologyBuilder:
    """Four spouts, and two sinks of different width that group by one and by two fields."""
    builder = TopologyBuilder()
    builder.set_spout("keys", KeySpout(rounds), 4)
    builder.set_bolt("one", KeySink(), 5).fields_grouping("keys", ["key"])
    builder.set_bolt("two", KeySink(), 3).fields_grouping("keys", ["other", "key"])
    return builder
