"""Outflow: the way out of an instance - batches, acks, markers and credits over one link.

Batches that are full leave at once, the others with the next flush, and credits behind them: input
is credited only once all that came of it was sent. While there is no open session, data waits in
an outbox. What comes in is the business of `storm_py.engine.intake`. Pure: the port sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from storm_py.constants import RESERVED_PREFIX
from storm_py.core.batching import OpenBatch
from storm_py.core.plan import PhysicalPlan
from storm_py.core.pressure import START_FRAME_ROWS
from storm_py.core.roots import RandomBits
from storm_py.wire import control, frames
from storm_py.wire.acks import encode_acks

from .acking import Acks
from .allowances import Allowances
from .chain import Chain
from .credits import Credits
from .framing import data_frames
from .links import Beats, OutboundLink
from .port import Port
from .settings import Settings
from .tasks import RunningTask

#: Rows in a frame, on the average, that are worth its way even where processors are crowded.
WORTH_ROWS: Final = 16


class Outflow:
    """All that one instance sends; `tasks` are its running tasks, by id, and may still grow.

    `halt` is called when a task downstream may not be sent to any more, or has to be run first:
    `chain` knows those of this instance.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        tasks: Mapping[int, RunningTask],
        settings: Settings,
        port: Port,
        rng: RandomBits,
        hello: control.Hello,
        acks: Acks | None,
        halt: Callable[[], None],
        chain: Chain,
    ) -> None:
        self._halt = halt
        self._chain = chain
        self._tasks = tasks
        self._settings = settings
        self._port = port
        self._rng = rng
        self._hello = hello
        #: for how long small frames are held back
        self.linger_secs = 0.0
        self._acks = acks
        self._beats = Beats()
        self._link: OutboundLink | None = None
        self._outbox: list[bytes] = []
        #: What is finished is credited behind the next flush.
        self.credits = Credits(port.clock, settings.credit_secs, settings.credit_bytes)
        #: there was something to credit at the last flush, and something of it still in the chain
        self._withheld = False
        self._flushed_at = port.clock()
        #: when what is held back is due
        self.lingers_until: float | None = None
        users, systems = _heeded(plan, hello.tasks)
        self.allowances = Allowances(users)
        #: Metrics must not stop tuples: pressure of their consumers holds back metrics only.
        self.metering = Allowances(systems)
        #: The largest frames, in rows, to tasks downstream that have been heard of, or are heeded.
        self._frame_rows: dict[int, int] = {}
        self.replan(plan)

    def replan(self, plan: PhysicalPlan) -> None:
        """Who hosts the spouts is in this plan; say so from the next session on."""
        self._hello = replace(self._hello, assignment_version=plan.version)
        # With one worker one tracker hosts every spout, and records need no sorting.
        spouts = [task for spout in plan.topology.spouts for task in plan.tasks_of(spout)]
        self._spout_workers = {task: plan.worker_of(task) for task in spouts}
        self._only_tracker = spouts[0] if len(plan.workers) == 1 else None

    # ---- the link ------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Whether data goes out now: there is a link and its session was welcomed."""
        return self._link is not None and self._link.open

    def connect(self) -> None:
        """There is a (new) peer: begin a session."""
        self._link = OutboundLink("stmgr", self._rng, self._hello, self._beats)

    def greet(self) -> None:
        """Say who we are, if there is anybody to hear it; that opens the session."""
        self.credits.untell()
        if self._link is not None:
            self._port.send(False, self._link.hello())

    def disconnect(self) -> None:
        """The peer is gone, and what waited for it is of no use to its successor."""
        self._link = None
        self._outbox.clear()
        if self._acks is not None:
            self._acks.clear()

    def unheard(self) -> None:
        """Nothing has been heard of the tasks downstream, or it was said in a session now over."""
        for allowances in (self.allowances, self.metering):
            allowances.reset()
            for task in allowances.heeded:
                self._frame_rows[task] = START_FRAME_ROWS
                self._size_frames(task)

    def heed(self, record: control.Pressure | control.Grant) -> None:
        """The stream manager says what a task downstream may be sent."""
        task = record.task
        self._frame_rows[task] = record.frame_rows
        for allowances in (self.allowances, self.metering):
            if isinstance(record, control.Grant):
                allowances.grant(task, record.rows)
            else:
                allowances.pressure(task, record.on)
        self._size_frames(task)

    def _size_frames(self, task: int) -> None:
        """A frame ends where the grant does; what one call emits beyond it makes large ones."""
        left = self.allowances.left(task) or self.metering.left(task)
        for running in self._tasks.values():
            running.output.batcher.limit(task, left or self._frame_rows[task])

    def is_session(self, session: int) -> bool:
        """Whether this is the session of our link."""
        return self._link is not None and self._link.session == session

    def welcomed(self, session: int) -> None:
        """The peer accepts the session: send what has waited for that."""
        if self._link is not None and self._link.welcomed(session):
            waiting, self._outbox = self._outbox, []
            for part in waiting:
                self._transmit([part])

    def say(self, record: control.Control) -> None:
        """Send a control record, if there is anybody to hear it."""
        if self._link is not None:
            self._port.send(False, self._link.control(record))

    # ---- data ----------------------------------------------------------------------------------

    def batch_due(self, batch: OpenBatch, task: int) -> None:
        """A batch of `task` is full."""
        if self._tasks[task].output.batcher.hands_over(batch):
            self._halt()  # it is queued when user code returns
        else:
            self._transmit(self._frame(batch, task))

    def beat(self, now: float) -> None:
        """Let the peer notice what it has not received, if it is time for that."""
        link = self._link
        if self._beats.due(now) and link is not None and link.open:
            self._port.send(True, link.beat())

    def next_beat(self) -> float | None:
        """When the next one is due, None while there is no open link."""
        return self._beats.next(self._port.clock()) if self.open else None

    def markers(self, task: RunningTask) -> None:
        """Send the END wave of `task` behind all that is open."""
        self.flush()
        kind, epoch = frames.MarkerKind.END, self._settings.epoch
        stamp = self._port.stamp()
        here = set(self._chain.marker(task, task.wave))
        for dest in task.output.batcher.dests:
            if dest in here:
                continue
            marker = frames.encode_marker(epoch, task.task, dest, stamp, kind, task.wave)
            self._transmit([marker])

    def flush(self, final: bool = False) -> None:
        """Send every open batch, then credit the input whose outputs are now all on their way.

        Credits for a few rows wait for others for a moment, unless this is the `final` flush.
        """
        parts: list[bytes] = []
        for task in self._tasks.values():
            for batch in task.output.batcher.open():
                parts += self._frame(batch, task.task)
        parts += self._ack_frames()
        if parts:
            self._transmit(parts)
        self._flushed_at = self._port.clock()
        self.lingers_until = None
        if self.credits:
            self._chain.hand_over()
            self._withheld = self._chain.holds
            if not self._withheld:
                self._credit(final)

    def flush_unless_lingering(self) -> None:
        """Flush, for a sender that has nothing to do; small frames not sooner than it lingers.

        That is counted from the last flush; what is held back is due at `lingers_until`.
        """
        if not self.linger_secs:
            self.flush()
            return
        batches = [b for task in self._tasks.values() for b in task.output.batcher.open()]
        if batches or self._acks or self.credits.untold:
            due = self._flushed_at + self.linger_secs
            rows = sum(len(batch.rows) for batch in batches)
            if self._port.clock() >= due or (batches and rows >= WORTH_ROWS * len(batches)):
                self.flush()
            else:
                self.lingers_until = due

    @property
    def flush_due(self) -> bool:
        """Whether a tuple may have waited for its frame to fill for as long as it may.

        Credits that were withheld are due as soon as the chain is empty, which it may never be at
        that time.
        """
        if self._withheld and not self._chain.holds:
            return True
        delay = max(self._settings.batch_delay_secs, self.linger_secs)
        return self._port.clock() - self._flushed_at >= delay

    def _frame(self, batch: OpenBatch, task: int) -> list[bytes]:
        settings = self._settings
        tracked = batch.take_tracking() if batch.roots else None
        runs, rows = batch.take()
        self._tasks[task].transferred += len(rows)
        used_up = self.metering.sent(batch.dest, len(rows))
        if self.allowances.sent(batch.dest, len(rows)):
            used_up = True
            self._halt()
        if used_up:
            self._size_frames(batch.dest)
        return data_frames(
            settings.epoch,
            task,
            batch.dest,
            self._port.stamp(),
            runs,
            rows,
            tracked,
            settings.max_frame_bytes,
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

    # ---- credits -------------------------------------------------------------------------------

    def drop_credits(self) -> None:
        """The session of the input is over, and what it is owed with it."""
        self.credits.drop()
        self._withheld = False

    def _credit(self, final: bool) -> None:
        link = self._link
        if link is None or not link.open or not self.credits.untold:
            return
        if not final and self._flushed_at < self.credits.due_at:
            self.lingers_until = self.credits.due_at
            return
        for credit in self.credits.news(link.seq):
            self._port.send(False, link.control(credit))


def _heeded(plan: PhysicalPlan, tasks: Iterable[int]) -> tuple[set[int], set[int]]:
    """The user's and the system's tasks whose pressure these tasks, of one instance, heed.

    That is all they may send to, but not round a cycle for a bolt.
    """
    users: set[int] = set()
    systems: set[int] = set()
    for executor in {plan.executor_of(task) for task in tasks}:
        for dest in plan.receivers(executor):
            component_id = plan.task_to_component[dest]
            if component_id.startswith(RESERVED_PREFIX):
                systems.add(dest)
            elif not plan.in_cycle(executor.component_id, component_id):
                users.add(dest)
    return users, systems
