"""Timers: what an instance does by the clock - ticks, metrics, held back errors.

Each knows when it is due (`storm_py.core.ticker`, `storm_py.core.throttle`); here is their order,
and what waits while nothing may be emitted. Pure: the time is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from storm_py.core.ticker import Ticker

from .port import Watch
from .reports import Reports
from .tasks import BoltTask, RunningTask


class Timers:
    """Those of one instance; nothing is due before `start`."""

    def __init__(self, reports: Reports, stamp: Callable[[], int], watch: Watch) -> None:
        self._reports = reports
        self._stamp = stamp
        self._watch = watch
        self._ticks: list[tuple[BoltTask, Ticker]] = []
        self._metered: list[RunningTask] = []

    def __bool__(self) -> bool:
        return bool(self._ticks or self._metered) or self._reports.next is not None

    def start(self, tasks: Iterable[RunningTask], now: float) -> None:
        """The tasks are open: their intervals begin."""
        for task in tasks:
            task.metrics.start(now)
            if task.metrics.next is not None:
                self._metered.append(task)
            if isinstance(task, BoltTask) and task.tick_secs is not None:
                self._ticks.append((task, Ticker(task.tick_secs, now)))

    def run(self, now: float, ticking: bool, metering: bool) -> None:
        """Do what is due. While ticks or metrics are not possible they wait, one of each."""
        self._reports.tick(now)
        if ticking:
            for task, ticker in self._ticks:
                if not task.ended and ticker.due(now):
                    self._watch.entered("execute (tick)", task.task)
                    task.tick()
        if metering:
            for metered in self._metered:
                due = metered.metrics.next
                if due is not None and now >= due:
                    self._watch.entered("metrics", metered.task)
                    metered.metrics.tick(now, self._stamp)

    def finish(self, task: RunningTask) -> None:
        """A task has ended: send what it has counted so far."""
        task.metrics.finish(self._stamp)

    def next(self, ticking: bool, metering: bool) -> float | None:
        """When `run` has something to do, None for never."""
        found = [self._reports.next]
        if ticking:
            found += [ticker.next for task, ticker in self._ticks if not task.ended]
        if metering:
            found += [task.metrics.next for task in self._metered]
        return min((at for at in found if at is not None), default=None)
