"""ClusterParent: what runs a worker of a cluster: its assignment, in ZooKeeper.

Theory of operation. There is no process that gives orders: the worker reads what nimbus has decided
and makes its own orders of it. `Membership` decides about other workers, `ClusterWaves` about the
end of the input; a newer assignment becomes another plan in the run folder, and an order to follow
that. A worker that has no assignment any
more, or is not in it, stops. While ZooKeeper is away nothing changes.

What the worker reports goes to three places: where its stream manager listens, and errors of
components, to ZooKeeper; figures into heartbeats (`storm_py.heartbeat`), which also say that this
thread is alive; the rest to the log.

ZooKeeper is read and written on another thread, `storm_py.runtime.cluster_link`. Everything here is
for the worker's thread, but for `stop` and `newest_beat`.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from storm_py.cluster.records import (
    Assignment,
    ErrorInfo,
    LogConfig,
    StormBase,
    TopologyStatus,
    WorkerRegistration,
)
from storm_py.config import Config
from storm_py.core.plan import PhysicalPlan
from storm_py.engine.cluster_waves import Action as WaveAction
from storm_py.engine.cluster_waves import Begin, ClusterWaves, Ends, Renew, Tell
from storm_py.engine.log_levels import LogLevels, Setting
from storm_py.engine.membership import Action, Membership, Order, Publish, Registration
from storm_py.engine.reports import error_text
from storm_py.heartbeat import ExecutorStatistics, Heartbeat
from storm_py.wire import control
from storm_py.worker_spec import WorkerSpec

from .assigned_run import AssignedRun
from .cluster_link import (
    AssignmentRead,
    ClusterLink,
    LogConfigRead,
    RegistrationRead,
    StormRead,
    WaveRead,
)
from .process import drain_pipe

_LOG = logging.getLogger("storm_py.worker")

#: Seconds that ZooKeeper has to take what is still to be written when the worker ends.
_LAST_WORDS_SECS: Final = 2.0


class ClusterParent:
    """The parent of the worker `run.worker`."""

    def __init__(self, spec: WorkerSpec, run: AssignedRun, link: ClusterLink, wakeup: int) -> None:
        self._spec = spec
        self._run = run
        self._link = link
        self._wakeup = wakeup
        self._beat_secs: int = spec.conf[Config.WORKER_HEARTBEAT_FREQUENCY_SECS]
        self._levels_secs: int = spec.conf[Config.WORKER_LOG_LEVEL_RESET_POLL_SECS]
        self._beat_at = 0.0
        self._version = run.plan.version
        self._membership = Membership(run.worker, self._version, self._others(run.plan))
        self._orders: deque[control.Control] = deque()
        self._stopping = False
        self._stop_wanted = False
        self._stats: dict[int, control.ExecutorStats] = {}
        #: by executor, its incarnation and since when that is known
        self._since: dict[int, tuple[int, float]] = {}
        self._beat_failed = False
        self._newest_beat: Heartbeat | None = None
        self._levels = LogLevels()
        self._levels_at = math.inf
        self._told_levels: dict[str, str] = {}
        self._waves = ClusterWaves(run.worker)
        #: what was published last
        self._registration: Registration | None = None
        self._ends = Ends()
        self._follow(run.plan, time.monotonic())

    def stop(self) -> None:
        """Have the worker stop; for the handler of a signal, which ends the worker's sleep."""
        self._stop_wanted = True

    def newest_beat(self) -> Heartbeat | None:
        """The last heartbeat; from any thread."""
        return self._newest_beat

    # ---- what a parent is ----------------------------------------------------------------------

    @property
    def source(self) -> int:
        """The pipe that the link writes to."""
        return self._wakeup

    def receive(self) -> control.Control | None:
        """The next order."""
        drain_pipe(self._wakeup)
        if self._stop_wanted:
            self._stop("told to")
        while not self._orders and (event := self._link.take()) is not None:
            match event:
                case AssignmentRead(assignment=assignment):
                    self._on_assignment(assignment)
                case StormRead(base=base):
                    self._on_storm(base)
                case RegistrationRead(worker=worker, registration=found):
                    self._on_registration(worker, found)
                case LogConfigRead(config=config):
                    self._levels.set(_settings(config))
                    self._tell_levels()
                case WaveRead(wave=wave):
                    self._go_on(self._waves.wave_read(wave, time.monotonic()))
        return self._orders.popleft() if self._orders else None

    def send(self, record: control.Control) -> None:
        """Take a report."""
        match record:
            case control.WorkerUp():
                self._perform(self._membership.stream_manager_up(record))
            case control.StreamManagerDown():
                self._perform(self._membership.stream_manager_down(record))
            case control.WorkerReady():
                _LOG.info("all instances of this worker are ready")
                self._perform(self._membership.ready())
                if self._run.incarnation > 1 or self._version > 1:
                    self._restarted(self._run.plan.instances_on(self._run.worker))
            case control.Ended():
                self._go_on(self._waves.ended(record.executor, record.wave, time.monotonic()))
            case control.ExecutorStats():
                self._count(record)
            case control.ErrorReport():
                self._report(record)
            case control.Restarted():
                _LOG.warning("%s was started again: %s", self._name(record.executor), record.reason)
                self._restarted([record.executor])
            case control.LogRecord():
                _LOG.log(record.level, "%s: %s", record.source, record.text)
            case _:
                _LOG.debug("%s", record)

    def next_timeout(self) -> float | None:
        """When the next heartbeat is due, or a wave, or the end of a level."""
        due = (self._beat_at, self._levels_at, self._waves.next_timeout())
        return min(at for at in due if at is not None)

    def tick(self, now: float) -> None:
        """Write the heartbeat if it is due."""
        self._go_on(self._waves.tick(now))
        if now >= self._levels_at:
            self._tell_levels()
        if now >= self._beat_at:
            self._beat_at = now + self._beat_secs
            self._beat(now)

    def close(self) -> None:
        """Say the last and leave ZooKeeper."""
        self._link.close(_LAST_WORDS_SECS)

    # ---- what is read --------------------------------------------------------------------------

    def _on_assignment(self, assignment: Assignment | None) -> None:
        if assignment is None:
            self._stop("its topology is assigned no more")
            return
        if assignment.version <= self._version:
            return
        if assignment.code_checksum != self._spec.code_checksum:
            _LOG.info("version %d runs other code: not here", assignment.version)
            return
        self._version = assignment.version
        workers: frozenset[int] = frozenset()
        if self._run.has_worker(assignment):
            plan = self._run.adopt(assignment)
            workers = frozenset(plan.workers)
            self._follow(plan, time.monotonic())
        _LOG.info("following version %d of the assignment", assignment.version)
        self._perform(self._membership.assigned(assignment.version, workers))

    def _on_storm(self, base: StormBase | None) -> None:
        if base is not None:  # without it the assignment is gone as well, or goes at once
            self._perform(self._membership.activate(base.status is TopologyStatus.ACTIVE))

    def _on_registration(self, worker: int, found: WorkerRegistration | None) -> None:
        registration = None if found is None else _from_record(found)
        if worker == self._run.worker:
            self._perform(self._membership.published(registration))
        elif registration is not None and found is not None:
            self._perform(self._membership.registered(registration))
            ends = Ends(found.ended_wave, found.spouts_ended)
            self._waves.other_told(worker, ends, time.monotonic())

    def _tell_levels(self) -> None:
        """Have the loggers of all instances at the levels of now."""
        wall = time.time()
        levels, until = self._levels.effective(wall), self._levels.next_timeout(wall)
        # Asked often enough to be right also if the clock on the wall is set.
        self._levels_at = math.inf if until is None else time.monotonic() + self._levels_secs
        if levels != self._told_levels:
            self._told_levels = levels
            _LOG.info("levels of loggers: %s", levels or "as at the start")
            self._orders.append(control.LogLevels(json.dumps(levels)))

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Publish(registration=registration):
                    self._registration = registration
                    self._publish(registration)
                case Order(record=control.Stop()):
                    self._stop("another worker has its place, or none has")
                case Order(record=record):
                    self._orders.append(record)

    def _publish(self, registration: Registration) -> None:
        self._link.publish(_to_record(registration, self._ends, self._version))

    def _go_on(self, actions: list[WaveAction]) -> None:
        for action in actions:
            match action:
                case Begin(wave=wave):
                    self._orders.append(control.Wave(wave, False))
                case Renew():
                    self._link.renew_wave()
                case Tell(ends=ends):
                    self._ends = ends
                    if self._registration is not None:
                        self._publish(self._registration)

    def _restarted(self, instances: Iterable[int]) -> None:
        """Their processes are new; for the stream manager, 0, markers may be lost as well."""
        members = self._run.plan.instances
        executors = [member.id for id_ in instances for member in members.get(id_, ())]
        self._go_on(self._waves.restarted(executors, time.monotonic()))

    def _follow(self, plan: PhysicalPlan, now: float) -> None:
        """Live among the workers of this plan."""
        others = self._others(plan)
        self._link.follow(others)
        own = plan.on_worker(self._run.worker)
        spouts = [executor.id for executor in own if executor.component_id in plan.topology.spouts]
        self._go_on(self._waves.assigned([e.id for e in own], spouts, others, now))

    def _stop(self, why: str) -> None:
        if not self._stopping:
            self._stopping = True
            _LOG.info("stopping: %s", why)
            self._orders.append(control.Stop())

    def _others(self, plan: PhysicalPlan) -> frozenset[int]:
        return frozenset(plan.workers) - {self._run.worker}

    # ---- what is reported ----------------------------------------------------------------------

    def _name(self, instance: int) -> str:
        plan = self._run.plan
        return plan.label(instance) if instance in plan.instances else "the stream manager"

    def _report(self, record: control.ErrorReport) -> None:
        text = error_text(record)
        _LOG.error("%s, %s", record.component, text)
        info = ErrorInfo(text, int(time.time()), self._spec.host, self._spec.port)
        self._link.report_error(record.component, info)

    def _count(self, record: control.ExecutorStats) -> None:
        self._stats[record.executor] = record
        known = self._since.get(record.executor)
        if known is None or known[0] != record.incarnation:
            self._since[record.executor] = record.incarnation, time.monotonic()

    def _beat(self, now: float) -> None:
        beat = self._newest_beat = Heartbeat(
            self._spec.worker_id,
            self._run.incarnation,
            self._version,
            now,
            tuple(self._statistics(now)),
        )
        try:
            beat.write(Path(self._spec.heartbeat))
        except OSError as error:
            if not self._beat_failed:  # once is enough: its supervisor will act upon the silence
                _LOG.error("no heartbeat can be written: %s", error)
            self._beat_failed = True
            return
        self._beat_failed = False

    def _statistics(self, now: float) -> list[ExecutorStatistics]:
        found = []
        for executor in self._run.plan.on_worker(self._run.worker):
            stats = self._stats.get(executor.id)
            incarnation, since = self._since.get(executor.id, (0, now))
            counts = (0, 0, 0, 0, 0, 0)
            if stats is not None:
                counts = (
                    stats.executed,
                    stats.emitted,
                    stats.transferred,
                    stats.acked,
                    stats.failed,
                    stats.queued,
                )
            pid = 0 if stats is None else stats.pid
            tasks = executor.tasks
            uptime = int(now - since) if incarnation else 0
            found.append(ExecutorStatistics(tasks[0], tasks[-1], uptime, pid, *counts))
        return found


def _settings(config: LogConfig) -> dict[str, Setting]:
    return {
        logger: Setting(
            level.target_log_level, level.reset_log_level_timeout_epoch, level.reset_log_level
        )
        for logger, level in config.named_logger_level.items()
    }


def _to_record(registration: Registration, ends: Ends, version: int) -> WorkerRegistration:
    return WorkerRegistration(
        registration.worker,
        registration.incarnation,
        registration.stream_manager_incarnation,
        registration.data,
        registration.control,
        ends.wave,
        ends.spouts,
        version,
    )


def _from_record(record: WorkerRegistration) -> Registration:
    return Registration(
        record.worker,
        record.incarnation,
        record.stream_manager_incarnation,
        record.data,
        record.control,
    )
