"""The benchmark's topology: ten fixed sentences, split, counted; words per second on stdout.

Spout 1, split 1, count 2, as in the figures that are quoted everywhere; a report bolt checks every
count against the known answer and prints one line of JSON. Time runs from the spout's first call
to the moment the last count bolt has its last word, taken in those processes, without start-up.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

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

SENTENCES = [
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago our fathers",
    "snow white and the seven dwarfs slept",
    "i am at two with nature today",
    "the quick brown fox jumps over the lazy dog",
    "to be or not to be that is",
    "all that glitters is not gold",
    "a stitch in time saves nine they say",
    "never put off till tomorrow what you can",
]


def expected_counts(sentences: int) -> Counter[str]:
    """The counts after this many sentences, round and round."""
    whole, rest = divmod(sentences, len(SENTENCES))
    counts: Counter[str] = Counter()
    for i, sentence in enumerate(SENTENCES):
        for word in sentence.split():
            counts[word] += whole + (i < rest)
    return +counts


class SentenceSpout(BaseRichSpout):
    """Emits the sentences round and round, `sentences` of them."""

    def __init__(self, sentences: int) -> None:
        self.sentences = sentences

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("sentence")
        declarer.declare_stream("time", "kind", "at", "cpu", "counts")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.done = 0
        self.began = self.cpu = 0.0

    def next_tuple(self) -> None:
        if self.done == self.sentences:
            cpu = time.process_time() - self.cpu
            self.collector.emit(["spout", self.began, cpu, None], stream="time")
            self.collector.end_of_input()
            return
        if not self.done:
            self.began = time.time()
            self.cpu = time.process_time()
        self.collector.emit([SENTENCES[self.done % 10]])
        self.done += 1


class SplitBolt(BaseBasicBolt):
    """One tuple per word."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word", "count")
        declarer.declare_stream("time", "kind", "at", "cpu", "counts")

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.cpu = time.process_time()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for word in tup.values[0].split():
            collector.emit([word, 1])

    def end_of_input(self, collector: BasicOutputCollector) -> None:
        cpu = time.process_time() - self.cpu
        collector.emit(["split", time.time(), cpu, None], stream="time")


class CountBolt(BaseRichBolt):
    """Counts, and emits each new count on a stream that nobody reads."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word", "count")
        declarer.declare_stream("time", "kind", "at", "cpu", "counts")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.counts: dict[str, int] = {}
        self.cpu = time.process_time()

    def execute(self, tup: Tuple) -> None:
        word, count = tup.values
        count += self.counts.get(word, 0)
        self.counts[word] = count
        self.collector.emit([word, count], tup)
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        cpu = time.process_time() - self.cpu
        self.collector.emit(["count", time.time(), cpu, self.counts], stream="time")


class ReportBolt(BaseRichBolt):
    """Prints the figures, or fails the run if a count is wrong."""

    def __init__(self, sentences: int) -> None:
        self.sentences = sentences

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.reports: list[tuple[str, float, float, dict[str, int] | None]] = []

    def execute(self, tup: Tuple) -> None:
        self.reports.append(tuple(tup.values))

    def end_of_input(self) -> None:
        counts: Counter[str] = Counter()
        cpu: dict[str, float] = {}
        for kind, _, used, counted in self.reports:
            cpu[kind] = cpu.get(kind, 0.0) + used
            counts.update(counted or {})
        expected = expected_counts(self.sentences)
        if counts != expected:
            raise FailedException(
                f"counted {counts.total():,} words, expected {expected.total():,}"
            )
        began = min(at for kind, at, _, _ in self.reports if kind == "spout")
        ended = max(at for kind, at, _, _ in self.reports if kind == "count")
        words = counts.total()
        figures = {
            "words": words,
            "secs": round(ended - began, 4),
            "words_s": round(words / (ended - began)),
            "us_word": {kind: round(used / words * 1e6, 3) for kind, used in cpu.items()},
        }
        print(json.dumps(figures))


def topology(args: list[str]) -> TopologyBuilder:
    """Build it; the only argument is the number of sentences."""
    parser = argparse.ArgumentParser(prog="sentences")
    parser.add_argument("sentences", type=int, nargs="?", default=500_000)
    sentences: int = parser.parse_args(args).sentences
    builder = TopologyBuilder()
    builder.set_spout("sentence", SentenceSpout(sentences))
    builder.set_bolt("split", SplitBolt()).shuffle_grouping("sentence")
    builder.set_bolt("count", CountBolt(), 2).fields_grouping("split", ["word"])
    report = builder.set_bolt("report", ReportBolt(sentences))
    for component in ("sentence", "split", "count"):
        report.global_grouping(component, "time")
    return builder
