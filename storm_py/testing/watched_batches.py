"""Watched batch bolts: what `storm_py.testing.watching` does for other bolts, row by row.

The hidden number is the last value of every row; the batch that user code holds is the engine's
own, from which the numbers were taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storm_py.api.batches import Batch
from storm_py.api.component import BatchBolt
from storm_py.api.context import TopologyContext
from storm_py.api.tuples import Fields, TupleContext
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.engine.batch_acking import positions
from storm_py.engine.columns import handing_over, is_columns, rows_of
from storm_py.errors import FailedException

from .checker import Reception
from .watch import Watch

#: What the checker knows of the rows of a batch; None for one that was answered.
Receptions = list[Reception | None]


class WatchedBatchBolt(BatchBolt):
    """A batch bolt whose input, emits, acks and fails are watched."""

    def __init__(self, bolt: BatchBolt, watch: Watch) -> None:
        self.it = bolt
        self.auto_ack = bolt.auto_ack
        self._watch = watch
        self._hand_over = handing_over(bolt.columns)
        self._collector: _BatchCollector | None = None

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self._collector = _BatchCollector(collector, context, self._watch)
        self.it.prepare(conf, context, self._collector)

    def execute_batch(self, rows: list[list[Any]], batch: Batch) -> None:
        collector = self._collector
        assert collector is not None
        if not batch.is_tick:
            collector.take(batch)
        self._watch.calls("execute_batch")
        for _ in batch.rows:
            self._watch.spend()
        collector.current = batch
        try:
            self.it.execute_batch(self._hand_over(batch.rows, batch.fields), batch)
        except FailedException:
            if self.auto_ack:
                collector.answered(batch, None, acked=False)
            raise
        finally:
            collector.current = None
        if self.auto_ack:
            collector.answered(batch, None, acked=True)

    def end_of_input(self) -> None:
        self._watch.calls("end_of_input")
        self._watch.checker.ended(self._watch.life)
        self.it.end_of_input()

    def cleanup(self) -> None:
        self.it.cleanup()


class _BatchCollector:
    def __init__(self, real: Any, context: TopologyContext, watch: Watch) -> None:
        self._real = real
        self._watch = watch
        self._fields = {
            name: Fields(context.this_output_fields(name)[:-1]) for name in context.this_streams
        }
        self._contexts: dict[TupleContext, TupleContext] = {}
        self._held: dict[Batch, Receptions] = {}
        #: the batch that is being executed
        self.current: Batch | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def take(self, batch: Batch) -> None:
        """Take the numbers off a batch, and tell the checker of it."""
        it = batch.context
        if it not in self._contexts:
            self._contexts[it] = TupleContext(
                it.source_component, it.source_stream_id, it.source_task, Fields(it.fields[:-1])
            )
        watch = self._watch
        self._held[batch] = [
            watch.checker.receives(watch.life, row[-1], it.source_task) for row in batch.rows
        ]
        batch.rows = [row[:-1] for row in batch.rows]
        batch.context = self._contexts[it]

    # ---- answers -------------------------------------------------------------------------------

    def ack(self, batch: Batch, rows: Any = None) -> None:
        self._real.ack(batch, rows)
        self.answered(batch, rows, acked=True)

    def fail(self, batch: Batch, rows: Any = None) -> None:
        self._real.fail(batch, rows)
        self.answered(batch, rows, acked=False)

    def answered(self, batch: Batch, rows: Any, acked: bool) -> None:
        """User code, or the engine behind it, has answered rows, or all that were left."""
        held = self._held.get(batch, [])
        for n in range(len(held)) if rows is None else positions(rows, batch, ""):
            reception, held[n] = held[n], None
            if reception is not None:
                self._watch.checker.answers(reception, acked)

    # ---- emits ---------------------------------------------------------------------------------

    def emit_batch(
        self,
        rows: Any,
        source_index: Any = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> Any:
        if stream in self._fields and is_columns(rows):
            rows = rows_of(rows, self._fields[stream], f"stream {stream!r}")
        given = [list(row) for row in rows]
        checker, life = self._watch.checker, self._watch.life
        emissions = [checker.emits(life, stream) for _ in given]
        numbered = [[*row, made.number] for row, made in zip(given, emissions, strict=True)]
        try:
            dests = self._real.emit_batch(numbered, source_index, stream, batch)
        except Exception:
            for made in emissions:
                checker.refused(made)
            raise
        for n, made in enumerate(emissions):
            anchors = self._anchors(None if source_index is None else source_index[n], batch)
            checker.emitted(made, given[n], dests[n], anchors)
        return dests

    def emit(
        self,
        values: Sequence[object],
        source_index: Any = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> Any:
        return self._watch.emit(
            lambda row, _: self._real.emit(row, source_index, stream, batch),
            values,
            stream,
            self._anchors(source_index, batch),
        )

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        source_index: Any = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> None:
        self._watch.emit(
            lambda row, _: self._real.emit_direct(task_id, row, source_index, stream, batch),
            values,
            stream,
            self._anchors(source_index, batch),
            direct=task_id,
        )

    def _anchors(self, source_index: Any, batch: Batch | None) -> list[Reception]:
        """What the checker knows of the rows that something is made from."""
        of = self.current if batch is None else batch
        held = [] if of is None else self._held.get(of, [])
        named: Sequence[int] = range(len(held))
        if of is not None and held and source_index is not None:
            named = positions(source_index, of, "")
        return [found for n in named if (found := held[n]) is not None]
