"""Components that the tests of `storm_py.testing` drive: small, plain, as users write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class Sentences(BaseRichSpout):
    """Emits its sentences with their positions as message ids; replays nothing."""

    def __init__(self, *sentences: str, ends: bool = True) -> None:
        self.sentences = sentences
        self.ends = ends
        self.position = 0
        self.answers: list[str] = []

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("sentence")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        if self.position < len(self.sentences):
            sentence = self.sentences[self.position]
            if sentence:  # an empty one is skipped: this call emits nothing
                self.collector.emit([sentence], self.position)
            self.position += 1
        elif self.ends:
            self.collector.end_of_input()
            self.ends = False

    def ack(self, msg_id: object) -> None:
        self.answers.append(f"ack {msg_id}")

    def fail(self, msg_id: object) -> None:
        self.answers.append(f"fail {msg_id}")

    def activate(self) -> None:
        self.answers.append("activate")

    def deactivate(self) -> None:
        self.answers.append("deactivate")


class Split(BaseBasicBolt):
    """Words go on; "fail" and "raise" are told apart by name."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for word in tup["sentence"].split():
            if word == "fail":
                raise FailedException("as told")
            if word == "raise":
                raise KeyError("as told")
            collector.emit([word])


class Count(BaseRichBolt):
    """Counts words; hands the counts on, and all of them once more on "totals" at the end."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word", "count")
        declarer.declare_stream("totals", "counts")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        word = tup["word"]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.collector.emit([word, self.counts[word]], tup)
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        self.collector.emit([self.counts], stream="totals")


class Late(BaseRichBolt):
    """Acks the tuples it was given when it is given "now"; "never" it does not ack at all."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.waiting: list[Tuple] = []

    def execute(self, tup: Tuple) -> None:
        if tup.values != ["never"]:
            self.waiting.append(tup)
        if tup.values == ["now"]:
            for each in self.waiting:
                self.collector.ack(each)
            self.waiting.clear()


class Grumble(BaseRichBolt):
    """Raises, or reports, as the one value of a tuple says."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        if tup.values == ["report"]:
            self.collector.report_error(ValueError("odd"))
        elif tup.values == ["exit"]:
            raise SystemExit(3)
        self.collector.ack(tup)


def word_count(sentences: Sequence[str] = (), tasks: int = 3, ends: bool = True) -> TopologyBuilder:
    """Sentences -> Split x 2 -> Count, by word, in this many tasks."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences(*sentences, ends=ends))
    builder.set_bolt("split", Split(), 2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), tasks).fields_grouping("split", "word")
    return builder
