"""User code that lives by more than its input: ticks, threads, metrics, hooks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseTaskHook,
    BasicOutputCollector,
    Config,
    CountMetric,
    DataPoint,
    EmitInfo,
    MetricsConsumer,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TaskInfo,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

from .failing import first_time
from .flows import GatedSpout, NumberSpout, Relay, Sink
from .reporting import report, whereabouts

#: Milliseconds that a tuple takes in a slow bolt.
SLOW_MS = 10


class TickingBolt(BaseRichBolt):
    """Opens the gate at its third tick; passes on how many tuples it had executed at each."""

    def __init__(self, gate: str, pause_secs: float = 0.0) -> None:
        self.gate = gate
        self.pause_secs = pause_secs

    def get_component_configuration(self) -> Mapping[str, object]:
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.05}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "key")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.context = context
        self.collector = collector
        self.count = 0
        self.at_ticks: list[int] = []

    def execute(self, tup: Tuple) -> None:
        if tup.is_tick:
            assert (tup.values, tup.source_task) == ([0.05], -1)
            self.collector.emit([len(self.at_ticks), self.context.this_task_id])
            self.at_ticks.append(self.count)
            if len(self.at_ticks) == 3:
                Path(self.gate).touch()
        else:
            self.count += 1
            time.sleep(self.pause_secs)
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        report("ticks", at=self.at_ticks, executed=self.count)


def ticking(gate: Path) -> TopologyBuilder:
    """An input without end until two bolts have had three ticks each."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", GatedSpout(str(gate), pause_secs=0.001))
    builder.set_bolt("ticking", TickingBolt(str(gate)), 2).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink()).shuffle_grouping("ticking")
    return builder


def ticking_slowly(gate: Path, total: int) -> TopologyBuilder:
    """All input is there at once, and its bolt is slow."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(total))
    slow = TickingBolt(str(gate), pause_secs=SLOW_MS / 1000)
    builder.set_bolt("ticking", slow).shuffle_grouping("numbers")
    return builder


class TrackedSpout(NumberSpout):
    """Emits 0 .. total-1 with message ids and reports how they were answered."""

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        super().open(conf, context, collector)
        self.answers: Counter[str] = Counter()

    def next_tuple(self) -> None:
        if self.number == self.total:
            self.collector.end_of_input()
        else:
            self.collector.emit([self.number, self.number % 97], msg_id=self.number)
            self.number += 1

    def ack(self, msg_id: object) -> None:
        self.answers["acked"] += 1

    def fail(self, msg_id: object) -> None:
        self.answers["failed"] += 1

    def close(self) -> None:
        report("answers", **self.answers)


class ThreadedBolt(BaseRichBolt):
    """Works in threads, which emit and ack later, through call_soon; some tuples they fail."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number", "key")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.context = context
        self.collector = collector
        self.threads = ThreadPoolExecutor(4)

    def execute(self, tup: Tuple) -> None:
        self.threads.submit(self.work, tup)

    def work(self, tup: Tuple) -> None:
        time.sleep(0.001)  # what a request would take
        assert self.context.call_soon(self.finish, tup, tup["number"] * 2)

    def finish(self, tup: Tuple, answer: int) -> None:
        if tup["number"] % 10 == 9:
            self.collector.fail(tup)
            return
        self.collector.emit([answer, tup["key"]], tup)
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        # Nothing is left to wait for where tuples are tracked; elsewhere this is what waits.
        self.threads.shutdown()


def threaded(total: int) -> TopologyBuilder:
    """A spout, a bolt with threads, a sink."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", TrackedSpout(total))
    builder.set_bolt("threaded", ThreadedBolt(), 2).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink()).shuffle_grouping("threaded")
    return builder


class CountingBolt(BaseBasicBolt):
    """Counts its tuples and the last digits of their numbers."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.tuples = context.register_metric("tuples", CountMetric(), 0.05)
        self.sizes = context.register_histogram("sizes")
        context.register_gauge("task", lambda: context.this_task_id)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        self.tuples.incr()
        self.sizes.update(tup["number"])


class ReportingConsumer(MetricsConsumer):
    """Reports the sum of every data point that is a number, by name and task, and how many."""

    def prepare(
        self, conf: Mapping[str, Any], registration_argument: Any, context: TopologyContext
    ) -> None:
        self.argument = registration_argument
        self.context = context
        self.sums: Counter[str] = Counter()
        self.buckets: Counter[str] = Counter()

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        if not self.sums:
            report("consuming", **whereabouts(self.context))
        for point in data_points:
            name = f"{task_info.src_component_id} {point.name}"
            value: Any = point.value
            self.sums[name] += value["count"] if isinstance(value, dict) else value
            self.buckets[name] += 1

    def cleanup(self) -> None:
        report("metrics", argument=self.argument, sums=self.sums, buckets=self.buckets)


def metered(total: int) -> TopologyBuilder:
    """Two spouts, two counting bolts; the consumer is in `METERED`."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(total), 2)
    builder.set_bolt("counting", CountingBolt(), 2).shuffle_grouping("numbers")
    return builder


def metered_conf() -> Config:
    """The configuration for `metered`."""
    conf = Config()
    conf.register_metrics_consumer(ReportingConsumer, {"to": "here"})
    conf.register_metrics_consumer("storm_py:LoggingMetricsConsumer", parallelism_hint=2)
    return conf


class RaisingHook(BaseTaskHook):
    """Raises at the tenth emit of `relay`, once in all."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.mine = context.this_component_id == "relay"
        self.flag = conf["test.flag"]
        self.emitted = 0

    def emit(self, info: EmitInfo) -> None:
        self.emitted += 1
        if self.mine and self.emitted == 10 and first_time(self.flag):
            raise ValueError("a hook, on purpose")


def hooked(total: int) -> TopologyBuilder:
    """A line of three."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(total))
    builder.set_bolt("relay", Relay()).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink()).shuffle_grouping("relay")
    return builder
