"""The kill oracle with more tasks than executors, so that their number can change while it runs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.oracle import DurableSink, SplitBolt, TimedSpout
from storm_py import TopologyBuilder

TASKS = 4


def build(folder: Path, rate: float) -> TopologyBuilder:
    """Two spouts; one executor of split bolts, two of sinks, with four tasks each."""
    builder = TopologyBuilder()
    builder.set_spout("source", TimedSpout(folder, rate), 2)
    split = builder.set_bolt("split", SplitBolt(folder), 1).set_num_tasks(TASKS)
    split.shuffle_grouping("source")
    sink = builder.set_bolt("sink", DurableSink(folder), 2).set_num_tasks(TASKS)
    sink.fields_grouping("split", ["line_number"])
    return builder
