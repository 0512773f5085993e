"""Exclamation: Storm's smallest example. Words get three exclamation marks, twice.

::

    storm-py local topologies/exclamation.py                  # until Ctrl-C
    storm-py local topologies/exclamation.py -- --words 1000  # ends by itself
"""

import argparse
import itertools
from collections.abc import Mapping
from typing import Any

from storm_py import (
    BaseBasicBolt,
    BaseRichSpout,
    BasicOutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

NAMES = ["nathan", "mike", "jackson", "golda", "bertels"]


class WordSpout(BaseRichSpout):
    """Emits names round and round: `words` of them in all its tasks together, or for ever."""

    def __init__(self, words: int | None) -> None:
        self.words = words

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        tasks = len(context.component_tasks(context.this_component_id))
        share = None
        if self.words is not None:
            share = len(range(context.this_task_index, self.words, tasks))
        self.names = itertools.islice(itertools.cycle(NAMES), share)

    def next_tuple(self) -> None:
        name = next(self.names, None)
        if name is None:
            self.collector.end_of_input()
        else:
            self.collector.emit([name])


class ExclamationBolt(BaseBasicBolt):
    """Appends three exclamation marks."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit([f"{tup['word']}!!!"])


def topology(args: list[str]) -> TopologyBuilder:
    """Build the topology for `storm-py local` and `storm-py submit`."""
    parser = argparse.ArgumentParser(prog="exclamation")
    parser.add_argument("--words", type=int, help="how many words to emit (default: no end)")
    options = parser.parse_args(args)
    builder = TopologyBuilder()
    builder.set_spout("word", WordSpout(options.words), 10)
    builder.set_bolt("exclaim1", ExclamationBolt(), 3).shuffle_grouping("word")
    builder.set_bolt("exclaim2", ExclamationBolt(), 2).shuffle_grouping("exclaim1")
    return builder
