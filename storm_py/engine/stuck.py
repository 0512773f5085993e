"""What an instance is busy with: worded for the operator when it is stuck, or died of it.

An instance notes where it enters user code (`storm_py.runtime.page`); its worker reads that and
asks here. A warning comes once the limit is over and again each time the time has doubled. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Activity:
    """User code that a task is in: since which monotonic second, and in which method.

    For execute: rows `first` to `last`, counted from 0, of a run of rows that task `source` emitted
    on `stream`; `source` is 0 where there are no rows.
    """

    since: float
    what: str
    task: int
    source: int
    stream: str
    first: int
    last: int

    def words(self, components: Mapping[int, str]) -> str:
        """`execute, rows 12..40 of a frame from split (task 3)`."""
        return f"{self.what}{self._rows(components)}"

    def located(self, components: Mapping[int, str]) -> str:
        """`execute of count (task 5), rows 12..40 of a frame from split (task 3)`."""
        who = f"{components.get(self.task, '?')} (task {self.task})"
        return f"{self.what} of {who}{self._rows(components)}"

    def _rows(self, components: Mapping[int, str]) -> str:
        if not self.source:
            return ""
        rows = f"row {self.first}" if self.first == self.last else f"rows {self.first}..{self.last}"
        stream = "" if self.stream == "default" else f", stream {self.stream!r}"
        source = f"{components.get(self.source, '?')} (task {self.source})"
        return f", {rows} of a frame from {source}{stream}"


class StuckWatch:
    """The instances of one worker; `components` maps every task to its component."""

    def __init__(self, components: Mapping[int, str], limit_secs: float) -> None:
        self._components = components
        self._limit_secs = limit_secs
        self._warned: dict[int, tuple[float, float]] = {}

    def look(self, executor: int, activity: Activity | None, now: float) -> str | None:
        """What there is to say of an executor now, mostly nothing."""
        since, warned_secs = self._warned.get(executor, (0.0, 0.0))
        if activity is None or activity.since != since:
            self._warned.pop(executor, None)
            warned_secs = 0.0
        if activity is None:
            return None
        secs = now - activity.since
        if secs < max(self._limit_secs, 2 * warned_secs):
            return None
        self._warned[executor] = (activity.since, secs)
        name = self._components.get(activity.task, "?")
        return (
            f"{name} (task {activity.task}) has been in {activity.words(self._components)} for "
            f"{secs:.0f} s (storm_py.stuck.secs: {self._limit_secs:g})"
        )
