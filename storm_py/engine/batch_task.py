"""BatchTask: a bolt that executes the rows of a frame in one call.

It takes the place of `BoltTask` for a `BatchBolt`. What a batch bolt emits is the business of
`storm_py.engine.batch_output`, its answers are in `storm_py.engine.batch_acking`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from storm_py.api.batches import Batch
from storm_py.api.component import BatchBolt
from storm_py.api.tuples import TupleContext
from storm_py.core.batching import Root
from storm_py.core.plan import PhysicalPlan
from storm_py.errors import FailedException, ReportedFailedException

from .batch_output import BatchOutput
from .columns import handing_over
from .hooked_batches import BatchHooks, TimedBatch
from .running import NOT_A_SPOUT, Collector, NotHere
from .settings import Settings
from .stuck import Activity
from .tasks import BoltTask, SpoutTask
from .user_code import FROM_USER_CODE, UserError


class BatchCollector(Collector):
    """A batch bolt's."""

    end_of_input = NotHere(NOT_A_SPOUT)

    def __init__(self, output: BatchOutput, report_error: Callable[[BaseException], None]) -> None:
        super().__init__(output, report_error)
        acks = output.batch_acks
        self.emit_batch = output.emit_batch
        self.ack = nobody_to_tell if acks is None else acks.ack
        self.fail = nobody_to_tell if acks is None else acks.fail
        self.reset_timeout = nobody_to_tell if acks is None else acks.reset_timeout


def nobody_to_tell(batch: Batch, rows: int | Sequence[int] | None = None) -> None:
    """Without acking nothing is tracked."""


class BatchTask(BoltTask):
    """One task of a batch bolt."""

    kinds = (BatchBolt,)
    method = "execute_batch"
    output_class = BatchOutput
    output: BatchOutput
    _bolt: BatchBolt
    _collector: BatchCollector
    _batch_hooks: BatchHooks | None = None

    def __init__(
        self, plan: PhysicalPlan, task: int, component: object, settings: Settings, *rest: Any
    ) -> None:
        super().__init__(plan, task, component, settings, *rest)
        #: All rows of a frame, and as many of those that are handed over.
        self.slice_rows = settings.batch_rows

    def pace(self, rows: int) -> None:
        """Nothing to learn: a batch is executed in one call, however long that takes."""

    def _make_collector(self) -> BatchCollector:
        return BatchCollector(self.output, self.report_error)

    def _open(self) -> None:
        columns = self._bolt.columns
        try:
            self._hand_over = handing_over(columns)
        except ImportError as error:
            missing = ImportError(
                f"columns = {columns!r} needs a package that is not installed: {error}; "
                f"pip install 'storm-py[{columns}]'"
            )
            raise UserError(self.component_id, self.task, "prepare", missing) from error
        super()._open()

    def _install_hooks(self) -> None:
        if self._batch_hooks is None:
            self._batch_hooks = hooks = BatchHooks(self.hooks, self.task)
            made = self._collector
            self.output.tell = hooks.emitted
            made.ack, made.fail = hooks.ack(made.ack), hooks.fail(made.fail)

    def run(
        self,
        rows: Iterator[list[Any]],
        context: TupleContext,
        roots: Iterable[Root] | None,
        edges: Iterable[int],
    ) -> None:
        """Execute all rows as one batch."""
        given = list(rows)
        tracked = roots is not None and self.acks is not None
        columns = (list(roots), list(edges)) if tracked and roots is not None else (None, None)
        hooks = self._batch_hooks
        batch = (Batch if hooks is None else TimedBatch)(given, context, *columns)
        if hooks is not None:
            hooks.begin(batch)
        try:
            self._execute(batch)
        except UserError:
            raise
        except FROM_USER_CODE as error:
            where = self._where(batch)
            raise UserError(self.component_id, self.task, where, error) from error
        finally:
            self.output.batch = None
        if hooks is not None:
            hooks.executed(batch)

    def _execute(self, batch: Batch) -> None:
        bolt = self._bolt
        handed = self._hand_over(batch.rows, batch.fields)
        self.output.batch = batch
        if not bolt.auto_ack:
            bolt.execute_batch(handed, batch)
            return
        try:
            bolt.execute_batch(handed, batch)
        except FailedException as error:
            if isinstance(error, ReportedFailedException):
                self.report_error(error)
            if batch.left:
                self._collector.fail(batch)
        else:
            if batch.left:
                self._collector.ack(batch)

    def _where(self, batch: Batch) -> str:
        if batch.is_tick:
            return "execute_batch of a tick"
        context = batch.context
        activity = Activity(
            0.0,
            "execute_batch",
            self.task,
            context.source_task,
            context.source_stream_id,
            0,
            len(batch) - 1,
        )
        return activity.words({context.source_task: context.source_component})


def task_class(kind: str, component: object) -> type[SpoutTask] | type[BoltTask]:
    """What runs a component of this kind ("spout" or "bolt")."""
    if kind == "spout":
        return SpoutTask
    return BatchTask if isinstance(component, BatchBolt) else BoltTask
