"""Running tasks: one user object each, its collector, and the calls into it.

Every call of user code goes through here, so that an exception always carries the component, the
task and what was being called. `SpoutTask` and `BoltTask` hold what the instance core must know per
task: how to run rows, whether the task has ended, and its outputs. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from storm_py.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout
from storm_py.api.context import TopologyContext
from storm_py.api.tuples import TrackedTuple, Tuple, TupleContext
from storm_py.config import Config
from storm_py.core.aligner import Aligner
from storm_py.core.batching import Batcher, OpenBatch, Root
from storm_py.core.pending import PendingTuples
from storm_py.core.plan import NO_CUSTOM, CustomGroupings, PhysicalPlan
from storm_py.core.roots import Roots
from storm_py.errors import EmitError, FailedException, ReportedFailedException
from storm_py.wire.acks import AckResults
from storm_py.wire.control import ErrorReport

from .acking import Acks
from .custom import preparations
from .emitters import TaskOutput
from .settings import Settings
from .user_error import UserError as UserError

Report = Callable[[ErrorReport], None]

#: What user code may end with; sys.exit() in a bolt is a mistake to show, not an orderly end.
_FROM_USER_CODE = (Exception, SystemExit)


class Collector:
    """The object that user code emits with; its methods are those built for the task."""

    def __init__(self, output: TaskOutput, report_error: Callable[[BaseException], None]) -> None:
        self.emit = output.emit
        self.emit_direct: Callable[..., None] = output.emit_direct
        self.report_error = report_error


class _SpoutCollector(Collector):
    def __init__(self, spout: SpoutTask, output: TaskOutput, report: Any) -> None:
        super().__init__(output, report)
        self.end_of_input = spout.end_of_input


class _BoltCollector(Collector):
    def __init__(self, output: TaskOutput, report: Any, acks: Acks | None) -> None:
        super().__init__(output, report)
        self.ack: Callable[[Tuple], None] = _nobody_to_tell if acks is None else acks.ack
        self.fail: Callable[[Tuple], None] = _nobody_to_tell if acks is None else acks.fail
        self.reset_timeout = _nobody_to_tell if acks is None else acks.reset_timeout


def _nobody_to_tell(tup: Tuple) -> None:
    """Without acking nothing is tracked."""


class RunningTask:
    """What spout and bolt tasks have in common."""

    style = ""
    close_name = ""

    def __init__(
        self,
        plan: PhysicalPlan,
        task: int,
        component: object,
        settings: Settings,
        due: Callable[[OpenBatch, int], None],
        report: Report,
        acks: Acks | None,
        now: float,
        groupings: CustomGroupings = NO_CUSTOM,
        log: Callable[[str], None] | None = None,
    ) -> None:
        component_id = plan.task_to_component[task]
        executor = next(e for e in plan.executors if task in e.tasks)
        spec = plan.topology.components[component_id]
        self.task = task
        self.wave = 0
        self.ended = False
        self.failed = False
        self._report = report
        self.acks = acks
        self.conf = {**settings.conf, **spec.config}
        self.pending = PendingTuples(
            self.conf[Config.TOPOLOGY_MAX_SPOUT_PENDING],
            self.conf[Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS],
            now,
        )
        self.context = TopologyContext(
            plan.topology_id,
            plan.topology,
            plan.task_to_component,
            task,
            settings.worker_port,
            tuple(t for e in plan.on_worker(executor.worker) for t in e.tasks),
            self.conf,
        )
        batcher = Batcher(
            plan.downstream_tasks(component_id),
            settings.batch_rows,
            min(settings.batch_bytes, settings.max_frame_bytes),
        )
        self._targets = plan.targets(component_id, executor.worker, groupings)
        self.output = TaskOutput(
            component_id,
            task,
            self._style_of(component),
            spec.streams,
            self._targets,
            batcher,
            settings.key_groups,
            settings.max_frame_bytes,
            lambda batch: due(batch, task),
            acks,
            None if acks is None or spec.kind == "bolt" else Roots(task, acks.rng),
            self.pending,
            log if self.conf[Config.TOPOLOGY_DEBUG] else None,
        )
        self.component_id = component_id

    def _style_of(self, component: object) -> str:
        return "spout"

    def open(self) -> None:
        """Prepare custom groupings, then call open or prepare."""
        for where, prepare in preparations(self.component_id, self._targets, self.context):
            self._call(where, prepare)
        self._open()

    def _open(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Call close or cleanup; best effort, as in Storm."""
        raise NotImplementedError

    def report_error(self, error: BaseException) -> None:
        """Show an error of user code without ending anything."""
        self._report(UserError(self.component_id, self.task, "report_error", error).report(False))

    def _call(self, where: str, function: Callable[..., object], *args: object) -> None:
        try:
            function(*args)
        except _FROM_USER_CODE as error:
            raise UserError(self.component_id, self.task, where, error) from error

    def _call_quietly(self, where: str, function: Callable[..., object], *args: object) -> bool:
        """Call and report instead of raising; False if it raised."""
        try:
            self._call(where, function, *args)
        except UserError as error:
            self._report(error.report(fatal=False))
            return False
        return True


class SpoutTask(RunningTask):
    """One task of a spout."""

    def __init__(self, plan: PhysicalPlan, task: int, component: object, *rest: Any) -> None:
        if not isinstance(component, BaseRichSpout):
            raise TypeError(f"task {task} is a {type(component).__name__}, expected a spout")
        super().__init__(plan, task, component, *rest)
        self._spout = component
        self._burst_calls = 1

    def _open(self) -> None:
        collector: Any = _SpoutCollector(self, self.output, self.report_error)
        self._call("open", self._spout.open, self.conf, self.context, collector)

    def close(self) -> None:
        self._call_quietly("close", self._spout.close)

    def activate(self) -> None:
        """Call activate."""
        self._call("activate", self._spout.activate)

    def deactivate(self) -> None:
        """Call deactivate."""
        self._call("deactivate", self._spout.deactivate)

    def drain(self) -> None:
        """End the input from outside: next_tuple is not called again, answers still are."""
        self.ended = True

    def end_of_input(self) -> None:
        """The collector's end_of_input."""
        if self.output.emissions.ended:
            raise EmitError(f"spout {self.component_id!r} calls end_of_input() a second time")
        self.output.emissions.ended = True
        self.ended = True

    @property
    def finished(self) -> bool:
        """The input has ended and every message id was answered."""
        return self.ended and not len(self.pending)

    def burst(self, clock: Callable[[], float], slice_secs: float = 0.001) -> bool:
        """Call next_tuple until it emits nothing, ends, may emit no more, or a slice is over.

        Returns whether anything was emitted.
        """
        emissions, pending = self.output.emissions, self.pending
        next_tuple = self._spout.next_tuple
        start = before = emissions.emitted
        limit = self._burst_calls
        calls = 0
        began = clock()
        try:
            while calls < limit and pending.may_emit:
                next_tuple()
                calls += 1
                after = emissions.emitted
                if after == before or emissions.ended:
                    break
                before = after
        except _FROM_USER_CODE as error:
            raise UserError(self.component_id, self.task, "next_tuple", error) from error
        took = clock() - began
        if took > slice_secs:
            self._burst_calls = max(1, int(calls * slice_secs / took))
        elif calls == limit:
            self._burst_calls *= 2
        self._answer("ack", self._spout.ack, self._untracked())
        return emissions.emitted > start

    def answered(self, results: AckResults) -> None:
        """Trees were completed, failed or renewed: tell the spout, once for each message id."""
        self.pending.renewed(results.renewed)
        self._answer("ack", self._spout.ack, self.pending.answered(results.complete))
        self._answer("fail", self._spout.fail, self.pending.answered(results.failed))

    def tick(self, now: float) -> None:
        """Fail what has been pending too long."""
        expired = self.pending.tick(now)
        if expired:
            self._answer("fail", self._spout.fail, expired)

    def fail_pending(self) -> None:
        """The tracker is gone: fail everything that is pending."""
        self._answer("fail", self._spout.fail, self.pending.fail_all())

    def _untracked(self) -> list[object]:
        """Message ids of emits that nobody tracks: acked at once, as Storm does without ackers."""
        acked = self.output.acked
        if not acked:
            return []
        ids = acked[:]
        acked.clear()
        return ids

    def _answer(
        self, where: str, function: Callable[[object], object], msg_ids: list[object]
    ) -> None:
        try:
            for msg_id in msg_ids:
                function(msg_id)
        except _FROM_USER_CODE as error:
            raise UserError(self.component_id, self.task, where, error) from error


class BoltTask(RunningTask):
    """One task of a bolt; `run(rows, context)` executes the rows of an iterator."""

    def __init__(self, plan: PhysicalPlan, task: int, component: object, *rest: Any) -> None:
        if not isinstance(component, (BaseRichBolt, BaseBasicBolt)):
            raise TypeError(f"task {task} is a {type(component).__name__}, expected a bolt")
        super().__init__(plan, task, component, *rest)
        self._bolt = component
        # On a cycle this waits for ourselves, for ever: only then is nothing in flight called done.
        self.aligner = Aligner(plan.upstream_tasks(self.component_id))
        self._collector: Any = (
            # Without ack and fail: the task acks behind execute, and a second ack would undo that.
            Collector(self.output, self.report_error)
            if isinstance(component, BaseBasicBolt)
            else _BoltCollector(self.output, self.report_error, self.acks)
        )

    def _style_of(self, component: object) -> str:
        return "basic" if isinstance(component, BaseBasicBolt) else "bolt"

    def _open(self) -> None:
        if isinstance(self._bolt, BaseBasicBolt):
            self._call("prepare", self._bolt.prepare, self.conf, self.context)
        else:
            self._call("prepare", self._bolt.prepare, self.conf, self.context, self._collector)

    def close(self) -> None:
        self._call_quietly("cleanup", self._bolt.cleanup)

    def run(
        self,
        rows: Iterator[list[Any]],
        context: TupleContext,
        roots: Iterable[Root] | None,
        edges: Iterable[int],
    ) -> None:
        """Execute rows one by one; raises UserError with the iterator behind the failing row.

        `roots` and `edges` run in parallel to the rows; None for rows that nobody tracks, which
        take the path of a topology without acking.
        """
        bolt = self._bolt
        try:
            if roots is None or self.acks is None:
                if isinstance(bolt, BaseBasicBolt):
                    self._run_basic(bolt, rows, context)
                else:
                    execute = bolt.execute
                    for values in rows:
                        execute(Tuple(values, context))
            elif isinstance(bolt, BaseBasicBolt):
                tracked = zip(rows, roots, edges, strict=False)
                self._run_basic_tracked(bolt, self.acks, tracked, context)
            else:
                execute = bolt.execute
                for values, root, edge in zip(rows, roots, edges, strict=False):
                    execute(TrackedTuple(values, context, root, edge))
        except _FROM_USER_CODE as error:
            raise UserError(self.component_id, self.task, "execute", error) from error

    def _run_basic(
        self, bolt: BaseBasicBolt, rows: Iterator[list[Any]], context: TupleContext
    ) -> None:
        execute, collector = bolt.execute, self._collector
        while True:
            try:
                for values in rows:
                    execute(Tuple(values, context), collector)
                return
            except ReportedFailedException as error:
                self.report_error(error)
            except FailedException:
                continue  # its tuple fails, and nobody tracks it; the next one is not its fault

    def _run_basic_tracked(
        self,
        bolt: BaseBasicBolt,
        acks: Acks,
        rows: Iterator[tuple[list[Any], Root, int]],
        context: TupleContext,
    ) -> None:
        """As `_run_basic`, anchoring every emit to its tuple and acking that behind execute."""
        execute, collector, current = bolt.execute, self._collector, self.output.current
        gathered = acks.acks
        get = gathered.get
        tup = None
        while True:
            try:
                for values, root, edge in rows:
                    current.tuple = tup = TrackedTuple(values, context, root, edge)
                    execute(tup, collector)
                    if root.__class__ is int:
                        if root:
                            gathered[root] = get(root, 0) ^ tup.xor
                        tup.root = None
                    else:
                        acks.ack(tup)
                break
            except FailedException as error:
                if isinstance(error, ReportedFailedException):
                    self.report_error(error)
                if tup is not None:
                    acks.fail(tup)
        current.tuple = None

    def end_of_input(self) -> None:
        """Tell the bolt that all its inputs ended; what it raises is reported and marks a failure.

        A deliberate FailedException is shown as its message alone.
        """
        self.ended = True
        args = (self._collector,) if isinstance(self._bolt, BaseBasicBolt) else ()
        try:
            self._call("end_of_input", self._bolt.end_of_input, *args)
        except UserError as error:
            report = error.report(fatal=False)
            if isinstance(error.error, FailedException):
                report = ErrorReport(
                    report.component, report.task, report.where, str(error.error), "", False
                )
            self._report(report)
            self.failed = True
