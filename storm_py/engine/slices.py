"""Slices: how many rows a bolt executes between two looks at the clock.

As many as should fit into a slice of time, by how long the last ones took; a slice ends early where
nothing more may be emitted. A batch bolt gets a batch at a time, however long that takes. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from typing import Final

from storm_py.core.batching import Root

from .intake import Intake, Rows
from .port import Watch

#: The longest slice of user code between two looks at the clock, as far as it can be foreseen.
SLICE_SECS: Final = 0.001


class Slices:
    """Those of one instance, whose rows wait in `intake`."""

    def __init__(self, intake: Intake, clock: Callable[[], float], watch: Watch) -> None:
        self._in = intake
        self._clock = clock
        self._watch = watch
        #: what a bolt is executing, and how many of those rows wait until it may go on
        self._running: Iterator[object] | None = None
        self._put_back = 0

    def run(self, item: Rows) -> None:
        """Execute as many rows as should fit into a slice of time; learn how long they took."""
        before = self._clock()
        start, context = item.done, item.context
        rows = item.rows
        task = item.task
        end = min(len(rows), start + task.slice_rows)
        part = rows if start == 0 and end == len(rows) else rows[start:end]
        self._running = iterator = iter(part)
        self._put_back = 0
        source, stream = context.source_task, context.source_stream_id
        self._watch.entered(task.method, task.task, source, stream, start, end - 1)
        roots: Iterable[Root] | None = None
        edges: Iterable[int] = ()
        if item.roots is not None:
            roots = item.roots if part is rows else item.roots[start:end]
            edges = item.edges if part is rows else item.edges[start:end]
        try:
            task.run(iterator, context, roots, edges)
        finally:
            # On an exception the iterator says how far it got: the failing row counts as taken.
            count = len(part) - length_hint(iterator) - self._put_back
            self._running = None
            task.executed += count
            self._in.executed(item, count)
        took = self._clock() - before
        if took > SLICE_SECS:
            task.pace(int(count * SLICE_SECS / took))
        elif count == task.slice_rows:
            task.pace(count * 2)

    def halt(self) -> None:
        """Let the slice that is under way, if one is, end behind the row in work."""
        if self._running is not None:
            for _ in self._running:
                self._put_back += 1
