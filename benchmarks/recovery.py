"""Recovery: kill -9 of every kind of process under load, what it cost, and how long it lasted.

Runs `oracle.py` over two workers at a fixed rate and kills, each time when a step more was written
and everything is up again: a spout, a split bolt, a sink, a stream manager, a worker, a fork
server, and so on. Prints a table on standard error and one line of JSON on standard output; exits
with 1 if a word was lost, or came twice before anything was killed. Per kill:

- *up*: until the last of the killed tasks had been opened again in a new process;
- *gap*: the longest silence of the rows that went through tasks of the killed process;
- *delay*: the longest time from the first emission of a line to its ack, of the lines that were
  under way when the kill came or emitted after it.

The figures of `no kill` are those of the run before the first kill. Run it as::

    python -m benchmarks.recovery --kills 18 --rate 400
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks import oracle

HERE = Path(__file__).parent
KINDS = ["source", "split", "sink", "stream_manager", "worker", "fork_server"]
POLL_SECS = 0.01
LATE_NS = 1_000_000_000
"""A line that is under way for longer is late: not because of a kill that comes now."""
COLUMNS = ("up", "gap", "delay")


class Birth(NamedTuple):
    """A task in its newest process."""

    component: str
    task: int
    pid: int
    port: int
    at_ns: int


@dataclass(frozen=True)
class Kill:
    """What was killed, the tasks that died or were cut off with it, and when."""

    kind: str
    tasks: frozenset[int]
    at_ns: int


@dataclass(frozen=True)
class Cost:
    """What a kill cost; seconds, `up` None if no task died, `at` since the first row."""

    kind: str
    at: float
    up: float | None
    gap: float
    delay: float
    duplicates: int


def births(folder: Path) -> list[Birth]:
    """Every start of a task so far."""
    return [
        Birth(component, int(task), int(pid), int(port), int(at))
        for component, task, pid, port, at in oracle.records(folder, "births")
    ]


def living(folder: Path) -> list[Birth]:
    """The newest birth of every task, of those whose process runs."""
    newest = {birth.task: birth for birth in births(folder)}
    return [birth for birth in newest.values() if psutil.pid_exists(birth.pid)]


class Killer:
    """Kills one process after the other, of the kinds in turn, now on this worker, now on that."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = {kind: itertools.cycle(range(oracle.TASKS)) for kind in KINDS}

    def kill(self, kind: str) -> Kill:
        """Kill a process of this kind."""
        alive = living(self._folder)
        turn = next(self._turn[kind])
        if kind in {birth.component for birth in alive}:
            victim = sorted(b for b in alive if b.component == kind)[turn]
            pid, tasks = victim.pid, {victim.task}
        else:
            ports = sorted({birth.port for birth in alive})
            there = [birth for birth in alive if birth.port == ports[turn % len(ports)]]
            pid, tasks = self._of_worker(there[0].pid, kind), {b.task for b in there}
        at_ns = time.time_ns()
        os.kill(pid, signal.SIGKILL)
        return Kill(kind, frozenset(tasks), at_ns)

    def _of_worker(self, instance: int, kind: str) -> int:
        """The process of this kind beside an instance: its family tells."""
        worker = next(p for p in psutil.Process(instance).parents() if is_a(p, "worker"))
        family = [worker, *worker.children(recursive=True)]
        # An instance is forked and keeps the command line of the fork server, its parent.
        return next(p.pid for p in family if is_a(p, kind))


def is_a(process: psutil.Process, kind: str) -> bool:
    """Whether a process is a worker, stream_manager or fork_server."""
    return f"storm_py.runtime.{kind}" in process.cmdline()


def run(folder: Path, options: argparse.Namespace) -> tuple[list[Kill], dict[str, object]]:
    """Run the oracle to its end, killing on the way; the kills, and the result of the run."""
    step = round(options.rate * oracle.TASKS * options.step_secs)
    oracle.write_text(folder, step * (options.kills + 2))
    result = folder / "result.json"
    command = [sys.executable, "-m", "storm_py", "local", str(HERE / "oracle.py")]
    command += ["--workers", str(options.workers), "--json", str(result)]
    command += ["-c", f"topology.max.spout.pending={options.pending}"]
    command += ["-c", f"topology.message.timeout.secs={options.timeout_secs}"]
    command += ["--", str(folder), "--rate", str(options.rate)]
    kills: list[Kill] = []
    killer = Killer(folder)
    kinds = itertools.cycle(KINDS)
    mark = step * oracle.WORDS
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            for done in progress(folder, process):
                if len(kills) == options.kills or done < mark:
                    continue
                if len(living(folder)) == len(KINDS[:3]) * oracle.TASKS:
                    kills.append(killer.kill(next(kinds)))
                    mark = done + step * oracle.WORDS
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    if not result.exists():
        sys.exit(f"the run broke off:\n{(folder / 'output').read_text()[-2000:]}")
    return kills, json.loads(result.read_text())


def progress(folder: Path, process: subprocess.Popen[bytes]) -> Iterator[int]:
    """The number of rows, again and again until the run ends."""
    rows, done = folder / "rows", 0
    while not rows.exists() and process.poll() is None:
        time.sleep(POLL_SECS)
    if not rows.exists():
        return  # it broke off
    with rows.open("rb") as file:
        while process.poll() is None:
            done += file.read().count(b"\n")
            yield done
            time.sleep(POLL_SECS)


# ---- what it cost ------------------------------------------------------------------------------


def first_times(folder: Path, name: str) -> dict[int, int]:
    """When what this log speaks of happened first."""
    found: dict[int, int] = {}
    for what, _, at in oracle.records(folder, name):
        found.setdefault(int(what), int(at))
    return found


class Times:
    """What the logs of a run say, in seconds of the wall clock."""

    def __init__(self, folder: Path) -> None:
        self.births = births(folder)
        self.rows = sorted(oracle.rows_of(folder), key=lambda row: row.at_ns)
        sources = sorted({b.task for b in self.births if b.component == "source"})
        self.through = [
            {sources[(row.key.line_number - 1) % len(sources)], row.split, row.sink}
            for row in self.rows
        ]
        emitted = first_times(folder, "emitted")
        acked = first_times(folder, "acked")
        with (folder / oracle.TEXT).open("rb") as text:
            offsets = [0, *itertools.accumulate(map(len, text))]
        self.trees = [(at, acked[offsets[number - 1]]) for number, at in emitted.items()]
        seen: set[oracle.Key] = set()
        self.repeats = []
        for row in self.rows:
            if row.key in seen:
                self.repeats.append(row.at_ns)
            seen.add(row.key)

    def cost(self, kill: Kill, until_ns: int) -> Cost:
        """The cost of a kill, which has the time to itself until then."""
        born = [
            birth.at_ns - kill.at_ns
            for birth in self.births
            if birth.task in kill.tasks and kill.at_ns < birth.at_ns <= until_ns
        ]
        return Cost(
            kill.kind,
            (kill.at_ns - self.rows[0].at_ns) / 1e9,
            max(born) / 1e9 if born else None,
            self.gap(kill.tasks, kill.at_ns, until_ns),
            self.delay(kill.at_ns, until_ns),
            self.repeated(kill.at_ns, until_ns),
        )

    def before(self, until_ns: int) -> Cost:
        """The same figures of the time before the first kill."""
        tasks = frozenset(birth.task for birth in self.births)
        began = self.rows[0].at_ns
        return Cost(
            "no kill",
            0.0,
            None,
            self.gap(tasks, began, until_ns),
            self.delay(began, until_ns),
            self.repeated(0, until_ns),
        )

    def gap(self, tasks: frozenset[int], from_ns: int, until_ns: int) -> float:
        """The longest silence of rows through these tasks."""
        found = [
            row.at_ns
            for row, through in zip(self.rows, self.through, strict=True)
            if from_ns < row.at_ns <= until_ns and through & tasks
        ]
        return max(b - a for a, b in itertools.pairwise([from_ns, *found, until_ns])) / 1e9

    def delay(self, from_ns: int, until_ns: int) -> float:
        """The longest way of a line from its emission to its ack, of those that belong here.

        These are the lines that the kill at `from_ns` found on their way and those emitted since;
        not those that the next kill finds, unless they are late already.
        """
        young_ns = until_ns - LATE_NS
        found = [
            acked - at
            for at, acked in self.trees
            if acked > from_ns
            and at > from_ns - LATE_NS
            and (at <= young_ns or (at <= until_ns and acked <= until_ns))
        ]
        return max(found, default=0) / 1e9

    def repeated(self, from_ns: int, until_ns: int) -> int:
        """How many rows were written that had been written before."""
        return sum(from_ns < at <= until_ns for at in self.repeats)


def costs(folder: Path, kills: list[Kill]) -> list[Cost]:
    """What each kill cost, behind what there was before the first."""
    times = Times(folder)
    ends = [*(kill.at_ns for kill in kills), times.rows[-1].at_ns]
    found = [times.before(ends[0])]
    return found + [times.cost(kill, end) for kill, end in zip(kills, ends[1:], strict=True)]


def show(found: list[Cost], verdict: oracle.Verdict) -> None:
    """A table: median and maximum per kind."""
    title = f"kill -9, medians and maxima in seconds; {verdict}"
    table = Table("", "times", *COLUMNS, "duplicates", title=title)
    for kind in ["no kill", *KINDS]:
        these = [cost for cost in found if cost.kind == kind]
        cells = []
        for column in COLUMNS:
            values = [v for cost in these if (v := getattr(cost, column)) is not None]
            cells.append(f"{statistics.median(values):.2f} {max(values):.2f}" if values else "-")
        duplicates = sum(cost.duplicates for cost in these)
        table.add_row(kind.replace("_", " "), str(len(these)), *cells, str(duplicates))
    Console(stderr=True).print(table)


def main() -> None:
    """Run it and print what it cost."""
    parser = argparse.ArgumentParser(description="What a killed process costs.")
    parser.add_argument("--kills", type=int, default=3 * len(KINDS))
    parser.add_argument("--rate", type=float, default=400.0, help="lines/s of each spout")
    parser.add_argument("--step-secs", type=float, default=3.0, help="between two kills, at least")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pending", type=int, default=1000, help="topology.max.spout.pending")
    parser.add_argument("--timeout-secs", type=int, default=30, help="message timeout")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the logs here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or Path(temporary)).absolute()
        folder.mkdir(exist_ok=True)
        kills, result = run(folder, options)
        verdict = oracle.judge(folder)
        found = costs(folder, kills) if kills else []
    show(found, verdict)
    early = found[0].duplicates if found else verdict.duplicates
    figures = {
        "kills": len(kills),
        **asdict(verdict),
        "duplicates_before": early,
        "restarts": result["restarts"],
        "forced": result["forced"],
        "costs": [asdict(cost) for cost in found],
    }
    print(json.dumps(figures))
    sys.exit(bool(verdict.lost or verdict.strange or early or len(kills) < options.kills))


if __name__ == "__main__":
    main()
