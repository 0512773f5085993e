"""A spout that has nothing to emit, now or ever."""

from __future__ import annotations

import os
import threading
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


class BlockedSpout(IdleSpout):
    """Does not return from `next_tuple` while the file exists; ends its input after that."""

    def __init__(self, sign: str) -> None:
        self.sign = sign

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        super().open(conf, context, collector)
        self.collector = collector

    def next_tuple(self) -> None:
        while os.path.exists(self.sign):
            time.sleep(0.01)
        self.collector.end_of_input()


class PipeSpout(IdleSpout):
    """Emits what a thread writes into a pipe, a byte at a time and long after the beginning."""

    def __init__(self, messages: int) -> None:
        self.messages = messages

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        super().open(conf, context, collector)
        self.collector = collector
        self.pipe, self.other_end = os.pipe()
        os.set_blocking(self.pipe, False)
        self.asked = threading.Semaphore(0)
        threading.Thread(target=self.write, daemon=True).start()

    def write(self) -> None:
        for number in range(self.messages):
            self.asked.acquire()  # the spout has found nothing: it waits, or is about to
            os.write(self.other_end, bytes([number]))

    def wait_fd(self) -> int:
        return self.pipe

    def next_tuple(self) -> None:
        super().next_tuple()
        try:
            (number,) = os.read(self.pipe, 1)
        except BlockingIOError:
            self.asked.release()
            return
        self.collector.emit([number])
        if number == self.messages - 1:
            self.collector.end_of_input()


class Listener(BaseBasicBolt):
    """Hears nothing."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        report("heard", values=tup.values)


def idle(spout: IdleSpout | None = None) -> TopologyBuilder:
    """One of each."""
    builder = TopologyBuilder()
    builder.set_spout("idle", spout or IdleSpout())
    builder.set_bolt("listener", Listener()).shuffle_grouping("idle")
    return builder
