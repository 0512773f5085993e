"""Values that could not travel, and a chain that may be fused to hand them over all the same."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BasicOutputCollector,
    OutputCollector,
    OutputFieldsDeclarer,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

from .flows import NumberSpout
from .reporting import report


class LockBolt(BaseBasicBolt):
    """Puts a lock into each tuple; no process can send one to another."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "lock")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit([tup["number"], threading.Lock()])


class UnlockBolt(BaseRichBolt):
    """Counts the locks that it can take, and reports "locks" at the end."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.taken = 0

    def execute(self, tup: Tuple) -> None:
        self.taken += tup["lock"].acquire(blocking=False)

    def end_of_input(self) -> None:
        report("locks", taken=self.taken)


def locks(total: int) -> TopologyBuilder:
    """numbers -> lock -> unlock, the last two near to each other."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(total))
    builder.set_bolt("lock", LockBolt()).fields_grouping("numbers", ["key"])
    builder.set_bolt("unlock", UnlockBolt()).local_or_shuffle_grouping("lock")
    return builder
