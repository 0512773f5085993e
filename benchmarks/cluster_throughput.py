"""Throughput of the word count on a cluster, against the same in local mode, in pairs.

A cluster of one supervisor runs all the time on this machine; each pair counts the words once in
local mode and once submitted, in turn first and second, with the same configuration and one worker.
Both runs are measured inside the topology (`benchmarks.sentences`), without start-up. Prints a
table on standard error and one line of JSON on standard output::

    python -m benchmarks.cluster_throughput --pairs 30
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.bench import spread_cells
from benchmarks.commands import WordCount, storm_py, submission
from benchmarks.daemons import Cluster, Failed, wait_for
from benchmarks.figures import confidence, ratios, rounded, spread
from benchmarks.measuring import RunFailed, last_object, run

NAME = "words"
PATIENCE_SECS = 120.0
_LOOK_SECS = 0.3
"""Seldom, as whoever looks takes time from what is measured."""


def main() -> None:
    """Run the pairs and print what they gave."""
    parser = argparse.ArgumentParser(description="Word count on a cluster against local mode.")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--sentences", type=int, default=300_000)
    parser.add_argument("--acks", choices=["off", "on", "both"], default="both")
    options = parser.parse_args()
    modes = {"both": ("off", "on")}.get(options.acks, (options.acks,))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder), 1, 1) as cluster:
        cluster.start()
        try:
            for mode in modes:
                count = WordCount(options.sentences).with_acks(mode == "on")
                found[mode] = compared(cluster, count, options.pairs)
        except (RunFailed, Failed) as error:
            sys.exit(str(error))
    show(found)
    print(json.dumps({"pairs": options.pairs, "sentences": options.sentences, **found}))


def compared(cluster: Cluster, count: WordCount, pairs: int) -> dict[str, Any]:
    """The words per second of both, and their ratio pair by pair."""
    local: list[float] = []
    submitted: list[float] = []
    for pair in range(pairs):
        if pair % 2:
            submitted.append(on_cluster(cluster, count))
        local.append(run(storm_py(count))["words_s"])
        if not pair % 2:
            submitted.append(on_cluster(cluster, count))
        print(f"pair {pair + 1}: {submitted[-1] / local[-1]:.3f}", file=sys.stderr, flush=True)
    each = [a / b for a, b in zip(submitted, local, strict=True)]
    low, high = confidence(each)
    return {
        "local": spread(local),
        "cluster": spread(submitted),
        "ratio": ratios(submitted, local),
        "confidence": [rounded(low), rounded(high)],
    }


def on_cluster(cluster: Cluster, count: WordCount) -> float:
    """Submit it, wait for its line, and kill it: the words per second that it printed."""
    program, options, tail = submission(count)
    topology_id = cluster.run("submit", program, NAME, *options, tail=tail).strip()
    said = wait_for_line(cluster.local_dirs[0] / "logs" / topology_id)
    cluster.run("kill", NAME, "-w", "0")
    wait_for(lambda: not cluster.workers(), "its worker is gone")
    return float(said["words_s"])


def wait_for_line(logs: Path) -> dict[str, Any]:
    """What the report bolt prints into the log of its instance."""
    deadline = time.monotonic() + PATIENCE_SECS
    while time.monotonic() < deadline:
        for path in logs.glob("*/report-*.out"):
            found = last_object(path.read_text())
            if found is not None:
                return found
        time.sleep(_LOOK_SECS)
    raise Failed(f"no report in {logs} within {PATIENCE_SECS:g} s")


def show(found: dict[str, Any]) -> None:
    """A table of all of it."""
    table = Table("acks", "local, words/s", "cluster, words/s", "cluster / local", "95 % of median")
    for mode, figures in found.items():
        cells = [f"{a} [{b}-{c}]" for a, b, c in (spread_cells(figures[key]) for key in KEYS)]
        low, high = figures["confidence"]
        table.add_row(mode, *cells, f"{low:.3f}-{high:.3f}")
    Console(stderr=True).print(table)


KEYS = ("local", "cluster", "ratio")


if __name__ == "__main__":
    main()
