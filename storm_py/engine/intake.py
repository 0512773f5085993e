"""Intake: what waits to be executed in an instance, in its order: decoded frames, rows handed over.

A frame of rows is decoded once, when it comes, and queued as one item for each run: rows of one
stream of one task. Markers wait in the same queue, behind the rows that were sent before them. The
instance core takes items from the front; what comes of them is in `storm_py.engine.outflow`. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from storm_py.api.tuples import TupleContext
from storm_py.core.batching import Root
from storm_py.core.plan import PhysicalPlan
from storm_py.errors import ProtocolError
from storm_py.wire import frames
from storm_py.wire.values import Codec

from .framing import Runs, Tracked
from .tasks import BoltTask


@dataclass(slots=True)
class Rows:
    """Rows of one run still to be executed, and what to credit behind the last of them."""

    task: BoltTask
    context: TupleContext
    rows: list[list[object]]
    roots: Sequence[Root] | None
    edges: Sequence[int]
    done: int
    credit: int  # bytes of the frame on its last run, else 0
    frame_rows: int


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker of an END wave."""

    task: BoltTask
    src: int
    wave: int
    credit: int


#: What waits, in order.
Queue: TypeAlias = "deque[Rows | Marker]"


class Intake:
    """The queues of one instance; `acking` says whether tracking columns are of use here."""

    def __init__(self, plan: PhysicalPlan, acking: bool, codec: Codec) -> None:
        self._plan = plan
        self._codec = codec
        self._acking = acking
        self._contexts: dict[tuple[int, int], TupleContext] = {}
        #: What has come from outside; the core works at its front.
        self.queue: Queue = deque()
        #: What tasks of this instance have handed to others of it, the last in the chain first.
        self._local: dict[int, Queue] = {}
        #: Rows in `queue` that are not executed.
        self.rows = 0

    def feed(self, tasks: Sequence[int]) -> None:
        """These tasks are handed rows within the instance; each is behind those that feed it."""
        self._local = {task: deque() for task in reversed(tasks)}

    @property
    def front(self) -> Queue:
        """The queue whose first item is next; empty if nothing waits.

        The end of the chain goes first: so no task runs while anything waits behind it, and what
        is on its way in here is never more than one slice of each has emitted.
        """
        for queue in self._local.values():
            if queue:
                return queue
        return self.queue

    @property
    def holds(self) -> bool:
        """Whether anything waits that was handed over."""
        return any(self._local.values())

    def take(self, task: BoltTask, message: bytes, frame: frames.Frame) -> None:
        """Queue what a frame for `task` holds."""
        size = frame.end - frame.start
        if frame.kind == frames.FrameKind.MARKER:
            _, wave = frames.decode_marker(message, frame)
            self.queue.append(Marker(task, frame.src, wave, size))
            return
        if frame.kind != frames.FrameKind.DATA:
            raise ProtocolError(f"frame kind {frame.kind} is not for an instance")
        tracking, offset = frames.read_tracking(message, frame)
        runs, packed = frames.decode_data(message, frame, offset)
        rows = self._codec.unpack_rows(packed)
        roots, edges = self._tracked(tracking)
        self._queue(self.queue, task, frame.src, runs, rows, roots, edges, size, frame.rows)
        self.rows += len(rows)

    def hand_over(
        self,
        task: BoltTask,
        src: int,
        runs: Runs,
        rows: list[list[object]],
        tracked: Tracked | None,
    ) -> None:
        """Queue rows that task `src`, of the same instance, has emitted for `task`."""
        roots, edges = (None, []) if tracked is None else tracked
        self._queue(self._local[task.task], task, src, runs, rows, roots, edges, 0, 0)

    def hand_over_marker(self, task: BoltTask, src: int, wave: int) -> None:
        """Queue an END marker of task `src`, of the same instance, for `task`."""
        self._local[task.task].append(Marker(task, src, wave, 0))

    def _queue(
        self,
        queue: Queue,
        task: BoltTask,
        src: int,
        runs: Runs,
        rows: list[list[object]],
        roots: Sequence[Root] | None,
        edges: Sequence[int],
        credit: int,
        frame_rows: int,
    ) -> None:
        contexts = [
            self._contexts.get((src, stream)) or self._context(src, stream) for stream, _ in runs
        ]
        start = 0
        for i, (_, count) in enumerate(runs):
            last = i == len(runs) - 1
            end = start + count
            item = Rows(
                task,
                contexts[i],
                rows if len(runs) == 1 else rows[start:end],
                roots if roots is None or len(runs) == 1 else roots[start:end],
                edges if len(runs) == 1 else edges[start:end],
                0,
                credit if last else 0,
                frame_rows if last else 0,
            )
            queue.append(item)
            start = end

    def _tracked(
        self, tracking: frames.Tracking | None
    ) -> tuple[Sequence[Root] | None, Sequence[int]]:
        """Per row its root or roots, and its edge; None where nothing is tracked."""
        if tracking is None or not self._acking:
            return None, []
        if tracking.counts is None:
            return tracking.roots, tracking.edges
        roots: list[Root] = []
        edges: list[int] = []
        pairs = iter(zip(tracking.roots, tracking.edges, strict=True))
        for count in tracking.counts:
            own = tuple(next(pairs) for _ in range(count))
            single = len(own) == 1
            roots.append(own[0][0] if single else own)
            edges.append(own[0][1] if single else 0)
        return roots, edges

    def _context(self, src: int, stream: int) -> TupleContext:
        component = self._plan.task_to_component.get(src)
        if component is None:
            raise ProtocolError(f"frame from task {src}, which the plan does not know")
        streams = self._plan.topology.components[component].streams
        if stream >= len(streams):
            raise ProtocolError(f"frame on stream {stream} of {component!r}, which is not declared")
        name = tuple(streams)[stream]
        context = TupleContext(component, name, src, streams[name].fields)
        self._contexts[src, stream] = context
        return context

    def executed(self, item: Rows, count: int) -> None:
        """`count` more rows of `item` are executed; it may have been dropped meanwhile."""
        item.done += count
        if self.queue and self.queue[0] is item:
            self.rows -= count

    def clear(self) -> None:
        """Drop what has come from outside: its session is over."""
        self.queue.clear()
        self.rows = 0

    def check(self) -> None:
        """Assert that the count is that of the queue."""
        assert self.rows == sum(
            len(item.rows) - item.done for item in self.queue if isinstance(item, Rows)
        )
