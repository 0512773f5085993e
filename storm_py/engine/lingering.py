"""Lingering: how long a process holds back small frames, by how crowded its processors are.

Where many processes share few processors, to wake one of them costs more than the rows that it is
woken for, and all of them sending small frames at once is a state that a machine does not leave by
itself: the frames are small because everybody is slow, and everybody is slow because of them. The
sign of it is that a process waits for a processor for most of the time in which it could run. Then
it sends small frames ever more rarely, up to a limit, until that is over. A machine that is merely
busy, with a few processes for each processor, is not crowded, nor is an idle one.

Pure: time, and the times of the process, are arguments. What is held back, and what is not, decide
`storm_py.engine.outflow` and `storm_py.engine.parcels`.
"""

from __future__ import annotations

from typing import Final

#: Seconds between two looks.
LOOK_SECS: Final = 0.1
#: Crowded is who could have run, and had to wait for a processor for this share of that time.
CROWDED: Final = 0.7
#: The shortest linger time above none, and the longest.
SHORTEST_SECS: Final = 0.008
LONGEST_SECS: Final = 0.25


class Lingering:
    """Of one process; a linger time that is given stays what it is."""

    def __init__(self, given_secs: float | None = None) -> None:
        self._given = given_secs is not None
        #: how long to linger, in seconds
        self.secs = given_secs or 0.0
        self._at = 0.0
        self._ran_secs = 0.0
        self._waited_secs = 0.0

    def due(self, now: float) -> bool:
        """Whether it is time for another look."""
        return not self._given and now - self._at >= LOOK_SECS

    def look(self, now: float, ran_secs: float, waited_secs: float) -> None:
        """The process has run, and has waited for a processor, for so long since its start."""
        ran, waited = ran_secs - self._ran_secs, waited_secs - self._waited_secs
        self._at, self._ran_secs, self._waited_secs = now, ran_secs, waited_secs
        if waited > CROWDED * (ran + waited):
            self.secs = min(LONGEST_SECS, max(SHORTEST_SECS, 2 * self.secs))
        else:
            self.secs = max(SHORTEST_SECS, self.secs / 2) if self.secs > SHORTEST_SECS else 0.0
