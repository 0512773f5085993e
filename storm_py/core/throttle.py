"""ErrorThrottle: how many errors an operator is shown per interval (Storm's `ReportError`).

The interval begins with the first error in it. What is over the limit is counted, and the count is
told when the interval is over: nothing is swallowed, and nothing floods. Pure.
"""

from __future__ import annotations


class ErrorThrottle:
    """At most `limit` errors in `interval_secs`."""

    __slots__ = ("_ends", "_interval_secs", "_limit", "_seen")

    def __init__(self, limit: int, interval_secs: float) -> None:
        self._limit = limit
        self._interval_secs = interval_secs
        self._seen = 0
        self._ends: float | None = None

    def admit(self, now: float) -> bool:
        """An error happens: whether to show it. Ask `over` first."""
        if self._ends is None:
            self._ends = now + self._interval_secs
        self._seen += 1
        return self._seen <= self._limit

    def over(self, now: float) -> int:
        """How many were held back in an interval that is over by now, 0 for none."""
        return self.end() if self._ends is not None and now >= self._ends else 0

    def end(self) -> int:
        """End the interval now: how many were held back."""
        held_back = max(0, self._seen - self._limit)
        self._seen = 0
        self._ends = None
        return held_back

    @property
    def next(self) -> float | None:
        """When there is something to tell, None for never."""
        return self._ends if self._seen > self._limit else None
