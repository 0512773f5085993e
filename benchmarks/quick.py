"""bench-quick: words per second of the word count, against a plain loop and any yardstick command.

Each pair runs storm-py's word count (one worker, spout 1, split 1, count 2, acks off) and then each
rival, so that a ratio compares the same minute of the same machine. A rival is the plain loop (the
same count in one process, no engine) or the command given with --yardstick: any command that prints
`"words_s": N`. Prints a table on standard error and one line of JSON on standard output::

    python benchmarks/quick.py --pairs 10 --yardstick 'python other.py batch=256' -c key=value
"""

from __future__ import annotations

import argparse
import json
import re
import runpy
import shlex
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
WORDS_S = re.compile(r'"words_s": *([0-9.]+)')


def run(command: list[str], timeout_secs: float = 300) -> float:
    """The words per second that a command prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_secs, check=False
    )
    found = WORDS_S.findall(done.stdout)
    if done.returncode or not found:
        text = f"{done.stdout}\n{done.stderr}".strip()[-2000:]
        sys.exit(f"{shlex.join(command)} exited with {done.returncode} and gave no figure:\n{text}")
    return float(found[-1])


def plain_loop(sentences: int) -> float:
    """The same count by one Python loop: what no engine can reach on one core."""
    program = runpy.run_path(str(HERE / "sentences.py"))
    texts: list[str] = program["SENTENCES"]
    counts: Counter[str] = Counter()
    began = time.perf_counter()
    for i in range(sentences):
        for word in texts[i % 10].split():
            counts[word] += 1
    secs = time.perf_counter() - began
    if counts != program["expected_counts"](sentences):
        sys.exit("the plain loop counted wrongly")
    return counts.total() / secs


def spread(figures: list[float]) -> dict[str, float]:
    """Median, minimum and maximum."""
    return {
        "median": round(statistics.median(figures), 3),
        "min": round(min(figures), 3),
        "max": round(max(figures), 3),
    }


def main() -> None:
    """Run the pairs and print what they gave."""
    parser = argparse.ArgumentParser(description="Word count in words per second.")
    parser.add_argument("--pairs", type=int, default=3, help="interleaved pairs (default 3)")
    parser.add_argument("--sentences", type=int, default=500_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--yardstick", help='a command that prints "words_s": N')
    parser.add_argument("-c", "--conf", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    local = [sys.executable, "-m", "storm_py", "local", str(HERE / "sentences.py")]
    local += ["--workers", str(options.workers), "-c", "topology.acker.executors=0"]
    local += [part for pair in options.conf for part in ("-c", pair)]
    local += ["--", str(options.sentences)]
    figures: dict[str, list[float]] = {"storm-py": [], "plain loop": []}
    if options.yardstick:
        figures["yardstick"] = []
    for _ in range(options.pairs):
        figures["storm-py"].append(run(local))
        figures["plain loop"].append(plain_loop(options.sentences))
        if options.yardstick:
            figures["yardstick"].append(run(shlex.split(options.yardstick)))
    ours = figures["storm-py"]
    ratios = {
        name: spread([a / b for a, b in zip(ours, rival, strict=True)])
        for name, rival in figures.items()
        if name != "storm-py"
    }
    table = Table(title=f"word count, {options.pairs} interleaved pairs, words/s")
    for column in ("", "median", "min", "max", "storm-py / it"):
        table.add_column(column, justify="left" if not column else "right")
    for name, found in figures.items():
        row = [f"{value:,.0f}" for value in spread(found).values()]
        ratio = f"{ratios[name]['median']:.2f}" if name in ratios else ""
        table.add_row(name, *row, ratio)
    Console(stderr=True).print(table)
    words_s = {name: spread(found) for name, found in figures.items()}
    print(json.dumps({"pairs": options.pairs, "words_s": words_s, "ratio": ratios}))


if __name__ == "__main__":
    main()
