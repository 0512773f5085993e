"""The spy on a batch bolt: what `storm_py.testing.spies` does for other bolts, row by row."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from storm_py.api.batches import Batch
from storm_py.api.component import BatchBolt
from storm_py.api.context import TopologyContext
from storm_py.api.tuples import TrackedTuple, Tuple
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.engine.batch_acking import positions
from storm_py.engine.columns import is_columns, rows_of
from storm_py.errors import FailedException

from .spying import Log, Spying


class BatchBoltSpy(Spying, BatchBolt):
    """Between the engine and a batch bolt; to the log every row is a tuple."""

    def __init__(self, component: BatchBolt, log: Log) -> None:
        super().__init__(component, log)
        self.auto_ack = component.auto_ack
        self.columns = component.columns
        self.executing: Batch | None = None
        #: tracked rows that were neither acked nor failed, as tuples, by batch and position
        self.left: dict[Batch, dict[int, Tuple]] = {}
        self._tuples: dict[Batch, list[Tuple]] = {}

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.begin(context)
        self.component.prepare(conf, context, _BatchCollector(collector, context, self))

    def execute_batch(self, rows: Any, batch: Batch) -> None:
        tuples = [_tuple(batch, n) for n in range(len(batch))]
        for tup in tuples:
            self.received(tup)
        self._tuples[batch] = tuples
        self.left[batch] = {n: tup for n, tup in enumerate(tuples) if tup.message_id}
        self.executing = batch
        try:
            self.component.execute_batch(rows, batch)
        except FailedException:
            if self.auto_ack:
                self.answered(batch, None)
            raise
        self.executing = None
        if self.auto_ack:
            self.answered(batch, None)

    def end_of_input(self) -> None:
        self.executing = None  # one that was failed is none of its anchors
        self.watch("end_of_input")

    def cleanup(self) -> None:
        self.watch("cleanup")

    @property
    def unanswered(self) -> dict[int, Tuple]:
        """Tracked rows that were neither acked nor failed, by id()."""
        return {id(tup): tup for left in self.left.values() for tup in left.values()}

    def answered(self, batch: Batch, rows: Any) -> None:
        """Rows, or all that were left, are acked or failed."""
        left = self.left.get(batch, {})
        for n in list(left) if rows is None else positions(rows, batch, ""):
            left.pop(n, None)
        if not left:
            self.left.pop(batch, None)

    def anchors(self, source_index: Any, batch: Batch | None) -> list[Tuple]:
        """The tuples that something is anchored to."""
        of = self.executing if batch is None else batch
        tuples = [] if of is None else self._tuples.get(of, [])
        if of is None or source_index is None:
            return tuples
        return [tuples[n] for n in positions(source_index, of, "")]


class _BatchCollector:
    def __init__(self, collector: Any, context: TopologyContext, spy: BatchBoltSpy) -> None:
        self._collector = collector
        self._context = context
        self._spy = spy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collector, name)

    def emit_batch(
        self,
        rows: Any,
        source_index: Any = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> Sequence[Sequence[int]]:
        if not is_columns(rows) and not isinstance(rows, (list, str, bytes)):
            rows = list(rows)
        tasks: Sequence[Sequence[int]]
        tasks = self._collector.emit_batch(rows, source_index, stream, batch)
        seen = rows
        if is_columns(rows):
            seen = rows_of(rows, self._context.this_output_fields(stream), "")
        for n, (row, its_tasks) in enumerate(zip(seen, tasks, strict=True)):
            anchors = self._spy.anchors(None if source_index is None else source_index[n], batch)
            self._spy.emitted(row, stream, its_tasks, anchors=anchors)
        return tasks

    def emit(
        self,
        values: Sequence[object],
        source_index: Any = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> Sequence[int]:
        tasks: Sequence[int] = self._collector.emit(values, source_index, stream, batch)
        anchors = self._spy.anchors(source_index, batch)
        self._spy.emitted(values, stream, tasks, anchors=anchors)
        return tasks

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        source_index: Any = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> None:
        self._collector.emit_direct(task_id, values, source_index, stream, batch)
        anchors = self._spy.anchors(source_index, batch)
        self._spy.emitted(values, stream, (task_id,), anchors=anchors)

    def ack(self, batch: Batch, rows: Any = None) -> None:
        self._collector.ack(batch, rows)
        self._spy.answered(batch, rows)

    def fail(self, batch: Batch, rows: Any = None) -> None:
        self._collector.fail(batch, rows)
        self._spy.answered(batch, rows)


def _tuple(batch: Batch, n: int) -> Tuple:
    """Row `n` as it came, as a tuple."""
    values = copy.copy(batch.rows[n])
    if batch.roots is None:
        return Tuple(values, batch.context)
    return TrackedTuple(values, batch.context, batch.roots[n], batch.edges[n])
