"""Chain: the edges inside one instance, where a task hands its rows to another as they are.

Components are fused where `storm_py.core.fusion` says so. Rows that go to a task of the same
instance wait in open batches of their own, not packed, and are queued for that task whenever user
code has returned. The queues go before all input from outside, that of the last task first: so at
most what one slice of user code of each task has emitted is on its way in here. Nothing of it may
be credited outside before it is done. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from storm_py.core.batching import OpenBatch

from .intake import Intake
from .tasks import BoltTask, RunningTask


class Chain:
    """The edges among the tasks of one instance; none of them if nothing is fused."""

    def __init__(self, intake: Intake) -> None:
        self._in = intake
        self._edges: list[tuple[OpenBatch, RunningTask, BoltTask]] = []

    def __bool__(self) -> bool:
        return bool(self._edges)

    def join(self, tasks: Iterable[RunningTask]) -> None:
        """All tasks of the instance are made: find the edges between them."""
        by_id = {task.task: task for task in tasks}
        for source in by_id.values():
            for batch in source.output.batcher.handed_over():
                dest = by_id[batch.dest]
                assert isinstance(dest, BoltTask)
                self._edges.append((batch, source, dest))
                dest.fed_by.append(source.output.batcher)
                dest.pace(1)
        handed = {dest.task for _, _, dest in self._edges}
        self._in.feed([task for task in by_id if task in handed])

    def hand_over(self) -> None:
        """Queue what has been emitted since the last call; user code is not running."""
        for batch, source, dest in self._edges:
            if batch.rows:
                tracked = batch.take_tracking() if batch.roots else None
                runs, rows = batch.take()
                source.transferred += len(rows)
                self._in.hand_over(dest, source.task, runs, rows, tracked)

    def marker(self, source: RunningTask, wave: int) -> Iterator[int]:
        """Queue an END wave of `source` behind its rows; the tasks that it is for."""
        self.hand_over()
        for _, from_, dest in self._edges:
            if from_ is source:
                self._in.hand_over_marker(dest, source.task, wave)
                yield dest.task

    @property
    def holds(self) -> bool:
        """Whether rows or markers are on their way in here."""
        return self._in.holds or any(batch.rows for batch, _, _ in self._edges)

    def rows(self, task: int) -> int:
        """How many rows are on their way to a task in here."""
        gathered = sum(len(batch.rows) for batch, _, dest in self._edges if dest.task == task)
        return gathered + self._in.local_rows(task)
