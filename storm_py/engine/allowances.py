"""Allowances: what an instance may send to the tasks downstream before it has to pause.

It heeds the words of its stream manager (`storm_py.engine.announcements`): on, off, or a grant of
rows. A new session begins with a grant of `START_ROWS` for every task. Where one task may not be
sent to, the whole instance pauses, since nobody knows where its next tuple goes. Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from storm_py.core.pressure import START_ROWS


class Allowances:
    """Towards the tasks whose words are heeded."""

    __slots__ = ("_left", "_waiting", "heeded")

    def __init__(self, heeded: Collection[int]) -> None:
        self.heeded = frozenset(heeded)
        self._left: dict[int, int] = {}
        self._waiting: set[int] = set()
        self.reset()

    def reset(self) -> None:
        """A new session with the stream manager: nothing has been heard yet."""
        self._waiting.clear()
        self._left = dict.fromkeys(self.heeded, START_ROWS)

    def pressure(self, task: int, on: bool) -> None:
        """A task cannot take anything, or may be sent any number of rows."""
        if task in self.heeded:
            self._left.pop(task, None)
            (self._waiting.add if on else self._waiting.discard)(task)

    def grant(self, task: int, rows: int) -> None:
        """A task may be sent so many rows from now on."""
        if task in self.heeded:
            self._left[task] = max(0, rows)
            (self._waiting.discard if rows > 0 else self._waiting.add)(task)

    def sent(self, task: int, rows: int) -> bool:
        """Rows were sent to a task; True if it may be sent no more."""
        left = self._left.get(task)
        if left is None:
            return False
        self._left[task] = left = max(0, left - rows)
        if left:
            return False
        self._waiting.add(task)
        return True

    def left(self, task: int) -> int:
        """What is left of a task's grant; 0 also where there is no limit, or none is heeded."""
        return self._left.get(task, 0)

    @property
    def paused(self) -> bool:
        """Whether some task may not be sent to."""
        return bool(self._waiting)

    def check(self) -> None:
        """Assert that who has nothing left waits."""
        assert self._waiting <= self.heeded
        assert {task for task, left in self._left.items() if left <= 0} <= self._waiting
