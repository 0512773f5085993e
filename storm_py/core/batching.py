"""Batcher: the open batches of one producing task, one per consuming task.

One batch per (producer, consumer) pair with its streams inside as runs keeps the order of the pair
across streams. The emit closures of `storm_py.engine.emitters` append to `OpenBatch.rows`
themselves - that is the hot path - and come here only when a batch is due. Pure: rows in, runs and
rows out; frames are made in `storm_py.wire.frames`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

#: The root of a row, 0 if it is untracked; with several roots, (root, edge) pairs.
Root: TypeAlias = int | tuple[tuple[int, int], ...]


class OpenBatch:
    """Rows on their way to one task.

    `rows` is one list for the batch's whole life (emptied, not replaced), so that closures and
    caches may hold on to it. `cap` is the number of rows at which the batch is due, lowered for a
    slow consumer; `extra_bytes` counts only what rows above the small-row size exceed it by, and
    the tracking columns of rows with several roots.
    """

    __slots__ = (
        "answer",
        "cap",
        "dest",
        "edges",
        "extra_bytes",
        "marks",
        "roots",
        "rows",
        "stream",
    )

    def __init__(self, dest: int, cap: int) -> None:
        self.dest = dest
        self.cap = cap
        #: what emit returns when this task is the only destination
        self.answer: tuple[int, ...] = (dest,)
        #: packed, or lists where they are handed over within the instance
        self.rows: list[Any] = []
        self.extra_bytes = 0
        self.stream = -1
        self.marks: list[tuple[int, int]] = []
        #: per row its root, or its (root, edge) pairs if it has several; short of `rows` by the
        #: untracked rows at the end, empty while all are
        self.roots: list[Root] = []
        self.edges: list[int] = []

    def track(self, root: Root, edge: int) -> None:
        """The row that was appended last belongs to a tree."""
        self.roots.append(root)
        self.edges.append(edge)
        if len(self.roots) != len(self.rows):
            self.pad()

    def pad(self) -> None:
        """The newest row is tracked and rows before it were not: give those root 0."""
        missing = [0] * (len(self.rows) - len(self.roots))
        self.roots[-1:-1] = missing
        self.edges[-1:-1] = missing

    def align(self) -> None:
        """Rows that follow come with a root and an edge each: give those so far untracked root 0.

        Called before the rows are appended.
        """
        missing = [0] * (len(self.rows) - len(self.roots))
        self.roots += missing
        self.edges += missing

    def take_tracking(self) -> tuple[list[Root], list[int]] | None:
        """The columns of the rows that `take` will give, None if none is tracked; call it first."""
        if not self.roots:
            return None
        missing = [0] * (len(self.rows) - len(self.roots))
        roots, edges = [*self.roots, *missing], [*self.edges, *missing]
        self.roots.clear()
        self.edges.clear()
        return roots, edges

    def switch(self, stream: int) -> None:
        """Rows appended from now on belong to `stream` (its index in the producer's streams)."""
        if stream != self.stream:
            self.marks.append((stream, len(self.rows)))
            self.stream = stream

    def take(self) -> tuple[list[tuple[int, int]], list[Any]]:
        """Close the batch: its runs as (stream, count) and its rows; it is empty afterwards."""
        rows = self.rows[:]
        self.rows.clear()
        starts = [*(start for _, start in self.marks), len(rows)]
        runs = [
            (stream, starts[i + 1] - start)
            for i, (stream, start) in enumerate(self.marks)
            if starts[i + 1] > start
        ]
        self.marks = [(self.stream, 0)]
        self.extra_bytes = 0
        return runs, rows


class Batcher:
    """The open batches of one producing task.

    `rows` and `nbytes` bound a batch; `small` is the size up to which a row is not counted, because
    `rows` of that size stay within `nbytes` anyway. Batches to `local` tasks hold rows that are not
    packed, as lists, and are handed over inside the instance.
    """

    def __init__(
        self, dests: Sequence[int], rows: int, nbytes: int, local: Collection[int] = ()
    ) -> None:
        self._rows = rows
        self.small = max(1, nbytes // rows)
        self.extra_limit = nbytes
        self._batches = {dest: OpenBatch(dest, rows) for dest in dests}
        self._local = {dest: self._batches[dest] for dest in sorted(local)}
        self._packed = tuple(self._batches[dest] for dest in dests if dest not in self._local)

    def batch(self, dest: int) -> OpenBatch:
        """The open batch to a task this producer may send to."""
        return self._batches[dest]

    @property
    def dests(self) -> tuple[int, ...]:
        """Every task this producer may send to."""
        return tuple(self._batches)

    def add(self, dest: int, stream: int, row: bytes) -> bool:
        """Append a row; True when the batch is due."""
        batch = self._batches[dest]
        batch.switch(stream)
        batch.rows.append(row)
        if len(row) > self.small:
            batch.extra_bytes += len(row) - self.small
        return len(batch.rows) >= batch.cap or batch.extra_bytes >= self.extra_limit

    def limit(self, dest: int, rows: int) -> None:
        """Frames to `dest` hold at most this many rows from now on (never above our own bound)."""
        if dest in self._batches:
            self._batches[dest].cap = max(1, min(rows, self._rows))

    def open(self) -> Iterator[OpenBatch]:
        """The batches that hold rows to be sent."""
        return (batch for batch in self._packed if batch.rows)

    def handed_over(self) -> tuple[OpenBatch, ...]:
        """The batches to tasks of the same instance, empty or not."""
        return tuple(self._local.values())

    def hands_over(self, batch: OpenBatch) -> bool:
        """Whether a batch of ours is for a task of the same instance."""
        return batch.dest in self._local

    def check(self) -> None:
        """Assert that no row lacks a stream and every bound holds."""
        for batch in self._batches.values():
            starts = [start for _, start in batch.marks]
            assert starts == sorted(starts)
            assert not batch.rows or starts[:1] == [0], f"rows to {batch.dest} without a stream"
            assert 1 <= batch.cap <= self._rows
