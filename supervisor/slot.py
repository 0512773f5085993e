"""SlotMachine: what becomes of the worker of one port.

Theory of operation. States, reasons and timeouts are those of Storm's Slot. An assignment names a
*code*: topology, checksum of its archive, owner. The machine holds the code that it wants and that
of its worker; it asks for a code once with `Localize` and gives it back with `Release`, while a
`Localize` that failed holds nothing. A worker is launched when its code is there and nothing of the
last worker is left: its main process has *exited*, and so has everything that descends from it, it
is *gone*. So there are never two workers on a port. Whatever ends a worker begins with TERM, unless
its main process has ended already; KILL follows when the time is over, again and again.

Unlike in Storm a new version of the assignment, or other executors, do not cost the worker its
life while the code is the same: it is told, again until a heartbeat says that it follows; one that
never does is killed. And a worker that dies is known at once, not by its silence; when it keeps
dying each relaunch waits longer.

After a restart of the supervisor `recover` takes over what still runs: a living worker of the
current code is running at once.

Times are those of one clock, in seconds. When it goes back all deadlines go with it: what is left
of each stays the same.

Pure: events in, actions out. Processes are in `storm_py.supervisor.launcher`, code on disk is in
`storm_py.supervisor.localizer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .assignment import Code, LocalAssignment
from .slot_actions import (
    Action,
    Cleanup,
    FoundWorker,
    Launch,
    Localize,
    SlotStatistics,
    SlotTimeouts,
)
from .slot_checks import check_state
from .slot_parts import Course, Deadlines, HeldCode, Timer
from .slot_states import KillReason, MachineState, Step
from .slot_worker import SlotWorker

#: Seconds before the first, second, ... relaunch of a worker that keeps dying; the last repeats.
BACKOFF_SECS: Final = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)


class SlotMachine:
    """The life of the workers of one port, one after another."""

    def __init__(self, port: int, timeouts: SlotTimeouts, worker_ids: Iterator[str]) -> None:
        self._port = port
        self._course = Course(f"slot {port}")
        self._timeouts = timeouts
        self._worker_ids = worker_ids
        self._wanted: LocalAssignment | None = None
        self._worker: SlotWorker | None = None
        #: of the last worker, while the slot may go on with newer code of its topology
        self._last_code: Code | None = None
        self._deadlines = Deadlines()
        self._held = HeldCode(self._deadlines)
        self._failures = 0
        self._launched = 0
        self._killed = dict.fromkeys(KillReason, 0)

    # ---- events --------------------------------------------------------------------------------

    def recover(
        self, assignment: LocalAssignment | None, found: FoundWorker, now: float
    ) -> list[Action]:
        """A worker runs, or ran, on this port that an earlier supervisor has launched.

        `assignment` is what the slot has to run as far as is known. It comes before all other
        events: InvalidTransition if it does not.
        """
        self._event(f"recover {assignment}, {found}", now)
        self._course.go(Step.ADOPT)
        if assignment is not None and assignment.is_older(found.assignment):
            assignment = found.assignment  # somebody had heard of that
        self._wanted = assignment
        worker = self._new_worker(found.worker_id, found.assignment)
        well = worker.found(found, now)
        reason = worker.mismatch(assignment) or well
        if reason is not None:
            return self._end(worker, reason, now)
        return self._settle(now) + self._follow(worker, now)

    def assign(self, assignment: LocalAssignment | None, now: float) -> list[Action]:
        """The slot has to run this, or nothing; a version older than the one known is ignored."""
        wanted = self._wanted
        if assignment is not None and wanted is not None and assignment.is_older(wanted):
            return []
        self._event(f"assign {assignment}", now)
        self._wanted = assignment
        if assignment is None or wanted is None or assignment.code != wanted.code:
            self._failures = 0
            self._deadlines.stop(Timer.RELAUNCH)
        worker = self._worker
        if worker is None or worker.reason is not None:
            return self._settle(now)
        reason = worker.mismatch(assignment)
        if reason is not None:
            return self._end(worker, reason, now)
        return self._follow(worker, now)

    def localized(self, code: Code, now: float) -> list[Action]:
        """This code is on the disk."""
        if not self._held.awaits(code):
            return []  # not wanted any more
        self._event(f"localized {code.topology_id}", now)
        self._held.arrived(code)
        return self._settle(now)

    def localize_failed(self, code: Code, reason: str, now: float) -> list[Action]:
        """This code could not be brought to the disk, and is not held there: try later."""
        if self._held.awaits(code):
            self._event(f"localize_failed {code.topology_id}: {reason}", now)
            self._held.failed(code, now)
        return []

    def launch_failed(self, worker_id: str, reason: str, now: float) -> list[Action]:
        """A worker could not be started: nothing of it runs."""
        return self._gone(worker_id, f"launch_failed: {reason}", now)

    def heartbeat(self, worker_id: str, version: int, now: float) -> list[Action]:
        """A worker is alive, and follows this version of its assignment."""
        worker = self._living(worker_id)
        if worker is None:
            return []
        self._deadlines.time(now)
        if self._course.state is MachineState.WAITING_FOR_WORKER_START:
            self._event(f"heartbeat of {worker_id}, v{version}", now)
            self._course.go(Step.UP)
            worker.up(now)
        return [*worker.heard(version, now)]

    def memory_violation(self, worker_id: str, now: float) -> list[Action]:
        """A worker uses more memory than it may."""
        worker = self._living(worker_id)
        if worker is None:
            return []
        self._event(f"memory_violation of {worker_id}", now)
        return self._end(worker, KillReason.MEMORY_VIOLATION, now)

    def exited(self, worker_id: str, returncode: int | None, now: float) -> list[Action]:
        """The main process of a worker has ended; None where its code cannot be known.

        Processes that descend from it may live on: `gone` tells that they do not.
        """
        worker = self._worker
        if worker is None or worker.worker_id != worker_id or worker.exited:
            return []
        self._event(f"exited {worker_id}: {returncode}", now)
        worker.exited = True
        if worker.reason is None:
            return self._end(worker, KillReason.PROCESS_EXIT, now)
        return [worker.force(now)]

    def gone(self, worker_id: str, now: float) -> list[Action]:
        """Nothing of a worker runs any more."""
        return self._gone(worker_id, "is gone", now)

    def tick(self, now: float) -> list[Action]:
        """Do what is due."""
        self._deadlines.time(now)
        actions: list[Action] = []
        for name in self._deadlines.pop_due(now):
            actions += self._due(name, now)
        return actions

    def next_timeout(self) -> float | None:
        """When `tick` should be called next, None for never."""
        return self._deadlines.next()

    # ---- decisions -----------------------------------------------------------------------------

    def _due(self, name: Timer | Code, now: float) -> list[Action]:
        if isinstance(name, Code):
            return [Localize(name)]
        self._event(f"{name.name} is due", now)
        if name is Timer.RELAUNCH:
            return self._settle(now)
        if name is Timer.HEALTHY:
            self._failures = 0
            return []
        if self._worker is None:
            raise self._course.refusal(f"{name.name} is due without a worker")
        outcome = self._worker.due(name, now)
        if isinstance(outcome, KillReason):
            return self._end(self._worker, outcome, now)
        return [outcome]

    def _settle(self, now: float) -> list[Action]:
        """Hold the code that is needed; without a worker, go on to what is wanted."""
        wanted = self._wanted
        code = None if wanted is None else wanted.code
        actions: list[Action] = [*self._held.need(self._needed(), code)]
        if self._worker is not None:
            return actions
        if wanted is None:
            if self._course.state is not MachineState.EMPTY:
                self._course.go(Step.DONE)
            self._last_code = None
        elif not self._held.is_ready(wanted.code):
            self._wait_for(wanted.code)
        elif Timer.RELAUNCH not in self._deadlines:
            actions.append(self._launch(wanted, now))
        return actions

    def _needed(self) -> set[Code]:
        """The code of the worker, which it may still load from, and that which is wanted."""
        needed = {each.assignment.code for each in (self._worker,) if each is not None}
        return needed if self._wanted is None else needed | {self._wanted.code}

    def _wait_for(self, code: Code) -> None:
        if self._last_code is not None and code.updates(self._last_code):
            self._course.go(Step.UPDATE)
        else:
            self._last_code = None
            self._course.go(Step.FETCH)

    def _launch(self, wanted: LocalAssignment, now: float) -> Launch:
        worker = self._new_worker(next(self._worker_ids), wanted)
        worker.launched(now)
        self._launched += 1
        self._course.go(Step.LAUNCH)
        return Launch(worker.worker_id, wanted)

    def _new_worker(self, worker_id: str, assignment: LocalAssignment) -> SlotWorker:
        worker = SlotWorker(worker_id, assignment, self._timeouts, self._deadlines)
        self._worker = worker
        return worker

    def _follow(self, worker: SlotWorker, now: float) -> list[Action]:
        """Have the worker run what is wanted, which its code can do."""
        if self._wanted is None or worker.assignment == self._wanted:
            return []
        worker.assignment = self._wanted
        # One that is coming up is told when it is there to listen.
        return [worker.tell(now)] if self._course.state is MachineState.RUNNING else []

    def _end(self, worker: SlotWorker, reason: KillReason, now: float) -> list[Action]:
        kill = worker.end(reason, now)
        self._killed[reason] += 1
        self._last_code = worker.assignment.code
        self._course.go(reason)
        if self._course.state is MachineState.KILL_AND_RELAUNCH:
            delay_secs = BACKOFF_SECS[min(self._failures, len(BACKOFF_SECS) - 1)]
            self._failures += 1
            if delay_secs:
                self._deadlines.start(Timer.RELAUNCH, now + delay_secs)
        return [kill, *self._settle(now)]

    def _gone(self, worker_id: str, how: str, now: float) -> list[Action]:
        worker = self._worker
        if worker is None or worker.worker_id != worker_id:
            return []
        self._event(f"{worker_id} {how}", now)
        actions: list[Action] = []
        if worker.reason is None:
            _, *actions = self._end(worker, KillReason.PROCESS_EXIT, now)  # nothing left to kill
        worker.gone()
        self._worker = None
        return [*actions, Cleanup(worker_id), *self._settle(now)]

    def _living(self, worker_id: str) -> SlotWorker | None:
        """The worker of this id, None if it is another's or ends already."""
        worker = self._worker
        is_it = worker is not None and worker.worker_id == worker_id and worker.reason is None
        return worker if is_it else None

    # ---- bookkeeping ---------------------------------------------------------------------------

    def _event(self, text: str, now: float) -> None:
        self._deadlines.time(now)
        self._course.event(text, now)

    @property
    def state(self) -> MachineState:
        """Where the slot is."""
        return self._course.state

    def statistics(self) -> SlotStatistics:
        """What runs here and how often it had to be started."""
        worker_id = None if self._worker is None else self._worker.worker_id
        counts = (self._failures, self._launched, dict(self._killed))
        return SlotStatistics(self._port, self.state, self._wanted, worker_id, *counts)

    def check(self) -> None:
        """Assert what holds between any two events."""
        code = None if self._wanted is None else self._wanted.code
        self._held.check(self._needed(), code)
        if self._worker is not None:
            self._worker.check()
        is_ready = code is not None and self._held.is_ready(code)
        check_state(self.state, self._wanted, self._worker, self._deadlines, is_ready)
