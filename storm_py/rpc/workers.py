"""A bounded number of threads for the calls of a server, and a bounded number of calls that wait.

Threads are begun as they are needed and then kept. They are daemons: a handler that never returns
cannot keep the process from ending.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Workers(Generic[T]):
    """Does what it is given in up to `threads` threads; up to `queue` pieces wait for one.

    ``do`` must not raise.
    """

    def __init__(self, name: str, do: Callable[[T], None], threads: int, queue: int) -> None:
        self._name = name
        self._do = do
        self._limit = threads
        self._queue = queue
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._waiting: deque[T] = deque()
        self._open = 0
        self._closed = False

    @property
    def threads(self) -> int:
        """How many threads have been begun."""
        return len(self._threads)

    @property
    def open(self) -> int:
        """How many pieces wait or are being done."""
        return self._open

    @property
    def waiting(self) -> int:
        """How many pieces wait for a thread."""
        return len(self._waiting)

    def submit(self, piece: T) -> bool:
        """Have this done by and by; False, and it is not, if there is too much or after `close`."""
        with self._changed:
            if self._closed or self._open >= self._limit + self._queue:
                return False
            self._open += 1
            self._waiting.append(piece)
            if len(self._threads) < min(self._open, self._limit):
                self._begin_thread()
            self._changed.notify()
        return True

    def cancel(self) -> list[T]:
        """Take back what no thread has begun."""
        with self._changed:
            taken = list(self._waiting)
            self._waiting.clear()
            self._open -= len(taken)
        return taken

    def close(self, timeout: float) -> bool:
        """Let the threads end, once nothing waits; False if some have not in so many seconds."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _begin_thread(self) -> None:
        name = f"{self._name}-call-{len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                piece = self._waiting.popleft()
            self._do(piece)
            del piece  # it may be large, and the next may be long in coming
            with self._changed:
                self._open -= 1
