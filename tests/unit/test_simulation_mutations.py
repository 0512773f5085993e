"""What the simulation is good for: a rule that is taken away is missed by some seed.

Each mutation removes one rule of the data plane; at least one of a few seeds fails without the
rule, and passes with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from storm_py import Config
from storm_py.core.acker import AckTracker
from storm_py.core.aligner import Aligner
from storm_py.core.pressure import TaskQueue
from storm_py.engine.acking import Acks
from storm_py.engine.links import Beats
from storm_py.engine.sessions import Sessions, Verdict
from storm_py.engine.stream_manager_core import StreamManagerCore
from storm_py.testing import Faults, Simulation, SimulationError
from tests.unit.test_simulation import SEEDS

Mutate = Callable[[pytest.MonkeyPatch], None]
_data = Sessions.data
_inits = AckTracker.inits
_marker = Aligner.marker


def repeats_and_second_inits(patch: pytest.MonkeyPatch) -> None:
    """A message that arrives again is taken again, and so is the init of a tree."""

    def data(self: Sessions, session: int, seq: int) -> Verdict:
        verdict = _data(self, session, seq)
        return Verdict.ACCEPT if verdict is Verdict.REPEAT else verdict

    def inits(self: Any, roots: Iterable[int], values: Iterable[int]) -> Any:
        roots, values = list(roots), list(values)
        for root, value in zip(roots, values, strict=True):
            for bucket in self._buckets:
                if root in bucket and bucket[root] >> 62 & 1:
                    bucket[root] ^= value
        return _inits(self, roots, values)

    patch.setattr(Sessions, "data", data)
    patch.setattr(AckTracker, "inits", inits)


def credit_return(patch: pytest.MonkeyPatch) -> None:
    """What a task has finished stays outstanding."""
    patch.setattr(TaskQueue, "credit", lambda *_: ())


def session_check(patch: pytest.MonkeyPatch) -> None:
    """Messages of a session that nobody knows are taken."""

    def data(self: Sessions, session: int, seq: int) -> Verdict:
        verdict = _data(self, session, seq)
        return Verdict.ACCEPT if verdict is Verdict.STRANGER else verdict

    patch.setattr(Sessions, "data", data)


def gap_rule(patch: pytest.MonkeyPatch) -> None:
    """What follows a lost message is taken as if nothing was missing."""

    def data(self: Any, session: int, seq: int) -> Verdict:
        verdict = _data(self, session, seq)
        if verdict is not Verdict.GAP:
            return verdict
        self._by_session[session].expected_data = seq + 1
        return Verdict.ACCEPT

    patch.setattr(Sessions, "data", data)


def backlog_order(patch: pytest.MonkeyPatch) -> None:
    """A frame that fits the window overtakes those that wait."""

    def offer(self: Any, frame: bytes, rows: int, now: float) -> bool:
        if self._fits(len(frame), rows):
            self._sent(frame, rows, now)
            return True
        self._backlog.append((frame, rows))
        self._backlog_rows += rows
        self._backlog_bytes += len(frame)
        return False

    patch.setattr(TaskQueue, "offer", offer)


def own_edges(patch: pytest.MonkeyPatch) -> None:
    """All edges of all trees are the same, as when user code seeds a generator that is shared."""
    init = Acks.__init__

    def seeded(self: Any, rng: Any) -> None:
        init(self, rng)
        self.bits = lambda bits: 5

    patch.setattr(Acks, "__init__", seeded)


def window(patch: pytest.MonkeyPatch) -> None:
    """Everything is sent at once, however slow the task."""
    patch.setattr(TaskQueue, "_fits", lambda self, nbytes, rows: self._connected)


def announcements(patch: pytest.MonkeyPatch) -> None:
    """Nobody is told that a task is congested."""
    patch.setattr(StreamManagerCore, "_announce", lambda *_: [])


def alignment(patch: pytest.MonkeyPatch) -> None:
    """The first marker of a wave counts for all."""

    def marker(self: Any, src: int, wave: int) -> bool:
        return any(_marker(self, channel, wave) for channel in sorted(self._channels))

    patch.setattr(Aligner, "marker", marker)


def beats(patch: pytest.MonkeyPatch) -> None:
    """Nothing is sent behind the last data, so nobody misses it."""
    patch.setattr(Beats, "next", lambda *_: math.inf)


MUTATIONS: list[Mutate] = [
    repeats_and_second_inits,
    credit_return,
    session_check,
    gap_rule,
    backlog_order,
    own_edges,
    window,
    announcements,
    alignment,
    beats,
]


#: Faults of one kind, where those of all kinds would take many seeds to hit the rule.
FOCUS: dict[Mutate, Faults] = {
    repeats_and_second_inits: Faults(10, 60, ("duplicate",)),
    gap_rule: Faults(10, 60, ("break link",)),
    beats: Faults(10, 60, ("break link",)),
}


#: A run that is stuck is soon called so.
SOON = {Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 3}


def failing_seed(faults: Faults | None) -> int | None:
    """The first seed whose run breaks a promise."""
    for seed in SEEDS[1:]:  # what goes wrong in the first takes long to be called stuck
        try:
            Simulation(seed, conf=SOON, faults=faults).run()
        except SimulationError:
            return seed
    return None


@pytest.mark.parametrize("mutate", MUTATIONS)
def test_some_seed_misses_the_rule(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = FOCUS.get(mutate)
    with monkeypatch.context() as patch:
        mutate(patch)
        seed = failing_seed(faults)
    assert seed is not None
    Simulation(seed, conf=SOON, faults=faults).run()
