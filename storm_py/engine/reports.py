"""Reports: errors on their way to the operator, those of `report_error` throttled.

`storm_py.core.throttle` counts; what is shown leaves through the driver's port. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from storm_py.config import Config
from storm_py.core.throttle import ErrorThrottle
from storm_py.wire.control import ErrorReport

from .user_code import Report


def error_text(error: ErrorReport) -> str:
    """An error as it is stored: where it was, what it says, and its traceback.

    A traceback ends with what the error says, which is there already.
    """
    text = f"task {error.task}, {error.where}: {error.message}"
    trace, said = error.traceback.rstrip(), error.message.rstrip().removesuffix(":")
    if said and trace.endswith(said):
        frames, _, module = trace.removesuffix(said).rpartition("\n")
        if not module or (module.endswith(".") and " " not in module):
            trace = frames
    return f"{text}\n{trace}".rstrip()


class Reports:
    """Those of one executor; `send` is the port's."""

    def __init__(self, conf: Mapping[str, Any], clock: Callable[[], float], send: Report) -> None:
        self._limit: int = conf[Config.TOPOLOGY_MAX_ERROR_REPORT_PER_INTERVAL]
        self._secs: float = conf[Config.TOPOLOGY_ERROR_THROTTLE_INTERVAL_SECS]
        self._throttle = ErrorThrottle(self._limit, self._secs)
        self._clock = clock
        self._last: ErrorReport | None = None
        #: For errors that are always shown.
        self.send = send

    def throttled(self, error: ErrorReport) -> None:
        """Show an error, or count it."""
        now = self._clock()
        self.tick(now)
        if self._throttle.admit(now):
            self.send(error)
        else:
            self._last = error

    def tick(self, now: float) -> None:
        """Tell how many were held back, if their interval is over."""
        self._tell(self._throttle.over(now))

    def close(self) -> None:
        """Tell it whatever the time."""
        self._tell(self._throttle.end())

    @property
    def next(self) -> float | None:
        """When `tick` has something to tell, None for never."""
        return self._throttle.next

    def _tell(self, held_back: int) -> None:
        last = self._last
        if held_back and last is not None:
            self._last = None
            text = (
                f"{held_back} more errors within {self._secs:g} s are not shown "
                f"({Config.TOPOLOGY_MAX_ERROR_REPORT_PER_INTERVAL}: {self._limit}); the last one: "
                f"{last.message}"
            )
            self.send(
                ErrorReport(last.component, last.task, last.where, text, last.traceback, False)
            )
