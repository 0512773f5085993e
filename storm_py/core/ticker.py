"""Ticker: something that is due again and again, at most once at a time.

What was missed while nobody asked is not made up for: after a long wait it is due once, and then
again a whole period later. Pure: `now` is an argument.
"""

from __future__ import annotations


class Ticker:
    """Due for the first time one period after `now`."""

    __slots__ = ("next", "period_secs")

    def __init__(self, period_secs: float, now: float) -> None:
        self.period_secs = period_secs
        #: When it is due.
        self.next = now + period_secs

    def due(self, now: float) -> bool:
        """Whether it is due; True begins the next period."""
        if now < self.next:
            return False
        self.next += self.period_secs
        if self.next <= now:
            self.next = now + self.period_secs
        return True
