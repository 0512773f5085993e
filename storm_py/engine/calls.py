"""Calls: what other threads want done on the thread of an instance.

The only way into an instance from another thread: `add` may be called from any, everything else
belongs to the instance's own. Nothing here locks: appending to a deque, popping from a list and
reading a flag are atomic, and a wake-up too many does no harm. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from .port import Watch
from .user_code import UserError, call_user

#: Component, task, function and arguments of a call.
_Call: TypeAlias = tuple[str, int, Callable[..., object], tuple[object, ...]]


class Calls:
    """Calls that wait; the adding thread wakes the driver, so that it comes soon."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        #: Each in a list of its own, which whoever takes the call leaves empty.
        self._waiting: deque[list[_Call]] = deque()
        self._woken = False
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(
        self, component: str, task: int, function: Callable[..., object], args: tuple[object, ...]
    ) -> bool:
        """Have `function(*args)` called for a task; False once the instance has closed.

        True says that it is called, unless an exception ends the executor before its turn.
        """
        if self._closed:
            return False
        place = [(component, task, function, args)]
        self._waiting.append(place)
        if not self._woken:  # one wake-up serves all calls until they are looked at
            self._woken = True
            self._watch.wake()
        # If it closes just now, nobody may look again: take the call back, unless it was taken.
        return not (self._closed and _take(place))

    def run(self) -> None:
        """Make the calls that wait now; what they add waits. Raises UserError if one raises."""
        waiting = self._waiting
        # Before looking: whoever adds from here on wakes the driver again.
        self._woken = False
        for _ in range(len(waiting)):
            call = _take(waiting.popleft())
            if call is not None:
                component, task, function, args = call
                self._watch.entered("call_soon", task)
                call_user(component, task, "call_soon", function, *args)

    def close(self) -> list[UserError]:
        """Take no more and make the calls that wait; what these raised."""
        self._closed = True
        errors = []
        while self._waiting:
            try:
                self.run()
            except UserError as error:
                errors.append(error)
        return errors


def _take(place: list[_Call]) -> _Call | None:
    """The call in its place, None if it was taken before."""
    try:
        return place.pop()
    except IndexError:
        return None
