"""Inline mode: a whole topology in one thread, on the cores that real processes run.

The cores are those of `storm_py.single`, so grouping, batching, pressure and the end of input are
the real ones, while `breakpoint()`, profilers and plain tracebacks work in user code. Here are the
clock, signals and the end of a run. What user code prints goes straight to stdout, and nothing here
may read stdin: both belong to a debugger. The other half, with processes, is `storm_py.local`; both
tell an `Observer` what happens and return a `RunResult`.
"""

from __future__ import annotations

import bdb
import logging
import random
import signal
import threading
import time
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any, Final

from storm_py.api.spec import StormTopology
from storm_py.config import Config
from storm_py.engine.tasks import UserError
from storm_py.inline_watch import InlineWatch
from storm_py.run import Observer, Phase, RunResult, Snapshot
from storm_py.single import SingleWorker
from storm_py.wire.control import ErrorReport

__all__ = ["InlineRun"]

_SNAPSHOT_SECS: Final = 0.25
_SHORTEST_WAIT_SECS: Final = 0.001
#: Behind each wait come signals, ticks and the time to live as well.
_LONGEST_WAIT_SECS: Final = 0.05


class _Signals:
    """SIGINT and SIGTERM while a run lasts: the first is counted, the next interrupts user code."""

    def __init__(self) -> None:
        self.count = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        # Only the main thread may have handlers; a run on another one is nobody's Ctrl-C.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt


class InlineRun:
    """One run of a topology in this thread, from `run` to its `RunResult`."""

    def __init__(
        self,
        topology_id: str,
        topology: StormTopology,
        conf: Mapping[str, Any],
        observer: Observer,
    ) -> None:
        """Get ready; `conf` is the whole configuration, checked, with `apply_limits` applied."""
        self._topology_id = topology_id
        self._observer = observer
        spout_wait_secs: float = conf[Config.STORM_PY_SPOUT_WAIT_MS] / 1000
        self._longest_wait_secs = min(spout_wait_secs, _LONGEST_WAIT_SECS)
        self._drain_secs: float = conf[Config.STORM_PY_DRAIN_TIMEOUT_SECS]
        self._woken = threading.Event()
        self._watch = InlineWatch(
            self._woken,
            conf[Config.STORM_PY_STUCK_SECS],
            lambda text: observer.log(logging.WARNING, "", text),
        )
        self._worker = SingleWorker(
            topology_id,
            topology,
            conf,
            time.monotonic,
            time.time,
            lambda name: random.Random(),
            self._report,
            lambda text: observer.log(logging.INFO, "", text),
            watch=self._watch,
        )
        self._phase: Phase = "starting"
        self._began = self._activated = self._stopped = 0.0
        self._errors = 0
        self._failed = self._interrupted = self._forced = False
        self._lost: list[str] = []

    def _report(self, error: ErrorReport) -> None:
        """Count an error of user code and show it."""
        if error.message.startswith(bdb.BdbQuit.__name__):  # no error: somebody left the debugger
            raise KeyboardInterrupt
        self._errors += 1
        self._observer.error(error)

    # ---- the run -------------------------------------------------------------------------------

    def run(self, ttl_secs: float | None = None) -> RunResult:
        """Run until the input has ended, or drain after `ttl_secs` or a SIGINT or SIGTERM.

        A second signal ends the run where it is, also inside user code that hangs.
        """
        self._began = time.monotonic()
        components = self._worker.plan.task_to_component
        with _Signals() as signals, self._watch.watching(components):
            try:
                self._start()
                self._loop(signals, ttl_secs)
            except UserError as error:
                self._on_user_error(error)
            except SystemExit as error:
                core = self._worker.current
                first = core.tasks[0]
                self._on_user_error(UserError(first.component_id, first.task, "exit", error))
            except KeyboardInterrupt:
                self._interrupted = True
                activity = self._watch.activity
                where = "" if activity is None else f" in {activity.located(components)}"
                self._force(f"stopped at once{where}")
            self._finish()
        return self._result()

    def _start(self) -> None:
        """Open everything, link it, and let the spouts go."""
        self._observer.snapshot(self._snapshot())
        self._worker.open()
        self._worker.link()
        self._worker.activate()
        self._watch.left()
        self._activated = time.monotonic()
        self._phase = "running"

    def _loop(self, signals: _Signals, ttl_secs: float | None) -> None:
        wait_secs = _SHORTEST_WAIT_SECS
        snapshot_due = self._activated + _SNAPSHOT_SECS
        ttl = self._activated + ttl_secs if ttl_secs is not None else float("inf")
        deadline = float("inf")
        while not self._worker.done:
            now = time.monotonic()
            if signals.count and not self._interrupted:
                self._interrupted = True
                self._observer.event("interrupted: draining (interrupt again to stop at once)")
            if self._phase == "running" and (self._interrupted or now >= ttl):
                deadline = now + self._drain_secs
                if not self._interrupted:
                    self._observer.event(f"{ttl_secs:g} s are over: draining")
                self._drain()
            if now >= deadline:
                self._force(
                    f"not drained within {self._drain_secs:g} s (storm_py.drain.timeout.secs)"
                )
                return
            if now >= snapshot_due:
                snapshot_due = now + _SNAPSHOT_SECS
                self._observer.snapshot(self._snapshot())
            busy = self._worker.round(now)
            self._watch.left()
            if busy:
                wait_secs = _SHORTEST_WAIT_SECS
            else:  # only spouts that have nothing to say: let the machine be
                self._woken.wait(wait_secs)
                self._woken.clear()
                wait_secs = min(2 * wait_secs, self._longest_wait_secs)

    def _drain(self) -> None:
        """End every spout where it is and let the rest follow."""
        self._phase = "draining"
        self._worker.drain()
        self._watch.left()

    # ---- the end -------------------------------------------------------------------------------

    def _on_user_error(self, error: UserError) -> None:
        if isinstance(error.error, bdb.BdbQuit):
            self._interrupted = True
            self._force("stopped from the debugger")
            return
        self._failed = True
        self._lose(f"{error.component} (task {error.task}) failed, which ended the run early")
        self._report(error.report(fatal=True))

    def _force(self, why: str) -> None:
        self._forced = True
        self._lose(why)

    def _lose(self, why: str) -> None:
        waiting = sum(figures.queued for figures in self._worker.figures())
        dropped = f"; {waiting:,} tuples that waited were dropped" if waiting else ""
        self._lost.append(f"{why}{dropped}")

    def _finish(self) -> None:
        """Close what was opened, unless there is no time for that."""
        self._stopped = time.monotonic()
        self._phase = "stopping"
        if not self._forced:
            try:
                self._worker.close()
            except KeyboardInterrupt:
                self._interrupted = self._forced = True
        self._phase = "done"

    def _result(self) -> RunResult:
        started = self._activated or self._stopped
        return RunResult(
            final=self._snapshot(),
            start_secs=started - self._began,
            failed=self._failed or any(self._worker.ended.values()),
            interrupted=self._interrupted,
            forced=self._forced,
            lost=tuple(self._lost),
            log_dir=None,
        )

    # ---- looking in ----------------------------------------------------------------------------

    def _snapshot(self) -> Snapshot:
        now = self._stopped or time.monotonic()
        return Snapshot(
            topology_id=self._topology_id,
            phase=self._phase,
            secs=now - self._activated if self._activated else 0.0,
            workers=1,
            components=self._worker.figures(),
            restarts=0,
            errors=self._errors,
        )
