"""Idling: how long an instance waits for a spout that had nothing to emit, and on what.

Waits begin with the shortest and double up to a limit, so that a source that pauses is asked soon
and one that is silent costs nearly nothing. A spout that offers a file descriptor is asked when
that can be read; one that can be read for ever while nothing comes of it is waited for by the clock
again, or it would keep a processor busy. The first tuple begins it all anew. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Rounds that wait the shortest time before waits begin to double, or that heed a descriptor.
EAGER_ROUNDS: Final = 10
_SHORTEST_SECS: Final = 0.001


class Idling:
    """Of the spouts of one instance; `limit_secs` is the longest wait by the clock."""

    def __init__(self, limit_secs: float) -> None:
        self._limit_secs = limit_secs
        self._rounds = 0
        self._in_vain = 0
        #: The descriptors to wait on, none unless each of the spouts offers one.
        self.fds: frozenset[int] = frozenset()

    def wait_on(self, fds: Iterable[int | None]) -> None:
        """What each spout offers."""
        found = list(fds)
        self.fds = frozenset(fd for fd in found if fd is not None and None not in found)

    def emitted(self) -> None:
        """There was something to emit."""
        self._rounds = self._in_vain = 0

    def next(self) -> float | None:
        """Nothing was: how many seconds to wait, or None to wait on the descriptors."""
        self._rounds += 1
        if self.fds and self._in_vain < EAGER_ROUNDS:
            return None
        doublings = max(0, self._rounds - EAGER_ROUNDS)
        return min(self._limit_secs, _SHORTEST_SECS * float(2 ** min(doublings, 20)))

    def woken(self, by: Iterable[object]) -> None:
        """The wait has ended, by these."""
        self._in_vain += not self.fds.isdisjoint(by)
