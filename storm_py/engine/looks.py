"""Looks: when a process that watches others looks at them next.

Often while there is news, ever more rarely while there is none: on a machine that is idle the
looking itself would be most of the work. Pure: the time is an argument.
"""

from __future__ import annotations


class Looks:
    """Apart by `often_secs` behind news, then twice as far each time, up to `rarely_secs`."""

    def __init__(self, often_secs: float, rarely_secs: float) -> None:
        self._often_secs = often_secs
        self._rarely_secs = max(often_secs, rarely_secs)
        self._apart_secs = often_secs
        self._earliest = 0.0
        #: When the next look is due.
        self.at = 0.0

    def news(self) -> None:
        """Something has happened: look as soon as looks may follow each other."""
        self._apart_secs = self._often_secs
        self.at = min(self.at, self._earliest)

    def looked(self, now: float, changed: bool) -> None:
        """A look is over, and it has found something or not."""
        if changed:
            self._apart_secs = self._often_secs
        self.at = now + self._apart_secs
        self._earliest = now + self._often_secs
        self._apart_secs = min(2 * self._apart_secs, self._rarely_secs)
