"""Running tasks: one user object each, its collector, and the calls into it.

Every call of user code goes through here, so that an exception always carries the component, the
task and what was being called. `SpoutTask` and `BoltTask` hold what the instance core must know per
task: how to run rows, whether the task has ended, and its outputs. What both have in common is in
`storm_py.engine.running`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from sys import getrefcount
from typing import Any, ClassVar

from storm_py.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout, Bolt
from storm_py.api.tuples import Fields, TrackedTuple, Tuple, TupleContext
from storm_py.config import Config
from storm_py.constants import SYSTEM_COMPONENT_ID, SYSTEM_TASK_ID, SYSTEM_TICK_STREAM_ID
from storm_py.core.aligner import Aligner
from storm_py.core.batching import Batcher, Root
from storm_py.core.plan import PhysicalPlan
from storm_py.errors import EmitError, FailedException, ReportedFailedException
from storm_py.wire.acks import AckResults
from storm_py.wire.control import ErrorReport

from .acking import Acks
from .reuse import ALONE
from .running import (
    BasicCollector,
    BoltCollector,
    Collector,
    RunningTask,
    SpoutCollector,
    nobody_to_tell,
)
from .user_code import FROM_USER_CODE, UserError

__all__ = ["BoltTask", "RunningTask", "SpoutTask", "UserError"]

#: Where ticks come from; the field is called as in Storm.
_TICK = TupleContext(
    SYSTEM_COMPONENT_ID, SYSTEM_TICK_STREAM_ID, SYSTEM_TASK_ID, Fields("rate_secs")
)


class SpoutTask(RunningTask):
    """One task of a spout."""

    def __init__(self, plan: PhysicalPlan, task: int, component: object, *rest: Any) -> None:
        if not isinstance(component, BaseRichSpout):
            raise TypeError(f"task {task} is a {type(component).__name__}, expected a spout")
        super().__init__(plan, task, component, *rest)
        self._spout = component
        #: What can be read when there may be something to emit, None if nobody knows.
        self.wait_fd: int | None = None
        self._burst_calls = 1
        #: How many message ids the spout was told of, by the method called.
        self.told = {"ack": 0, "fail": 0}
        self._collector = SpoutCollector(self.output, self.report_error, self.end_of_input)

    def _open(self) -> None:
        self._call("open", self._spout.open, self.conf, self.context, self._collector)
        self._call("wait_fd", self._ask_wait_fd)

    def _ask_wait_fd(self) -> None:
        fd = self._spout.wait_fd()
        if fd is not None and (not isinstance(fd, int) or isinstance(fd, bool) or fd < 0):
            raise TypeError(
                f"wait_fd of {type(self._spout).__name__} returned {fd!r}; expected a file "
                "descriptor, as socket.fileno() gives, or None"
            )
        self.wait_fd = fd

    def _close(self) -> None:
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
        self.output.emissions.ended = self.output.emissions.stop = True
        self.ended = True

    @property
    def finished(self) -> bool:
        """The input has ended and every message id was answered."""
        return self.ended and not len(self.pending)

    def halt(self) -> None:
        """Let the burst that goes on end behind this call of next_tuple."""
        self.output.emissions.stop = True

    def burst(self, clock: Callable[[], float], slice_secs: float = 0.001) -> bool:
        """Call next_tuple until it emits nothing, ends, may emit no more, or a slice is over.

        Returns whether anything was emitted.
        """
        emissions, pending = self.output.emissions, self.pending
        next_tuple = self._spout.next_tuple
        start = before = emissions.emitted
        limit = self._burst_calls
        newer, older, most = pending.columns()
        emissions.stop = False
        calls = 0
        began = clock()
        try:
            while calls < limit and len(newer) + len(older) < most:
                next_tuple()
                calls += 1
                after = emissions.emitted
                if after == before or emissions.stop:
                    break
                before = after
        except UserError:
            raise
        except FROM_USER_CODE as error:
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
        """Fail what has been pending too long, ack what nobody tracks and next_tuple left."""
        expired = self.pending.tick(now)
        if expired:
            self._answer("fail", self._spout.fail, expired)
        if self.output.acked:  # emitted in a call of another thread
            self._answer("ack", self._spout.ack, self._untracked())

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
        self.told[where] += len(msg_ids)
        try:
            if self.hooks:
                self.hooks.answer(where, function, msg_ids)
            else:
                for msg_id in msg_ids:
                    function(msg_id)
        except UserError:
            raise
        except FROM_USER_CODE as error:
            raise UserError(self.component_id, self.task, where, error) from error


class BoltTask(RunningTask):
    """One task of a bolt; `run(rows, context)` executes the rows of an iterator."""

    #: The bolts that it runs, and the method of theirs that gets rows.
    kinds: ClassVar[tuple[type[Bolt], ...]] = (BaseRichBolt, BaseBasicBolt)
    method: ClassVar[str] = "execute"

    def __init__(self, plan: PhysicalPlan, task: int, component: object, *rest: Any) -> None:
        if not isinstance(component, self.kinds):
            raise TypeError(f"task {task} is a {type(component).__name__}, expected a bolt")
        super().__init__(plan, task, component, *rest)
        self._bolt: Bolt = component
        # On a cycle this waits for ourselves, for ever: only then is nothing in flight called done.
        self.aligner = Aligner(plan.upstream_tasks(self.component_id))
        self._collector = self._make_collector()
        #: How many rows should fit into a slice of time, by how long the last ones took.
        self.slice_rows = 1
        #: Where tasks of the same instance gather rows for this one.
        self.fed_by: list[Batcher] = []
        #: Seconds between two ticks, None for no ticks.
        self.tick_secs: float | None = (
            None if self._is_system else self.conf[Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS]
        )

    def _make_collector(self) -> Collector:
        if isinstance(self._bolt, BaseBasicBolt):
            return BasicCollector(self.output, self.report_error)
        return BoltCollector(self.output, self.report_error, self.acks)

    def _style_of(self, component: object) -> str:
        return "basic" if isinstance(component, BaseBasicBolt) else "bolt"

    def _open(self) -> None:
        if isinstance(self._bolt, BaseBasicBolt):
            self._call("prepare", self._bolt.prepare, self.conf, self.context)
        else:
            self._call("prepare", self._bolt.prepare, self.conf, self.context, self._collector)

    def _close(self) -> None:
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
        assert isinstance(bolt, (BaseRichBolt, BaseBasicBolt))
        try:
            if self.hooks:
                execute = self._basic_execute if isinstance(bolt, BaseBasicBolt) else bolt.execute
                tracked_roots = None if self.acks is None else roots
                self.hooks.execute(execute, rows, context, tracked_roots, edges)
            elif roots is None or self.acks is None:
                if isinstance(bolt, BaseBasicBolt):
                    self._run_basic(bolt, rows, context)
                else:
                    self._run_rich(bolt, rows, context)
            elif isinstance(bolt, BaseBasicBolt):
                tracked = zip(rows, roots, edges, strict=False)
                self._run_basic_tracked(bolt, self.acks, tracked, context)
            else:
                tracked = zip(rows, roots, edges, strict=False)
                self._run_rich_tracked(bolt, tracked, context)
        except UserError:
            raise
        except FROM_USER_CODE as error:
            raise UserError(self.component_id, self.task, "execute", error) from error

    def pace(self, rows: int) -> None:
        """So many rows should fit into a slice of time: who feeds this task stops for it there."""
        self.slice_rows = max(1, rows)
        for batcher in self.fed_by:
            batcher.limit(self.task, self.slice_rows)

    def tick(self) -> None:
        """Execute a tick tuple: nobody tracks it, and it is no row of the input."""
        self.run(iter([[self.tick_secs]]), _TICK, None, ())

    def _basic_execute(self, tup: Tuple) -> None:
        """What the collector and the loops below do for a basic bolt, with hooks."""
        bolt, hooks, acks, current = self._bolt, self.hooks, self.acks, self.output.current
        assert isinstance(bolt, BaseBasicBolt)
        current.tuple = tup if isinstance(tup, TrackedTuple) else None
        try:
            bolt.execute(tup, self._collector)
        except FailedException as error:
            if isinstance(error, ReportedFailedException):
                self.report_error(error)
            hooks.fail(nobody_to_tell if acks is None else acks.fail)(tup)
        else:
            hooks.ack(nobody_to_tell if acks is None else acks.ack)(tup)
        current.tuple = None

    # In each of these loops a tuple that user code did not keep serves the next row as well.

    def _run_rich(
        self, bolt: BaseRichBolt, rows: Iterator[list[Any]], context: TupleContext
    ) -> None:
        execute = bolt.execute
        tup = Tuple([], context)
        for values in rows:
            tup.values = values
            execute(tup)
            if getrefcount(tup) > ALONE:
                tup = Tuple([], context)

    def _run_rich_tracked(
        self,
        bolt: BaseRichBolt,
        rows: Iterator[tuple[list[Any], Root, int]],
        context: TupleContext,
    ) -> None:
        execute = bolt.execute
        tup = TrackedTuple([], context, None, 0)
        for values, root, edge in rows:
            tup.values = values
            tup.root = root
            tup.xor = edge
            execute(tup)
            if getrefcount(tup) > ALONE:
                tup = TrackedTuple([], context, None, 0)

    def _run_basic(
        self, bolt: BaseBasicBolt, rows: Iterator[list[Any]], context: TupleContext
    ) -> None:
        execute, collector = bolt.execute, self._collector
        while True:
            tup = Tuple([], context)
            try:
                for values in rows:
                    tup.values = values
                    execute(tup, collector)
                    if getrefcount(tup) > ALONE:
                        tup = Tuple([], context)
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
        alone = ALONE + 1  # `current` has it too
        while True:
            current.tuple = tup = TrackedTuple([], context, 0, 0)
            try:
                for values, root, edge in rows:
                    tup.values = values
                    tup.root = root
                    tup.xor = edge
                    execute(tup, collector)
                    if root.__class__ is int:
                        if root:
                            gathered[root] = get(root, 0) ^ tup.xor
                        tup.root = None
                    else:
                        acks.ack(tup)
                    if getrefcount(tup) > alone:
                        current.tuple = tup = TrackedTuple([], context, 0, 0)
                break
            except FailedException as error:
                if isinstance(error, ReportedFailedException):
                    self.report_error(error)
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
