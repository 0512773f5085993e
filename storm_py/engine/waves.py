"""Waves: the END waves of an instance - its spouts begin them, its bolts pass them on.

A wave is one END marker on every channel between two tasks, under a number. A bolt has ended once
every channel to it has: `storm_py.core.aligner` counts. After a death a new wave, of a higher
number, tells those who were started anew; what has ended before only forwards it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from .calls import Calls
from .intake import Marker
from .outflow import Outflow
from .port import Port, Watch
from .tasks import RunningTask, SpoutTask
from .timers import Timers


class Waves:
    """Those that pass `tasks`, which are all of one instance and may still grow."""

    def __init__(
        self,
        tasks: Mapping[int, RunningTask],
        out: Outflow,
        timers: Timers,
        calls: Calls,
        port: Port,
        watch: Watch,
    ) -> None:
        self._tasks = tasks
        self._out = out
        self._timers = timers
        self._calls = calls
        self._port = port
        self._watch = watch
        self._wave = 1

    def begin(self, wave: int) -> None:
        """Spouts that have ended send this wave from now on, if it is the highest so far."""
        self._wave = max(self._wave, wave)

    def end(self, spout: SpoutTask) -> None:
        """Send the current wave behind all it has emitted, once nothing of it is pending."""
        if spout.finished and spout.wave < self._wave:
            if not spout.wave:
                self._timers.finish(spout)
            spout.wave = self._wave
            self._out.markers(spout)
            self._report(spout.executor)

    def arrived(self, marker: Marker) -> None:
        """The marker's turn has come, behind the rows that were sent before it."""
        task = marker.task
        if task.aligner.marker(marker.src, marker.wave):
            if not task.ended:
                self._watch.entered("end_of_input", task.task)
                self._calls.run()
                task.end_of_input()
                # What a bolt has waited for in there must leave ahead of the marker.
                self._calls.run()
                self._timers.finish(task)
            task.wave = marker.wave
            self.begin(marker.wave)
            self._out.markers(task)
            self._report(task.executor)

    def _report(self, executor: int) -> None:
        tasks = [task for task in self._tasks.values() if task.executor == executor]
        waves = {task.wave for task in tasks}
        if len(waves) == 1 and all(task.ended for task in tasks):
            self._port.ended(executor, waves.pop(), any(task.failed for task in tasks))
