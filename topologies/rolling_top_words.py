"""Rolling top words: Storm's example of ticks. Which words were the most frequent just now?

Spouts emit the words of a text; rolling counters keep, for each word, how often it came in the last
`--window` seconds, in slots of `--emit` seconds, and emit that at every tick; intermediate rankings
keep the top of their share; the total ranking merges them and prints a line per tick. When the
input has ended, counters send the top of the whole text on a second stream, which can be proven::

    storm-py local topologies/rolling_top_words.py -- --verify
    storm-py local topologies/rolling_top_words.py -- --rate 2000 --window 6 --emit 2
"""

import argparse
import heapq
import os
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    Config,
    FailedException,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

TOTALS = "totals"


def words_of(files: list[Path]) -> Iterator[str]:
    """The words of some text files; bytes that are no UTF-8 are replaced."""
    for path in files:
        with path.open(encoding="utf-8", errors="replace") as text:
            for line in text:
                yield from line.split()


def top_of(counts: Mapping[str, int], top: int) -> list[tuple[str, int]]:
    """The `top` words with the highest counts; of equal counts, the first by the alphabet."""
    return heapq.nsmallest(top, counts.items(), key=lambda item: (-item[1], item[0]))


class SlidingCounter:
    """How often each word came in the last `slots` slots of time, the one being filled included."""

    def __init__(self, slots: int) -> None:
        self._slots: deque[Counter[str]] = deque([Counter()], maxlen=slots)
        self._counts: Counter[str] = Counter()

    def add(self, word: str) -> None:
        """A word came."""
        self._slots[-1][word] += 1
        self._counts[word] += 1

    def advance(self) -> dict[str, int]:
        """The counts of the window, then begin a new slot.

        A word that has left the window is there once more with 0, so that rankings forget it.
        """
        counts = dict(self._counts)
        self._counts = +self._counts
        if len(self._slots) == self._slots.maxlen:
            self._counts.subtract(self._slots[0])
        self._slots.append(Counter())
        return counts


class WordSpout(BaseRichSpout):
    """Emits the words of its share of the files, at most `rate` a second, then ends its input."""

    def __init__(self, files: list[Path], rate: float | None) -> None:
        self.files = files
        self.rate = rate

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        tasks = context.component_tasks(context.this_component_id)
        self.collector = collector
        self.words = words_of(self.files[context.this_task_index :: len(tasks)])
        self.emitted = 0
        self.began = time.monotonic()

    def next_tuple(self) -> None:
        if self.rate and self.emitted > (time.monotonic() - self.began) * self.rate:
            return
        word = next(self.words, None)
        if word is None:
            self.collector.end_of_input()
        else:
            self.emitted += 1
            self.collector.emit([word])


class RollingCountBolt(BaseRichBolt):
    """Emits at every tick how often each of its words came in the window that ends now."""

    def __init__(self, window_secs: int, emit_secs: int, top: int) -> None:
        self.window_secs = window_secs
        self.emit_secs = emit_secs
        self.top = top

    def get_component_configuration(self) -> Mapping[str, object]:
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: self.emit_secs}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("word", "count")
        declarer.declare_stream(TOTALS, "word", "count", "words")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.window = SlidingCounter(self.window_secs // self.emit_secs)
        self.totals: Counter[str] = Counter()

    def execute(self, tup: Tuple) -> None:
        if tup.is_tick:
            for word, count in self.window.advance().items():
                self.collector.emit([word, count])
        else:
            self.window.add(tup.values[0])
            self.totals[tup.values[0]] += 1
        self.collector.ack(tup)

    def end_of_input(self) -> None:
        # A word is counted by one task only: what is in the top of all is in the top of its task.
        words = self.totals.total()
        for word, count in top_of(self.totals, self.top):
            self.collector.emit([word, count, words], stream=TOTALS)
            words = 0


class IntermediateRankingsBolt(BaseBasicBolt):
    """Emits at every tick the most frequent of its words."""

    def __init__(self, emit_secs: int, top: int) -> None:
        self.emit_secs = emit_secs
        self.top = top

    def get_component_configuration(self) -> Mapping[str, object]:
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: self.emit_secs}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("task", "rankings")

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.task = context.this_task_id
        self.counts: dict[str, int] = {}

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        if tup.is_tick:
            collector.emit([self.task, top_of(self.counts, self.top)])
        elif tup["count"]:
            self.counts[tup["word"]] = tup["count"]
        else:
            self.counts.pop(tup["word"], None)


class TotalRankingsBolt(BaseBasicBolt):
    """Prints at every tick the most frequent words of all; at the end, those of the whole text."""

    def __init__(self, emit_secs: int, top: int, files: list[Path], verify: bool) -> None:
        self.emit_secs = emit_secs
        self.top = top
        self.files = files
        self.verify = verify

    def get_component_configuration(self) -> Mapping[str, object]:
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: self.emit_secs}

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.rankings: dict[int, Sequence[tuple[str, int]]] = {}
        self.totals: dict[str, int] = {}
        self.words = 0

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        if tup.is_tick:
            merged = dict(pair for ranking in self.rankings.values() for pair in ranking)
            print("just now:", *(f"{word} {n:,}" for word, n in top_of(merged, self.top)))
        elif tup.source_stream_id == TOTALS:
            self.totals[tup["word"]] = tup["count"]
            self.words += tup["words"]
        else:
            self.rankings[tup["task"]] = tup["rankings"]

    def end_of_input(self, collector: BasicOutputCollector) -> None:
        found = top_of(self.totals, self.top)
        print(f"{self.words:,} words; the top {self.top} of all:")
        for word, count in found:
            print(f"{count:12,}  {word}")
        if self.verify:
            counts = Counter(words_of(self.files))
            if (self.words, found) != (counts.total(), top_of(counts, self.top)):
                raise FailedException(
                    f"verification failed: the top of {counts.total():,} words is "
                    f"{top_of(counts, self.top)}, but {self.words:,} were counted: {found}"
                )
            print(f"verified: the top {self.top} equal those of a plain single-process count")


def input_files(path: Path | None) -> list[Path]:
    """The files to read: one, or all below a folder; by default Python's standard library."""
    if path is not None and path.is_file():
        return [path.resolve()]
    if path is not None:
        return sorted(file.resolve() for file in path.rglob("*") if file.is_file())
    root = Path(os.__file__).parent
    skip = {"site-packages", "dist-packages", "test", "tests", "idle_test"}
    return sorted(f for f in root.rglob("*.py") if not skip & set(f.relative_to(root).parts))


def positive(text: str) -> int:
    """An option's value as a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def topology(args: list[str]) -> TopologyBuilder:
    """Build the topology for `storm-py local` and `storm-py submit`."""
    parser = argparse.ArgumentParser(prog="rolling_top_words", description="Trending words.")
    parser.add_argument("--input", type=Path, help="a file or folder (default: Python's sources)")
    parser.add_argument("--window", type=positive, default=9, help="seconds (default 9)")
    parser.add_argument("--emit", type=positive, default=3, help="seconds per slot (default 3)")
    parser.add_argument("--top", type=positive, default=5, help="how many words (default 5)")
    parser.add_argument("--rate", type=positive, help="words per second of each of two spouts")
    parser.add_argument("--verify", action="store_true", help="compare with a plain count")
    options = parser.parse_args(args)
    if options.input is not None and not options.input.exists():
        parser.error(f"--input {options.input}: there is no such file or folder")
    if options.window % options.emit:
        parser.error(f"--window {options.window} is no multiple of --emit {options.emit}")
    files = input_files(options.input)
    builder = TopologyBuilder()
    builder.set_spout("word", WordSpout(files, options.rate), 2)
    counter = RollingCountBolt(options.window, options.emit, options.top)
    builder.set_bolt("counter", counter, 4).fields_grouping("word", ["word"])
    intermediate = IntermediateRankingsBolt(options.emit, options.top)
    builder.set_bolt("intermediate", intermediate, 2).fields_grouping("counter", ["word"])
    total = TotalRankingsBolt(options.emit, options.top, files, options.verify)
    ranking = builder.set_bolt("total", total)
    ranking.global_grouping("intermediate").global_grouping("counter", TOTALS)
    return builder
