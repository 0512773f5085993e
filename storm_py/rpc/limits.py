"""What a Thrift server lets its clients do, as numbers; which configuration key feeds which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from storm_py.config import Config

#: Largest frame. A chunk of an upload has 300 kB (streamparse, Storm), but a topology comes in one,
#: with the objects of its components. Storm takes 1 MiB.
FRAME_BYTES: Final = 16 * 1024 * 1024
#: Connections beyond those allowed which are told so; still more are closed without a word.
TOLD_CONNECTIONS: Final = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one server."""

    #: Calls that run at the same time.
    threads: int = 64
    #: Calls that wait for a thread; beyond, they are refused.
    queue: int = 1024
    #: Connections at the same time; one needs a file descriptor, and no thread while it is idle.
    connections: int = 1024
    #: Largest frame, and so the largest call.
    frame_bytes: int = FRAME_BYTES
    #: Time from the first byte of a frame to its last, in both directions. A client that sends a
    #: byte now and then holds nothing but its connection, and this long.
    frame_secs: float = 60.0
    #: Time without a call after which a connection is closed.
    idle_secs: float = 600.0

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> Limits:
        """The limits in a validated configuration with all defaults."""
        return cls(
            threads=conf[Config.NIMBUS_THRIFT_THREADS],
            queue=conf[Config.NIMBUS_QUEUE_SIZE],
            frame_bytes=conf[Config.NIMBUS_THRIFT_MAX_BUFFER_SIZE],
            idle_secs=conf[Config.STORM_THRIFT_SOCKET_TIMEOUT_MS] / 1000,
        )
