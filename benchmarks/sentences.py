"""The benchmark's topology: ten fixed sentences, split, counted; words per second on stdout.

Spout 1, split 1, count 2, as in the figures that are quoted everywhere; a report bolt checks every
count against the known answer and prints one line of JSON. Time runs from the spout's first call
to the moment the last count bolt has its last word, taken in those processes, without start-up.

`--acked` emits with message ids. `--rate` paces the spout, and words carry the time of their
sentence's emit: the line then has percentiles of the time from there to the count bolt.
`--idle` never emits, never ends and reports nothing. Run it from the top of the repository, as
`storm-py local benchmarks.sentences -- ...`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from benchmarks.figures import histogram, percentiles
from benchmarks.text import SENTENCES, check_counts
from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    FailedException,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)


class Clocked:
    """Knows the CPU time that its process had used when it began."""

    cpu: float

    def starts(self) -> None:
        """From here on CPU time counts."""
        self.cpu = time.process_time()

    def report(self, kind: str, **more: object) -> list[object]:
        """The values of a report."""
        cpu = time.process_time() - self.cpu
        return [{"kind": kind, "pid": os.getpid(), "at": time.time(), "cpu": cpu, **more}]


class SentenceSpout(BaseRichSpout, Clocked):
    """Emits the sentences round and round, `sentences` of them."""

    def __init__(self, sentences: int) -> None:
        self.sentences = sentences

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("sentence")
        declarer.declare_stream("report", "report")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.done = 0
        self.began = 0.0

    def begin(self) -> None:
        """The first call of next_tuple."""
        self.began = time.time()
        self.starts()

    def end(self) -> None:
        """All was emitted."""
        self.collector.emit(self.report("spout", began=self.began), stream="report")
        self.collector.end_of_input()

    def next_tuple(self) -> None:
        if self.done == self.sentences:
            self.end()
            return
        if not self.done:
            self.begin()
        self.collector.emit([SENTENCES[self.done % 10]])
        self.done += 1


class AckedSpout(SentenceSpout):
    """The same with message ids; it ends when everything was acked, and a failure is an error."""

    acked = 0

    def ack(self, msg_id: object) -> None:
        self.acked += 1

    def fail(self, msg_id: object) -> None:
        raise FailedException(f"sentence {msg_id} failed")

    def next_tuple(self) -> None:
        if self.done == self.sentences:
            if self.acked == self.sentences:
                self.end()
            return
        if not self.done:
            self.begin()
        self.collector.emit([SENTENCES[self.done % 10]], self.done)
        self.done += 1


class PacedSpout(AckedSpout):
    """`rate` sentences per second, each with the time of its emit."""

    def __init__(self, sentences: int, rate: float, acked: bool) -> None:
        super().__init__(sentences)
        self.rate = rate
        self.with_ids = acked

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("sentence", "at")
        declarer.declare_stream("report", "report")

    def next_tuple(self) -> None:
        if self.done == self.sentences:
            if self.acked == self.sentences or not self.with_ids:
                self.end()
            return
        if not self.done:
            self.begin()
        now = time.time()
        if now >= self.began + self.done / self.rate:
            msg_id = self.done if self.with_ids else None
            self.collector.emit([SENTENCES[self.done % 10], now], msg_id)
            self.done += 1


class IdleSpout(SentenceSpout):
    """Has nothing to say."""

    def next_tuple(self) -> None:
        pass


class SplitBolt(BaseBasicBolt, Clocked):
    """One tuple per word."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word", "count")
        declarer.declare_stream("report", "report")

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.starts()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for word in tup.values[0].split():
            collector.emit([word, 1])

    def end_of_input(self, collector: BasicOutputCollector) -> None:
        collector.emit(self.report("split"), stream="report")


class TimedSplitBolt(SplitBolt):
    """One tuple per word, with its sentence's time in place of the 1."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        sentence, at = tup.values
        for word in sentence.split():
            collector.emit([word, at])


class CountBolt(BaseBasicBolt, Clocked):
    """Counts, and emits each new count on a stream that nobody reads."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word", "count")
        declarer.declare_stream("report", "report")

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: dict[str, int] = {}
        self.latencies: list[float] = []
        self.starts()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        word, count = tup.values
        count += self.counts.get(word, 0)
        self.counts[word] = count
        collector.emit([word, count])

    def end_of_input(self, collector: BasicOutputCollector) -> None:
        found = histogram(self.latencies)
        report = self.report("count", counts=self.counts, latencies=found)
        collector.emit(report, stream="report")


class TimedCountBolt(CountBolt):
    """Counts, and notes how long each word was on its way."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        word, at = tup.values
        self.latencies.append(time.time() - at)
        self.counts[word] = self.counts.get(word, 0) + 1


class ReportBolt(BaseRichBolt):
    """Prints the figures, or fails the run if a count is wrong."""

    def __init__(self, sentences: int) -> None:
        self.sentences = sentences

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.reports: list[dict[str, Any]] = []

    def execute(self, tup: Tuple) -> None:
        self.reports.append(tup.values[0])

    def end_of_input(self) -> None:
        counts: Counter[str] = Counter()
        latencies: Counter[int] = Counter()
        cpu: Counter[str] = Counter()
        pids: dict[str, list[int]] = {"report": [os.getpid()]}
        for report in self.reports:
            counts.update(report.get("counts", {}))
            latencies.update(report.get("latencies", {}))
            cpu[report["kind"]] += report["cpu"]
            pids.setdefault(report["kind"], []).append(report["pid"])
        words = check_counts(counts, self.sentences)
        began = min(report["began"] for report in self.reports if report["kind"] == "spout")
        ended = max(report["at"] for report in self.reports if report["kind"] == "count")
        figures = {
            "words": words,
            "secs": round(ended - began, 4),
            "words_s": round(words / (ended - began)),
            "us_word": {kind: round(used / words * 1e6, 3) for kind, used in cpu.items()},
            "began": began,
            "ended": ended,
            "pids": pids,
        }
        if latencies:
            figures["lat_ms"] = percentiles(latencies)
        print(json.dumps(figures))


def topology(args: list[str]) -> TopologyBuilder:
    """Build it."""
    parser = argparse.ArgumentParser(prog="sentences")
    parser.add_argument("sentences", type=int, nargs="?", default=500_000)
    parser.add_argument("--acked", action="store_true", help="emit with message ids")
    parser.add_argument("--rate", type=float, default=0.0, help="sentences/s; 0 is no limit")
    parser.add_argument("--idle", action="store_true", help="emit nothing, for ever")
    parser.add_argument("--near", action="store_true", help="let split run within the spout")
    parser.add_argument("--splits", type=int, default=1, help="split bolts")
    parser.add_argument("--counts", type=int, default=2, help="count bolts")
    options = parser.parse_args(args)
    sentences: int = options.sentences
    spout = AckedSpout(sentences) if options.acked else SentenceSpout(sentences)
    split, count = SplitBolt(), CountBolt()
    if options.rate:
        spout = PacedSpout(sentences, options.rate, options.acked)
        split, count = TimedSplitBolt(), TimedCountBolt()
    elif options.idle:
        spout = IdleSpout(sentences)
    builder = TopologyBuilder()
    builder.set_spout("sentence", spout)
    splits = builder.set_bolt("split", split, options.splits)
    (splits.local_or_shuffle_grouping if options.near else splits.shuffle_grouping)("sentence")
    builder.set_bolt("count", count, options.counts).fields_grouping("split", ["word"])
    if options.idle:
        return builder  # there will be nothing to report
    report = builder.set_bolt("report", ReportBolt(sentences))
    for component in ("sentence", "split", "count"):
        report.global_grouping(component, "report")
    return builder
