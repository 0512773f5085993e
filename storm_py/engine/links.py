"""OutboundLink: one direction to one peer, from Hello to the last numbered message.

A link may carry data only after the peer has welcomed its session; frames for it wait until then.
A new incarnation of the peer, or a broken link, starts a new session: whoever owns the link decides
what becomes of the frames that waited. Pure: it returns bytes, drivers send them.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from storm_py.core.roots import RandomBits
from storm_py.wire import control, frames

#: Seconds between two empty data messages: a loss shows by the number of the next one, and who
#: has been told to wait sends nothing else.
BEAT_SECS: Final = 2.0

#: A message to send: (on the data socket?, peer, bytes).
Send: TypeAlias = tuple[bool, str, bytes]


def instance_peer(executor: int) -> str:
    """The peer name of an instance."""
    return f"i{executor}"


def stream_manager_peer(worker: int) -> str:
    """The peer name of a worker's stream manager."""
    return f"s{worker}"


class OutboundLink:
    """The sending half towards one peer."""

    __slots__ = ("_hello", "_seq", "open", "peer", "session")

    def __init__(self, peer: str, rng: RandomBits, hello: control.Hello) -> None:
        self.peer = peer
        self.session = rng.getrandbits(63) + 1
        self.open = False
        self._seq = 0
        self._hello = hello

    @property
    def seq(self) -> int:
        """Number of the last data message."""
        return self._seq

    def data(self, *parts: bytes) -> bytes:
        """The next data message, made of whole frames."""
        self._seq += 1
        return b"".join([frames.message_header(self.session, self._seq), *parts])

    def control(self, record: control.Control) -> bytes:
        """A control message; these are idempotent and carry no number."""
        return frames.message_header(self.session, 0) + control.encode(record)

    def hello(self) -> bytes:
        """The message that opens the session."""
        return self.control(self._hello)

    def welcomed(self, session: int) -> bool:
        """The peer accepts `session`; True if that opened this link just now."""
        if session != self.session or self.open:
            return False
        self.open = True
        return True


def read_control(message: bytes) -> tuple[int, control.Control]:
    """Session and record of a control message, or ProtocolError."""
    session, _ = frames.read_message_header(message)
    return session, control.decode(memoryview(message)[frames.MESSAGE_HEADER.size :])
