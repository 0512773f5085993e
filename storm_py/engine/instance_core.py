"""InstanceCore: everything an instance does between its sockets and its user code.

One per executor, or per chain of fused ones. It decodes frames, runs user code over their rows,
gathers what is emitted into batches, credits what is finished, heeds pressure, and carries END
waves. Sockets, clocks and processes belong to the driver (`storm_py.runtime.instance`,
`storm_py.single`), which hands in a `Port`: the time, and a way to send. Of this package, `intake`
decodes and queues input, `outflow` gathers and sends output, `chain` hands it over within the
instance, `spouts` gives spouts their turns, and `waves` is what the end of the input takes.

User code runs nowhere but inside `open`, `activate`, `deactivate`, `on_data`, `work`, `spin`,
`tick`, `on_wave` and `close`, on the thread that calls them. `on_control` and `disconnect` may also
be called by a driver whose `send` waits, in the middle of user code: of a loss that they hear of
the spouts are told by the next `spin` or `tick`. `StreamManagerCore` is the other half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from storm_py.core.plan import NO_CUSTOM, CustomGroupings, PhysicalPlan
from storm_py.core.roots import RandomBits
from storm_py.errors import ProtocolError
from storm_py.wire import control, frames
from storm_py.wire.acks import decode_results

from .acking import Acks
from .batch_task import task_class
from .calls import Calls
from .chain import Chain
from .intake import Intake, Marker
from .links import instance_peer, read_control
from .outflow import Outflow
from .port import Port, Watch
from .reports import Reports
from .sessions import Sessions, Verdict
from .settings import Settings
from .slices import Slices
from .spouts import Spouts
from .statistics import InstanceStatistics
from .tasks import BoltTask, RunningTask, SpoutTask
from .timers import Timers
from .waves import Waves


class InstanceCore:
    """The tasks of one instance of a plan: of one executor, or of several that are fused.

    `components` holds one object per task, `groupings` a task's custom groupings where it has any.
    The core is connected to its stream manager by `connect`, after which `linked` becomes true once
    that answers.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        instance: int,
        incarnation: int,
        components: Mapping[int, object],
        settings: Settings,
        port: Port,
        rng: RandomBits,
        watch: Watch | None = None,
        groupings: Mapping[int, CustomGroupings] = MappingProxyType({}),
    ) -> None:
        self._port = port
        self._sessions = Sessions(plan.topology_id, plan.version)
        self._inbound: int | None = None
        self._in = Intake(plan, settings.acking, settings.codec)
        self._tasks: dict[int, RunningTask] = {}
        self._chain = Chain(self._in)
        acks = Acks(rng) if settings.acking else None
        tasks = plan.tasks_in(instance)
        hello = control.Hello(
            instance_peer(instance), plan.topology_id, incarnation, plan.version, list(tasks)
        )
        self._watch = watch or Watch()
        self._slices = Slices(self._in, port.clock, self._watch)
        self._calls = Calls(self._watch)
        self._reports = Reports(settings.conf, port.clock, port.report)
        self._timers = Timers(self._reports, port.stamp, self._watch)
        self._out = Outflow(
            plan, self._tasks, settings, port, rng, hello, acks, self._halt, self._chain
        )
        self._waves = Waves(self._tasks, self._out, self._timers, self._calls, port, self._watch)
        for task in tasks:
            kind = plan.topology.components[plan.task_to_component[task]].kind
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
        self._chain.join(self._tasks.values())
        self._first = next(iter(self._tasks.values()))
        self._spouts = Spouts(self._tasks.values(), self._waves, port.clock, self._watch)
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
        for error in self._calls.close():
            self._port.report(error.report(fatal=False))
        if self._out.open:
            self._out.flush(final=True)
        for task in self._tasks.values():
            self._watch.entered("cleanup" if isinstance(task, BoltTask) else "close", task.task)
            task.close()
        self._reports.close()

    def activate(self) -> None:
        """Spouts may emit from now on; they are told when the state turns."""
        self._spouts.activate()

    def deactivate(self) -> None:
        """Spouts may not emit until the next activate; answers still reach them."""
        self._spouts.deactivate()

    def replan(self, plan: PhysicalPlan) -> None:
        """Go on under another version of the plan, under which this instance runs alike."""
        self._sessions.replan(plan.version)
        self._out.replan(plan)

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
        self._spouts.lost = True
        self._halt()

    def _drop_input(self) -> None:
        self._in.clear()
        self._slices.halt()
        self._out.drop_credits()

    # ---- input ---------------------------------------------------------------------------------

    def on_control(self, message: bytes) -> None:
        """A control message from the stream manager."""
        session, record = read_control(message)
        if isinstance(record, control.Hello):
            self._on_hello(session, record)
        elif self._sessions.peer(session) is not None:
            self._on_record(record)
        if self.paused or self._spouts.lost:
            self._halt()

    def _on_hello(self, session: int, hello: control.Hello) -> None:
        if self._sessions.hello(session, hello):
            if session != self._inbound:
                # What it announced in the session before died with that one.
                self._out.unheard()
                self._drop_input()
                self._spouts.lost |= self._inbound is not None
            self._inbound = session
            self._out.say(control.Welcome(session))

    def _on_record(self, record: control.Control) -> None:
        match record:
            case control.Welcome(session=ours):
                if self._out.is_session(ours):
                    self._out.welcomed(ours)
                else:
                    self._greet()
            case control.Pressure() | control.Grant():
                self._out.heed(record)
            case control.FailPending():
                self._spouts.lost = True
            case control.LinkBroken(session=ours):
                if self._out.is_session(ours):
                    self._spouts.lost = True
                    self.connect()
            case _:
                raise ProtocolError(f"{type(record).__name__} does not belong on a link")

    def on_data(self, message: bytes) -> None:
        """A data message from the stream manager: queue its rows; `work` runs them."""
        session, seq = frames.read_message_header(message)
        verdict = self._sessions.data(session, seq)
        if verdict is Verdict.ACCEPT:
            self._out.credits.busy()
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
        results = decode_results(message, frame)
        self._watch.entered("ack or fail", spout.task)
        spout.answered(results)
        self._waves.end(spout)

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
        return not self.paused and self._spouts.emitting

    @property
    def has_work(self) -> bool:
        """Whether rows wait to be executed."""
        return bool(self._in.queue) or self._chain.holds

    def work(self) -> None:
        """Execute queued rows until there are none, pressure rises, or a flush is due."""
        while not self.paused:
            if self._chain:
                self._chain.hand_over()
            work = self._in.front
            if not work:
                return
            item = work[0]
            if isinstance(item, Marker):
                self._waves.arrived(item)
                done, rows = True, 0
            else:
                self._slices.run(item)
                done, rows = item.done == len(item.rows), item.frame_rows
            # A driver serves control while an emit waits: a new session may have dropped the item.
            if done and work and work[0] is item:
                work.popleft()
                if item.credit:
                    self._out.credits.finished(item.task.task, rows, item.credit)
            if self._out.flush_due:
                self._out.flush()
                return

    def _halt(self) -> None:
        """Nothing may be emitted for now: what user code is in work ends behind this row or call.

        Called while user code runs, or with no effect.
        """
        self._spouts.halt()
        self._slices.halt()

    def spin(self) -> bool:
        """Call next_tuple of every spout that may emit, for a slice of time; False if all idled.

        What waits to be executed goes first.
        """
        self._spouts.tell_lost()
        if self.has_work:
            self.work()
        emitted = self._spouts.burst(self._may_burst)
        busy = emitted or (self.has_work and not self.paused)
        if not busy:
            self.idle()
        elif self._out.flush_due:
            self._out.flush()
        return busy

    def _may_burst(self) -> bool:
        """Whether a spout may emit now: what the one before it has handed over goes first."""
        if self._chain.holds:
            self.work()
        return not self.paused and not self._chain.holds

    def linger(self, secs: float) -> None:
        """Hold back small frames for so long."""
        self._out.linger_secs = secs

    def flush(self) -> None:
        """Send every open batch, then credit the input whose outputs are now all on their way."""
        self._out.flush()

    def idle(self) -> None:
        """Nothing has come, or may be executed now: send what is open, if it is time for it."""
        if self.paused:
            self._out.credits.busy()
        elif not self.has_work:
            self._out.credits.idle()
        self._out.flush_unless_lingering()

    # ---- by the clock --------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Do what other threads asked for and what is due by now; call it between two slices."""
        self._out.beat(now)
        self._spouts.tell_lost()
        if self._calls:
            self._calls.run()
        lingers = self._out.lingers_until
        if lingers is not None and now >= lingers:
            self._out.flush()
        self._spouts.tick(now)
        if self._timers:
            self._timers.run(now, not self.paused, self._metering)

    def next_timeout(self) -> float | None:
        """When `tick` has to be called at the latest while nothing else happens, None for never.

        Timeouts of messages are left out: they may be late by as long as a driver sleeps.
        """
        due = (
            self._timers.next(not self.paused, self._metering),
            self._out.next_beat(),
            self._out.lingers_until,
        )
        return min((at for at in due if at is not None), default=None)

    @property
    def _metering(self) -> bool:
        return self._out.open and not self._out.metering.paused

    # ---- end of input --------------------------------------------------------------------------

    def on_wave(self, wave: int, drain: bool) -> None:
        """A new END wave: ended spouts send it; with `drain` every spout ends where it is."""
        self._spouts.wave(wave, drain)

    # ---- looking in ----------------------------------------------------------------------------

    def statistics(self, component_id: str = "") -> InstanceStatistics:
        """Counters since the start, of all its components or of one.

        `queued` are rows taken from the socket, or handed over, and not executed.
        """
        tasks = [t for t in self._tasks.values() if component_id in ("", t.component_id)]
        executed = emitted = transferred = acked = failed = 0
        for task in tasks:
            executed += task.executed
            emitted += task.output.emissions.emitted
            transferred += task.transferred
            if isinstance(task, SpoutTask):
                acked += task.told["ack"]
                failed += task.told["fail"]
        queued = self._chain.rows(tasks) if self._chain else 0
        if self._first in tasks:  # what comes from outside is for it
            queued += self._in.rows
        return InstanceStatistics(executed, emitted, transferred, queued, acked, failed)

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
