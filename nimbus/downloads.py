"""Downloads: blobs that are being fetched piece by piece, and how far each client is.

A session keeps its file open, so that what is removed meanwhile is still read to its end. One that
nobody has asked for a while is closed; and of too many that which nobody has asked for longest, as
each is an open file.
"""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from typing import BinaryIO, Final

from storm_py.errors import BlobError

__all__ = ["IDLE_SECS", "MOST", "Downloads"]

#: As Storm's nimbus.file.copy.expiration.secs.
IDLE_SECS: Final = 600.0
#: Downloads at the same time.
MOST: Final = 256


@dataclass(slots=True)
class _Session:
    file: BinaryIO
    used: float


class Downloads:
    """The sessions of one nimbus; used by several threads, each session by one at a time."""

    def __init__(self, chunk_bytes: int) -> None:
        self._chunk_bytes = chunk_bytes
        self._sessions: dict[str, _Session] = {}
        self._lock = threading.Lock()

    def begin(self, file: BinaryIO, now: float) -> str:
        """Begin to send a file, which is closed in the end; gives the session."""
        name = str(uuid.uuid4())
        closing = None
        with self._lock:
            if len(self._sessions) >= MOST:
                longest = min(self._sessions, key=lambda one: self._sessions[one].used)
                closing = self._sessions.pop(longest)
            self._sessions[name] = _Session(file, now)
        if closing is not None:
            closing.file.close()
        return name

    def next(self, name: str, now: float) -> bytes:
        """The next piece, empty at the end, which is the end of the session too."""
        with self._lock:
            session = self._sessions.get(name)
            if session is None:
                raise BlobError(
                    f"there is no download {name!r:.80}: it came to its end, or nobody asked for "
                    f"more within {IDLE_SECS:.0f} s, or too many others did; begin anew"
                )
            session.used = now
        chunk = session.file.read(self._chunk_bytes)
        if not chunk:
            with self._lock:
                self._sessions.pop(name, None)
            session.file.close()
        return chunk

    def expire(self, now: float) -> None:
        """Close what nobody has asked for."""
        with self._lock:
            old = [n for n, one in self._sessions.items() if now - one.used >= IDLE_SECS]
            closing = [self._sessions.pop(name) for name in old]
        for session in closing:
            session.file.close()

    def close(self) -> None:
        """Close all."""
        with self._lock:
            closing = list(self._sessions.values())
            self._sessions.clear()
        for session in closing:
            session.file.close()
