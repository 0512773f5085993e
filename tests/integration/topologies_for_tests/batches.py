"""The kill oracle with batch bolts: words are split and written down a frame at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.oracle import TASKS, TEXT, Log, TimedSpout, is_born
from storm_py import (
    Batch,
    BatchBolt,
    BatchOutputCollector,
    OutputFieldsDeclarer,
    TopologyBuilder,
    TopologyContext,
)


class BatchSplit(BatchBolt):
    """One row per word, made from its line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line_number", "word_number", "word", "split")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchOutputCollector
    ) -> None:
        self.collector, self.task = collector, context.this_task_id
        is_born(self.folder, context)

    def execute_batch(self, rows: list[list[Any]], batch: Batch) -> None:
        words, sources = [], []
        for position, (number, line) in enumerate(rows):
            for word_number, word in enumerate(line.split()):
                words.append([number, word_number, word, self.task])
                sources.append(position)
        self.collector.emit_batch(words, sources)


class BatchSink(BatchBolt):
    """Writes every word down, then acks one half of the batch by its rows, and then the rest."""

    auto_ack = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchOutputCollector
    ) -> None:
        self.collector, self.task = collector, context.this_task_id
        self.rows = Log(self.folder, "rows")
        is_born(self.folder, context)

    def execute_batch(self, rows: list[list[Any]], batch: Batch) -> None:
        for number, word_number, word, split in rows:
            self.rows.add(TEXT, number, word_number, word, split, self.task)
        self.collector.ack(batch, range(0, len(batch), 2))
        if len(batch) > 1:
            self.collector.ack(batch)


def build(folder: Path, rate: float) -> TopologyBuilder:
    """The topology; `rate` is the lines per second of each spout task."""
    builder = TopologyBuilder()
    builder.set_spout("source", TimedSpout(folder, rate), TASKS)
    builder.set_bolt("split", BatchSplit(folder), TASKS).shuffle_grouping("source")
    sink = builder.set_bolt("sink", BatchSink(folder), TASKS)
    sink.fields_grouping("split", ["line_number"])
    return builder


def build_fused(folder: Path, rate: float) -> TopologyBuilder:
    """The same with each sink in the process of its split bolt, which hands it its rows."""
    builder = TopologyBuilder()
    builder.set_spout("source", TimedSpout(folder, rate), TASKS)
    builder.set_bolt("split", BatchSplit(folder), TASKS).shuffle_grouping("source")
    builder.set_bolt("sink", BatchSink(folder), TASKS).local_or_shuffle_grouping("split")
    return builder
