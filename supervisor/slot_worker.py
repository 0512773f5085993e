"""SlotWorker: what a slot knows of its worker, the time that it has for what, and how it is ended.

Pure. The machine that it belongs to is `storm_py.supervisor.slot`, which tells when to use it: that
it is up, or to be ended, is the machine's to say.
"""

from __future__ import annotations

from typing import Final

from .assignment import LocalAssignment
from .slot_actions import CannotKill, FoundWorker, Kill, Severity, SlotTimeouts, Tell
from .slot_parts import Deadlines, Timer
from .slot_states import KillReason

#: A worker that has been up for this long starts its row of relaunches anew.
HEALTHY_SECS: Final = 60.0
#: Seconds until a worker that does not follow a new version is told again.
TELL_SECS: Final = 3.0
#: Shortest time between two KILLs, where the wait before the first is set to less.
KILL_AGAIN_SECS: Final = 1.0
#: Processes that are still there this long after TERM cannot be killed; Storm's supervisor gives up
#: there, this one says so and goes on.
HOPELESS_SECS: Final = 120.0


class SlotWorker:
    """The worker of a slot, from its launch until it is gone."""

    def __init__(
        self,
        worker_id: str,
        assignment: LocalAssignment,
        timeouts: SlotTimeouts,
        deadlines: Deadlines,
    ) -> None:
        self.worker_id = worker_id
        #: What it has to run: what it was launched with, or told since.
        self.assignment = assignment
        #: Why it is being ended, None while it is not.
        self.reason: KillReason | None = None
        #: Whether its main process has ended.
        self.exited = False
        #: the newest version that it said it follows
        self._followed = -1
        self._timeouts = timeouts
        self._deadlines = deadlines

    # ---- living --------------------------------------------------------------------------------

    def launched(self, now: float) -> None:
        """It has to come up."""
        # What may be silent for long may also be long in coming up, as in Storm.
        start_secs = max(self._timeouts.start_secs, self._timeouts.worker_secs)
        self._deadlines.start(Timer.START, now + start_secs)

    def found(self, found: FoundWorker, now: float) -> KillReason | None:
        """Another supervisor has launched it: why it cannot stay, None if it can."""
        self.exited = not found.alive
        if self.exited:
            return KillReason.PROCESS_EXIT
        if found.last_heartbeat is None:
            return KillReason.HB_NULL  # it never came up, as in Storm
        silent_at = min(found.last_heartbeat, now) + self._timeouts.worker_secs
        self._deadlines.start(Timer.HEARTBEAT, silent_at)
        self._deadlines.start(Timer.HEALTHY, now + HEALTHY_SECS)
        return KillReason.HB_TIMEOUT if silent_at <= now else None

    def up(self, now: float) -> None:
        """Its first heartbeat came."""
        self._deadlines.stop(Timer.START)
        self._deadlines.start(Timer.HEALTHY, now + HEALTHY_SECS)

    def heard(self, version: int, now: float) -> list[Tell]:
        """It lives, and follows this version: tell it again if that is not the newest."""
        deadlines = self._deadlines
        deadlines.start(Timer.HEARTBEAT, now + self._timeouts.worker_secs)
        newer = version > self._followed
        self._followed = max(version, self._followed)
        if version >= self.assignment.version:
            deadlines.stop(Timer.TELL, Timer.ACKNOWLEDGE)
            return []
        if newer:
            deadlines.stop(Timer.ACKNOWLEDGE)  # it does follow, if late: its time begins anew
        return [] if Timer.ACKNOWLEDGE in deadlines else [self.tell(now)]

    def mismatch(self, wanted: LocalAssignment | None) -> KillReason | None:
        """Why it cannot run what is wanted, None if it can."""
        code = self.assignment.code
        if wanted is None or not code.is_of_same_topology(wanted.code):
            return KillReason.ASSIGNMENT_CHANGED
        return None if wanted.code == code else KillReason.BLOB_CHANGED

    def tell(self, now: float) -> Tell:
        """It has to follow its assignment, and to say so in time."""
        self._deadlines.start(Timer.TELL, now + TELL_SECS)
        if Timer.ACKNOWLEDGE not in self._deadlines:
            self._deadlines.start(Timer.ACKNOWLEDGE, now + self._timeouts.worker_secs)
        return Tell(self.worker_id, self.assignment)

    def due(self, timer: Timer, now: float) -> Kill | CannotKill | Tell | KillReason:
        """One of its timers is due: what to do, or why it has to be ended."""
        match timer:
            case Timer.FORCE:
                return self.force(now)
            case Timer.HOPELESS:
                return CannotKill(self.worker_id, HOPELESS_SECS)
            case Timer.TELL:
                return self.tell(now)
            case Timer.ACKNOWLEDGE:
                return KillReason.ASSIGNMENT_CHANGED
            case _:
                return KillReason.HB_TIMEOUT

    # ---- ending --------------------------------------------------------------------------------

    def end(self, reason: KillReason, now: float) -> Kill:
        """It has to go: TERM, or KILL for what its main process has left."""
        self.reason = reason
        self._deadlines.stop(*Timer)
        self._deadlines.start(Timer.FORCE, now + self._timeouts.shutdown_secs)
        self._deadlines.start(Timer.HOPELESS, now + HOPELESS_SECS)
        return Kill(self.worker_id, Severity.KILL if self.exited else Severity.TERM)

    def force(self, now: float) -> Kill:
        """It is still there."""
        again_secs = max(self._timeouts.shutdown_secs, KILL_AGAIN_SECS)
        self._deadlines.start(Timer.FORCE, now + again_secs)
        return Kill(self.worker_id, Severity.KILL)

    def gone(self) -> None:
        """It is not there any more."""
        self._deadlines.stop(Timer.FORCE, Timer.HOPELESS)

    # ---- invariants ----------------------------------------------------------------------------

    def check(self) -> None:
        """Assert that it is ended if and only if there is a reason to."""
        ending = self.reason is not None
        assert ending == (Timer.FORCE in self._deadlines)
        assert ending or not self.exited
