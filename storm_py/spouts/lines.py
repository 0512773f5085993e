"""LineReader: the lines of one task's share of a file, with their positions.

Files only: no collector, no clock. What a line *is* is decided here: bytes up to and with the byte
10, or up to the end of a file that is not followed.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from .progress import Position

__all__ = ["HEAD_BYTES", "LineReader", "head_of"]

#: How much of the beginning of a file tells it from others.
HEAD_BYTES: Final = 4096


class LineReader:
    """Reads the lines whose number is `index` modulo `tasks`, counted from 0, from `position` on.

    With `follow` a line counts once its byte 10 is there. Raises OSError when the file cannot be
    opened, ValueError for a line of more than `max_line_bytes` or a file that was cut or replaced.
    """

    def __init__(
        self,
        path: Path,
        position: Position,
        index: int,
        tasks: int,
        follow: bool,
        max_line_bytes: int,
    ) -> None:
        self._path = path
        self._position = position
        self._index = index
        self._tasks = tasks
        self._follow = follow
        self._limit = max_line_bytes
        self._file = path.open("rb")
        self._file.seek(position.offset)
        #: for lines that failed: the first one goes on reading ahead
        self._second = path.open("rb")

    @property
    def position(self) -> Position:
        """Where the next line begins, of whatever share."""
        return self._position

    def next(self) -> tuple[Position, bytes] | None:
        """The next line of this share; None at the end of what there is."""
        readline, limit, tasks = self._file.readline, self._limit, self._tasks
        offset, number = self._position
        while True:
            line = readline(limit + 1)
            if not line or (self._follow and line[-1] != 10 and len(line) <= limit):
                self._position = Position(offset, number)
                self._at_the_end()
                return None
            at = offset, number
            if len(line) > limit:
                raise self._too_long(Position(*at))
            offset += len(line)
            number += 1
            if (number - 2) % tasks == self._index:
                self._position = Position(offset, number)
                return Position(*at), line

    def _at_the_end(self) -> None:
        """Go back before a partial line; notice a file that is not what it was."""
        offset = self._position.offset
        self._file.seek(offset)
        size = os.fstat(self._file.fileno()).st_size
        if size < offset:
            raise ValueError(
                f"{self._path} was cut to {size:,} bytes while it was read up to byte {offset:,}; "
                "a file that is read may only grow"
            )
        if self._follow and not self._is_the_same():
            raise ValueError(
                f"{self._path} was replaced by another file while it was followed; a file that is "
                "followed may only grow: start over with another path or offset_dir"
            )

    def _is_the_same(self) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False

    def at(self, position: Position) -> bytes:
        """The line at a position that was read before."""
        self._second.seek(position.offset)
        return self._second.readline(self._limit)

    def _too_long(self, at: Position) -> ValueError:
        return ValueError(
            f"line {at.number:,} of {self._path} (byte {at.offset:,}) is longer than "
            f"{self._limit:,} bytes; raise max_line_bytes if that is what a line may be"
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._second.close()


def head_of(path: Path, nbytes: int) -> str:
    """A digest of the first bytes of a file."""
    with path.open("rb") as file:
        return hashlib.sha256(file.read(nbytes)).hexdigest()
