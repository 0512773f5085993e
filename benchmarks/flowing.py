"""The oracle on a cluster: submitted, watched while it flows, and judged when it is told to stop.

Its input has more lines than any run takes, so that what flows never ends by itself. So the verdict
is about what was emitted: of each spout task, all lines up to its last one, none left out. The
topology has eight tasks of each bolt (`TASKS`), and a message timeout that no run lives to see:
what is lost has to be noticed, not waited for.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import oracle
from benchmarks.daemons import Cluster, WorkerProcess, wait_for
from benchmarks.recovery import Birth, births

NAME = "oracle"
TASKS = 8
"""Of each bolt."""
SOURCES = 2
RATE = 100.0
"""Lines a second of each spout."""
LINES = 200_000
QUIET_SECS = 1.0
"""Without a row for so long, spouts have stopped."""


class _Tail:
    """The lines of a log as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> Iterator[list[str]]:
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._offset += len(whole)
            for line in whole.decode().splitlines():
                yield line.split("\t")


class Flow:
    """What has been emitted so far and what of it has not been written."""

    def __init__(self, folder: Path) -> None:
        self._emitted = _Tail(folder / "emitted")
        self._rows = _Tail(folder / "rows")
        self._words: defaultdict[int, set[int]] = defaultdict(set)
        #: when each line was emitted first, of those that have not been written whole
        self._open: dict[int, int] = {}
        self.rows = 0
        self.changed_at = time.monotonic()

    def look(self) -> None:
        """Read what is new."""
        before = self.rows
        for line, _, at in self._emitted.read():
            number = int(line)
            if len(self._words[number]) < oracle.WORDS:
                self._open.setdefault(number, int(at))
                self.changed_at = time.monotonic()
        for _, line, word, *_ in self._rows.read():
            self.rows += 1
            number = int(line)
            self._words[number].add(int(word))
            if len(self._words[number]) == oracle.WORDS:
                self._open.pop(number, None)
        if self.rows > before:
            self.changed_at = time.monotonic()

    def all_written(self, before_ns: int) -> bool:
        """Whether all lines that were emitted before this time have been written whole."""
        self.look()
        return all(at >= before_ns for at in self._open.values())

    def is_quiet(self) -> bool:
        """Whether nothing has been emitted or written for a while, and nothing is open."""
        self.look()
        return not self._open and time.monotonic() - self.changed_at > QUIET_SECS

    def more_than(self, rows: int) -> bool:
        """Whether so many rows have been written, and more."""
        self.look()
        return self.rows > rows


class OracleRun:
    """The topology on a cluster."""

    def __init__(self, cluster: Cluster, folder: Path, rate: float = RATE) -> None:
        self.cluster = cluster
        self.folder = folder
        self._rate = rate
        self.flow = Flow(folder)
        self.id = ""
        oracle.write_text(folder, LINES)

    def submit(self, workers: int, executors: int, *options: str) -> None:
        """Submit it, with so many executors of each bolt; return when nimbus has taken it."""
        project = self.folder / "project"
        project.mkdir()
        (project / "pyproject.toml").touch()
        program = Path(shutil.copy(oracle.__file__, project))
        arguments = (
            "--rate",
            str(self._rate),
            "--tasks",
            str(TASKS),
            "--executors",
            str(executors),
        )
        said = self.cluster.run(
            *("submit", str(program), NAME, "--workers", str(workers)),
            *("-c", "topology.max.spout.pending=1000"),
            *("-c", "topology.message.timeout.secs=600"),
            *options,
            tail=(str(self.folder), *arguments),
        )
        self.id = said.strip()

    def summary(self) -> dict[str, Any] | None:
        """What `storm-py list` says of it; None if it is not there."""
        rows: list[dict[str, Any]] = json.loads(self.cluster.run("list", "--json"))
        return next((row for row in rows if row["name"] == NAME), None)

    def workers(self) -> list[WorkerProcess]:
        """Its workers that run."""
        return [worker for worker in self.cluster.workers() if worker.topology == self.id]

    def tasks(self) -> dict[int, Birth]:
        """Where each task lives now, or lived last."""
        return {birth.task: birth for birth in births(self.folder)}

    def wait_flowing(self, rows: int = 100) -> None:
        """Wait for so many rows more."""
        self.flow.look()
        wanted = self.flow.rows + rows
        wait_for(lambda: self.flow.more_than(wanted), f"{rows} more rows")

    def wait_recovered(self) -> None:
        """Wait until all that was emitted so far has been written, and more flows."""
        now = time.time_ns()
        wait_for(lambda: self.flow.all_written(now), "all rows of what was emitted")
        self.wait_flowing()

    def wait_quiet(self) -> None:
        """Wait until spouts have stopped, and all that they emitted has been written."""
        wait_for(self.flow.is_quiet, "quiet")

    def finish(self) -> oracle.Verdict:
        """Let all that was emitted arrive, stop the spouts, and judge."""
        self.wait_recovered()
        self.cluster.run("deactivate", NAME)
        self.wait_quiet()
        return judge(self.folder)


# ---- the verdict -------------------------------------------------------------------------------


def emitted_lines(folder: Path) -> set[int]:
    """The lines that the spouts have come past; of each task every one up to its last."""
    last: dict[int, int] = {}
    for line, _, _ in oracle.records(folder, "emitted"):
        number = int(line)
        last[number % SOURCES] = max(number, last.get(number % SOURCES, 0))
    return {
        number
        for share, end in last.items()
        for number in range(share or SOURCES, end + 1, SOURCES)
    }


def judge(folder: Path) -> oracle.Verdict:
    """Compare the rows with what was emitted."""
    expected = {
        oracle.Key(oracle.TEXT, line, word, f"w{line}.{word}")
        for line in emitted_lines(folder)
        for word in range(oracle.WORDS)
    }
    seen = Counter(row.key for row in oracle.rows_of(folder))
    return oracle.Verdict(
        expected=len(expected),
        rows=seen.total(),
        lost=len(expected - seen.keys()),
        duplicates=seen.total() - len(seen),
        strange=len(seen.keys() - expected),
    )


def owners(folder: Path) -> dict[int, set[int]]:
    """By line, the sinks that got any word of it: one, if every key has stayed on its task."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for row in oracle.rows_of(folder):
        found[row.key.line_number].add(row.sink)
    return dict(found)
