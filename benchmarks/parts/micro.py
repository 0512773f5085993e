"""The hot cores alone; `benchmarks.cores` times them, in a process of its own."""

from __future__ import annotations

import sys

from benchmarks.bench import Options, Part, Table, number, say, spread_cells
from benchmarks.measuring import run as run_command


def run(options: Options) -> Part:
    """Its two tables."""
    say("cores")
    sentences = options.few(40_000, 10_000)
    repeats = options.few(7, 3)
    command = [sys.executable, "-m", "benchmarks.cores", "--sentences", str(sentences)]
    data = run_command([*command, "--repeats", str(repeats)])
    by_core = [
        [f"{name}, {mode}", *spread_cells(found)]
        for mode, cores in data["us_word"].items()
        for name, found in cores.items()
    ]
    by_step = [[name, number(ns)] for name, ns in data["ns"].items()]
    head = ("", "median", "min", "max")
    note = "all cores in one thread, user code included, no sockets"
    return Part(
        data,
        [
            Table("cores: microseconds per word", head, by_core, note),
            Table("cores: nanoseconds per item", ("", "ns"), by_step),
        ],
    )
