"""The kill oracle: a topology whose last bolt puts every word on disk before it acks it.

Two tasks of a FileSpout, split bolts, and sinks, two tasks of each unless there shall be more. So
one can kill what one likes and then count: `lost` is what the text holds and the rows do not,
`duplicates` are rows beyond the first of each. The rows also say when and by whose hands, for
`recovery.py`, which runs this program as::

    storm-py local benchmarks/oracle.py --workers 2 -- FOLDER --rate 400

and for `cluster_recovery.py`, which submits it. FOLDER holds everything, the text (`write_text`)
included.
"""

import argparse
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BasicOutputCollector,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from storm_py.spouts import FileSpout

TEXT = "text"
WORDS = 3
"""Words in each line."""
TASKS = 2
"""Tasks of each component."""


def write_text(folder: Path, lines: int) -> None:
    """The input: so many lines, no word twice."""
    with (folder / TEXT).open("w") as text:
        for number in range(1, lines + 1):
            text.write(" ".join(f"w{number}.{word}" for word in range(WORDS)) + "\n")


class Log:
    """Whole lines appended to a file by any number of processes; a killed one leaves no half."""

    def __init__(self, folder: Path, name: str) -> None:
        self._fd = os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, *values: object) -> None:
        """One line: the values and the time. It is the kernel's when this returns."""
        row = "\t".join(map(str, (*values, time.time_ns()))) + "\n"
        os.write(self._fd, row.encode())


def is_born(folder: Path, context: TopologyContext) -> None:
    """A task tells which process it lives in."""
    Log(folder, "births").add(
        context.this_component_id, context.this_task_id, os.getpid(), context.this_worker_port
    )


class TimedSpout(FileSpout):
    """Notes when a line was emitted (by its number) and acked (by its offset)."""

    def __init__(self, folder: Path, rate: float) -> None:
        # What was acked since the last save is emitted again by a successor, at this rate, ahead of
        # what was on its way: saving seldom would be measured, not the engine.
        super().__init__(folder / TEXT, folder / "offsets", max_per_sec=rate, save_secs=0.2)
        self.folder = folder

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        super().open(conf, context, collector)
        self.task = context.this_task_id
        self.emitted = Log(self.folder, "emitted")
        self.acked = Log(self.folder, "acked")
        is_born(self.folder, context)

    def values(self, line_number: int, line: Any) -> Sequence[object]:
        self.emitted.add(line_number, self.task)
        return line_number, line

    def ack(self, msg_id: object) -> None:
        self.acked.add(msg_id, self.task)  # first: what FileSpout has saved is not acked again
        super().ack(msg_id)


class SplitBolt(BaseBasicBolt):
    """One tuple per word."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line_number", "word_number", "word", "split")

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.task = context.this_task_id
        is_born(self.folder, context)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        number, line = tup.values
        for word_number, word in enumerate(line.split()):
            collector.emit([number, word_number, word, self.task])


class DurableSink(BaseRichBolt):
    """Writes each word down, then acks it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.task = context.this_task_id
        self.rows = Log(self.folder, "rows")
        is_born(self.folder, context)

    def execute(self, tup: Tuple) -> None:
        number, word_number, word, split = tup.values
        self.rows.add(TEXT, number, word_number, word, split, self.task)
        self.collector.ack(tup)


# ---- the verdict -------------------------------------------------------------------------------


class Key(NamedTuple):
    """What identifies a word of the input."""

    file: str
    line_number: int
    word_number: int
    word: str


class Row(NamedTuple):
    """What a sink wrote."""

    key: Key
    split: int
    sink: int
    at_ns: int


@dataclass(frozen=True)
class Verdict:
    """What arrived, beside what should."""

    expected: int
    rows: int
    lost: int
    duplicates: int
    strange: int

    def __str__(self) -> str:
        return f"{self.expected:,} words: {self.lost} lost, {self.duplicates} duplicates"


def records(folder: Path, name: str) -> list[list[str]]:
    """The lines of a log."""
    path = folder / name
    return [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []


def rows_of(folder: Path) -> list[Row]:
    """All that the sinks wrote."""
    return [
        Row(Key(file, int(line), int(number), word), int(split), int(sink), int(at))
        for file, line, number, word, split, sink, at in records(folder, "rows")
    ]


def judge(folder: Path) -> Verdict:
    """Compare the rows with the text."""
    expected = {
        Key(TEXT, line_number, word_number, word)
        for line_number, line in enumerate((folder / TEXT).read_text().splitlines(), 1)
        for word_number, word in enumerate(line.split())
    }
    seen = Counter(row.key for row in rows_of(folder))
    return Verdict(
        expected=len(expected),
        rows=seen.total(),
        lost=len(expected - seen.keys()),
        duplicates=seen.total() - len(seen),
        strange=len(seen.keys() - expected),
    )


def build(
    folder: Path, rate: float, tasks: int = TASKS, executors: int | None = None
) -> TopologyBuilder:
    """The topology; `rate` is the lines per second of each spout task, of which there are two.

    `tasks` is how many each bolt has, and `executors` in how many executors, by default in as many.
    """
    executors = tasks if executors is None else executors
    builder = TopologyBuilder()
    builder.set_spout("source", TimedSpout(folder, rate), TASKS)
    split = builder.set_bolt("split", SplitBolt(folder), executors).set_num_tasks(tasks)
    split.shuffle_grouping("source")
    sink = builder.set_bolt("sink", DurableSink(folder), executors).set_num_tasks(tasks)
    sink.fields_grouping("split", ["line_number"])
    return builder


def topology(args: list[str]) -> TopologyBuilder:
    """Build it for `storm-py local` and `storm-py submit`."""
    parser = argparse.ArgumentParser(prog="oracle")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rate", type=float, default=400.0, help="lines/s of each spout")
    parser.add_argument("--tasks", type=int, default=TASKS, help="of each bolt")
    parser.add_argument("--executors", type=int, help="of each bolt, by default one for each task")
    options = parser.parse_args(args)
    return build(options.folder, options.rate, options.tasks, options.executors)
