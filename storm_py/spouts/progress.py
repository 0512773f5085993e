"""Progress: which lines of a file are done, which are on their way, which are to be emitted again.

Theory of operation. A line is known by its `Position`. Everything before `next` was read; of that,
the *open* lines are emitted and not acked, or failed and waiting for their turn. So all that must
survive a death is `next` and the open lines (`Saved`): whoever goes on there emits every line that
was not acked, and of the acked ones only those that were acked after the last save.

No file and no clock here, `now` is an argument; the other half is `storm_py.spouts.file`.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

__all__ = ["Pace", "Position", "Progress", "Saved"]

#: Seconds before the second retry of a line, doubled for each further one. The first is at once: a
#: process that died is usually back before the line is.
RETRY_SECS: Final = 0.1
#: Longest wait before a retry.
MAX_RETRY_SECS: Final = 10.0

#: Of the stored form; another number is refused.
_FORMAT: Final = 1
#: Seconds of its rate that a pace may catch up on after a pause.
_CATCH_UP_SECS: Final = 0.1


class Position(NamedTuple):
    """Where a line begins: its byte offset, and its number counted from 1."""

    offset: int
    number: int


START: Final = Position(0, 1)


@dataclass(frozen=True, slots=True)
class Saved:
    """What is kept on disk for one task of a spout.

    `lowest` is where the lowest line that is not acked begins (`next` if all are): no line before
    it is ever needed again. `head_bytes` and `head` (sha256) recognise the beginning of the file.
    """

    path: str
    head_bytes: int
    head: str
    task_index: int
    tasks: int
    lowest: Position
    next: Position
    open: tuple[Position, ...]

    def encode(self) -> bytes:
        """The stored form, JSON."""
        return json.dumps({"format": _FORMAT, **asdict(self)}).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> Saved:
        """Read the stored form; ValueError says what is wrong with it."""
        try:
            found = json.loads(data)
        except ValueError as error:
            raise ValueError(f"it is not JSON ({error})") from error
        if not isinstance(found, dict) or found.pop("format", None) != _FORMAT:
            raise ValueError(f"it is not of format {_FORMAT}")
        try:
            saved = cls(
                _a(str, found["path"]),
                _a(int, found["head_bytes"]),
                _a(str, found["head"]),
                _a(int, found["task_index"]),
                _a(int, found["tasks"]),
                _position(found["lowest"]),
                _position(found["next"]),
                tuple(map(_position, _a(list, found["open"]))),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"something is missing or of the wrong type: {error}") from error
        if saved.lowest != min(saved.open, default=saved.next) or saved.lowest > saved.next:
            raise ValueError("its offsets contradict each other")
        return saved


def _a(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _position(value: Any) -> Position:
    offset, number = _a(list, value)
    return Position(_a(int, offset), _a(int, number))


class Progress:
    """The lines of one task.

    `limit` bounds the open lines; a save is due after `save_rows` acks, or `save_secs` after the
    last one if there was any change.
    """

    def __init__(
        self,
        next_: Position,
        open_: Iterable[Position],
        limit: int,
        save_rows: int,
        save_secs: float,
        now: float,
    ) -> None:
        self._next = next_
        self._open = {at.offset: at.number for at in open_}
        self._again = [(now, offset) for offset in sorted(self._open)]
        self._fails: dict[int, int] = {}
        self._limit = limit
        self._save_rows = save_rows
        self._save_secs = save_secs
        self._acked = 0
        self._changed = False
        self._saved_at = now

    @property
    def next(self) -> Position:
        """Where the first line that was not read yet begins."""
        return self._next

    @property
    def lowest(self) -> Position:
        """Where the lowest line that is not acked begins."""
        if not self._open:
            return self._next
        offset = min(self._open)
        return Position(offset, self._open[offset])

    @property
    def open(self) -> tuple[Position, ...]:
        """The lines that were read and not acked, in the order of the file."""
        return tuple(Position(offset, self._open[offset]) for offset in sorted(self._open))

    @property
    def done(self) -> bool:
        """Whether all that was read is acked."""
        return not self._open

    @property
    def may_read(self) -> bool:
        """Whether a further line may be taken from the file."""
        return len(self._open) < self._limit

    def reads(self, at: Position | None, after: Position) -> None:
        """A line of this task's share is emitted (None: only others' were passed)."""
        if at is not None:
            self._open[at.offset] = at.number
        self._changed |= after != self._next
        self._next = after

    def again(self, now: float) -> Position | None:
        """The next line to emit again, if one is due; it leaves the waiting ones."""
        if not self._again or self._again[0][0] > now:
            return None
        _, offset = heapq.heappop(self._again)
        return Position(offset, self._open[offset])

    def acked(self, offset: int) -> None:
        """The line at `offset` is processed."""
        del self._open[offset]
        self._fails.pop(offset, None)
        self._acked += 1
        self._changed = True

    def failed(self, offset: int, now: float) -> int:
        """The line at `offset` must be emitted again; how often it has failed now."""
        fails = self._fails[offset] = self._fails.get(offset, 0) + 1
        # The exponent is bounded: 2.0 ** 1100 is an OverflowError, and the result is capped anyhow.
        delay = RETRY_SECS * 2.0 ** min(fails - 2, 20) if fails > 1 else 0.0
        heapq.heappush(self._again, (now + min(delay, MAX_RETRY_SECS), offset))
        return fails

    def give_up(self, offset: int) -> Position:
        """The line at `offset`, which has just failed, is not emitted again; where it stands."""
        at = Position(offset, self._open[offset])
        self._again = [entry for entry in self._again if entry[1] != offset]
        heapq.heapify(self._again)
        self.acked(offset)
        return at

    def save_due(self, now: float) -> bool:
        """Whether it is time to save."""
        return self._acked >= self._save_rows or (
            self._changed and now - self._saved_at >= self._save_secs
        )

    def saved(self, now: float) -> None:
        """All there is now was saved."""
        self._acked = 0
        self._changed = False
        self._saved_at = now

    def check(self) -> None:
        """Assert the invariants."""
        waiting = [offset for _, offset in self._again]
        assert len(set(waiting)) == len(waiting)
        assert self._open.keys() >= set(waiting)
        assert self._open.keys() >= self._fails.keys()
        assert all(offset < self._next.offset for offset in self._open)


class Pace:
    """Allows `per_sec` lines a second on average, evenly spread."""

    def __init__(self, per_sec: float, now: float) -> None:
        self._gap_secs = 1 / per_sec
        self._next_at = now

    def may(self, now: float) -> bool:
        """Whether a line may be emitted now."""
        return now >= self._next_at

    def emitted(self, now: float) -> None:
        """A line was."""
        self._next_at = max(self._next_at, now - _CATCH_UP_SECS) + self._gap_secs
