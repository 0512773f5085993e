"""Memory transport: messages between cores that live in one thread, in order, without loss.

Moves bytes and knows no tuple. The stand-in for `storm_py.transport.zeromq` in `--inline` and in
tests.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message on its way: from, to, data or control socket."""

    source: str
    dest: str
    data: bool
    message: bytes


class MemoryTransport:
    """One queue for everything; control overtakes data, as on sockets of its own."""

    def __init__(self) -> None:
        self._data: deque[Parcel] = deque()
        self._control: deque[Parcel] = deque()

    def send(self, source: str, dest: str, data: bool, message: bytes) -> None:
        """Put a message on its way."""
        (self._data if data else self._control).append(Parcel(source, dest, data, message))

    def receive(self) -> Parcel | None:
        """The next message to deliver, None when nothing is on its way."""
        if self._control:
            return self._control.popleft()
        return self._data.popleft() if self._data else None
