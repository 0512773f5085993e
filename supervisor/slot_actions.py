"""What a slot decides, and what it is told and tells of itself: the values around its machine.

Pure. The machine is `storm_py.supervisor.slot`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from .assignment import Code, LocalAssignment
from .slot_states import KillReason, MachineState


class Severity(Enum):
    """How a worker is ended."""

    TERM = "TERM"
    KILL = "KILL"


@dataclass(frozen=True, slots=True)
class Localize:
    """Bring this code to the disk and hold it for the slot; answer localized or localize_failed."""

    code: Code


@dataclass(frozen=True, slots=True)
class Release:
    """The slot needs this code no more."""

    code: Code


@dataclass(frozen=True, slots=True)
class Launch:
    """Start a worker; its first heartbeat is the answer, or its exit, or launch_failed."""

    worker_id: str
    assignment: LocalAssignment


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell a running worker what it has to run now; its heartbeats say the version it follows."""

    worker_id: str
    assignment: LocalAssignment


@dataclass(frozen=True, slots=True)
class Kill:
    """End a worker: TERM for its main process, or KILL for that and all that descends from it."""

    worker_id: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Nothing of this worker runs any more: remove what it left on the disk, but for its logs."""

    worker_id: str


@dataclass(frozen=True, slots=True)
class CannotKill:
    """Report that processes of this worker are still there, long after KILL; the slot waits on."""

    worker_id: str
    after_secs: float


Action = Localize | Release | Launch | Tell | Kill | Cleanup | CannotKill


@dataclass(frozen=True, slots=True)
class SlotTimeouts:
    """Seconds; each by the configuration key of its name in the comment, with Storm's default."""

    #: supervisor.worker.start.timeout.secs: from launch to the first heartbeat.
    start_secs: float = 120.0
    #: supervisor.worker.timeout.secs: between two heartbeats, and until a new version is followed.
    worker_secs: float = 30.0
    #: supervisor.worker.shutdown.sleep.secs: from TERM to KILL.
    shutdown_secs: float = 3.0


@dataclass(frozen=True, slots=True)
class FoundWorker:
    """A worker that an earlier supervisor launched."""

    worker_id: str
    #: What it was launched with, or told last.
    assignment: LocalAssignment
    #: Whether its main process lives.
    alive: bool
    #: When it last wrote its heartbeat, None if it never did.
    last_heartbeat: float | None


@dataclass(frozen=True, slots=True)
class SlotStatistics:
    """A snapshot of a slot."""

    port: int
    state: MachineState
    wanted: LocalAssignment | None
    worker_id: str | None
    #: Relaunches in a row, of a worker that keeps dying.
    failures: int
    launched: int
    killed: Mapping[KillReason, int]
