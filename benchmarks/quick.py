"""bench-quick: words per second of the word count, against a plain loop and any yardstick.

Each round runs storm-py's word count (spout 1, split 1, count 2) with acks off and with acks on,
and beside it each rival, so that a ratio compares the same minute of the same machine. A rival is
the plain loop (the same count in one process, no engine) or the command given with --yardstick,
which `benchmarks.commands` describes. Prints a table on standard error and one line of JSON on
standard output::

    python -m benchmarks.quick --pairs 10 --yardstick 'python other.py acks={acks}' -c key=value
"""

from __future__ import annotations

import argparse
import json
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.commands import WordCount, storm_py, yardstick
from benchmarks.figures import ratios, spread
from benchmarks.measuring import RunFailed, plain_loop, run

LOOP = "plain loop"


def main() -> None:
    """Run the rounds and print what they gave."""
    parser = argparse.ArgumentParser(description="Word count in words per second.")
    parser.add_argument("--pairs", type=int, default=3, help="interleaved rounds (default 3)")
    parser.add_argument("--sentences", type=int, default=300_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--acks", choices=["off", "on", "both"], default="both")
    parser.add_argument("--yardstick", metavar="CMD", help="another program that counts the same")
    parser.add_argument("-c", "--conf", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    base = WordCount(options.sentences, workers=options.workers, conf=tuple(options.conf))
    modes = {"both": ("off", "on")}.get(options.acks, (options.acks,))
    commands: dict[str, list[str]] = {}
    rivals: dict[str, tuple[str, str]] = {}
    for mode in modes:
        count, ours = base.with_acks(mode == "on"), f"storm-py, acks {mode}"
        commands[ours] = storm_py(count)
        rivals[f"{ours} / {LOOP}"] = (ours, LOOP)
        if options.yardstick:
            theirs = f"yardstick, acks {mode}"
            try:
                commands[theirs] = yardstick(options.yardstick, count)
            except ValueError as error:
                parser.error(str(error))
            rivals[f"{ours} / yardstick"] = (ours, theirs)
    figures: dict[str, list[float]] = {name: [] for name in (*commands, LOOP)}
    try:
        for _ in range(options.pairs):
            for name, command in commands.items():
                figures[name].append(run(command)["words_s"])
            figures[LOOP].append(plain_loop(options.sentences)["words_s"])
    except RunFailed as error:
        sys.exit(str(error))
    words_s = {name: spread(found) for name, found in figures.items()}
    ratio = {name: ratios(figures[a], figures[b]) for name, (a, b) in rivals.items()}
    table = Table(title=f"word count, {options.pairs} interleaved rounds, words/s and ratios")
    for column in ("", "median", "min", "max"):
        table.add_column(column, justify="left" if not column else "right")
    for name, found in words_s.items():
        table.add_row(name, *(f"{value:,.0f}" for value in found.values()))
    table.add_section()
    for name, found in ratio.items():
        table.add_row(name, *(f"{value:.2f}" for value in found.values()))
    Console(stderr=True).print(table)
    print(json.dumps({"pairs": options.pairs, "words_s": words_s, "ratio": ratio}))


if __name__ == "__main__":
    main()
