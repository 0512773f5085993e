"""A spout that has nothing to emit, now or ever."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from storm_py import (
    BaseBasicBolt,
    BaseRichSpout,
    BasicOutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

from .reporting import report


class IdleSpout(BaseRichSpout):
    """Counts how often it was asked."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("nothing")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.calls = 0

    def activate(self) -> None:
        self.began = time.monotonic()

    def next_tuple(self) -> None:
        self.calls += 1

    def close(self) -> None:
        report("idle", calls=self.calls, secs=time.monotonic() - self.began)


class Listener(BaseBasicBolt):
    """Hears nothing."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        report("heard", values=tup.values)


def idle() -> TopologyBuilder:
    """One of each."""
    builder = TopologyBuilder()
    builder.set_spout("idle", IdleSpout())
    builder.set_bolt("listener", Listener()).shuffle_grouping("idle")
    return builder
