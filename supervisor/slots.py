"""Slots: the slot machines of a node, and all that is done for them.

For one thread, that of `storm_py.supervisor.service`, which brings the events: what nimbus has
assigned, processes that ended, code that arrived, time. What the machines answer is done here:
`storm_py.supervisor.localizer` fetches code, `storm_py.supervisor.workers` has the processes.

Heartbeats are files. One that is awaited, the first of a worker or that which follows a new
version, is looked for often; others seldom. Only a heartbeat that is newer than the last one is a
sign of life.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from storm_py.errors import BlobError
from storm_py.heartbeat import Heartbeat, dump_statistics

from .assignment import Code, LocalAssignment
from .claims import Claims, by_port
from .heartbeats import WorkerReport
from .launcher import Exited, Gone, Recovered
from .localizer import Localizer
from .process_table import uptime_secs
from .settings import SupervisorSettings
from .slot import SlotMachine
from .slot_actions import (
    Action,
    CannotKill,
    Cleanup,
    FoundWorker,
    Kill,
    Launch,
    Localize,
    Release,
    Severity,
    Tell,
)
from .slot_states import MachineState
from .workers import Workers

_log = logging.getLogger(__name__)

#: Between two looks for a heartbeat that is awaited.
AWAITED_SECS: Final = 0.1


@dataclass(slots=True)
class _Slot:
    """One port."""

    port: int
    machine: SlotMachine
    #: The newest heartbeat of its worker.
    beat: Heartbeat | None = None
    #: When it was looked for.
    looked: float = 0.0
    #: When the worker was started.
    began: float = 0.0
    #: Downloads that are under way.
    fetched: dict[Code, Future[Path]] = field(default_factory=dict)
    #: Why the last one failed.
    failure: str = ""

    @property
    def worker_id(self) -> str | None:
        return self.machine.statistics().worker_id

    @property
    def wanted(self) -> LocalAssignment | None:
        return self.machine.statistics().wanted

    @property
    def is_late(self) -> bool:
        """Whether its worker does not follow what it has to."""
        wanted = self.wanted
        return wanted is not None and self.beat is not None and self.beat.version < wanted.version

    def look_at(self, look_secs: float) -> float | None:
        """When its heartbeat is to be looked for, None for never."""
        match self.machine.state:
            case MachineState.WAITING_FOR_WORKER_START:
                return self.looked + AWAITED_SECS
            case MachineState.RUNNING:
                return self.looked + (AWAITED_SECS if self.is_late else look_secs)
        return None


class Slots:
    """The slots of one node."""

    def __init__(
        self,
        settings: SupervisorSettings,
        workers: Workers,
        localizer: Localizer,
        call_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        """`call_soon` has something called by the thread of this object; from any thread."""
        self._settings = settings
        self._workers = workers
        self._localizer = localizer
        self._call_soon = call_soon
        self._slots: dict[int, _Slot] = {}
        #: whether reports would be others than the last ones
        self.changed = True
        for port in settings.ports:
            self._slot(port)

    def _slot(self, port: int) -> _Slot:
        slot = self._slots.get(port)
        if slot is None:
            names = iter(lambda: uuid.uuid4().hex, "")
            machine = SlotMachine(port, self._settings.timeouts, names)
            slot = self._slots[port] = _Slot(port, machine)
        return slot

    @property
    def are_idle(self) -> bool:
        """Whether there is no worker, and nothing to run."""
        return not self._workers.ports and all(slot.wanted is None for slot in self._slots.values())

    # ---- events --------------------------------------------------------------------------------

    def recover(self) -> None:
        """Take over what an earlier supervisor left, and go on with what it knew; come first."""
        assignments = dict(self._workers.assignments)
        for found, approved in self._workers.recover():
            if not approved:
                worker_id = found.record.worker_id
                _log.warning("worker %s is none that this node should have; it is ended", worker_id)
            self._recover(found, assignments.get(found.record.port) if approved else None)
        for port, wanted in assignments.items():
            self._assign(port, wanted)

    def _recover(self, found: Recovered, wanted: LocalAssignment | None) -> None:
        record = found.record
        slot = self._slot(record.port)
        if slot.worker_id is not None:  # a second one on this port
            self._workers.end(record.worker_id, Severity.KILL)
            return
        now = time.monotonic()
        slot.beat = found.heartbeat
        slot.began = now - uptime_secs(record.process)
        heard = None if found.heartbeat is None else found.heartbeat.time
        worker = FoundWorker(record.worker_id, record.assignment, found.alive, heard)
        self._act(slot, slot.machine.recover(wanted, worker, now))
        if slot.machine.state is MachineState.RUNNING:
            _log.info("worker %s on port %d goes on: %s", record.worker_id, slot.port, slot.wanted)

    def assign(self, claims: Claims) -> None:
        """Nimbus has decided."""
        current = {port: slot.wanted for port, slot in self._slots.items()}
        wanted = by_port(claims, current)
        for port in sorted(wanted.keys() | self._slots.keys()):
            self._assign(port, wanted.get(port))

    def _assign(self, port: int, wanted: LocalAssignment | None) -> None:
        slot = self._slot(port)
        if slot.wanted != wanted:
            actions = slot.machine.assign(wanted, time.monotonic())
            self._workers.remember(port, slot.wanted)  # before there is a worker of it
            _log.info("port %d: %s", port, slot.wanted or "nothing to run")
            self._act(slot, actions)
        self._workers.remember(port, slot.wanted)

    def poll(self) -> None:
        """See which processes have ended."""
        for port, event in self._workers.poll():
            slot = self._slots[port]
            match event:
                case Exited(worker_id, returncode):
                    self._log_end(slot, worker_id, returncode)
                    actions = slot.machine.exited(worker_id, returncode, time.monotonic())
                case Gone(worker_id) if worker_id == slot.worker_id:
                    actions = slot.machine.gone(worker_id, time.monotonic())
                case Gone(worker_id):
                    actions = [Cleanup(worker_id)]  # a second one that was found on this port
            self._act(slot, actions)

    def _log_end(self, slot: _Slot, worker_id: str, returncode: int | None) -> None:
        text = f"worker {worker_id} on port {slot.port} ended: {_how(returncode)}"
        wanted = slot.wanted
        if wanted is None or slot.look_at(0.0) is None:
            _log.info("%s, as it was to", text)
        else:
            _log.warning("%s; see %s", text, self._workers.logs(wanted.topology_id, slot.port))

    def tick(self) -> None:
        """Do what is due."""
        for slot in self._slots.values():
            self._act(slot, slot.machine.tick(time.monotonic()))
            at = slot.look_at(self._settings.look_secs)
            if at is not None and at <= time.monotonic():
                self._look(slot)

    def next_timeout(self) -> float | None:
        """When `tick` should be called next, None for never."""
        times: list[float | None] = []
        for slot in self._slots.values():
            times += slot.machine.next_timeout(), slot.look_at(self._settings.look_secs)
        return min((at for at in times if at is not None), default=None)

    def remove_unused(self) -> None:
        """Remove the code that no slot holds; only once it is known what all slots want."""
        try:
            self._localizer.remove_unused()
        except OSError as error:
            _log.error("code that nobody needs cannot be removed: %s", error)

    # ---- heartbeats ----------------------------------------------------------------------------

    def _look(self, slot: _Slot) -> None:
        slot.looked = time.monotonic()
        worker_id = slot.worker_id
        assert worker_id is not None, "a slot that is looked at has a worker"
        beat = self._workers.heartbeat(worker_id)
        before = slot.beat
        if beat is None or (before is not None and beat.time <= before.time):
            return
        slot.beat = beat
        if before is None or before.version != beat.version:
            self.changed = True
            _log.info("worker %s on port %d follows v%d", worker_id, slot.port, beat.version)
        self._act(slot, slot.machine.heartbeat(worker_id, beat.version, time.monotonic()))

    def reports(self) -> tuple[WorkerReport, ...]:
        """The workers that live, by their newest heartbeats, which are looked for now."""
        found = []
        for slot in self._slots.values():
            if slot.machine.state is MachineState.RUNNING:
                self._look(slot)
        now, wall = time.monotonic(), time.time()
        for slot in self._slots.values():
            beat, wanted = slot.beat, slot.wanted
            if slot.machine.state is MachineState.RUNNING and beat is not None:
                assert wanted is not None, "a worker without an assignment is ended"
                report = WorkerReport(
                    port=slot.port,
                    topology_id=wanted.topology_id,
                    version=beat.version,
                    executors=tuple((each.first_task, each.last_task) for each in beat.executors),
                    time_secs=int(wall - (now - beat.time)),
                    uptime_secs=int(now - slot.began),
                    statistics=dump_statistics(beat.executors),
                )
                found.append(report)
        return tuple(found)

    # ---- actions -------------------------------------------------------------------------------

    def _act(self, slot: _Slot, actions: Sequence[Action]) -> None:
        waiting = deque(actions)
        self.changed |= bool(actions)
        while waiting:
            waiting.extend(self._do(slot, waiting.popleft()))

    def _do(self, slot: _Slot, action: Action) -> Sequence[Action]:
        """Do it; what the machine wants to be done because it could not be."""
        match action:
            case Localize(code):
                self._localize(slot, code)
            case Release(code):
                self._release(slot, code)
            case Launch(worker_id, wanted):
                return self._launch(slot, worker_id, wanted)
            case Tell(worker_id, wanted):
                self._workers.told(worker_id, wanted)
            case Kill(worker_id, severity):
                if severity is Severity.TERM:
                    _log.info("worker %s on port %d is to end", worker_id, slot.port)
                self._workers.end(worker_id, severity)
            case Cleanup(worker_id):
                self._workers.clean_up(worker_id)
            case CannotKill(worker_id, after_secs):
                _log.error(
                    "worker %s on port %d cannot be killed: %g s after KILL processes of it are "
                    "still there; the port is not used before they are gone",
                    worker_id,
                    slot.port,
                    after_secs,
                )
        return ()

    def _localize(self, slot: _Slot, code: Code) -> None:
        future = self._localizer.localize(code, slot.port)
        slot.fetched[code] = future

        def done(future: Future[Path]) -> None:
            self._call_soon(partial(self._localized, slot, code, future))

        future.add_done_callback(done)

    def _localized(self, slot: _Slot, code: Code, future: Future[Path]) -> None:
        if slot.fetched.get(code) is not future:
            return  # given back, or asked for anew, since
        del slot.fetched[code]
        error = future.exception()
        if error is None:
            slot.failure = ""
            self._act(slot, slot.machine.localized(code, time.monotonic()))
            return
        if not isinstance(error, BlobError):
            _log.error("port %d: the code of %s:", slot.port, code.topology_id, exc_info=error)
        elif str(error) != slot.failure:
            _log.warning("port %d: %s; it is tried again", slot.port, error)
        slot.failure = str(error)
        self._act(slot, slot.machine.localize_failed(code, str(error), time.monotonic()))

    def _release(self, slot: _Slot, code: Code) -> None:
        slot.fetched.pop(code, None)
        try:
            self._localizer.release(code, slot.port)
        except OSError as error:
            _log.error("the code of %s cannot be removed: %s", code.topology_id, error)

    def _launch(self, slot: _Slot, worker_id: str, wanted: LocalAssignment) -> Sequence[Action]:
        slot.beat = None
        slot.looked = slot.began = time.monotonic()
        try:
            code = self._localizer.folder(wanted.code)
            self._workers.launch(worker_id, slot.port, wanted, code)
        except OSError as error:
            _log.error("port %d: a worker of %s cannot be started: %s", slot.port, wanted, error)
            return slot.machine.launch_failed(worker_id, str(error), time.monotonic())
        return ()


def _how(returncode: int | None) -> str:
    """How a process ended, in words."""
    if returncode is None:
        return "nobody knows how, as another supervisor began it"
    return f"exit code {returncode}" if returncode >= 0 else f"signal {-returncode}"
