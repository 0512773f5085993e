"""The benchmark's word count with batch bolts: the sentences of `benchmarks.sentences`.

Spout 1, split 1, count 2, or as `--splits` and `--counts` say; every word is anchored to its
sentence. With `--acked` the spout emits with message ids. The line that it prints has words per
second, and microseconds of CPU per word by component. Run it from the top of the repository, as
`storm-py local benchmarks.sentences_batch`.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from benchmarks.text import SENTENCES, WrongCounts, check_counts
from storm_py import (
    BaseRichSpout,
    Batch,
    BatchBolt,
    BatchOutputCollector,
    FailedException,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
)


class Sentences(BaseRichSpout):
    """Emits the sentences round and round, and ends when all are acked."""

    def __init__(self, sentences: int, acked: bool) -> None:
        self.sentences, self.with_ids = sentences, acked

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("sentence")
        declarer.declare_stream("report", "figures")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.done = self.answered = 0

    def next_tuple(self) -> None:
        if not self.done:
            self.began, self.cpu = time.time(), time.process_time()
        if self.done < self.sentences:
            msg_id = self.done if self.with_ids else None
            self.collector.emit([SENTENCES[self.done % 10]], msg_id)
            self.done += 1
        elif not self.with_ids or self.answered == self.sentences:
            cpu = time.process_time() - self.cpu
            figures = {"kind": "spout", "at": self.began, "cpu": cpu}
            self.collector.emit([figures], stream="report")
            self.collector.end_of_input()

    def ack(self, msg_id: object) -> None:
        self.answered += 1

    def fail(self, msg_id: object) -> None:
        raise FailedException(f"sentence {msg_id} failed")


class Reporting(BatchBolt):
    """A batch bolt that says at the end what it used."""

    kind: str

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word", "count")
        declarer.declare_stream("report", "figures")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchOutputCollector
    ) -> None:
        self.collector = collector
        self.counts: dict[str, int] = {}
        self.cpu = time.process_time()

    def end_of_input(self) -> None:
        cpu = time.process_time() - self.cpu
        figures = {"kind": self.kind, "at": time.time(), "cpu": cpu, "counts": self.counts}
        self.collector.emit([figures], stream="report")


class Split(Reporting):
    """One row per word."""

    kind = "split"

    def execute_batch(self, rows: list[list[str]], batch: Batch) -> None:
        split = [sentence.split() for (sentence,) in rows]
        words = [[word, 1] for words in split for word in words]
        self.collector.emit_batch(words, [i for i, words in enumerate(split) for _ in words])


class Count(Reporting):
    """Counts, and emits each new count on a stream that nobody reads."""

    kind = "count"

    def execute_batch(self, rows: list[list[Any]], batch: Batch) -> None:
        counts, get = self.counts, self.counts.get
        for row in rows:
            word, count = row
            counts[word] = row[1] = get(word, 0) + count
        self.collector.emit_batch(rows, range(len(rows)))


class Report(BatchBolt):
    """Prints the figures, or fails the run if a count is wrong."""

    def __init__(self, sentences: int) -> None:
        self.sentences = sentences
        self.figures: list[dict[str, Any]] = []

    def execute_batch(self, rows: list[list[dict[str, Any]]], batch: Batch) -> None:
        self.figures += [figures for (figures,) in rows]

    def end_of_input(self) -> None:
        counts: Counter[str] = Counter()
        cpu: Counter[str] = Counter()
        for figures in self.figures:
            cpu[figures["kind"]] += figures["cpu"]
            counts.update(figures.get("counts", {}))
        try:
            words = check_counts(counts, self.sentences)
        except WrongCounts as error:
            raise FailedException(str(error)) from None
        began = min(each["at"] for each in self.figures)
        secs = max(each["at"] for each in self.figures) - began
        us_word = {kind: round(used / words * 1e6, 3) for kind, used in cpu.items()}
        print(json.dumps({"words": words, "words_s": round(words / secs), "us_word": us_word}))


def topology(args: list[str]) -> TopologyBuilder:
    """Build it; the first argument is the number of sentences."""
    parser = argparse.ArgumentParser(prog="sentences_batch")
    parser.add_argument("sentences", type=int, nargs="?", default=500_000)
    parser.add_argument("--acked", action="store_true", help="emit with message ids")
    parser.add_argument("--splits", type=int, default=1, help="split bolts")
    parser.add_argument("--counts", type=int, default=2, help="count bolts")
    options = parser.parse_args(args)
    builder = TopologyBuilder()
    builder.set_spout("sentence", Sentences(options.sentences, options.acked))
    builder.set_bolt("split", Split(), options.splits).shuffle_grouping("sentence")
    builder.set_bolt("count", Count(), options.counts).fields_grouping("split", ["word"])
    report = builder.set_bolt("report", Report(options.sentences))
    for component in ("sentence", "split", "count"):
        report.global_grouping(component, "report")
    return builder
