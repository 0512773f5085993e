"""Runs topologies over real processes and keeps everything that an operator would be told.

`run_local` is the way of most tests: a `LocalRun` in this process, observed by a `Recorder`, which
also lets a test act when the run has come to a point (`when`), never after a time. `Command` is the
program `storm-py` itself in a process of its own, for tests of signals and sudden death. What user
code has to say comes back as lines of JSON, see `topologies_for_tests.reporting`. All run by the
variant of the test run (`tests.variants`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from storm_py import TopologyBuilder
from storm_py.config import defaults
from storm_py.inline import InlineRun
from storm_py.local import LocalRun
from storm_py.run import ComponentFigures, RunResult, Snapshot
from storm_py.runtime.folder import base_folder
from storm_py.wire.control import ErrorReport
from tests.helpers import wait_until
from tests.variants import Variant, chosen

ROOT = Path(__file__).parent.parent.parent
TOPOLOGIES = "tests.integration.topologies_for_tests"

GENEROUS_SECS = 60.0
"""For waits that end early unless something is broken."""


class Recorder:
    """An observer that remembers everything and can act when the run reaches a point.

    A run that does not end although every test's should is ended by an AssertionError.
    """

    def __init__(self, patience_secs: float = GENEROUS_SECS) -> None:
        self._give_up_at = time.monotonic() + patience_secs
        self.snapshots: list[Snapshot] = []
        self.errors: list[ErrorReport] = []
        self.logs: list[tuple[int, str, str]] = []
        self.lines: list[tuple[str, str]] = []
        self.events: list[str] = []
        self._pending: list[tuple[Callable[[], object], Callable[[], object]]] = []

    def when(self, condition: Callable[[], object], act: Callable[[], object]) -> None:
        """Call `act` once, on the thread of the run, soon after `condition()` became true."""
        self._pending.append((condition, act))

    def _look(self) -> None:
        due = [pair for pair in self._pending if pair[0]()]
        for pair in due:
            self._pending.remove(pair)
            pair[1]()

    @property
    def unmet(self) -> int:
        """How many conditions never came true."""
        return len(self._pending)

    # ---- the observer's methods ----------------------------------------------------------------

    def snapshot(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        self._look()
        if time.monotonic() > self._give_up_at:
            errors = [error.message for error in self.errors[:3]]
            raise AssertionError(f"this run does not end: {snapshot} {self.events[-5:]} {errors}")

    def error(self, error: ErrorReport) -> None:
        self.errors.append(error)
        self._look()

    def log(self, level: int, source: str, text: str) -> None:
        self.logs.append((level, source, text))

    def output(self, source: str, line: str) -> None:
        self.lines.append((source, line))
        self._look()

    def event(self, text: str) -> None:
        self.events.append(text)
        self._look()

    # ---- what was seen -------------------------------------------------------------------------

    def reports(self, name: str) -> list[dict[str, Any]]:
        """What user code reported under this name so far."""
        return reports_in((line for _, line in self.lines), name)

    def executed(self, component_id: str) -> int:
        """Tuples that a component has executed, by the newest snapshot."""
        if not self.snapshots:
            return 0
        return figures(self.snapshots[-1], component_id).executed


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that has ended, and what was seen of it."""

    result: RunResult
    seen: Recorder

    def figures(self, component_id: str) -> ComponentFigures:
        """The final figures of a component."""
        return figures(self.result.final, component_id)

    def reports(self, name: str) -> list[dict[str, Any]]:
        """What user code reported under this name."""
        return self.seen.reports(name)

    def check_ended_by_itself(self) -> None:
        """Assert that it went to the end of its input: it did not fail, and nobody stopped it.

        A run drains at the first SIGTERM, which may be that of a time limit for the tests.
        """
        assert not self.result.failed, self.seen.errors
        assert not self.result.interrupted, self.seen.events
        assert not self.result.forced, self.seen.events

    def check_clean(self) -> None:
        """Assert that the run ended by itself, without failure, restart or loss."""
        result = self.result
        assert not self.seen.errors, self.seen.errors[0].traceback
        self.check_ended_by_itself()
        assert result.lost == ()
        assert result.final.restarts == 0
        assert result.final.phase == "done"
        assert not any(c.queued for c in result.final.components), result.final.components
        assert self.seen.unmet == 0


def figures(snapshot: Snapshot, component_id: str) -> ComponentFigures:
    """One component's figures in a snapshot."""
    return next(c for c in snapshot.components if c.component_id == component_id)


def reports_in(lines: Iterator[str], name: str) -> list[dict[str, Any]]:
    """The reports of one name among lines of output."""
    found = (json.loads(line) for line in lines if line.startswith('{"report":'))
    return [report for report in found if report["report"] == name]


def run_local(
    builder: TopologyBuilder,
    workers: int = 1,
    conf: Mapping[str, object] | None = None,
    ttl_secs: float | None = None,
    seen: Recorder | None = None,
    log_dir: Path | None = None,
    variant: Variant | None = None,
) -> Outcome:
    """Run a topology over processes until it ends; its module is that of a component's class."""
    seen = seen or Recorder()
    return Outcome(local_run(builder, workers, conf, seen, log_dir, variant).run(ttl_secs), seen)


def local_run(
    builder: TopologyBuilder,
    workers: int,
    conf: Mapping[str, object] | None,
    seen: Recorder,
    log_dir: Path | None = None,
    variant: Variant | None = None,
) -> LocalRun:
    """The run of `run_local` before it runs."""
    variant = variant or chosen()
    topology = variant.applied(builder.create_topology())
    module = type(next(iter(topology.components.values())).component).__module__
    return LocalRun(
        topology_id="test-1-1",
        topology=topology,
        conf={**defaults(), **variant.conf, **(conf or {})},
        sys_path=str(ROOT),
        module=module,
        workers=workers,
        log_dir=log_dir,
        observer=seen,
    )


def run_inline(builder: TopologyBuilder, conf: Mapping[str, object] | None = None) -> Outcome:
    """Run a topology in this thread; what it prints goes to stdout."""
    seen = Recorder()
    topology = chosen().applied(builder.create_topology())
    run = InlineRun("test-1-1", topology, {**defaults(), **chosen().conf, **(conf or {})}, seen)
    return Outcome(run.run(), seen)


def restarted(sentence: str) -> list[str]:
    """The components of the process that a sentence of the summary says was restarted."""
    return sentence.split(" (task")[0].split(" + ")


# ---- processes and files of a run --------------------------------------------------------------


def processes_of(parent: int) -> list[psutil.Process]:
    """All processes below `parent` that are no zombies."""
    try:
        found = psutil.Process(parent).children(recursive=True)
        return [process for process in found if process.status() != psutil.STATUS_ZOMBIE]
    except psutil.NoSuchProcess:
        return []


def alive(pids: list[int]) -> list[int]:
    """Which of these processes still run."""
    found = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            continue
    return found


def run_folders() -> list[Path]:
    """The folders of runs, with sockets and logs inside, that exist now."""
    return sorted(base_folder().glob("run-*"))


class Command:
    """`storm-py local TOPOLOGY ...` in a process of its own."""

    def __init__(self, folder: Path, topology: str, options: list[str], args: list[str]) -> None:
        self._output = folder / "output"
        self._json = folder / "result.json"
        command = [sys.executable, "-m", "storm_py", "local", f"{TOPOLOGIES}.{topology}"]
        command += [*chosen().options, *options, "--json", str(self._json), "--", *args]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Command:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        """Process id of the parent of the run."""
        return self._process.pid

    @property
    def output(self) -> str:
        """What it has printed so far, standard error included."""
        return self._output.read_text(encoding="utf-8")

    @property
    def result(self) -> dict[str, Any]:
        """What it wrote with --json."""
        found: dict[str, Any] = json.loads(self._json.read_text(encoding="utf-8"))
        return found

    @property
    def has_result(self) -> bool:
        """Whether it has written its result."""
        return self._json.exists()

    def reports(self, name: str) -> list[dict[str, Any]]:
        """What user code reported under this name; the terminal shows its source before it."""
        lines = (line[line.find('{"report":') :] for line in self.output.splitlines())
        return reports_in((line for line in lines if line), name)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the parent of the run only."""
        os.kill(self._process.pid, number)

    def wait(self) -> int:
        """The exit code, once it has ended."""
        return self._process.wait(timeout=GENEROUS_SECS)

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; a run that ends before it is an error."""
        wait_until(lambda: condition() or self._process.poll() is not None, GENEROUS_SECS, what)
        assert condition(), f"ended without: {what}\n{self.output}"
