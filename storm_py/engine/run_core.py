"""RunCore: what the parent of a topology's workers decides in local mode.

Theory of operation. Workers come up, each with the address of its stream manager; the core has them
connect to each other. When all are ready the spouts are activated. When the input ends - or is
ended by a drain - the END wave goes through the topology, and when every executor has reported the
current wave the workers are stopped. Whatever dies and comes back makes the current wave worthless,
since markers may have died with it, so a new one is started. A wave that has not come through for a
while is renewed too, in case one of its markers was lost; but it may be merely slow, and a new one
starts from the front, so each renewal is given twice as long as the one before.

Pure: events in, actions out; processes and signals are in `storm_py.local`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from storm_py.config import Config
from storm_py.core.plan import ExecutorPlan, PhysicalPlan
from storm_py.run import Phase
from storm_py.wire import control

from . import losses
from .worker_core import (
    BACKOFF_SECS,
    HEALTHY_SECS,
    STILLBORN,
    newest_incarnation,
)

#: Seconds after which a wave that has not come through is started anew, once something died. The
#: net below the exact rules: a marker may be lost on a link that died with it.
REWAVE_SECS: Final = 1.0
#: The same where nothing died: a link may break without anybody's death.
QUIET_REWAVE_SECS: Final = 15.0
#: The longest wait for one wave. What waits in front of a task is bounded to about a second of its
#: time, and a long end_of_input is called only once, so this is far more than any wave takes.
MAX_REWAVE_SECS: Final = 60.0
#: Failures of a task further apart than this are not in a row: it was healthy in between.
FAILURES_APART_SECS: Final = HEALTHY_SECS + BACKOFF_SECS[-1]


@dataclass(frozen=True, slots=True)
class StartWorker:
    """Start a worker."""

    worker: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class TellWorker:
    """Send an order to a worker."""

    worker: int
    record: control.Control


@dataclass(frozen=True, slots=True)
class Note:
    """Something the operator should know."""

    text: str


@dataclass(frozen=True, slots=True)
class CannotStart:
    """Report that a worker dies each time before it is up."""

    worker: int
    reason: str


Action = StartWorker | TellWorker | Note | CannotStart


@dataclass(slots=True)
class _Worker:
    incarnation: int = 0
    up: control.WorkerUp | None = None
    ready: bool = False
    gone: bool = False
    restart_at: float | None = None
    started_at: float = 0.0
    failures: int = 0
    stillborn: int = 0

    def lives_as(self, incarnation: int) -> bool:
        """Whether this incarnation was started last and is not known to be dead."""
        return incarnation == self.incarnation and self.restart_at is None and not self.gone


class RunCore:
    """One run of a plan."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self._plan = plan
        self._acking = plan.conf[Config.TOPOLOGY_ACKER_EXECUTORS] != 0
        self._workers = {worker: _Worker() for worker in plan.workers}
        self._ended: dict[int, int] = {}
        self._phase: Phase = "starting"
        self._wave = 1
        self._wave_at = 0.0
        self._wave_secs = QUIET_REWAVE_SECS
        self._drain = False
        self._active = True
        self._restarts = 0
        self._failed = False
        self._lost: list[str] = []
        #: by task, how often in a row it failed, and when last
        self._failures: dict[int, tuple[int, float]] = {}

    # ---- what drivers ask ----------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """Where the run stands."""
        return self._phase

    @property
    def failed(self) -> bool:
        """Whether a component failed."""
        return self._failed

    @property
    def restarts(self) -> int:
        """How many processes died and were started again."""
        return self._restarts

    @property
    def lost(self) -> tuple[str, ...]:
        """Why figures may be short of the input."""
        return tuple(self._lost)

    @property
    def incarnations(self) -> Mapping[int, int]:
        """The current incarnation of each worker."""
        return {worker: state.incarnation for worker, state in self._workers.items()}

    @property
    def gone(self) -> frozenset[int]:
        """The workers that have died while the run stops; nobody starts them again."""
        return frozenset(worker for worker, state in self._workers.items() if state.gone)

    # ---- events --------------------------------------------------------------------------------

    def start(self, now: float) -> list[Action]:
        """Start every worker."""
        return [self._start(worker, now) for worker in self._workers]

    def _start(self, worker: int, now: float) -> Action:
        state = self._workers[worker]
        state.incarnation += 1
        state.started_at = now
        state.restart_at = None
        return StartWorker(worker, state.incarnation)

    def worker_up(self, record: control.WorkerUp) -> list[Action]:
        """A worker's stream manager listens: introduce it to all others."""
        state = self._workers[record.worker]
        if not state.lives_as(record.incarnation):
            return []
        state.up = record
        state.stillborn = 0
        if self._phase == "stopping":  # it was not there yet when all were told
            return [TellWorker(record.worker, control.Stop())]
        actions: list[Action] = []
        for other, peer in self._workers.items():
            if other != record.worker and peer.up is not None:
                actions.append(TellWorker(other, _introduce(record)))
                actions.append(TellWorker(record.worker, _introduce(peer.up)))
        return actions

    def stream_manager_down(self, record: control.StreamManagerDown) -> list[Action]:
        """A worker's stream manager died: whoever sends to it holds that back from now on."""
        state = self._workers[record.worker]
        if not state.lives_as(record.incarnation) or self._phase == "stopping":
            return []
        return self._forget(record.worker, record.stream_manager_incarnation)

    def _forget(self, worker: int, stream_manager_incarnation: int) -> list[Action]:
        gone = control.Disconnect(f"s{worker}", stream_manager_incarnation)
        return [
            TellWorker(other, gone)
            for other, peer in self._workers.items()
            if other != worker and peer.up is not None
        ]

    def worker_ready(self, record: control.WorkerReady, now: float) -> list[Action]:
        """All executors of a worker are ready."""
        state = self._workers[record.worker]
        if not state.lives_as(record.incarnation):
            return []
        state.ready = True
        if self._phase == "starting":
            if not all(worker.ready for worker in self._workers.values()):
                return []
            self._phase = "running"
            if self._all_ended:
                return self._stop()
            return self._tell_all(control.Activate()) if self._active else []
        if self._phase == "stopping":
            return []
        actions: list[Action] = []
        if record.incarnation > 1:
            actions.append(Note(f"worker {record.worker} is up again"))
        if self._active and not self._drain:
            actions.append(TellWorker(record.worker, control.Activate()))
        return actions + self._new_wave(now, REWAVE_SECS)

    def restarted(self, record: control.Restarted, now: float) -> list[Action]:
        """A process inside a worker died and is back."""
        self._restarts += 1
        members = self._plan.instances.get(record.executor, ())
        self._forget_ends(members)
        what = self._name(record.role, record.executor)
        is_spout = any(member.component_id in self._plan.topology.spouts for member in members)
        gone = losses.of_process(record.role, is_spout, self._acking, len(members) > 1)
        self._lost.append(f"{what} was restarted ({record.reason}); {gone}")
        return [Note(f"{what} was restarted: {record.reason}"), *self._new_wave(now, REWAVE_SECS)]

    def ended(self, record: control.Ended, now: float) -> list[Action]:
        """All tasks of an executor have ended under a wave."""
        self._failed |= record.failed
        if record.executor not in self._ended:
            self._wave_at = now
        self._ended[record.executor] = record.wave
        if self._phase not in ("running", "draining"):
            return []
        return self._stop() if self._all_ended else []

    @property
    def _waiting_for_wave(self) -> bool:
        """Whether only markers are missing: while a spout goes on there is nothing to renew."""
        return self._phase in ("running", "draining") and all(
            e.id in self._ended
            for e in self._plan.executors
            if e.component_id in self._plan.topology.spouts
        )

    @property
    def _all_ended(self) -> bool:
        return all(self._ended.get(e.id, 0) >= self._wave for e in self._plan.executors)

    def _forget_ends(self, executors: Iterable[ExecutorPlan]) -> None:
        """They are started anew: their tasks have not ended yet."""
        for executor in executors:
            self._ended.pop(executor.id, None)

    def failed_to_run(self, record: control.ErrorReport, now: float) -> list[Action]:
        """User code raised; if it is fatal to its process the run has failed, but goes on.

        Before the run has begun there is nothing to go back to: it ends. It ends as well when a
        task fails again and again: whoever looks on shall not have to wait for a miracle.
        """
        if not record.fatal:
            return []
        self._failed = True
        if self._phase == "starting":
            return [Note("a component could not start: stopping"), *self._stop()]
        count, last = self._failures.get(record.task, (0, now))
        count = count + 1 if now - last < FAILURES_APART_SECS else 1
        self._failures[record.task] = count, now
        limit: Any = self._plan.conf[Config.STORM_PY_LOCAL_MAX_FAILURES]
        if limit is None or count < limit or self._phase not in ("running", "draining"):
            return []
        why = f"{record.component} (task {record.task}) failed {count} times in a row"
        self._lost.append(f"{why}, which ended the run early")
        return [Note(f"{why}: stopping ({Config.STORM_PY_LOCAL_MAX_FAILURES})"), *self._stop()]

    def drain(self) -> list[Action]:
        """End every spout where it is; what is in flight is finished."""
        if self._phase == "starting":
            return self._stop()
        if self._phase != "running":
            return []
        self._phase = "draining"
        self._drain = True
        return self._tell_all(control.Wave(self._wave, True))

    def activate(self, active: bool) -> list[Action]:
        """Have spouts go on, or pause; it holds for processes that start later as well.

        While paused they get answers and no next_tuple, so the input cannot end.
        """
        if self._drain or active == self._active or self._phase in ("stopping", "done"):
            return []
        self._active = active
        turn = Note("activated: spouts go on" if active else "deactivated: spouts pause")
        if self._phase == "starting":
            return [turn]
        return [turn, *self._tell_all(control.Activate() if active else control.Deactivate())]

    def _stop(self) -> list[Action]:
        self._phase = "stopping"
        for state in self._workers.values():
            if state.restart_at is not None:
                state.restart_at = None
                state.gone = True
        if all(each.gone for each in self._workers.values()):
            self._phase = "done"
        return self._tell_all(control.Stop())

    def worker_died(self, worker: int, reason: str, now: float) -> list[Action]:
        """A worker's process is gone, and all of its own with it."""
        state = self._workers[worker]
        state.stillborn += state.up is None
        state.up = None
        state.ready = False
        if self._phase == "stopping":
            state.gone = True
            if all(each.gone for each in self._workers.values()):
                self._phase = "done"
            return []
        self._restarts += 1
        self._wave_secs = REWAVE_SECS
        gone = losses.of_worker(self._acking)
        self._lost.append(f"worker {worker} was restarted ({reason}); {gone}")
        self._forget_ends(self._plan.on_worker(worker))
        if now - state.started_at >= HEALTHY_SECS:
            state.failures = 0
        state.restart_at = now + BACKOFF_SECS[min(state.failures, len(BACKOFF_SECS) - 1)]
        state.failures += 1
        actions: list[Action] = [Note(f"worker {worker} died ({reason}) and is started again")]
        actions += self._forget(worker, newest_incarnation(state.incarnation))
        if state.stillborn == STILLBORN:
            self._failed = True
            actions.append(CannotStart(worker, reason))
            if self._phase == "starting":
                return actions + self._stop()
        return actions + self.tick(now)

    def tick(self, now: float) -> list[Action]:
        """Restart workers whose time has come; renew a wave that may have been lost."""
        actions = [
            self._start(worker, now)
            for worker, state in self._workers.items()
            if state.restart_at is not None and now >= state.restart_at
        ]
        if self._waiting_for_wave and now >= self._wave_at + self._wave_secs:
            actions += self._new_wave(now, min(2 * self._wave_secs, MAX_REWAVE_SECS))
        return actions

    def next_timeout(self) -> float | None:
        """When `tick` should be called next, None for never."""
        found = [w.restart_at for w in self._workers.values() if w.restart_at is not None]
        if self._waiting_for_wave:
            found.append(self._wave_at + self._wave_secs)
        return min(found, default=None)

    def _new_wave(self, now: float, wait_secs: float) -> list[Action]:
        """Start a wave that is given so long to come through."""
        self._wave += 1
        self._wave_at = now
        self._wave_secs = wait_secs
        return self._tell_all(control.Wave(self._wave, self._drain))

    def _tell_all(self, record: control.Control) -> list[Action]:
        return [
            TellWorker(worker, record) for worker, state in self._workers.items() if not state.gone
        ]

    def _name(self, role: str, executor: int) -> str:
        if role == "stream-manager":
            return "a stream manager"
        return self._plan.label(executor)

    def check(self) -> None:
        """Assert what holds between any two events."""
        for state in self._workers.values():
            assert not state.ready or state.up is not None
            assert not (state.gone and self._phase not in ("stopping", "done"))
        assert set(self._ended) <= {executor.id for executor in self._plan.executors}


def _introduce(record: control.WorkerUp) -> control.Connect:
    return control.Connect(
        f"s{record.worker}",
        record.stream_manager_incarnation,
        record.tcp_data,
        record.tcp_control,
    )
