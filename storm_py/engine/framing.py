"""A closed batch as DATA frames: one as a rule, several where one would be above the limit.

Rows and their tracking columns count; a row that is alone in its frame may exceed the limit by the
fixed part of the frame (`SINGLE_ROW_OVERHEAD_BYTES`), since emit has refused it otherwise. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from storm_py.core.batching import Root
from storm_py.wire.frames import FRAME_OVERHEAD_BYTES, RUN_BYTES, encode_data

from .acking import ROOT_BYTES, tracking_columns

#: A row's place in the column that counts roots, padded if it is the last.
_COUNT_BYTES: Final = 8
#: How far a frame of one row with one root may be above the size of that row.
SINGLE_ROW_OVERHEAD_BYTES: Final = FRAME_OVERHEAD_BYTES + ROOT_BYTES + _COUNT_BYTES

Runs = Sequence[tuple[int, int]]
Tracked = tuple[list[Root], list[int]]


def data_frames(
    epoch: int,
    src: int,
    dest: int,
    sent_at: int,
    runs: Runs,
    rows: Sequence[bytes],
    tracked: Tracked | None,
    limit: int,
) -> list[bytes]:
    """The parts of the frames that carry these rows in order, split where `limit` demands it.

    `tracked` are the roots and edges of the rows, as `OpenBatch.take_tracking` gives them.
    """
    columns = None if tracked is None else tracking_columns(*tracked)
    parts = encode_data(epoch, src, dest, sent_at, runs, rows, columns)
    if sum(map(len, parts)) <= limit or len(rows) == 1:
        return parts
    found: list[bytes] = []
    for start, end in _pieces(runs, rows, tracked, limit):
        columns = None
        if tracked is not None:
            columns = tracking_columns(tracked[0][start:end], tracked[1][start:end])
        found += encode_data(
            epoch, src, dest, sent_at, _cut(runs, start, end), rows[start:end], columns
        )
    return found


def _pieces(
    runs: Runs, rows: Sequence[bytes], tracked: Tracked | None, limit: int
) -> Iterator[tuple[int, int]]:
    """Ranges of rows, each as long as the limit allows and at least one row."""
    fixed = FRAME_OVERHEAD_BYTES + RUN_BYTES * (len(runs) - 1)
    start, size = 0, fixed
    for i, row in enumerate(rows):
        more = len(row)
        if tracked is not None:
            root = tracked[0][i]
            more += _COUNT_BYTES + ROOT_BYTES * (1 if isinstance(root, int) else len(root))
        if i > start and size + more > limit:
            yield start, i
            start, size = i, fixed
        size += more
    yield start, len(rows)


def _cut(runs: Runs, start: int, end: int) -> list[tuple[int, int]]:
    """The runs of the rows from `start` to `end`."""
    found = []
    first = 0
    for stream, count in runs:
        inside = min(end, first + count) - max(start, first)
        if inside > 0:
            found.append((stream, inside))
        first += count
    return found
