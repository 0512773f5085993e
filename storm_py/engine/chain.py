"""Chain: the edges inside one instance, where a task hands its rows to another as they are.

Components are fused where `storm_py.core.fusion` says so. Rows that go to a task of the same
instance wait in open batches of their own, not packed, and are queued for that task whenever user
code has returned. The queues go before all input from outside, that of the last task first: so at
most what one slice of user code of each task has emitted is on its way in here. Nothing of it may
be credited outside before it is done. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from storm_py.core.batching import OpenBatch

from .intake import Intake
from .tasks import BoltTask, RunningTask


class _Source:
    """A task that hands rows over: its batches, and how much it had emitted when they were empty.

    An executor may have many tasks, and each of them a batch for each that it feeds: so those are
    looked at only where something was emitted.
    """

    __slots__ = ("_seen", "edges", "task")

    def __init__(self, task: RunningTask, edges: list[tuple[OpenBatch, BoltTask]]) -> None:
        self.task = task
        self.edges = edges
        self._seen = 0

    @property
    def emitted(self) -> bool:
        """Whether anything was emitted since the last call of `take`."""
        return self.task.output.emissions.emitted != self._seen

    def take(self) -> Iterator[tuple[OpenBatch, BoltTask]]:
        """The batches that hold rows; the caller empties them."""
        self._seen = self.task.output.emissions.emitted
        return (edge for edge in self.edges if edge[0].rows)


class Chain:
    """The edges among the tasks of one instance; none of them if nothing is fused."""

    def __init__(self, intake: Intake) -> None:
        self._in = intake
        self._sources: dict[int, _Source] = {}
        #: by task, how many rows were handed over to it
        self._handed: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._sources)

    def join(self, tasks: Iterable[RunningTask]) -> None:
        """All tasks of the instance are made: find the edges between them."""
        by_id = {task.task: task for task in tasks}
        for source in by_id.values():
            edges = []
            for batch in source.output.batcher.handed_over():
                dest = by_id[batch.dest]
                assert isinstance(dest, BoltTask)
                edges.append((batch, dest))
                dest.fed_by.append(source.output.batcher)
                self._handed[dest.task] = 0
            if edges:
                self._sources[source.task] = _Source(source, edges)
        fed = [by_id[task] for task in by_id if task in self._handed]
        for dest in fed:
            assert isinstance(dest, BoltTask)
            dest.pace(1)
        self._in.feed([dest.task for dest in fed])

    def hand_over(self) -> None:
        """Queue what has been emitted since the last call; user code is not running."""
        for source in self._sources.values():
            if source.emitted:
                for batch, dest in source.take():
                    tracked = batch.take_tracking() if batch.roots else None
                    runs, rows = batch.take()
                    source.task.transferred += len(rows)
                    self._handed[dest.task] += len(rows)
                    self._in.hand_over(dest, source.task.task, runs, rows, tracked)

    def marker(self, task: RunningTask, wave: int) -> Iterator[int]:
        """Queue an END wave of `task` behind its rows; the tasks that it is for."""
        self.hand_over()
        source = self._sources.get(task.task)
        for _, dest in source.edges if source is not None else ():
            self._in.hand_over_marker(dest, task.task, wave)
            yield dest.task

    @property
    def holds(self) -> bool:
        """Whether rows or markers are on their way in here, or something else was emitted since."""
        return self._in.holds or any(source.emitted for source in self._sources.values())

    def rows(self, tasks: Collection[RunningTask]) -> int:
        """How many rows are on their way to these tasks in here."""
        queued = sum(self._handed[t.task] - t.executed for t in tasks if t.task in self._handed)
        emitted = (source for source in self._sources.values() if source.emitted)
        return queued + sum(
            len(batch.rows) for source in emitted for batch, dest in source.edges if dest in tasks
        )
