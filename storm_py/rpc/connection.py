"""One client of a server: what has arrived, what is being answered, what is still to be sent.

A connection is *calling* while a call of it runs or waits for a thread, *sending* while an answer
is on its way, else *idle*, between frames or within one. It has one call at a time, so that answers
leave in the order of the calls, and is not read meanwhile: what a client sends ahead stays in the
kernel's buffers, and in time in the client's. Every state but *calling* has a deadline.

It owns the socket and is used by the thread of `storm_py.rpc.server` alone.
"""

from __future__ import annotations

import selectors
import socket
from collections import deque
from typing import Final

from storm_py.errors import ProtocolError

from .framing import FrameReader, frame
from .limits import Limits

_READ_BYTES: Final = 256 * 1024


def place(host: str, port: int) -> str:
    """An address as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Gone(Exception):
    """The connection is of no more use; says why."""


class Connection:
    """A client's connection; `told` if it is one too many, and will only be told so."""

    def __init__(self, sock: socket.socket, peer: str, limits: Limits, now: float) -> None:
        self.peer = peer
        self.told = False
        self.answered = False
        #: the call that is being answered
        self.call: bytes | None = None
        #: what the selector watches the socket for
        self.watched = 0
        self._socket = sock
        self._limits = limits
        self._reader = FrameReader(limits.frame_bytes)
        self._calls: deque[bytes] = deque()
        self._unsent = memoryview(b"")
        self._since = now

    def fileno(self) -> int:
        """For selectors."""
        return self._socket.fileno()

    @property
    def settled(self) -> bool:
        """Whether nothing is left to be answered or sent."""
        return self.call is None and not self._unsent

    @property
    def interest(self) -> int:
        """What to wait for at the socket."""
        if self._unsent:
            return selectors.EVENT_WRITE
        return selectors.EVENT_READ if self.call is None else 0

    @property
    def deadline(self) -> float | None:
        """When it has to have got further; None while a call runs."""
        if self._unsent:
            return self._since + self._limits.frame_secs
        if self.call is not None:
            return None
        hurried = self._reader.partial or self.told
        return self._since + (self._limits.frame_secs if hurried else self._limits.idle_secs)

    @property
    def overdue(self) -> str:
        """What it did not do by its deadline."""
        if self._unsent:
            return f"its answer was not taken in {self._limits.frame_secs} s"
        if self._reader.partial:
            return f"a frame did not arrive in {self._limits.frame_secs} s"
        return f"no call for {self._limits.idle_secs} s"

    def read(self, now: float) -> None:
        """Take what has arrived. Raises Gone at the end, and for what is no frame."""
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise Gone(str(error)) from error
        if not data:
            raise Gone("hung up within a frame" if self._reader.partial else "hung up")
        began = self._reader.partial
        try:
            self._calls += self._reader.receive(data)
        except ProtocolError as error:
            raise Gone(str(error)) from error
        if self._calls or not began:
            self._since = now

    def next_call(self) -> bytes | None:
        """The next call of those that have arrived; then it is *calling*."""
        if self._calls and self.settled:
            self.call = self._calls.popleft()
            return self.call
        return None

    def answer(self, message: bytes, now: float) -> None:
        """The answer to the call, empty for none; sends what can be. Raises Gone."""
        self.call = None
        self.answered = True
        self._since = now
        if message:
            self._unsent = memoryview(frame(message))
            self.write(now)

    def write(self, now: float) -> None:
        """Send what can be sent now. Raises Gone."""
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return
        except OSError as error:
            raise Gone(f"its answer could not be sent: {error}") from error
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._since = now

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
