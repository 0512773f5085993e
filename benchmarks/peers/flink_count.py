"""PyFlink's word count: numbers to sentences to words in Python, counted in keyed ValueState.

The source and the sink are Flink's own. Parallelism 2, each slot with a Python worker of its own as
on a cluster (`process`), or with Python inside the JVM (`thread`). Warm-up is left out: the rate is
that of the second half of the words, read off marks that the counting tasks leave every
`MARK_WORDS` words. What they leave is also the check: the last value of every state.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.java_gateway import get_gateway

from benchmarks.figures import warm_rate
from benchmarks.text import SENTENCES, check_counts

MARK_WORDS = 500


class Count(KeyedProcessFunction):  # type: ignore[misc]  # the peer ships no types
    """Counts in Flink's state, and notes how far it is."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.done = 0
        self.counts: dict[str, int] = {}
        self.marks: list[tuple[float, int]] = []

    def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[str, int]]:
        count = (self.state.value() or 0) + 1
        self.state.update(count)
        self.counts[value] = count
        self.done += 1
        if not self.done % MARK_WORDS:
            self.marks.append((time.time(), self.done))
        yield value, count

    def close(self) -> None:
        self.marks.append((time.time(), self.done))
        report = {"counts": self.counts, "marks": self.marks, "pid": os.getpid()}
        Path(self.folder, uuid.uuid4().hex).write_text(json.dumps(report))


def run(sentences: int, mode: str, folder: str) -> float:
    """Run the job; seconds from its submission to its end."""
    if mode == "process":
        os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 - PyFlink's spelling
    config = Configuration()
    config.set_string("python.execution-mode", mode)
    config.set_string("python.executable", sys.executable)
    config.set_string("python.client.executable", sys.executable)
    environment = StreamExecutionEnvironment.get_execution_environment(config)
    environment.set_parallelism(2)
    numbers = environment.from_source(
        NumberSequenceSource(0, sentences - 1), WatermarkStrategy.no_watermarks(), "numbers"
    )
    words = numbers.map(lambda i: SENTENCES[i % 10], Types.STRING()).flat_map(
        lambda sentence: sentence.split(), Types.STRING()
    )
    counts = words.key_by(lambda word: word, Types.STRING()).process(
        Count(folder), Types.TUPLE([Types.STRING(), Types.LONG()])
    )
    java = get_gateway().jvm
    sink = java.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()
    counts.sink_to(Sink(sink))
    began = time.time()
    environment.execute("word count")
    return time.time() - began


def main() -> None:
    """Run it, check it, print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=40_000)
    parser.add_argument("--mode", choices=["process", "thread"], default="process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        job_secs = run(options.sentences, options.mode, folder)
        reports = [json.loads(path.read_text()) for path in Path(folder).iterdir()]
    counts: dict[str, int] = {}
    for report in reports:
        counts.update(report["counts"])
    words = check_counts(counts, options.sentences)
    rate, began, ended = warm_rate([report["marks"] for report in reports], words)
    figures = {
        "words": words,
        "words_s": round(rate),
        "began": began,
        "ended": ended,
        "job_secs": round(job_secs, 2),
        "pids": {"count": sorted({report["pid"] for report in reports})},
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
