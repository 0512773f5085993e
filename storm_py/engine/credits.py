"""Credits: what the tasks of one instance have finished of their input, and how long that took.

Totals are of the session of the input, and cumulative: one that is lost is made good by the next.
A few rows do not need a message of their own each time: they are told together, soon.
Who sends them, and behind what, is decided in `storm_py.engine.outflow`; what the stream manager
makes of them in `storm_py.core.pressure`. Pure: it asks the clock it is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from storm_py.core.pressure import PROVEN_ROWS, START_FRAME_ROWS
from storm_py.wire.control import Credit


class Credits:
    """Those of one instance; `clock` gives monotonic seconds.

    Credits for a few rows, and for fewer than `wait_bytes`, may wait for `wait_secs`.
    """

    def __init__(self, clock: Callable[[], float], wait_secs: float, wait_bytes: int) -> None:
        self._clock = clock
        self._wait_secs = wait_secs
        self._wait_bytes = wait_bytes
        #: Rows and bytes that are finished, by task; a new dict for each session of the input.
        self._totals: dict[int, list[int]] = {}
        self._told: dict[int, int] = {}
        self._untold_rows = 0
        self._untold_bytes = 0
        self._told_at = -math.inf
        self._busy_secs = 0.0
        self._busy_since: float | None = None

    def __bool__(self) -> bool:
        return bool(self._totals)

    def finished(self, task: int, rows: int, nbytes: int) -> None:
        """A frame for `task` is executed; one without rows is a marker."""
        total = self._totals.setdefault(task, [0, 0])
        total[0] += rows
        total[1] += nbytes
        self._untold_rows += rows if rows else START_FRAME_ROWS
        self._untold_bytes += nbytes

    def busy(self) -> None:
        """From here on the instance has something to do, or cannot go on because of others."""
        if self._busy_since is None:
            self._busy_since = self._clock()

    def idle(self) -> None:
        """From here on it only waits for input."""
        if self._busy_since is not None:
            self._busy_secs += self._clock() - self._busy_since
            self._busy_since = None

    @property
    def due_at(self) -> float:
        """When to tell the news, if there is any."""
        many = self._untold_rows >= START_FRAME_ROWS or self._untold_bytes >= self._wait_bytes
        if many or any(rows < PROVEN_ROWS for rows, _ in self._totals.values()):
            return -math.inf  # a task that is new waits for its grants
        return self._told_at + self._wait_secs

    def news(self, seq: int) -> Iterator[Credit]:
        """What was not told yet, behind data message number `seq`.

        A driver serves control while it sends one of them: the session may be over by then, and
        with it all that is left.
        """
        totals, told = self._totals, self._told
        self._untold_rows = self._untold_bytes = 0
        self._told_at = self._clock()
        secs = self._busy_secs
        if self._busy_since is not None:
            secs += self._told_at - self._busy_since
        for task, (rows, nbytes) in tuple(totals.items()):
            if told.get(task) != nbytes and self._totals is totals:
                told[task] = nbytes
                yield Credit(task, rows, nbytes, seq, int(secs * 1e6))

    @property
    def untold(self) -> bool:
        """Whether there is any news."""
        told = self._told
        return any(told.get(task) != nbytes for task, (_, nbytes) in self._totals.items())

    def untell(self) -> None:
        """What was told may not have been heard."""
        self._told.clear()
        self._told_at = -math.inf

    def drop(self) -> None:
        """The session of the input is over, and what it is owed with it."""
        self._totals = {}
        self._told = {}
        self._untold_rows = self._untold_bytes = 0
        self._busy_secs = 0.0
        self._busy_since = None
