"""bench: everything that is measured, in one run, one contender after the other in every round.

Prints tables on standard error, and on standard output one line of JSON; the same, and charts, go
to a folder. Peers count in environments of their own, made on the first run; docs/performance.md
says how to read it::

    python -m benchmarks.suite --parts throughput,latency --pairs 10 --yardstick 'CMD n={sentences}'
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.bench import Options, Part, say
from benchmarks.commands import WordCount, yardstick
from benchmarks.environments import FOLDER, PEERS, build_all
from benchmarks.measuring import RunFailed
from benchmarks.parts import curve, hundred, idle, latency, micro, throughput, where

PARTS: dict[str, Callable[[Options], Part]] = {
    "throughput": throughput.run,
    "latency": latency.run,
    "idle": idle.run,
    "hundred": hundred.run,
    "curve": curve.run,
    "where": where.run,
    "micro": micro.run,
}


def chosen(known: list[str]) -> Callable[[str], list[str]]:
    """Reads a list of names, separated by commas."""

    def read(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown)}: expected some of {', '.join(known)}"
            )
        return names

    return read


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.suite", description="Measure storm-py.")
    parser.add_argument("--parts", type=chosen(list(PARTS)), default=list(PARTS))
    parser.add_argument("--pairs", type=int, help="interleaved rounds (default 10, quick 2)")
    parser.add_argument("--quick", action="store_true", help="short runs, few rounds: does it work")
    parser.add_argument("--sentences", type=int, help="per run (default 500,000, quick 100,000)")
    parser.add_argument(
        "--peers",
        type=chosen(list(PEERS)),
        default=list(PEERS),
        metavar="NAMES",
        help=f"peers to count with, of {','.join(PEERS)}; '' for none",
    )
    parser.add_argument("--yardstick", metavar="CMD", help="another program that counts the same")
    parser.add_argument("-c", "--conf", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--output", type=Path, default=FOLDER / "results", metavar="FOLDER")
    return parser


def options_of(given: argparse.Namespace) -> Options:
    """What is asked for; the environments of the peers are made where they are needed."""
    names = given.peers if "throughput" in given.parts else []
    made, refused = build_all(names, say)
    return Options(
        pairs=given.pairs or (2 if given.quick else 10),
        quick=given.quick,
        sentences=given.sentences or (100_000 if given.quick else 500_000),
        yardstick=given.yardstick,
        conf=tuple(given.conf),
        cores=len(os.sched_getaffinity(0)),
        environments=made,
        refused=refused,
    )


def machine() -> dict[str, Any]:
    """Where it ran."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "cores": len(os.sched_getaffinity(0)),
        "load": [round(one, 2) for one in os.getloadavg()],
        "machine": platform.machine(),
        "system": platform.release(),
        "python": platform.python_version(),
    }


def main() -> None:
    """Run the parts and leave what they found."""
    parser = arguments()
    given = parser.parse_args()
    # So that what runs is ended as by Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if given.yardstick:
        try:
            yardstick(given.yardstick, WordCount())
        except ValueError as error:
            parser.error(str(error))
    about: dict[str, Any] = {"machine": machine()}
    options = options_of(given)
    about |= {
        "pairs": options.pairs,
        "quick": options.quick,
        "sentences": options.sentences,
        "conf": list(options.conf),
        "peers": {name: list(PEERS[name].requirements) for name in options.environments},
    }
    parts: dict[str, Part] = {}
    failed: dict[str, str] = {}
    for name in given.parts:
        try:
            parts[name] = PARTS[name](options)
        except RunFailed as error:
            failed[name] = str(error)
            say(f"part {name} failed: {error}")
        report.write(given.output, {**about, "failed": failed}, parts)
        if name in parts:
            print(report.rendered(parts[name].tables), file=sys.stderr, flush=True)
    say(f"tables, JSON and charts are in {given.output}")
    print(json.dumps({**about, "failed": failed, "parts": {n: p.data for n, p in parts.items()}}))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
