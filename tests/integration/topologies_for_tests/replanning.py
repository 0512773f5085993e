"""The kill oracle with more tasks than executors, so that their number can change while it runs."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.oracle import DurableSink, SplitBolt, TimedSpout
from storm_py import TopologyBuilder, TopologyContext

TASKS = 4


class HangingSplit(SplitBolt):
    """Does not come up while there is a file `hang`."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        if (self.folder / "hang").exists():
            (self.folder / f"hanging-{context.this_task_id}").touch()
            signal.pause()
        super().prepare(conf, context)


def build(folder: Path, rate: float) -> TopologyBuilder:
    """Two spouts; one executor of split bolts, two of sinks, with four tasks each."""
    builder = TopologyBuilder()
    builder.set_spout("source", TimedSpout(folder, rate), 2)
    split = builder.set_bolt("split", HangingSplit(folder), 1).set_num_tasks(TASKS)
    split.shuffle_grouping("source")
    sink = builder.set_bolt("sink", DurableSink(folder), 2).set_num_tasks(TASKS)
    sink.fields_grouping("split", ["line_number"])
    return builder
