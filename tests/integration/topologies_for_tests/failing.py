"""User code that raises, exits, hangs or chatters, in every place from which it is called."""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    FailedException,
    OutputCollector,
    OutputFieldsDeclarer,
    ReportedFailedException,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

from .flows import NumberSpout, Relay, Sink

TOTAL = 2000


def fail_like(how: str) -> NoReturn:
    """Leave user code in the way that a test asks for."""
    if how == "raise":
        raise ValueError("this is on purpose: größer")
    if how == "exit":
        sys.exit("gone on purpose")
    if how == "os exit":
        os._exit(7)
    if how == "crash":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError(how)


class FailingSpout(BaseRichSpout):
    """Raises in one of its methods; in next_tuple at number 10, once in all."""

    def __init__(self, where: str, flag: str) -> None:
        self.where = where
        self.flag = flag

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "key")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        if self.where == "open":
            fail_like("raise")
        self.collector = collector
        self.number = 0

    def activate(self) -> None:
        if self.where == "activate" and first_time(self.flag):
            fail_like("raise")

    def next_tuple(self) -> None:
        if self.number == 10 and self.where == "next_tuple" and first_time(self.flag):
            fail_like("raise")
        if self.number == TOTAL:
            self.collector.end_of_input()
            return
        self.collector.emit([self.number, 0])
        self.number += 1

    def close(self) -> None:
        if self.where == "close":
            fail_like("raise")


class FailingBolt(BaseRichBolt):
    """Raises in one of its methods; in execute at number 10, once in all."""

    def __init__(self, where: str, flag: str, how: str = "raise") -> None:
        self.where = where
        self.flag = flag
        self.how = how

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "key")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        if self.where == "prepare":
            fail_like(self.how)
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        if tup["number"] == 10 and self.where == "execute" and first_time(self.flag):
            fail_like(self.how)
        self.collector.emit(tup.values, tup)
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        if self.where == "end_of_input" and first_time(self.flag):
            fail_like(self.how)

    def cleanup(self) -> None:
        if self.where == "cleanup":
            fail_like(self.how)


class RefusingBolt(BaseBasicBolt):
    """Fails single tuples on purpose, with and without saying so."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "key")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        number: int = tup["number"]
        if number % 1000 == 10:
            raise ReportedFailedException(f"number {number} is refused")
        if number % 100 == 50:
            raise FailedException("not worth a word")
        collector.emit(tup.values)


class HangingBolt(BaseRichBolt):
    """Does not return from a tuple while the file exists."""

    def __init__(self, sign: str) -> None:
        self.sign = sign

    def execute(self, tup: Tuple) -> None:
        while os.path.exists(self.sign):
            time.sleep(0.01)


class ChattyBolt(BaseRichBolt):
    """Prints, logs and warns."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        sys.stdout.write("hello from prepare, größer\n")

    def execute(self, tup: Tuple) -> None:
        if tup["number"] == 0:
            sys.stdout.write("in parts: ")
            sys.stdout.write("one line\n")
            os.write(1, b"from below: \xff\n")
            logging.getLogger("my.own").warning("%s is %d", "number", tup["number"])
            logging.getLogger("my.own").info("nobody wants to know on the terminal")
            warnings.warn("this is deprecated", stacklevel=1)
            self.collector.report_error(ValueError("only reported"))
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        logging.getLogger("my.own").error("the end")
        sys.stdout.write("no newline at the end")


def first_time(flag: str) -> bool:
    """Whether nobody has asked before."""
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def around(middle: BaseRichBolt | BaseBasicBolt) -> TopologyBuilder:
    """Numbers through the bolt in question to a sink, and beside it a flow that must not suffer."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL))
    builder.set_bolt("middle", middle).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink()).shuffle_grouping("middle")
    return beside(builder)


def beside(builder: TopologyBuilder) -> TopologyBuilder:
    """The flow that must not suffer."""
    builder.set_spout("others", NumberSpout(TOTAL))
    builder.set_bolt("other relay", Relay()).shuffle_grouping("others")
    builder.set_bolt("other sink", Sink()).shuffle_grouping("other relay")
    return builder


def after(spout: BaseRichSpout) -> TopologyBuilder:
    """The spout in question before a sink, and the flow beside it."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("sink", Sink()).shuffle_grouping("numbers")
    return beside(builder)


def onto(last: BaseRichBolt) -> TopologyBuilder:
    """Numbers into the bolt in question."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL))
    builder.set_bolt("last", last).shuffle_grouping("numbers")
    return builder
