"""ClusterWaves: what a worker of a cluster decides about the END waves of its topology.

Theory of operation. A wave is one END marker on every channel, under a number; who has ended has
passed it (`storm_py.engine.waves`). In local mode the parent of the run begins a new wave whenever
something may have swallowed markers of the last one (`storm_py.engine.run_core`); on a cluster each
worker does, for what was started anew in it, by raising the number that all workers share. Numbers
are never taken back, and one too many costs a few markers.

Each worker says which wave all of its executors have passed, and whether its spouts have ended at
all. So everybody can see when a topology is over: all have passed the wave of now. A wave that does
not come through although all spouts have ended is renewed by the worker of the lowest number, with
more patience each time, in case a marker was lost on a link that broke without a death.

Pure: events in, actions out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

#: Seconds after which a wave that has not come through is renewed, at first, and at last.
PATIENCE_SECS: Final = 15.0
LONGEST_PATIENCE_SECS: Final = 240.0


@dataclass(frozen=True, slots=True)
class Ends:
    """How far a worker has come: all of its executors have passed `wave`, 0 for none."""

    wave: int = 0
    #: Whether each of its spouts has ended under any wave; also if it has none.
    spouts: bool = False


@dataclass(frozen=True, slots=True)
class Renew:
    """Raise the number that all workers of the topology share."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Have the spouts of this worker that have ended send this wave."""

    wave: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Let the other workers, and nimbus, know."""

    ends: Ends


Action = Renew | Begin | Tell


class ClusterWaves:
    """One worker's part."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._wave = 1
        self._executors: frozenset[int] = frozenset()
        self._spouts: frozenset[int] = frozenset()
        self._ended: dict[int, int] = {}
        self._others: dict[int, Ends] = {}
        self._told = Ends()
        self._patience_secs = PATIENCE_SECS
        self._renew_at: float | None = None

    def assigned(
        self,
        executors: Collection[int],
        spouts: Collection[int],
        others: Collection[int],
        now: float,
    ) -> list[Action]:
        """This worker runs these executors, of which some are spouts; there are other workers."""
        self._executors = frozenset(executors)
        self._spouts = frozenset(spouts) & self._executors
        self._ended = {id_: wave for id_, wave in self._ended.items() if id_ in self._executors}
        self._others = {worker: self._others.get(worker, Ends()) for worker in others}
        return self._tell(now)

    def restarted(self, executors: Collection[int], now: float) -> list[Action]:
        """The processes of these executors are new; markers may have died with those before."""
        for executor in executors:
            self._ended.pop(executor, None)
        return [*self._tell(now), Renew()]

    def ended(self, executor: int, wave: int, now: float) -> list[Action]:
        """All tasks of an executor have passed a wave."""
        if executor not in self._executors or self._ended.get(executor, 0) >= wave:
            return []
        self._ended[executor] = wave
        return self._tell(now)

    def wave_read(self, wave: int, now: float) -> list[Action]:
        """The number that all share."""
        if wave <= self._wave:
            return []
        self._wave = wave
        self._watch(now)
        return [Begin(wave)]

    def other_told(self, worker: int, ends: Ends, now: float) -> None:
        """How far another worker has come."""
        if worker in self._others and self._others[worker] != ends:
            self._others[worker] = ends
            self._watch(now)

    def tick(self, now: float) -> list[Action]:
        """Renew a wave that has not come through."""
        if self._renew_at is None or now < self._renew_at:
            return []
        self._patience_secs = min(2 * self._patience_secs, LONGEST_PATIENCE_SECS)
        self._renew_at = now + self._patience_secs
        return [Renew()]

    def next_timeout(self) -> float | None:
        """When `tick` should be called next, None for never."""
        return self._renew_at

    @property
    def ends(self) -> Ends:
        """How far this worker has come."""
        passed = all(executor in self._ended for executor in self._executors)
        wave = min(self._ended.values(), default=0) if passed else 0
        return Ends(wave, self._spouts <= self._ended.keys())

    def _tell(self, now: float) -> list[Action]:
        self._watch(now)
        if self.ends == self._told:
            return []
        self._told = self.ends
        return [Tell(self._told)]

    def _watch(self, now: float) -> None:
        """Something has changed: begin to wait for the wave anew, or stop to."""
        everybody = [self.ends, *self._others.values()]
        if (
            self._worker > min(self._others, default=self._worker)
            or not all(ends.spouts for ends in everybody)
            or all(ends.wave >= self._wave for ends in everybody)
        ):
            self._patience_secs = PATIENCE_SECS
            self._renew_at = None
        else:
            self._renew_at = now + self._patience_secs

    def check(self) -> None:
        """Assert what holds between any two events."""
        assert self._ended.keys() <= self._executors
        assert self._worker not in self._others
        assert self._told == self.ends or not self._executors
