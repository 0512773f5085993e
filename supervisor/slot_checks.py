"""What holds in each state of a slot, between any two events.

Pure. `storm_py.supervisor.slot` says what it is with `SlotMachine.check`.
"""

from __future__ import annotations

from .assignment import LocalAssignment
from .slot_parts import Deadlines, Timer
from .slot_states import MachineState
from .slot_worker import SlotWorker


def check_state(
    state: MachineState,
    wanted: LocalAssignment | None,
    worker: SlotWorker | None,
    deadlines: Deadlines,
    is_ready: bool,
) -> None:
    """Assert it; `is_ready` says whether the code that is wanted is on the disk."""
    ending = worker is not None and worker.reason is not None
    living = worker is not None and worker.reason is None
    assert worker is not None or deadlines.only(Timer.RELAUNCH)
    match state:
        case MachineState.EMPTY:
            assert worker is None
            assert wanted is None
            assert deadlines.next() is None
        case MachineState.WAITING_FOR_BLOB_LOCALIZATION | MachineState.WAITING_FOR_BLOB_UPDATE:
            assert worker is None
            assert wanted is not None
            assert not is_ready or Timer.RELAUNCH in deadlines
        case MachineState.WAITING_FOR_WORKER_START:
            assert living
            assert Timer.START in deadlines
        case MachineState.RUNNING:
            assert living
            assert Timer.HEARTBEAT in deadlines
            assert Timer.START not in deadlines
        case MachineState.KILL | MachineState.KILL_BLOB_UPDATE:
            assert ending
        case MachineState.KILL_AND_RELAUNCH:
            assert ending or (worker is None and Timer.RELAUNCH in deadlines)
