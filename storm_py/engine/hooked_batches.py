"""Batch tasks with hooks: hooks know tuples only, so every row is shown to them as one.

Without hooks nothing of this runs; `storm_py.engine.hooked` does it for other tasks. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from storm_py.api.batches import Batch
from storm_py.api.hooks import BoltAckInfo, BoltExecuteInfo, BoltFailInfo, EmitInfo
from storm_py.api.tuples import Tuple

from .batch_acking import positions
from .hooked import Hooks

#: A collector's ack or fail.
Answer = Callable[..., None]


class TimedBatch(Batch):
    """A batch with the second in which its execution began."""

    __slots__ = ("began",)
    began: float


class BatchHooks:
    """The hooks of one task, told of rows."""

    def __init__(self, hooks: Hooks, task: int) -> None:
        self._hooks = hooks
        self._task = task

    def begin(self, batch: Batch) -> None:
        """The batch is about to be executed."""
        if isinstance(batch, TimedBatch):
            batch.began = self._hooks.clock()

    def executed(self, batch: Batch) -> None:
        """It was; a row's latency is that of its batch."""
        latency = self._latency(batch) or 0.0
        for row in batch.rows:
            tup = Tuple(row, batch.context)
            self._hooks.tell("bolt_execute", BoltExecuteInfo(tup, self._task, latency))

    def emitted(self, values: Sequence[object], stream: str, tasks: Sequence[int]) -> None:
        """A row was emitted."""
        self._hooks.tell("emit", EmitInfo(values, stream, self._task, tasks))

    def ack(self, ack: Answer) -> Answer:
        """`ack` with hooks behind it."""

        def hooked(batch: Batch, rows: int | Sequence[int] | None = None) -> None:
            told = list(_answered(batch, rows, "ack"))
            ack(batch, rows)
            for tup in told:
                self._hooks.tell("bolt_ack", BoltAckInfo(tup, self._task, self._latency(batch)))

        return hooked

    def fail(self, fail: Answer) -> Answer:
        """`fail` with hooks behind it."""

        def hooked(batch: Batch, rows: int | Sequence[int] | None = None) -> None:
            told = list(_answered(batch, rows, "fail"))
            fail(batch, rows)
            for tup in told:
                self._hooks.tell("bolt_fail", BoltFailInfo(tup, self._task, self._latency(batch)))

        return hooked

    def _latency(self, batch: Batch) -> float | None:
        return self._hooks.since(batch.began if isinstance(batch, TimedBatch) else None)


def _answered(batch: object, rows: object, call: str) -> Iterator[Tuple]:
    """The rows that a call is about to answer, as tuples."""
    if isinstance(batch, Batch):
        roots = batch.roots
        left = [n for n in range(len(batch)) if roots is None or roots[n] is not None]
        for n in left if rows is None else positions(rows, batch, call):
            yield Tuple(batch.rows[n], batch.context)
