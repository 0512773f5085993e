"""Calls: what other threads want done on the thread of an instance.

The only way into an instance from another thread: `add` may be called from any, everything else
belongs to the instance's own. Nothing here locks: appending to a deque and reading a flag are
atomic, and a wake-up too many does no harm. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from .port import Watch
from .user_code import call_user


class Calls:
    """Calls that wait; the adding thread wakes the driver, so that it comes soon."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._waiting: deque[tuple[str, int, Callable[..., object], tuple[object, ...]]] = deque()
        self._woken = False
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(
        self, component: str, task: int, function: Callable[..., object], args: tuple[object, ...]
    ) -> bool:
        """Have `function(*args)` called for a task; False once the instance has closed."""
        if self._closed:
            return False
        self._waiting.append((component, task, function, args))
        if not self._woken:  # one wake-up serves all calls until they are looked at
            self._woken = True
            self._watch.wake()
        return True

    def run(self) -> bool:
        """Make the calls that wait now; what they add waits. Raises UserError if one raises.

        Returns whether there were any.
        """
        waiting = self._waiting
        if not waiting:
            return False
        # Before looking: whoever adds from here on wakes the driver again.
        self._woken = False
        for _ in range(len(waiting)):
            component, task, function, args = waiting.popleft()
            self._watch.entered("call_soon", task)
            call_user(component, task, "call_soon", function, *args)
        return True

    def close(self) -> None:
        """Take no more."""
        self._closed = True
