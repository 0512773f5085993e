"""InstanceCore: everything an instance does between its sockets and its user code.

One per executor. It decodes frames, runs user code over their rows, gathers what is emitted into
batches, credits what is finished, heeds pressure, and carries END waves. Sockets, clocks and
processes belong to the driver (`storm_py.runtime.instance`, `storm_py.single`), which hands
in a `Port` for what is needed while user code runs: the time, and a way to send. Input is decoded
and queued by `storm_py.engine.intake`, output gathered and sent by `storm_py.engine.outflow`.

User code runs nowhere but inside `open`, `activate`, `deactivate`, `on_data`, `work`, `spin`,
`tick`, `on_wave`, `disconnect` and `close`, on the thread that calls them. The other half of the
data path is `storm_py.engine.stream_manager_core`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from storm_py.core.plan import NO_CUSTOM, CustomGroupings, PhysicalPlan
from storm_py.core.roots import RandomBits
from storm_py.errors import ProtocolError
from storm_py.wire import control, frames
from storm_py.wire.acks import AckResults, decode_acks

from .acking import Acks
from .batch_task import task_class
from .calls import Calls
from .intake import Intake, Marker
from .links import BEAT_SECS, read_control
from .outflow import Outflow
from .port import Port, Watch
from .reports import Reports
from .sessions import Sessions, Verdict
from .settings import Settings
from .slices import Slices
from .statistics import InstanceStatistics
from .tasks import BoltTask, RunningTask, SpoutTask, UserError
from .timers import Timers


class InstanceCore:
    """The tasks of one executor of a plan.

    `components` holds one object per task, `groupings` a task's custom groupings where it has any.
    The core is connected to its stream manager by `connect`, after which `linked` becomes true once
    that answers.
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
        watch: Watch | None = None,
        groupings: Mapping[int, CustomGroupings] = MappingProxyType({}),
    ) -> None:
        executor = plan.executor(executor_id)
        self.component_id = executor.component_id
        self._plan = plan
        self._port = port
        self._sessions = Sessions(plan.topology_id, plan.version)
        self._inbound: int | None = None
        self._wave = 1
        self._active = False
        self._in = Intake(plan, settings.acking, settings.codec)
        self._tasks: dict[int, RunningTask] = {}
        acks = Acks(rng) if settings.acking else None
        hello = control.Hello(
            f"i{executor_id}", plan.topology_id, incarnation, plan.version, list(executor.tasks)
        )
        self._watch = watch or Watch()
        self._slices = Slices(self._in, port.clock, self._watch)
        self._calls = Calls(self._watch)
        self._reports = Reports(settings.conf, port.clock, port.report)
        self._timers = Timers(self._reports, port.stamp, self._watch)
        self._out = Outflow(plan, self._tasks, settings, port, rng, hello, acks, self._halt)
        self._beat_at = port.clock() + BEAT_SECS
        kind = plan.topology.components[self.component_id].kind
        for task in executor.tasks:
            self._tasks[task] = task_class(kind, components[task])(
                plan,
                task,
                components[task],
                settings,
                self._out.batch_due,
                self._reports,
                acks,
                port.clock,
                self._calls,
                groupings.get(task, NO_CUSTOM),
                port.log,
            )
        self._spouts = [t for t in self._tasks.values() if isinstance(t, SpoutTask)]
        self._out.unheard()

    # ---- life ----------------------------------------------------------------------------------

    def open(self) -> None:
        """Call open or prepare of every task; raises UserError if one raises."""
        for task in self._tasks.values():
            self._watch.entered("prepare" if isinstance(task, BoltTask) else "open", task.task)
            task.open()
        self._timers.start(self._tasks.values(), self._port.clock())

    def close(self) -> None:
        """Make the calls that wait, then call close or cleanup; what these raise is reported."""
        self._calls.close()
        try:
            if self._calls.run() and self._out.open:
                self._out.flush()
        except UserError as error:
            self._port.report(error.report(fatal=False))
        for task in self._tasks.values():
            self._watch.entered("cleanup" if isinstance(task, BoltTask) else "close", task.task)
            task.close()
        self._reports.close()

    def activate(self) -> None:
        """Spouts may emit from now on; they are told when the state turns."""
        if not self._active:
            self._active = True
            for spout in self._spouts:
                self._watch.entered("activate", spout.task)
                spout.activate()

    def deactivate(self) -> None:
        """Spouts may not emit until the next activate; answers still reach them."""
        if self._active:
            self._active = False
            for spout in self._spouts:
                self._watch.entered("deactivate", spout.task)
                spout.deactivate()

    def connect(self) -> None:
        """Sockets to a (new) stream manager are there: open a session."""
        self._out.connect()
        self._greet()

    def _greet(self) -> None:
        """Open our session, and welcome the stream manager's.

        Also once more, when it welcomes an older one: that one's Hello came behind, on a socket
        that is closed by now, and what we had said since was refused.
        """
        self._out.greet()
        if self._inbound is not None:
            self._out.say(control.Welcome(self._inbound))

    def disconnect(self, gone: int | None = None) -> None:
        """The stream manager is gone: drop what it had queued here, keep what the tasks hold.

        `gone` is its incarnation: a session that its successor has opened already stays.
        """
        self._drop_input()
        for peer in self._sessions.peers():
            if self._sessions.forget(peer, gone):
                self._inbound = None
        self._out.unheard()
        self._out.disconnect()
        self._fail_pending()

    def _fail_pending(self) -> None:
        """Nobody knows what became of what the spouts have emitted."""
        for spout in self._spouts:
            spout.fail_pending()
            self._end_spout(spout)

    def _drop_input(self) -> None:
        self._in.clear()
        self._out.drop_credits()

    # ---- input ---------------------------------------------------------------------------------

    def on_control(self, message: bytes) -> None:
        """A control message from the stream manager."""
        session, record = read_control(message)
        if isinstance(record, control.Hello):
            if self._sessions.hello(session, record):
                if session != self._inbound:
                    # What it announced in the session before died with that one.
                    self._out.unheard()
                    self._drop_input()
                    if self._inbound is not None:
                        self._fail_pending()
                self._inbound = session
                self._out.say(control.Welcome(session))
            return
        if self._sessions.peer(session) is None:
            return
        match record:
            case control.Welcome(session=ours):
                if self._out.is_session(ours):
                    self._out.welcomed(ours)
                else:
                    self._greet()
            case control.Pressure() | control.Grant():
                self._out.heed(record)
            case control.FailPending():
                self._fail_pending()
            case control.LinkBroken(session=ours):
                if self._out.is_session(ours):
                    self.connect()
                    self._fail_pending()
            case _:
                raise ProtocolError(f"{type(record).__name__} does not belong on a link")

    def on_data(self, message: bytes) -> None:
        """A data message from the stream manager: queue its rows; `work` runs them."""
        session, seq = frames.read_message_header(message)
        verdict = self._sessions.data(session, seq)
        if verdict is Verdict.ACCEPT:
            for frame in frames.frames(message):
                self._on_frame(message, frame)
        elif verdict is Verdict.GAP:
            self._out.say(control.LinkBroken(session))

    def _on_frame(self, message: bytes, frame: frames.Frame) -> None:
        task = self._tasks.get(frame.dest)
        if isinstance(task, SpoutTask) and frame.kind == frames.FrameKind.ACK:
            self._on_acks(task, message, frame)
            return
        if not isinstance(task, BoltTask):
            raise ProtocolError(f"frame for task {frame.dest}, which takes no input here")
        self._in.take(task, message, frame)

    def _on_acks(self, spout: SpoutTask, message: bytes, frame: frames.Frame) -> None:
        results = decode_acks(message, frame)
        if not isinstance(results, AckResults):
            raise ProtocolError(f"ACK frame for task {frame.dest} holds records, expected results")
        self._watch.entered("ack or fail", spout.task)
        spout.answered(results)
        self._end_spout(spout)

    # ---- running user code ---------------------------------------------------------------------

    @property
    def paused(self) -> bool:
        """Nothing may be emitted now: a task downstream is pressured, or there is no link."""
        return self._out.allowances.paused or not self._out.open

    @property
    def linked(self) -> bool:
        """Whether the session with the stream manager is open both ways."""
        return self._out.open and self._inbound is not None

    @property
    def spouting(self) -> bool:
        """Whether a spout of ours may emit now."""
        return self._active and not self.paused and any(not spout.ended for spout in self._spouts)

    @property
    def has_work(self) -> bool:
        """Whether rows wait to be executed."""
        return bool(self._in.queue)

    def work(self) -> None:
        """Execute queued rows until there are none, pressure rises, or a flush is due."""
        work = self._in.queue
        while work and not self.paused:
            item = work[0]
            if isinstance(item, Marker):
                self._on_marker(item)
                done, rows = True, 0
            else:
                self._slices.run(item)
                done, rows = item.done == len(item.rows), item.frame_rows
            # A driver serves control while an emit waits: a new session may have dropped the item.
            if done and work and work[0] is item:
                work.popleft()
                if item.credit:
                    self._out.finished(item.task.task, rows, item.credit)
            if self._out.flush_due:
                self._out.flush()
                return

    def _halt(self) -> None:
        """A task downstream may not be sent to: user code is not entered again for now.

        Called while user code runs, when a batch of what it emits is due.
        """
        for spout in self._spouts:
            spout.halt()
        self._slices.halt()

    def spin(self) -> bool:
        """Call next_tuple of every spout that may emit, for a slice of time; False if all idled."""
        emitted = False
        for spout in self._spouts:
            if self._active and not self.paused:
                if not spout.ended:
                    self._watch.entered("next_tuple", spout.task)
                    emitted |= spout.burst(self._port.clock)
                self._end_spout(spout)  # ended in this burst, or in open or activate already
        if not emitted or self._out.flush_due:
            self._out.flush()
        return emitted

    def flush(self) -> None:
        """Send every open batch, then credit the input whose outputs are now all on their way."""
        self._out.flush()

    # ---- by the clock --------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Do what other threads asked for and what is due by now; call it between two slices."""
        if now >= self._beat_at:  # the link's other end notices losses by it
            self._beat_at = now + BEAT_SECS
            self._out.beat()
        if self._calls:
            self._calls.run()
        for spout in self._spouts:
            spout.tick(now)
            self._end_spout(spout)
        if self._timers:
            self._timers.run(now, not self.paused, self._metering)

    def next_timeout(self) -> float | None:
        """When `tick` has to be called at the latest while nothing else happens, None for never.

        Timeouts of messages are left out: they may be late by as long as a driver sleeps.
        """
        return self._timers.next(not self.paused, self._metering)

    @property
    def _metering(self) -> bool:
        return self._out.open and not self._out.metering.paused

    # ---- end of input --------------------------------------------------------------------------

    def on_wave(self, wave: int, drain: bool) -> None:
        """A new END wave: ended spouts send it; with `drain` every spout ends where it is."""
        self._wave = max(self._wave, wave)
        for spout in self._spouts:
            if drain:
                spout.drain()
            self._end_spout(spout)

    def _end_spout(self, spout: SpoutTask) -> None:
        """Send the current wave behind all it has emitted, once nothing of it is pending."""
        if spout.finished and spout.wave < self._wave:
            if not spout.wave:
                self._timers.finish(spout)
            spout.wave = self._wave
            self._out.markers(spout)
            self._report_end()

    def _on_marker(self, marker: Marker) -> None:
        task = marker.task
        if task.aligner.marker(marker.src, marker.wave):
            if not task.ended:
                self._watch.entered("end_of_input", task.task)
                self._calls.run()
                task.end_of_input()
                # What a bolt has waited for in there must leave ahead of the marker.
                self._calls.run()
                self._timers.finish(task)
            task.wave = marker.wave
            self._wave = max(self._wave, marker.wave)
            self._out.markers(task)
            self._report_end()

    def _report_end(self) -> None:
        waves = {task.wave for task in self._tasks.values()}
        if len(waves) == 1 and all(task.ended for task in self._tasks.values()):
            failed = any(task.failed for task in self._tasks.values())
            self._port.ended(waves.pop(), failed)

    # ---- looking in ----------------------------------------------------------------------------

    def statistics(self) -> InstanceStatistics:
        """Counters since the start; `queued` are rows taken from the socket and not executed."""
        emitted = sum(t.output.emissions.emitted for t in self._tasks.values())
        return InstanceStatistics(
            self._slices.executed, emitted, self._out.transferred, self._in.rows
        )

    @property
    def tasks(self) -> Sequence[RunningTask]:
        """The running tasks, for drivers that report on them."""
        return tuple(self._tasks.values())

    def check(self) -> None:
        """Assert the invariants of every part."""
        self._sessions.check()
        self._out.allowances.check()
        self._in.check()
        for task in self._tasks.values():
            task.output.batcher.check()
