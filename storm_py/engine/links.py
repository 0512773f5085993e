"""OutboundLink: one direction to one peer, from Hello to the last numbered message.

A link may carry data only after the peer has welcomed its session; frames for it wait until then.
A new incarnation of the peer, or a broken link, starts a new session: whoever owns the link decides
what becomes of the frames that waited. Pure: it returns bytes, drivers send them.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from storm_py.core.roots import RandomBits
from storm_py.wire import control, frames

#: Seconds at most from a data message to an empty one: a loss shows by the number of the next one,
#: and who has been told to wait sends nothing else.
BEAT_SECS: Final = 2.0
#: The longest between two empty ones, behind which nothing else was sent.
QUIET_BEAT_SECS: Final = 16.0

#: A message to send: (on the data socket?, peer, bytes).
Send: TypeAlias = tuple[bool, str, bytes]


def instance_peer(executor: int) -> str:
    """The peer name of an instance."""
    return f"i{executor}"


def stream_manager_peer(worker: int) -> str:
    """The peer name of a worker's stream manager."""
    return f"s{worker}"


class Beats:
    """When a process sends an empty data message over each of its links.

    Soon behind data, whose last message may be the one that was lost; ever more rarely in silence,
    where there is nothing left to lose.
    """

    __slots__ = ("_at", "_secs", "sent")

    def __init__(self) -> None:
        #: Whether data was sent since this was last looked at; those who send it set it.
        self.sent = True
        self._at = float("inf")
        self._secs = BEAT_SECS

    def next(self, now: float) -> float:
        """When the next beat is due."""
        if self.sent:
            self.sent = False
            self._secs = BEAT_SECS
            self._at = min(self._at, now + BEAT_SECS)
        return self._at

    def due(self, now: float) -> bool:
        """Whether one is; True begins the time until the next."""
        if now < self.next(now):
            return False
        self._at = now + self._secs
        self._secs = min(2 * self._secs, QUIET_BEAT_SECS)
        return True


class OutboundLink:
    """The sending half towards one peer; `beats` are those of the process."""

    __slots__ = ("_beats", "_hello", "_seq", "open", "peer", "session")

    def __init__(self, peer: str, rng: RandomBits, hello: control.Hello, beats: Beats) -> None:
        self._beats = beats
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
        self._beats.sent = True
        self._seq += 1
        return b"".join([frames.message_header(self.session, self._seq), *parts])

    def beat(self) -> bytes:
        """The next data message, an empty one."""
        self._seq += 1
        return frames.message_header(self.session, self._seq)

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
