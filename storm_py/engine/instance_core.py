"""InstanceCore: everything an instance does between its sockets and its user code.

One per executor. It decodes frames, runs user code over their rows, gathers what is emitted into
batches, credits what is finished, heeds pressure, and carries END waves. Sockets, clocks and
processes belong to the driver (`storm_py.runtime.instance`, `storm_py.single`), which hands
in a `Port` for what is needed while user code runs: the time, and a way to send.

User code runs nowhere but inside `open`, `work`, `spin`, `finish` and `close`, on the thread that
calls them. The other half of the data path is `storm_py.engine.stream_manager_core`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import length_hint
from typing import Final, Protocol

from storm_py.api.tuples import TupleContext
from storm_py.core.batching import OpenBatch, Root
from storm_py.core.plan import PhysicalPlan
from storm_py.core.roots import RandomBits
from storm_py.errors import ProtocolError
from storm_py.wire import control, frames, values
from storm_py.wire.acks import AckResults, decode_acks, encode_acks

from .acking import Acks, tracking_columns
from .links import OutboundLink, read_control
from .sessions import Sessions, Verdict
from .settings import Settings
from .tasks import BoltTask, RunningTask, SpoutTask

#: The longest slice of user code between two looks at the clock, as far as it can be foreseen.
SLICE_SECS: Final = 0.001


class Port(Protocol):
    """What a core needs of its driver while user code runs."""

    def clock(self) -> float:
        """Monotonic seconds."""

    def stamp(self) -> int:
        """Microseconds since the Unix epoch, for `sent_at`."""

    def send(self, data: bool, message: bytes) -> None:
        """Send to the stream manager, on the data or the control socket; may wait."""

    def report(self, error: control.ErrorReport) -> None:
        """Tell the operator about an exception."""

    def ended(self, wave: int, failed: bool) -> None:
        """Every task of this executor has ended under this wave."""


@dataclass(slots=True)
class _Rows:
    """Rows of one run still to be executed, and what to credit behind the last of them."""

    task: BoltTask
    context: TupleContext
    rows: list[list[object]]
    roots: list[Root] | None
    edges: list[int]
    done: int
    credit: int  # bytes of the frame on its last run, else 0
    frame_rows: int


@dataclass(frozen=True, slots=True)
class _Marker:
    task: BoltTask
    src: int
    wave: int
    credit: int


@dataclass(frozen=True, slots=True)
class InstanceStatistics:
    """Counters of an instance since its start."""

    executed: int
    emitted: int
    transferred: int
    queued: int


class InstanceCore:
    """The tasks of one executor of a plan.

    `components` holds one object per task. The core is connected to its stream manager by
    `connect`, after which `linked` becomes true once that answers.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        executor_id: int,
        incarnation: int,
        components: Mapping[int, object],
        settings: Settings,
        port: Port,
        rng: RandomBits,
    ) -> None:
        executor = plan.executor(executor_id)
        self.component_id = executor.component_id
        self._plan = plan
        self._port = port
        self._rng = rng
        self._settings = settings
        self._hello = control.Hello(
            f"i{executor_id}", plan.topology_id, incarnation, plan.version, list(executor.tasks)
        )
        self._sessions = Sessions(plan.topology_id, plan.version)
        self._link: OutboundLink | None = None
        self._inbound: int | None = None
        self._outbox: list[bytes] = []
        self._work: deque[_Rows | _Marker] = deque()
        self._queued = 0
        self._slice_rows = 1
        self._wave = 1
        self._active = False
        self._executed = self._transferred = 0
        self._heeded = self._heeded_tasks()
        self._pressured: set[int] = set()
        self._contexts: dict[tuple[int, int], TupleContext] = {}
        self._credits: dict[int, list[int]] = {}
        self._credited: dict[int, int] = {}
        self._last_flush = now = port.clock()
        self._acks = Acks(rng) if settings.acking else None
        # With one worker one tracker hosts every spout, and records need no sorting.
        spouts = [task for spout in plan.topology.spouts for task in plan.tasks_of(spout)]
        self._spout_workers = {task: plan.worker_of(task) for task in spouts}
        self._only_tracker = spouts[0] if len(plan.workers) == 1 else None
        make = (
            SpoutTask if plan.topology.components[self.component_id].kind == "spout" else BoltTask
        )
        self._tasks: dict[int, RunningTask] = {
            task: make(
                plan,
                task,
                components[task],
                settings,
                self._batch_due,
                port.report,
                self._acks,
                now,
            )
            for task in executor.tasks
        }
        self._spouts = [t for t in self._tasks.values() if isinstance(t, SpoutTask)]

    def _heeded_tasks(self) -> frozenset[int]:
        """The tasks whose pressure stops us: all we send to, but not round a cycle for a bolt."""
        plan, me = self._plan, self.component_id
        return frozenset(
            task
            for component in plan.downstream(me)
            if not plan.in_cycle(me, component)
            for task in plan.tasks_of(component)
        )

    # ---- life ----------------------------------------------------------------------------------

    def open(self) -> None:
        """Call open or prepare of every task; raises UserError if one raises."""
        for task in self._tasks.values():
            task.open()

    def close(self) -> None:
        """Call close or cleanup of every task; what they raise is reported."""
        for task in self._tasks.values():
            task.close()

    def activate(self) -> None:
        """Spouts may emit from now on."""
        self._active = True
        for spout in self._spouts:
            spout.activate()

    def deactivate(self) -> None:
        """Spouts may not emit until the next activate."""
        self._active = False
        for spout in self._spouts:
            spout.deactivate()

    def connect(self) -> None:
        """Sockets to a (new) stream manager are there: open a session."""
        self._link = OutboundLink("stmgr", self._rng, self._hello)
        self._port.send(False, self._link.hello())
        if self._inbound is not None:
            self._port.send(False, self._link.control(control.Welcome(self._inbound)))

    def disconnect(self, gone: int | None = None) -> None:
        """The stream manager is gone: drop what it had queued here, keep what the tasks hold.

        `gone` is its incarnation: a session that its successor has opened already stays.
        """
        self._link = None
        self._drop_input()
        for peer in self._sessions.peers():
            if self._sessions.forget(peer, gone):
                self._inbound = None
        self._pressured.clear()
        self._outbox.clear()
        if self._acks is not None:
            self._acks.clear()
        for spout in self._spouts:
            spout.fail_pending()
            self._end_spout(spout)

    def _drop_input(self) -> None:
        self._work.clear()
        self._queued = 0
        self._credits.clear()
        self._credited.clear()

    # ---- input ---------------------------------------------------------------------------------

    def on_control(self, message: bytes) -> None:
        """A control message from the stream manager."""
        session, record = read_control(message)
        if isinstance(record, control.Hello):
            if self._sessions.hello(session, record):
                if session != self._inbound:
                    # What it announced in the session before died with that one.
                    self._pressured.clear()
                    self._drop_input()
                self._inbound = session
                if self._link is not None:
                    self._port.send(False, self._link.control(control.Welcome(session)))
            return
        if self._sessions.peer(session) is None:
            return
        match record:
            case control.Welcome(session=ours):
                if self._link is not None and self._link.welcomed(ours):
                    self._send_outbox()
            case control.Pressure(task=task, on=on, frame_rows=frame_rows):
                self._on_pressure(task, on, frame_rows)
            case control.LinkBroken(session=ours):
                if self._link is not None and self._link.session == ours:
                    self.connect()
            case _:
                raise ProtocolError(f"{type(record).__name__} does not belong on a link")

    def _on_pressure(self, task: int, on: bool, frame_rows: int) -> None:
        for running in self._tasks.values():
            running.output.batcher.limit(task, frame_rows)
        if on and task in self._heeded:
            self._pressured.add(task)
        else:
            self._pressured.discard(task)

    def on_data(self, message: bytes) -> None:
        """A data message from the stream manager: queue its rows; `work` runs them."""
        session, seq = frames.read_message_header(message)
        verdict = self._sessions.data(session, seq)
        if verdict is Verdict.ACCEPT:
            for frame in frames.frames(message):
                self._on_frame(message, frame)
        elif verdict is Verdict.GAP and self._link is not None:
            self._port.send(False, self._link.control(control.LinkBroken(session)))

    def _on_frame(self, message: bytes, frame: frames.Frame) -> None:
        task = self._tasks.get(frame.dest)
        if isinstance(task, SpoutTask) and frame.kind == frames.FrameKind.ACK:
            self._on_acks(task, message, frame)
            return
        if not isinstance(task, BoltTask):
            raise ProtocolError(f"frame for task {frame.dest}, which takes no input here")
        size = frame.end - frame.start
        if frame.kind == frames.FrameKind.MARKER:
            _, wave = frames.decode_marker(message, frame)
            self._work.append(_Marker(task, frame.src, wave, size))
            return
        if frame.kind != frames.FrameKind.DATA:
            raise ProtocolError(f"frame kind {frame.kind} is not for an instance")
        runs, packed = frames.decode_data(message, frame)
        rows = values.unpack_rows(packed)
        contexts = [
            self._contexts.get((frame.src, stream)) or self._context(frame.src, stream)
            for stream, _ in runs
        ]
        roots, edges = self._tracking(message, frame)
        self._queued += len(rows)
        start = 0
        for i, (_, count) in enumerate(runs):
            context = contexts[i]
            last = i == len(runs) - 1
            end = start + count
            part = rows if len(runs) == 1 else rows[start:end]
            item = _Rows(
                task,
                context,
                part,
                roots if roots is None or len(runs) == 1 else roots[start:end],
                edges if len(runs) == 1 else edges[start:end],
                0,
                size if last else 0,
                frame.rows if last else 0,
            )
            self._work.append(item)
            start = end

    def _tracking(self, message: bytes, frame: frames.Frame) -> tuple[list[Root] | None, list[int]]:
        """Per row its root or roots, and its edge; None where nothing is tracked."""
        tracking, _ = frames.read_tracking(message, frame)
        if tracking is None or self._acks is None:
            return None, []
        if tracking.counts is None:
            return list(tracking.roots), list(tracking.edges)
        roots: list[Root] = []
        edges: list[int] = []
        pairs = iter(zip(tracking.roots, tracking.edges, strict=True))
        for count in tracking.counts:
            own = tuple(next(pairs) for _ in range(count))
            single = len(own) == 1
            roots.append(own[0][0] if single else own)
            edges.append(own[0][1] if single else 0)
        return roots, edges

    def _on_acks(self, spout: SpoutTask, message: bytes, frame: frames.Frame) -> None:
        results = decode_acks(message, frame)
        if not isinstance(results, AckResults):
            raise ProtocolError(f"ACK frame for task {frame.dest} holds records, expected results")
        spout.answered(results)
        self._end_spout(spout)

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

    # ---- running user code ---------------------------------------------------------------------

    @property
    def paused(self) -> bool:
        """Nothing may be emitted now: a task downstream is pressured, or there is no link."""
        return bool(self._pressured) or self._link is None or not self._link.open

    @property
    def linked(self) -> bool:
        """Whether the session with the stream manager is open both ways."""
        return self._link is not None and self._link.open and self._inbound is not None

    @property
    def spouting(self) -> bool:
        """Whether a spout of ours may emit now."""
        return self._active and not self.paused and any(not spout.ended for spout in self._spouts)

    @property
    def has_work(self) -> bool:
        """Whether rows wait to be executed."""
        return bool(self._work)

    def work(self) -> None:
        """Execute queued rows until there are none, pressure rises, or a flush is due."""
        work = self._work
        while work and not self.paused:
            item = work[0]
            if isinstance(item, _Marker):
                self._on_marker(item)
                done, rows = True, 0
            else:
                self._slice(item)
                done, rows = item.done == len(item.rows), item.frame_rows
            # A driver serves control while an emit waits: a new session may have dropped the item.
            if done and work and work[0] is item:
                work.popleft()
                if item.credit:
                    self._finished(item.task.task, rows, item.credit)
            if self._port.clock() - self._last_flush >= self._settings.batch_delay_secs:
                self.flush()
                return

    def _slice(self, item: _Rows) -> None:
        """Execute as many rows as should fit into a slice of time; learn how long they took."""
        before = self._port.clock()
        start = item.done
        rows = item.rows
        end = min(len(rows), start + self._slice_rows)
        part = rows if start == 0 and end == len(rows) else rows[start:end]
        iterator = iter(part)
        roots: Iterable[Root] | None = None
        edges: Iterable[int] = ()
        if item.roots is not None:
            roots = item.roots if part is rows else item.roots[start:end]
            edges = item.edges if part is rows else item.edges[start:end]
        try:
            item.task.run(iterator, item.context, roots, edges)
        finally:
            # On an exception the iterator says how far it got: the failing row counts as taken.
            count = len(part) - length_hint(iterator)
            item.done += count
            self._executed += count
            if self._work and self._work[0] is item:
                self._queued -= count
        took = self._port.clock() - before
        if took > SLICE_SECS:
            self._slice_rows = max(1, int(count * SLICE_SECS / took))
        elif count == self._slice_rows:
            self._slice_rows *= 2

    def spin(self) -> bool:
        """Call next_tuple of every spout that may emit, for a slice of time; False if all idled."""
        emitted = False
        for spout in self._spouts:
            if self._active and not self.paused:
                if not spout.ended:
                    emitted |= spout.burst(self._port.clock)
                self._end_spout(spout)  # ended in this burst, or in open or activate already
        if not emitted or self._port.clock() - self._last_flush >= self._settings.batch_delay_secs:
            self.flush()
        return emitted

    # ---- end of input --------------------------------------------------------------------------

    def on_wave(self, wave: int, drain: bool) -> None:
        """A new END wave: ended spouts send it; with `drain` every spout ends where it is."""
        self._wave = max(self._wave, wave)
        for spout in self._spouts:
            if drain:
                spout.drain()
            self._end_spout(spout)

    def tick(self, now: float) -> None:
        """Fail what spouts have waited for too long."""
        for spout in self._spouts:
            spout.tick(now)
            self._end_spout(spout)

    def _end_spout(self, spout: SpoutTask) -> None:
        """Send the current wave behind all it has emitted, once nothing of it is pending."""
        if spout.finished and spout.wave < self._wave:
            spout.wave = self._wave
            self._send_markers(spout)
            self._report_end()

    def _on_marker(self, marker: _Marker) -> None:
        task = marker.task
        if task.aligner.marker(marker.src, marker.wave):
            if not task.ended:
                task.end_of_input()
            task.wave = marker.wave
            self._wave = max(self._wave, marker.wave)
            self._send_markers(task)
            self._report_end()

    def _send_markers(self, task: RunningTask) -> None:
        self.flush()
        kind = frames.MarkerKind.END
        stamp = self._port.stamp()
        for dest in task.output.batcher.dests:
            self._transmit(
                [
                    frames.encode_marker(
                        self._settings.epoch, task.task, dest, stamp, kind, task.wave
                    )
                ]
            )

    def _report_end(self) -> None:
        waves = {task.wave for task in self._tasks.values()}
        if len(waves) == 1 and all(task.ended for task in self._tasks.values()):
            failed = any(task.failed for task in self._tasks.values())
            self._port.ended(waves.pop(), failed)

    # ---- output --------------------------------------------------------------------------------

    def _batch_due(self, batch: OpenBatch, task: int) -> None:
        self._transmit(self._frame(batch, task))

    def _frame(self, batch: OpenBatch, task: int) -> list[bytes]:
        tracking = None
        tracked = batch.take_tracking() if batch.roots else None
        if tracked is not None:
            tracking = tracking_columns(*tracked)
        runs, rows = batch.take()
        self._transferred += len(rows)
        return frames.encode_data(
            self._settings.epoch, task, batch.dest, self._port.stamp(), runs, rows, tracking
        )

    def _ack_frames(self) -> list[bytes]:
        """What trackers have to know, one frame for each."""
        acks = self._acks
        if acks is None or not acks:
            return []
        stamp, epoch = self._port.stamp(), self._settings.epoch
        src = next(iter(self._tasks))
        if self._only_tracker is not None:
            found = [acks.take_all(self._only_tracker)]
        else:
            found = list(acks.take(self._spout_workers.get))
        return [encode_acks(epoch, src, dest, stamp, records) for dest, records in found]

    def _transmit(self, parts: list[bytes]) -> None:
        link = self._link
        if link is not None and link.open:
            self._port.send(True, link.data(*parts))
        else:
            self._outbox.append(b"".join(parts))

    def _send_outbox(self) -> None:
        waiting, self._outbox = self._outbox, []
        for parts in waiting:
            self._transmit([parts])

    def flush(self) -> None:
        """Send every open batch, then credit the input whose outputs are now all on their way."""
        parts: list[bytes] = []
        for task in self._tasks.values():
            for batch in task.output.batcher.open():
                parts += self._frame(batch, task.task)
        parts += self._ack_frames()
        if parts:
            self._transmit(parts)
        if self._credits and self._link is not None and self._link.open:
            session = self._inbound
            for task_id, (rows, nbytes) in tuple(self._credits.items()):
                if self._credited.get(task_id) != nbytes and self._inbound == session:
                    self._credited[task_id] = nbytes
                    credit = control.Credit(task_id, rows, nbytes, self._link.seq)
                    self._port.send(False, self._link.control(credit))
        self._last_flush = self._port.clock()

    def _finished(self, task: int, rows: int, nbytes: int) -> None:
        total = self._credits.setdefault(task, [0, 0])
        total[0] += rows
        total[1] += nbytes

    # ---- looking in ----------------------------------------------------------------------------

    def statistics(self) -> InstanceStatistics:
        """Counters since the start; `queued` are rows taken from the socket and not executed."""
        emitted = sum(t.output.emissions.emitted for t in self._tasks.values())
        return InstanceStatistics(self._executed, emitted, self._transferred, self._queued)

    @property
    def tasks(self) -> Sequence[RunningTask]:
        """The running tasks, for drivers that report on them."""
        return tuple(self._tasks.values())

    def check(self) -> None:
        """Assert the invariants of every part."""
        self._sessions.check()
        assert self._queued == sum(
            len(item.rows) - item.done for item in self._work if isinstance(item, _Rows)
        )
        for task in self._tasks.values():
            task.output.batcher.check()
