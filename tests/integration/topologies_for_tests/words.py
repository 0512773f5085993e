"""The word count of the examples, with every count reported instead of the most frequent ones."""

from __future__ import annotations

from pathlib import Path

from storm_py import TopologyBuilder
from storm_py.topologies.word_count import CountBolt, LineSpout, ReportBolt, SplitBolt

from .reporting import report


class FullReport(ReportBolt):
    """Reports every word with its count."""

    def end_of_input(self) -> None:
        report("words", counts=dict(self.counts))


def word_count(files: list[Path], repeat: int) -> TopologyBuilder:
    """Word count with more than one executor of everything but the report."""
    builder = TopologyBuilder()
    builder.set_spout("line", LineSpout(files, repeat), 2)
    builder.set_bolt("split", SplitBolt(), 3).shuffle_grouping("line")
    builder.set_bolt("count", CountBolt(), 3).fields_grouping("split", ["word"])
    builder.set_bolt("report", FullReport(files, repeat, verify=False)).global_grouping("count")
    return builder


def topology(args: list[str]) -> TopologyBuilder:
    """For `storm-py local`: how often to read which files."""
    return word_count([Path(arg) for arg in args[1:]], int(args[0]))
