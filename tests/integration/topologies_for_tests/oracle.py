"""A topology that proves at-least-once delivery: what reached the end is on disk before its ack.

The spout is replayable: it notes on disk what was acked, emits again what failed, and after its own
death emits all that was not acked.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
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

RATE = 1500
"""Tuples a second of each spout: a run must last long enough for its processes to be killed."""

COPIES = 3
"""Tuples that the middle bolt makes of each."""


def durable(path: Path) -> int:
    """A file to append whole lines to, from any process."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class ReplayableSpout(BaseRichSpout):
    """Emits its share of 0 .. total - 1, so many a second, until each was acked."""

    def __init__(self, folder: Path, total: int) -> None:
        self.folder = folder
        self.total = total

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        tasks = context.component_tasks(context.this_component_id)
        path = self.folder / f"acked-{context.this_task_index}"
        done = set(map(int, path.read_text().split())) if path.exists() else set()
        share = range(context.this_task_index, self.total, len(tasks))
        self.waiting = deque(number for number in share if number not in done)
        self.left = len(self.waiting)
        self.acked = durable(path)
        self.fails = 0
        self.emitted = 0
        self.began = time.monotonic()

    def next_tuple(self) -> None:
        due = (time.monotonic() - self.began) * RATE
        if self.waiting and self.emitted <= due:
            self.emitted += 1
            number = self.waiting.popleft()
            self.collector.emit([number], msg_id=number)
        elif not self.left and not self.waiting:
            report("spout", fails=self.fails)
            self.collector.end_of_input()

    def ack(self, msg_id: object) -> None:
        os.write(self.acked, f"{msg_id}\n".encode())
        self.left -= 1

    def fail(self, msg_id: object) -> None:
        assert isinstance(msg_id, int)
        self.fails += 1
        self.waiting.append(msg_id)


class CopyBolt(BaseBasicBolt):
    """Makes several tuples of one."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "copy")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for copy in range(COPIES):
            collector.emit([tup["number"], copy])


class DurableSink(BaseRichBolt):
    """Writes each tuple to disk, then acks it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.rows = durable(self.folder / "rows")

    def execute(self, tup: Tuple) -> None:
        os.write(self.rows, b"%d %d\n" % (tup["number"], tup["copy"]))
        self.collector.ack(tup)


def oracle(folder: Path, total: int) -> TopologyBuilder:
    """Two spouts, two copying bolts, two sinks."""
    builder = TopologyBuilder()
    builder.set_spout("source", ReplayableSpout(folder, total), 2)
    builder.set_bolt("copy", CopyBolt(), 2).shuffle_grouping("source")
    builder.set_bolt("sink", DurableSink(folder), 2).fields_grouping("copy", ["number"])
    return builder
