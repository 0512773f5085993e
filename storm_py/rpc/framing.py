"""Frames: messages with their length in front, cut out of a stream of bytes (TFramedTransport).

Only bytes that have arrived take memory: a length is a claim. Pure; time and sockets are those of
`storm_py.rpc.server` and `storm_py.rpc.client`.
"""

from __future__ import annotations

import struct
from typing import Final

from storm_py.errors import ProtocolError

_LENGTH: Final = struct.Struct(">I")
#: How Thrift's binary protocol begins where it is not framed.
_UNFRAMED: Final = b"\x80\x01"


def frame(message: bytes) -> bytes:
    """The frame of a message."""
    return _LENGTH.pack(len(message)) + message


class FrameReader:
    """Cuts messages out of what arrives on one connection."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()

    @property
    def partial(self) -> bool:
        """Whether a frame has begun to arrive."""
        return bool(self._buffer)

    def receive(self, data: bytes) -> list[bytes]:
        """The messages that are complete with these bytes.

        Raises ProtocolError for a length of 0 or above the limit, which says what else these bytes
        may be; after it the stream is of no use.
        """
        self._buffer += data
        messages = []
        while len(self._buffer) >= _LENGTH.size:
            end = _LENGTH.size + self._length()
            if len(self._buffer) < end:
                break
            messages.append(bytes(self._buffer[_LENGTH.size : end]))
            del self._buffer[:end]
        return messages

    def _length(self) -> int:
        begin = bytes(self._buffer[: _LENGTH.size])
        length: int = _LENGTH.unpack(begin)[0]
        if 0 < length <= self._max_bytes:
            return length
        if begin.startswith(_UNFRAMED):
            raise ProtocolError("a message without a frame: use TFramedTransport, as Storm does")
        if begin.isascii() and begin.decode().isprintable():
            raise ProtocolError(f"what arrives is text, not Thrift: it begins with {begin!r}")
        if not length:
            raise ProtocolError("an empty frame")
        raise ProtocolError(f"a frame of {length} bytes; the limit is {self._max_bytes}")
