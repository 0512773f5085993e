"""A slot under test: the machine with its checks after each event, and assignments to give it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from storm_py.supervisor.assignment import Code, LocalAssignment
from storm_py.supervisor.slot import SlotMachine
from storm_py.supervisor.slot_actions import (
    Action,
    FoundWorker,
    Kill,
    Launch,
    Localize,
    Severity,
    SlotTimeouts,
)
from storm_py.supervisor.slot_states import MachineState

#: Storm's defaults.
TIMEOUTS = SlotTimeouts(start_secs=120.0, worker_secs=30.0, shutdown_secs=3.0)


def assignment(
    version: int = 1,
    topology: str = "words-1-1",
    checksum: str = "c1",
    owner: str = "ann",
    executors: tuple[tuple[int, int], ...] = ((1, 1),),
) -> LocalAssignment:
    """What a slot has to run."""
    return LocalAssignment(topology, version, executors, checksum, owner)


WORDS = assignment()
OTHER = assignment(topology="other-2-1", checksum="c2")


def names(prefix: str = "w") -> Iterator[str]:
    """w1, w2, ..."""
    return (f"{prefix}{n}" for n in itertools.count(1))


def term(worker_id: str) -> Kill:
    """Kill it with TERM."""
    return Kill(worker_id, Severity.TERM)


def kill(worker_id: str) -> Kill:
    """Kill it with KILL."""
    return Kill(worker_id, Severity.KILL)


class Slot:
    """A machine that is checked after each event, at a time that the test sets."""

    def __init__(self, timeouts: SlotTimeouts = TIMEOUTS) -> None:
        self.machine = SlotMachine(6700, timeouts, names())
        self.now = 1000.0

    def at(self, now: float) -> Slot:
        """It is that time now."""
        self.now = now
        return self

    def after(self, secs: float) -> Slot:
        """It is later."""
        self.now += secs
        return self

    def _checked(self, actions: list[Action]) -> list[Action]:
        self.machine.check()
        return actions

    # ---- events --------------------------------------------------------------------------------

    def recover(self, wanted: LocalAssignment | None, found: FoundWorker) -> list[Action]:
        return self._checked(self.machine.recover(wanted, found, self.now))

    def assign(self, wanted: LocalAssignment | None) -> list[Action]:
        return self._checked(self.machine.assign(wanted, self.now))

    def localized(self, code: Code = WORDS.code) -> list[Action]:
        return self._checked(self.machine.localized(code, self.now))

    def localize_failed(self, code: Code = WORDS.code) -> list[Action]:
        return self._checked(self.machine.localize_failed(code, "no room", self.now))

    def launch_failed(self, worker_id: str = "w1") -> list[Action]:
        return self._checked(self.machine.launch_failed(worker_id, "no room", self.now))

    def heartbeat(self, worker_id: str = "w1", version: int = 1) -> list[Action]:
        return self._checked(self.machine.heartbeat(worker_id, version, self.now))

    def memory_violation(self, worker_id: str = "w1") -> list[Action]:
        return self._checked(self.machine.memory_violation(worker_id, self.now))

    def exited(self, worker_id: str = "w1", returncode: int | None = 1) -> list[Action]:
        return self._checked(self.machine.exited(worker_id, returncode, self.now))

    def gone(self, worker_id: str = "w1") -> list[Action]:
        return self._checked(self.machine.gone(worker_id, self.now))

    def tick(self) -> list[Action]:
        return self._checked(self.machine.tick(self.now))

    # ---- where it is ---------------------------------------------------------------------------

    def state(self) -> MachineState:
        return self.machine.state

    @property
    def next_timeout(self) -> float | None:
        return self.machine.next_timeout()


def launched(wanted: LocalAssignment = WORDS) -> Slot:
    """A slot whose worker w1 is starting, since 1000."""
    slot = Slot()
    assert slot.assign(wanted) == [Localize(wanted.code)]
    assert slot.localized(wanted.code) == [Launch("w1", wanted)]
    return slot


def running(wanted: LocalAssignment = WORDS) -> Slot:
    """A slot whose worker w1 is up, with its first heartbeat at 1000."""
    slot = launched(wanted)
    assert slot.heartbeat("w1", wanted.version) == []
    return slot
