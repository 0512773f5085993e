"""A topology that is deactivated and activated from outside while it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storm_py import (
    BaseRichSpout,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
)

from .flows import Sink
from .reporting import report, whereabouts


class PausingSpout(BaseRichSpout):
    """Reports each turn of its state; fails if it is asked for a tuple at the wrong time."""

    def __init__(self, gate: str) -> None:
        self.gate = gate

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.context = context
        self.collector = collector
        self.number = self.answered = 0
        self.active = False
        self.tell("opened spout")

    def tell(self, what: str) -> None:
        report(what, **whereabouts(self.context), answered=self.answered, emitted=self.number)

    def activate(self) -> None:
        assert not self.active
        self.active = True
        self.tell("activated")

    def deactivate(self) -> None:
        assert self.active
        self.active = False
        self.tell("deactivated")

    def next_tuple(self) -> None:
        assert self.active
        if os.path.exists(self.gate):
            self.collector.end_of_input()
            return
        self.collector.emit([self.number], msg_id=self.number)
        self.number += 1

    def ack(self, msg_id: object) -> None:
        self.answered += 1
        if not self.active and self.answered == self.number:
            self.tell("all answered")

    fail = ack


def pausing(gate: Path) -> TopologyBuilder:
    """Two spouts and a sink; the input ends when there is a file `gate`."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", PausingSpout(str(gate)), 2)
    builder.set_bolt("sink", Sink()).shuffle_grouping("numbers")
    return builder
