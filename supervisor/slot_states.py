"""The states of a slot, why a worker ends, and every way from one state to another.

Pure. The names and the ways are those of Storm's Slot, but for a worker that is found running; the
machine that goes them is `storm_py.supervisor.slot`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class MachineState(Enum):
    """Where a slot is; Storm's names."""

    EMPTY = "EMPTY"
    WAITING_FOR_BLOB_LOCALIZATION = "WAITING_FOR_BLOB_LOCALIZATION"
    WAITING_FOR_BLOB_UPDATE = "WAITING_FOR_BLOB_UPDATE"
    WAITING_FOR_WORKER_START = "WAITING_FOR_WORKER_START"
    RUNNING = "RUNNING"
    KILL = "KILL"
    KILL_AND_RELAUNCH = "KILL_AND_RELAUNCH"
    KILL_BLOB_UPDATE = "KILL_BLOB_UPDATE"


class KillReason(Enum):
    """Why a worker ends; Storm's names."""

    ASSIGNMENT_CHANGED = "ASSIGNMENT_CHANGED"
    BLOB_CHANGED = "BLOB_CHANGED"
    PROCESS_EXIT = "PROCESS_EXIT"
    MEMORY_VIOLATION = "MEMORY_VIOLATION"
    HB_TIMEOUT = "HB_TIMEOUT"
    HB_NULL = "HB_NULL"


class Step(Enum):
    """What else leads from state to state."""

    FETCH = "code is missing"
    UPDATE = "new code of the same topology is missing"
    LAUNCH = "worker launched"
    UP = "first heartbeat"
    ADOPT = "worker found"
    DONE = "nothing wanted, nothing left"


class Severity(Enum):
    """How a worker is ended."""

    TERM = "TERM"
    KILL = "KILL"


Ways = Mapping[Step | KillReason, MachineState]

_WITHOUT_WORKER: Final[Ways] = {
    Step.DONE: MachineState.EMPTY,
    Step.FETCH: MachineState.WAITING_FOR_BLOB_LOCALIZATION,
    Step.LAUNCH: MachineState.WAITING_FOR_WORKER_START,
}
_AFTER_WORKER: Final[Ways] = {**_WITHOUT_WORKER, Step.UPDATE: MachineState.WAITING_FOR_BLOB_UPDATE}
_WITH_WORKER: Final[Ways] = {
    KillReason.ASSIGNMENT_CHANGED: MachineState.KILL,
    KillReason.BLOB_CHANGED: MachineState.KILL_BLOB_UPDATE,
    KillReason.PROCESS_EXIT: MachineState.KILL_AND_RELAUNCH,
    KillReason.MEMORY_VIOLATION: MachineState.KILL_AND_RELAUNCH,
    KillReason.HB_TIMEOUT: MachineState.KILL_AND_RELAUNCH,
}

#: Every way from state to state there is.
TRANSITIONS: Final[Mapping[MachineState, Ways]] = {
    MachineState.EMPTY: {
        Step.FETCH: MachineState.WAITING_FOR_BLOB_LOCALIZATION,
        Step.ADOPT: MachineState.RUNNING,
    },
    MachineState.WAITING_FOR_BLOB_LOCALIZATION: {**_WITHOUT_WORKER},
    MachineState.WAITING_FOR_BLOB_UPDATE: {**_AFTER_WORKER},
    MachineState.WAITING_FOR_WORKER_START: {**_WITH_WORKER, Step.UP: MachineState.RUNNING},
    MachineState.RUNNING: {
        **_WITH_WORKER,
        KillReason.HB_NULL: MachineState.KILL_AND_RELAUNCH,
    },
    MachineState.KILL: {**_AFTER_WORKER},
    MachineState.KILL_AND_RELAUNCH: {**_AFTER_WORKER},
    MachineState.KILL_BLOB_UPDATE: {**_AFTER_WORKER},
}
