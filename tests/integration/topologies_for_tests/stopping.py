"""A topology that goes on until it is told to stop, and may refuse to be drained."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storm_py import (
    BaseRichBolt,
    OutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

from .flows import GatedSpout, Relay
from .reporting import report, whereabouts


class LastBolt(BaseRichBolt):
    """Makes the file `flowing` at its first tuple; if `stuck`, it never comes back from that."""

    def __init__(self, flowing: str, stuck: bool) -> None:
        self.flowing = flowing
        self.stuck = stuck

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        report("opened", **whereabouts(context))
        self.context = context
        self.collector = collector
        self.count = 0

    def execute(self, tup: Tuple) -> None:
        if self.count == 0:
            Path(self.flowing).touch()
        self.count += 1
        while self.stuck:
            time.sleep(3600)
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        report("last", **whereabouts(self.context), count=self.count)


def endless(folder: Path, stuck: bool = False, gentle: bool = False) -> TopologyBuilder:
    """A spout that ends its input when folder/gate exists, and folder/flowing as a sign of life.

    As fast as it can, unless it is `gentle` with the machine.
    """
    builder = TopologyBuilder()
    spout = GatedSpout(str(folder / "gate"), pause_secs=0.001 if gentle else 0.0)
    builder.set_spout("numbers", spout, 2)
    builder.set_bolt("relay", Relay(), 2).shuffle_grouping("numbers")
    last = LastBolt(str(folder / "flowing"), stuck)
    builder.set_bolt("last", last, 2).fields_grouping("relay", ["key"])
    return builder


def topology(args: list[str]) -> TopologyBuilder:
    """For `storm-py local`: the folder, and the names of what should be true."""
    return endless(Path(args[0]), stuck="stuck" in args, gentle="gentle" in args)
