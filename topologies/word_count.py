"""Word count: Storm's first example, over a real text, with an end and a proof.

Spouts read the lines of a file, a folder or (by default) the sources of Python's standard library;
split bolts cut them into words; count bolts count, each word always on the same task; a report bolt
gathers the counts at the end. Run it with::

    storm-py local topologies/word_count.py -- --verify
    storm-py local topologies/word_count.py -- --help
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
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

TOP = 20


def lines_of(files: list[Path]) -> Iterator[str]:
    """The lines of some text files that hold a word; bytes that are no UTF-8 are replaced."""
    for path in files:
        with path.open(encoding="utf-8", errors="replace") as text:
            for line in text:
                if not line.isspace():
                    yield line


class LineSpout(BaseRichSpout):
    """Emits the lines of its share of the files, `repeat` times over, then ends its input."""

    def __init__(self, files: list[Path], repeat: int) -> None:
        self.files = files
        self.repeat = repeat

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        tasks = context.component_tasks(context.this_component_id)
        mine = self.files[context.this_task_index :: len(tasks)]
        self.collector = collector
        self.lines = (line for _ in range(self.repeat) for line in lines_of(mine))

    def next_tuple(self) -> None:
        line = next(self.lines, None)
        if line is None:
            self.collector.end_of_input()
        else:
            self.collector.emit([line])


class SplitBolt(BaseBasicBolt):
    """Cuts lines into words."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for word in tup.values[0].split():
            collector.emit([word])


class CountBolt(BaseRichBolt):
    """Counts words; hands the counts on when there will be no more."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word", "count")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Tuple) -> None:
        self.counts[tup.values[0]] += 1
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        for word, count in self.counts.items():
            self.collector.emit([word, count])


class ReportBolt(BaseRichBolt):
    """Prints the total and the most frequent words; with `verify`, proves them."""

    def __init__(self, files: list[Path], repeat: int, verify: bool) -> None:
        self.files = files
        self.repeat = repeat
        self.verify = verify

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Tuple) -> None:
        self.counts[tup["word"]] += tup["count"]
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        print(f"{self.counts.total():,} words, {len(self.counts):,} distinct; the top {TOP}:")
        for word, count in self.counts.most_common(TOP):
            print(f"{count:12,}  {word}")
        if self.verify:
            self.compare(plain_count(self.files, self.repeat))

    def compare(self, expected: Counter[str]) -> None:
        """Raise FailedException, which fails the run, unless every count is as expected."""
        wrong = [word for word in expected | self.counts if expected[word] != self.counts[word]]
        if wrong:
            shown = ", ".join(
                f"{word!r} {self.counts[word]} instead of {expected[word]}" for word in wrong[:5]
            )
            raise FailedException(
                f"verification failed: {len(wrong):,} of {len(expected):,} words differ "
                f"({self.counts.total():,} counted, {expected.total():,} expected): {shown}"
            )
        print(f"verified: all {expected.total():,} words equal a plain single-process count")


def plain_count(files: list[Path], repeat: int) -> Counter[str]:
    """The same count by a plain loop."""
    counts: Counter[str] = Counter()
    for line in lines_of(files):
        counts.update(line.split())
    return Counter({word: count * repeat for word, count in counts.items()})


def input_files(path: Path | None) -> list[Path]:
    """The files to read, in a stable order: a file itself, or all files below a folder.

    Without a path: the sources of Python's standard library, without its tests and the packages
    that were installed beside it.
    """
    if path is None:
        root = Path(os.__file__).parent
        skip = {"site-packages", "dist-packages", "test", "tests", "idle_test"}
        return sorted(
            file for file in root.rglob("*.py") if not skip & set(file.relative_to(root).parts)
        )
    if path.is_dir():
        return sorted(file.resolve() for file in path.rglob("*") if file.is_file())
    return [path.resolve()]


def positive(text: str) -> int:
    """An option's value as a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def parse(args: list[str]) -> argparse.Namespace:
    """The command line behind `--`."""
    parser = argparse.ArgumentParser(prog="word_count", description="Count the words of a text.")
    parser.add_argument("--input", type=Path, help="a file or folder (default: Python's sources)")
    parser.add_argument("--repeat", type=positive, default=1, help="read the input this many times")
    parser.add_argument(
        "--at-least", type=positive, metavar="WORDS", help="repeat until there are this many words"
    )
    parser.add_argument("--verify", action="store_true", help="compare with a plain count")
    parser.add_argument("--spouts", type=positive, default=5, help="line spouts (default 5)")
    parser.add_argument("--splits", type=positive, default=8, help="split bolts (default 8)")
    parser.add_argument("--counts", type=positive, default=12, help="count bolts (default 12)")
    options = parser.parse_args(args)
    if options.input is not None and not options.input.exists():
        parser.error(f"--input {options.input}: there is no such file or folder")
    return options


def topology(args: list[str]) -> TopologyBuilder:
    """Build the topology for `storm-py local` and `storm-py submit`."""
    options = parse(args)
    files = input_files(options.input)
    repeat: int = options.repeat
    if options.at_least is not None:
        once = plain_count(files, 1).total()
        if once == 0:
            sys.exit(f"word_count: error: --input {options.input} holds no word")
        repeat = max(repeat, -(-options.at_least // once))
        print(f"{len(files):,} files hold {once:,} words; reading them {repeat} time(s)")
    builder = TopologyBuilder()
    builder.set_spout("line", LineSpout(files, repeat), options.spouts)
    builder.set_bolt("split", SplitBolt(), options.splits).shuffle_grouping("line")
    builder.set_bolt("count", CountBolt(), options.counts).fields_grouping("split", ["word"])
    builder.set_bolt("report", ReportBolt(files, repeat, options.verify)).global_grouping("count")
    return builder
