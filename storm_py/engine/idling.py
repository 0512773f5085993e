"""Idling: how long an instance waits for a spout that had nothing to emit, and on what.

Waits begin with the shortest and double up to a middling one; from there on each is a small share
of the silence so far, up to a limit. So a source that pauses is asked soon, one that has been
silent for long costs nearly nothing, and its next tuple is late by that share at most. A spout that
offers a file descriptor is asked when that can be read; one that can be read for ever while nothing
comes of it is waited for by the clock again, or it would keep a processor busy. The first tuple
begins it all anew. Pure: the time is an argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Rounds that wait the shortest time before waits begin to double, or that heed a descriptor.
EAGER_ROUNDS: Final = 10
_SHORTEST_SECS: Final = 0.001
#: Where waits end to double, and from where on they are this share of the silence.
DOUBLED_SECS: Final = 0.05
SHARE: Final = 1 / 20


class Idling:
    """Of the spouts of one instance; `limit_secs` is the longest wait by the clock."""

    def __init__(self, limit_secs: float) -> None:
        self._limit_secs = limit_secs
        self._rounds = 0
        self._since = 0.0
        self._in_vain = 0
        #: The descriptors to wait on, none unless each of the spouts offers one.
        self.fds: frozenset[int] = frozenset()

    def wait_on(self, fds: Iterable[int | None]) -> None:
        """What each spout offers."""
        found = list(fds)
        self.fds = frozenset(fd for fd in found if fd is not None and None not in found)

    def reset(self) -> None:
        """There was something to emit, or nothing may be emitted: no silence of a source."""
        self._rounds = self._in_vain = 0

    def next(self, now: float) -> float | None:
        """Nothing was: how many seconds to wait, or None to wait on the descriptors."""
        if not self._rounds:
            self._since = now
        self._rounds += 1
        if self.fds and self._in_vain < EAGER_ROUNDS:
            return None
        doublings = max(0, self._rounds - EAGER_ROUNDS)
        doubled = min(DOUBLED_SECS, _SHORTEST_SECS * float(2 ** min(doublings, 20)))
        return min(self._limit_secs, max(doubled, SHARE * (now - self._since)))

    def woken(self, by: Iterable[object]) -> None:
        """The wait has ended, by these."""
        self._in_vain += not self.fds.isdisjoint(by)
