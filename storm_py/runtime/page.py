"""StatisticsPage: a few counters that an instance writes into shared memory, per frame.

The worker reads them without asking: heartbeats, statistics and "what was it doing when it died"
cost no message, and a page outlives its writer. Each field is one aligned 64-bit store, so a reader
sees old or new values, never half of one.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

_LAYOUT = struct.Struct("<QQQQQQd")
_SIZE = 4096


@dataclass(frozen=True, slots=True)
class Page:
    """One reading: counters since the start of incarnation `incarnation`, 0 for none yet.

    `loops` counts rounds of the instance's loop; `busy_since` is the monotonic second in which user
    code was entered, 0.0 while it is not in user code.
    """

    incarnation: int
    executed: int
    emitted: int
    transferred: int
    queued: int
    loops: int
    busy_since: float


class PageWriter:
    """The instance's side."""

    def __init__(self, path: Path, incarnation: int) -> None:
        with path.open("wb+") as file:
            file.truncate(_SIZE)
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self._incarnation = incarnation
        self._loops = 0

    def write(
        self, executed: int, emitted: int, transferred: int, queued: int, busy_since: float
    ) -> None:
        """Put the counters where the worker sees them."""
        self._loops += 1
        _LAYOUT.pack_into(
            self._map,
            0,
            self._incarnation,
            executed,
            emitted,
            transferred,
            queued,
            self._loops,
            busy_since,
        )


def read_page(path: Path) -> Page:
    """The newest reading; all zero before the instance has written one."""
    try:
        data = path.read_bytes()[: _LAYOUT.size]
    except FileNotFoundError:
        data = b""
    return Page(*_LAYOUT.unpack(data.ljust(_LAYOUT.size, b"\0")))
