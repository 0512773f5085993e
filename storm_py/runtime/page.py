"""Page: a few counters that an instance writes into shared memory, per frame.

The worker reads them without asking: heartbeats, statistics and "what was it doing when it died"
cost no message, and a page outlives its writer. Each counter is one aligned 64-bit store, so a
reader sees old or new values, never half of one - `struct.pack_into` would write zeros first, then
byte by byte. What the instance is busy with takes several; it carries its number in front and
behind, and a reader that finds none or two of them looks again later.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from storm_py.engine.statistics import InstanceStatistics
from storm_py.engine.stuck import Activity

#: incarnation, loops, number of executors
_LAYOUT = struct.Struct("=QQQ")
_BUSY = struct.Struct("=d")
_BUSY_AT = _LAYOUT.size
#: executed, emitted, transferred, acked, failed, queued
_COUNTERS = struct.Struct("=QQQQQQ")
_COUNTERS_AT = 512
#: number, method, task, source task, stream, first and last row, number
_ACTIVITY = struct.Struct("=Q24sqq64sqqQ")
_ACTIVITY_AT = 128
_SIZE = 4096
_WORD = 8

#: Executed, emitted, transferred, acked, failed.
Totals: TypeAlias = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Counters:
    """Those of one executor since the start of its incarnation; `queued` is of this moment."""

    totals: Totals = (0, 0, 0, 0, 0)
    queued: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """One reading of what incarnation `incarnation` has written, 0 for none yet.

    `loops` counts writings; `busy_since` is the monotonic second in which user code was entered,
    0.0 while it is not in user code.
    """

    incarnation: int
    loops: int
    busy_since: float
    #: by the order of the instance's executors, none before the first writing
    counters: tuple[Counters, ...]
    #: What that user code is, None while it is in none.
    activity: Activity | None


class PageWriter:
    """The instance's side; it has so many executors."""

    def __init__(self, path: Path, incarnation: int, executors: int) -> None:
        size = max(_SIZE, _COUNTERS_AT + executors * _COUNTERS.size)
        with path.open("wb+") as file:
            file.truncate(size)
            self._map = mmap.mmap(file.fileno(), size)
        # An item of a view is stored at once.
        self._words = memoryview(self._map).cast("Q")
        self._since = memoryview(self._map)[_BUSY_AT : _BUSY_AT + _BUSY.size].cast("d")
        self._incarnation = incarnation
        self._loops = 0
        self._entries = 0
        self._busy_since = 0.0

    def write(self, found: Sequence[InstanceStatistics]) -> None:
        """Put the counters of each executor where the worker sees them; no user code is running."""
        self._loops += 1
        words, at = self._words, _COUNTERS_AT // _WORD
        for one in found:
            words[at] = one.executed
            words[at + 1] = one.emitted
            words[at + 2] = one.transferred
            words[at + 3] = one.acked
            words[at + 4] = one.failed
            words[at + 5] = one.queued
            at += _COUNTERS.size // _WORD
        words[0], words[1], words[2] = self._incarnation, self._loops, len(found)
        self.busy(0.0)

    def entered(
        self, now: float, what: str, task: int, source: int, stream: str, first: int, last: int
    ) -> None:
        """User code begins to run, as `Activity` says."""
        self._entries = entry = self._entries + 1
        _ACTIVITY.pack_into(
            self._map,
            _ACTIVITY_AT,
            entry,
            _encoded(what),
            task,
            source,
            _encoded(stream),
            first,
            last,
            entry,
        )
        self.busy(now)

    def busy(self, since: float) -> float:
        """Set since when user code runs, 0.0 for not now; returns what it was."""
        before, self._busy_since = self._busy_since, since
        if before != since:
            self._since[0] = since
        return before


@cache
def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "replace")


def read_page(path: Path) -> Page:
    """The newest reading; all zero before the instance has written one."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        data = b""
    data = data.ljust(_SIZE, b"\0")
    incarnation, loops, executors = _LAYOUT.unpack_from(data)
    (since,) = _BUSY.unpack_from(data, _BUSY_AT)
    counters = []
    for i in range(executors):
        *totals, queued = _COUNTERS.unpack_from(data, _COUNTERS_AT + i * _COUNTERS.size)
        counters.append(Counters(tuple(totals), queued))
    return Page(incarnation, loops, since, tuple(counters), _activity(data, since))


def _activity(data: bytes, since: float) -> Activity | None:
    entry, what, task, source, stream, first, last, same = _ACTIVITY.unpack_from(data, _ACTIVITY_AT)
    if not since or not entry or entry != same:
        return None
    names = [name.rstrip(b"\0").decode("utf-8", "replace") for name in (what, stream)]
    return Activity(since, names[0], task, source, names[1], first, last)
