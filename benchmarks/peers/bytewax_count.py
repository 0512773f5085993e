"""Bytewax's word count: sentences from a source of its own, split, counted in keyed state.

`--batch` is the number of sentences that the source hands over at once. With `--processes 2` there
are two processes of one worker each, half of the sentences in each, and words travel over TCP.
Nothing is snapshotted.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main, run_main

from benchmarks.text import SENTENCES, check_counts


class Share(StatefulSourcePartition):  # type: ignore[misc]  # the peer ships no types mypy sees
    """Every `step`-th sentence from `first` on."""

    def __init__(self, report: dict[str, Any], first: int, step: int, end: int, batch: int) -> None:
        self.report = report
        self.next, self.step, self.end, self.batch = first, step, end, batch

    def next_batch(self) -> list[str]:
        self.report.setdefault("began", time.time())
        if self.next >= self.end:
            raise StopIteration
        until = min(self.end, self.next + self.batch * self.step)
        found = [SENTENCES[i % 10] for i in range(self.next, until, self.step)]
        self.next = until + (self.next - until) % self.step
        return found

    def snapshot(self) -> None:
        return None


class Sentences(FixedPartitionedSource):  # type: ignore[misc]
    """As many shares as processes."""

    def __init__(self, report: dict[str, Any], shares: int, sentences: int, batch: int) -> None:
        self.report, self.shares, self.sentences, self.batch = report, shares, sentences, batch

    def list_parts(self) -> list[str]:
        return [str(share) for share in range(self.shares)]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> Share:
        return Share(self.report, int(for_part), self.shares, self.sentences, self.batch)


class Last(StatelessSinkPartition):  # type: ignore[misc]
    """Keeps the last count of each word."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report
        self.counts = report["counts"]

    def write_batch(self, items: list[tuple[str, int]]) -> None:
        self.counts.update(items)

    def close(self) -> None:
        self.report["ended"] = time.time()


class Counts(DynamicSink):  # type: ignore[misc]
    """One `Last` per worker."""

    def __init__(self, report: dict[str, Any]) -> None:
        self.report = report

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Last:
        return Last(self.report)


def one_more(count: int | None, word: str) -> tuple[int, int]:
    """The state of a word, and what is sent on."""
    count = (count or 0) + 1
    return count, count


def dataflow(report: dict[str, Any], shares: int, sentences: int, batch: int) -> Dataflow:
    """The word count."""
    flow = Dataflow("word_count")
    lines = op.input("sentences", flow, Sentences(report, shares, sentences, batch))
    words = op.flat_map("split", lines, str.split)
    keyed = op.key_on("word", words, lambda word: word)
    op.output("counts", op.stateful_map("count", keyed, one_more), Counts(report))
    return flow


def free_addresses(number: int) -> list[str]:
    """Addresses of this machine that nobody listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def run_here(options: argparse.Namespace, addresses: list[str]) -> dict[str, Any]:
    """Run this process's part; what it saw."""
    report: dict[str, Any] = {"counts": {}, "pid": os.getpid()}
    flow = dataflow(report, max(1, len(addresses)), options.sentences, options.batch)
    if addresses:
        cluster_main(flow, addresses, options.process)
    else:
        run_main(flow)
    return report


def run_processes(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the parts in processes; what each saw."""
    addresses = free_addresses(options.processes)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, str(i)) for i in range(options.processes)]
        command = [sys.executable, "-m", "benchmarks.peers.bytewax_count"]
        command += ["--sentences", str(options.sentences), "--batch", str(options.batch)]
        command += ["--addresses", ",".join(addresses)]
        children = [
            subprocess.Popen([*command, "--process", str(i), "--report", str(path)])
            for i, path in enumerate(paths)
        ]
        codes = [child.wait() for child in children]
        if any(codes):
            sys.exit("a process of Bytewax failed")
        return [json.loads(path.read_text()) for path in paths]


def main() -> None:
    """Run it, check it, print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=500_000)
    parser.add_argument("--batch", type=int, default=100, help="sentences per batch of the source")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0, help="which of them this one is")
    parser.add_argument("--addresses", default="")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    if options.report:
        report = run_here(options, options.addresses.split(","))
        options.report.write_text(json.dumps(report))
        return
    reports = run_processes(options) if options.processes > 1 else [run_here(options, [])]
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update(report["counts"])
    words = check_counts(counts, options.sentences)
    began = min(report["began"] for report in reports)
    ended = max(report["ended"] for report in reports)
    figures = {
        "words": words,
        "words_s": round(words / (ended - began)),
        "began": began,
        "ended": ended,
        "pids": {"worker": [report["pid"] for report in reports]},
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
