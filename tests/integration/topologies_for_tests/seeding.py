"""User code that seeds the module's generator: trees must not depend on it.

Two bolts seed it in the same way before each emit, and what both send on is never acked. If engines
drew edge ids from that generator, the two would draw the same ones, which cancel, and every tree
would look complete.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
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

from .reporting import report

MESSAGES = 20


class Messages(BaseRichSpout):
    """Emits a few messages and reports how many were acked and failed."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.acked = self.failed = 0
        for number in range(MESSAGES):
            collector.emit([number], number)
        collector.end_of_input()

    def next_tuple(self) -> None:
        """All was emitted in open."""

    def ack(self, msg_id: object) -> None:
        self.acked += 1

    def fail(self, msg_id: object) -> None:
        self.failed += 1

    def close(self) -> None:
        report("spout", acked=self.acked, failed=self.failed)


class Seeding(BaseRichBolt):
    """Seeds the module's generator, sends on, acks."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        random.seed(42)
        self.collector.emit([tup[0]], tup)
        self.collector.ack(tup)


class Keeping(BaseRichBolt):
    """Acks nothing."""

    def execute(self, tup: Tuple) -> None:
        """Drop it."""


def seeding() -> TopologyBuilder:
    """One spout, two bolts that seed, one that drops what they send."""
    builder = TopologyBuilder()
    builder.set_spout("messages", Messages())
    builder.set_bolt("left", Seeding()).shuffle_grouping("messages")
    builder.set_bolt("right", Seeding()).shuffle_grouping("messages")
    builder.set_bolt("lost", Keeping()).shuffle_grouping("left").shuffle_grouping("right")
    return builder
