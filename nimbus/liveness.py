"""Liveness: who has been silent for too long, of the executors or the supervisors that there are.

Theory of operation. Nimbus *expects* beats of whatever it has assigned work to. A beat counts by
the time at which Nimbus hears it, never by the clock of its sender, and only if it is news: a stamp
that is the same as last time is an old beat read again, and a lower incarnation is a process that
has been replaced. Until the first beat the launch timeout applies, from then on the beat timeout;
whoever is silent for longer is dead, which is said once. The dead may come back, which is said too,
and are forgotten only on request: what to do about them depends on what else there is.

Silence is measured in time that has passed here, step by step: a clock that is set back makes
nobody older, and takes nothing off what has passed before.

Pure. One object for the executors, with the timeouts of their topologies, another for the
supervisors. Who gets the work of the dead is decided in `storm_py.nimbus.scheduler`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
"""What identifies one of those expected: an executor of a topology, or the id of a supervisor."""

#: A wait that ends when it was said to has ended, however the sums were rounded.
SLACK_SECS: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Timeouts:
    """After how many seconds of silence somebody is dead: before the first beat, and after it."""

    launch_secs: float
    beat_secs: float


@dataclass(frozen=True, slots=True)
class Dead(Generic[K]):
    """These have been silent for too long; in the order in which they were first expected."""

    ids: tuple[K, ...]


@dataclass(frozen=True, slots=True)
class Alive(Generic[K]):
    """One that had been dead has been heard of again."""

    id: K


Action: TypeAlias = Dead[K] | Alive[K]


@dataclass(frozen=True, slots=True)
class LivenessStatistics:
    """How many are expected, and how many of them are dead."""

    expected: int
    dead: int


@dataclass(slots=True)
class _Expected:
    timeouts: Timeouts
    incarnation: int
    silent_since: float
    stamp: float | None = None
    dead: bool = False

    @property
    def deadline(self) -> float:
        """When the silence is too long, in time that has passed."""
        timeouts = self.timeouts
        return self.silent_since + (
            timeouts.launch_secs if self.stamp is None else timeouts.beat_secs
        )


class Liveness(Generic[K]):
    """Who is expected to beat, and who has not for too long."""

    __slots__ = ("_expected", "_now", "_set_back_secs")

    def __init__(self) -> None:
        self._expected: dict[K, _Expected] = {}
        self._now = -math.inf
        #: by how much the clock has been set back, in all
        self._set_back_secs = 0.0

    def expect(self, id_: K, timeouts: Timeouts, now: float, incarnation: int = 0) -> None:
        """Beats of this incarnation are expected from now on.

        To say so again changes nothing but the timeouts; a higher incarnation begins anew, with the
        time to launch. An incarnation of work is when, or how often, it was assigned.
        """
        self._set_clock(now)
        known = self._expected.get(id_)
        if known is None or incarnation > known.incarnation:
            self._expected[id_] = _Expected(timeouts, incarnation, self._passed())
        else:
            known.timeouts = timeouts

    def forget(self, id_: K) -> None:
        """Expect nothing of this one any more."""
        self._expected.pop(id_, None)

    def beat(self, id_: K, stamp: float, now: float, incarnation: int = 0) -> list[Action[K]]:
        """A beat was heard; `stamp` is whatever its sender changes with each, such as its time.

        Beats of those whom nobody expects, and of those who have been replaced, are none.
        """
        self._set_clock(now)
        known = self._expected.get(id_)
        if known is None or (incarnation, stamp) == (known.incarnation, known.stamp):
            return []
        if incarnation < known.incarnation:
            return []
        known.incarnation = incarnation
        known.stamp = stamp
        known.silent_since = self._passed()
        if not known.dead:
            return []
        known.dead = False
        return [Alive(id_)]

    def tick(self, now: float) -> list[Action[K]]:
        """Who has been silent for too long since this was asked last."""
        self._set_clock(now)
        found = []
        passed = self._passed() + SLACK_SECS
        for id_, known in self._expected.items():
            if not known.dead and passed >= known.deadline:
                known.dead = True
                found.append(id_)
        return [Dead(tuple(found))] if found else []

    def next_timeout(self) -> float | None:
        """When `tick` should be called next, by the clock that `now` is of; None for never."""
        deadlines = [known.deadline for known in self._expected.values() if not known.dead]
        return min(deadlines) - self._set_back_secs if deadlines else None

    @property
    def dead(self) -> frozenset[K]:
        """Those who are expected, and dead."""
        return frozenset(id_ for id_, known in self._expected.items() if known.dead)

    def statistics(self) -> LivenessStatistics:
        """A snapshot."""
        return LivenessStatistics(len(self._expected), len(self.dead))

    def check(self) -> None:
        """Assert that nobody was heard of in the future."""
        for known in self._expected.values():
            assert known.silent_since <= self._passed() + SLACK_SECS

    def _set_clock(self, now: float) -> None:
        self._set_back_secs += max(0.0, self._now - now)
        self._now = now

    def _passed(self) -> float:
        return self._now + self._set_back_secs


def executor_timeouts(
    task_timeout_secs: int,
    task_launch_secs: int,
    worker_timeout_secs: int | None,
    worker_max_timeout_secs: int,
) -> Timeouts:
    """The timeouts of the executors of a topology, as Storm's.

    nimbus.task.timeout.secs and nimbus.task.launch.secs; topology.worker.timeout.secs, where a
    topology has it, raises both but never lowers them, and counts as no more than
    worker.max.timeout.secs.
    """
    asked = min(worker_timeout_secs or 0, worker_max_timeout_secs)
    beat_secs = max(task_timeout_secs, asked)
    return Timeouts(launch_secs=max(task_launch_secs, beat_secs), beat_secs=beat_secs)
