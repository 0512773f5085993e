"""Pressure: the window and the backlog of one consuming task, in the stream manager that feeds it.

Theory of operation. A consumer credits what it has finished, in rows and bytes, cumulative. What is
sent and not credited is *outstanding* and stays within a *window*: the rows that the task finishes
in `window_secs`, by its measured drain rate, so that the queue in front of a slow task is short in
time whatever its speed. One frame may always be outstanding. What exceeds the window waits in the
*backlog*; when that passes its high mark the task is *pressured*, until it is back under the low
mark, and those who send to it pause. Nothing is ever dropped here.

The drain rate is rows per second of *busy* time, in which the task had something to do or had to
wait for others downstream. The task says so with its credits, and it cannot be more than the time
in which something was outstanding: so neither a task that is merely idle is mistaken for a slow
one, nor one whose messages take their time. A task that has credited nothing for a while is
*stalled*: whatever its rate was, it is pressured as soon as a few rows wait.

Between a word to a sender and its effect a fast sender emits thousands of rows: nothing for a fast
task, minutes for a slow one. So a task is *limited* until its window is large: its senders may send
it `START_ROWS`, and then as many rows as they are granted, each time anew. Grants share out the
room that is left in the window, which grows by what the task has finished: while nobody knows yet
that a bolt far behind is slow, no more waits before a relay than behind it. A task that is not
limited costs its senders nothing until it is pressured. Tasks of one component are *kin*, and run
the same code: until a task has shown how fast it is itself, what its kin have finished counts too.

Pure: time is an argument; frames are opaque bytes. The composition with links and announcements is
`storm_py.engine.stream_manager_core`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: Window and high mark, in rows, of a task that has not finished anything yet.
INITIAL_ROWS: Final = 64
#: Busy seconds over which the drain rate is averaged.
RATE_MEMORY_SECS: Final = 0.25
#: What a sender may send to a task before it has heard of it...
START_ROWS: Final = 2
#: ...and the largest frame, in rows, of what one call emits beyond that: as of a new task's window.
START_FRAME_ROWS: Final = INITIAL_ROWS // 4
#: A task is not limited whose window has this many rows: it finishes them in `window_secs`...
FREE_ROWS: Final = 1024
#: ...and that has finished so many: what it says of its rate may be relied on.
PROVEN_ROWS: Final = 256
#: The largest window of a task known by its kin alone: enough to show what it can do itself.
NEWCOMER_ROWS: Final = START_ROWS + PROVEN_ROWS
#: A task that has credited nothing for this long, though something is outstanding, is stalled...
STALL_SECS: Final = 1.0
#: ...and pressured above this many rows.
STALL_ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one task's queue; `storm_py.backpressure.*` and `storm_py.batch.rows`."""

    window_secs: float
    high_bytes: int
    low_ratio: float
    frame_rows: int
    free_rows: int = FREE_ROWS


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """A snapshot of one task's queue."""

    backlog_rows: int
    backlog_bytes: int
    outstanding_rows: int
    outstanding_bytes: int
    rows_per_sec: float
    pressured: bool
    limited: bool


class Drain:
    """Rows finished, and the busy time that took; of late, and in all."""

    __slots__ = ("_memory_secs", "busy_secs", "done_rows", "proven_rows")

    def __init__(self) -> None:
        self.done_rows = 0.0
        self.busy_secs = 0.0
        self.proven_rows = 0
        self._memory_secs = 0.0

    def remember(self, secs: float) -> None:
        """Average over so many busy seconds more."""
        self._memory_secs += secs

    def finished(self, rows: int, busy_secs: float) -> None:
        """So many rows were finished in this time."""
        self.done_rows += rows
        self.proven_rows += rows
        self.busy_secs += busy_secs
        if self.busy_secs > self._memory_secs:
            self.done_rows *= self._memory_secs / self.busy_secs
            self.busy_secs = self._memory_secs

    @property
    def known(self) -> bool:
        """Whether that is enough to go by."""
        return self.proven_rows >= PROVEN_ROWS or self.busy_secs >= RATE_MEMORY_SECS

    @property
    def rows_per_sec(self) -> float:
        """The drain rate, 0 while unknown."""
        return self.done_rows / self.busy_secs if self.busy_secs > 0 else 0.0


class TaskQueue:
    """The frames on their way to one task; `kin` sums up all tasks of its component here."""

    __slots__ = (
        "_backlog",
        "_backlog_bytes",
        "_backlog_rows",
        "_busy_since",
        "_connected",
        "_credited_busy_secs",
        "_credited_bytes",
        "_credited_rows",
        "_drain",
        "_kin",
        "_limits",
        "_outstanding_bytes",
        "_outstanding_rows",
        "_part_credited",
        "_pressured",
        "_unfinished",
    )

    def __init__(self, limits: Limits, kin: Drain | None = None) -> None:
        self._limits = limits
        self._drain = Drain()
        self._kin = Drain() if kin is None else kin
        for drain in (self._drain, self._kin):
            drain.remember(RATE_MEMORY_SECS)
        self._backlog: deque[tuple[bytes, int]] = deque()
        self._backlog_rows = 0
        self._backlog_bytes = 0
        self._connected = False
        self._outstanding_rows = 0
        self._outstanding_bytes = 0
        #: frames sent and not credited, oldest first: what dies with the task's process
        self._unfinished: deque[bytes] = deque()
        self._part_credited = 0
        self._credited_rows = 0
        self._credited_bytes = 0
        self._credited_busy_secs = 0.0
        self._busy_since = 0.0
        self._pressured = False

    def offer(self, frame: bytes, rows: int, now: float) -> bool:
        """Take a frame: True if it may be sent at once, else it waits in the backlog."""
        if not self._backlog and self._fits(len(frame), rows):
            self._sent(frame, rows, now)
            return True
        self._backlog.append((frame, rows))
        self._backlog_rows += rows
        self._backlog_bytes += len(frame)
        return False

    def credit(self, rows: int, nbytes: int, now: float, busy_secs: float = 0.0) -> Sequence[bytes]:
        """The task finished `rows` and `nbytes` since its session began: what may be sent now.

        It was busy for `busy_secs` of that time; 0 if it does not say.
        """
        new_rows = rows - self._credited_rows
        new_bytes = nbytes - self._credited_bytes
        if (
            not 0 < new_bytes <= self._outstanding_bytes
            or not 0 <= new_rows <= self._outstanding_rows
        ):
            # Repeated, of an older session, or made up: never let it widen the window, nor the time
            # that the task has merely been idle count as busy.
            return ()
        self._credited_rows = rows
        self._credited_bytes = nbytes
        self._outstanding_rows -= new_rows
        self._outstanding_bytes -= new_bytes
        self._part_credited += new_bytes
        unfinished = self._unfinished
        while unfinished and len(unfinished[0]) <= self._part_credited:
            self._part_credited -= len(unfinished.popleft())
        busy = max(0.0, now - self._busy_since)
        if busy_secs > self._credited_busy_secs:
            busy = min(busy, busy_secs - self._credited_busy_secs)
            self._credited_busy_secs = busy_secs
        self._busy_since = now
        self._drain.finished(new_rows, busy)
        self._kin.finished(new_rows, busy)
        return self._release(now)

    def connect(self, now: float) -> Sequence[bytes]:
        """The task's instance has a new session: count afresh, send what waited."""
        self.disconnect()
        self._connected = True
        return self._release(now)

    def disconnect(self) -> list[bytes]:
        """The instance is gone: the frames that were outstanding, lost to it. The backlog stays."""
        lost = list(self._unfinished)
        self._unfinished.clear()
        self._part_credited = 0
        self._connected = False
        self._outstanding_rows = self._outstanding_bytes = 0
        self._credited_rows = self._credited_bytes = 0
        self._credited_busy_secs = 0.0
        return lost

    @property
    def unfinished(self) -> Sequence[bytes]:
        """The frames that are outstanding, oldest first."""
        return tuple(self._unfinished)

    def turned(self, now: float) -> bool | None:
        """True or False when the task became pressured or free since the last call, else None."""
        high_rows = self.window_rows
        high_bytes = self._limits.high_bytes
        if self._pressured:
            ratio = self._limits.low_ratio
            if (
                self._backlog_rows <= high_rows * ratio
                and self._backlog_bytes <= high_bytes * ratio
                and not self.stalled(now)
            ):
                self._pressured = False
                return False
        elif (
            self._backlog_rows > high_rows or self._backlog_bytes > high_bytes or self.stalled(now)
        ):
            self._pressured = True
            return True
        return None

    def stalled(self, now: float) -> bool:
        """Whether rows wait, and the task has finished none for a while."""
        return (
            now - self._busy_since > STALL_SECS
            and self._outstanding_rows > 0
            and self._outstanding_rows + self._backlog_rows > STALL_ROWS
        )

    @property
    def limited(self) -> bool:
        """Whether its senders may send only what they are granted."""
        free_rows = self._limits.free_rows
        proven = START_ROWS + self._drain.proven_rows
        return self.window_rows < free_rows or proven < min(free_rows, PROVEN_ROWS)

    def grant(self, senders: int) -> int:
        """How many rows each of its senders may send now; 0 while there is no room."""
        room = self._allowed_rows - self._outstanding_rows - self._backlog_rows
        return max(1, room // senders) if room > 0 else 0

    @property
    def _allowed_rows(self) -> int:
        proven = self._kin if self._by_kin else self._drain
        return min(self.window_rows, START_ROWS + proven.proven_rows)

    @property
    def _by_kin(self) -> bool:
        """Whether its kin say more about this task than what it has finished itself."""
        return self._kin.known and not self._drain.known

    @property
    def pressured(self) -> bool:
        """Whether the task was over its high mark and not yet back under the low one."""
        return self._pressured

    @property
    def rows_per_sec(self) -> float:
        """The drain rate, 0 while unknown."""
        return self._drain.rows_per_sec

    @property
    def window_rows(self) -> int:
        """How many rows may be outstanding, if more than one frame is."""
        by_kin = self._by_kin
        rows_per_sec = (self._kin if by_kin else self._drain).rows_per_sec
        if not rows_per_sec:
            return INITIAL_ROWS
        rows = max(1, int(rows_per_sec * self._limits.window_secs))
        return min(NEWCOMER_ROWS, rows) if by_kin else rows

    @property
    def frame_rows(self) -> int:
        """The largest frame, in rows, that senders should make: a quarter of the window."""
        return max(1, min(self._limits.frame_rows, self.window_rows // 4))

    def statistics(self) -> QueueStatistics:
        """What waits and how fast it goes."""
        return QueueStatistics(
            self._backlog_rows,
            self._backlog_bytes,
            self._outstanding_rows,
            self._outstanding_bytes,
            self.rows_per_sec,
            self._pressured,
            self.limited,
        )

    def _fits(self, nbytes: int, rows: int) -> bool:
        if not self._connected:
            return False
        if self._outstanding_bytes == 0:
            return True
        return (
            self._outstanding_rows + rows <= self.window_rows
            and self._outstanding_bytes + nbytes <= self._limits.high_bytes
        )

    def _sent(self, frame: bytes, rows: int, now: float) -> None:
        if self._outstanding_bytes == 0:
            self._busy_since = now
        self._outstanding_rows += rows
        self._outstanding_bytes += len(frame)
        self._unfinished.append(frame)

    def _release(self, now: float) -> Sequence[bytes]:
        ready: list[bytes] = []
        while self._backlog:
            frame, rows = self._backlog[0]
            if not self._fits(len(frame), rows):
                break
            self._backlog.popleft()
            self._backlog_rows -= rows
            self._backlog_bytes -= len(frame)
            self._sent(frame, rows, now)
            ready.append(frame)
        return ready

    def check(self) -> None:
        """Assert that the sums agree with the backlog and nothing is outstanding to nobody."""
        assert self._backlog_rows == sum(rows for _, rows in self._backlog)
        assert self._backlog_bytes == sum(len(frame) for frame, _ in self._backlog)
        assert self._outstanding_rows >= 0
        assert self._outstanding_bytes >= 0
        assert self._outstanding_bytes == sum(map(len, self._unfinished)) - self._part_credited
        assert self._connected or self._outstanding_bytes == 0
