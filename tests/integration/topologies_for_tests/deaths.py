"""A topology in which one task kills a process of its own run when a count is reached."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from storm_py import (
    BaseRichBolt,
    OutputCollector,
    OutputFieldsDeclarer,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

from .flows import GatedSpout, Sink
from .reporting import report, whereabouts


def victim_pid(victim: str) -> int:
    """The process of this instance's worker that a test wants dead."""
    fork_server = psutil.Process().parent()
    assert fork_server is not None
    worker = fork_server.parent()
    assert worker is not None
    if victim == "instance":
        return os.getpid()
    if victim == "fork server":
        return fork_server.pid
    if victim == "worker":
        return worker.pid
    [manager] = [
        child.pid
        for child in worker.children()
        if "storm_py.runtime.stream_manager" in child.cmdline()
    ]
    return manager


def kill_once(flag: str, victim: str) -> bool:
    """Kill, unless somebody did before: the file `flag` is made by who does."""
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return False
    report("killing", victim=victim)
    os.kill(victim_pid(victim), signal.SIGKILL)
    if victim != "stream manager":
        signal.pause()  # this process dies of it as well: until then the run must not go on
    return True


class KillerBolt(BaseRichBolt):
    """Passes tuples on; kills once, at the tuple with number `at`, or when its input has ended.

    It then stays in user code for `busy_secs` and hears nothing of what happens meanwhile.
    """

    def __init__(self, victim: str, flag: str, at: int | None, busy_secs: float) -> None:
        self.victim = victim
        self.flag = flag
        self.at = at
        self.busy_secs = busy_secs

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "key")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        report("opened", **whereabouts(context))
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        if tup["number"] == self.at:
            self.kill()
        self.collector.emit(tup.values, tup)
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        if self.at is None:
            self.kill()

    def kill(self) -> None:
        if kill_once(self.flag, self.victim):
            time.sleep(self.busy_secs)


def deadly(victim: str, folder: Path, at: int | None, busy_secs: float = 0.0) -> TopologyBuilder:
    """Two spouts, two bolts of which one kills, two sinks; input ends when folder/gate exists."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", GatedSpout(str(folder / "gate")), 2)
    bolt = KillerBolt(victim, str(folder / "flag"), at, busy_secs)
    builder.set_bolt("killer", bolt, 2).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink(), 2).fields_grouping("killer", ["key"])
    return builder
