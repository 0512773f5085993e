"""Beats: what is heard of workers: which of their executors live, and what these have done.

Theory of operation. The same beat of a worker may come in two ways: by Thrift from its supervisor,
or from itself, and read from ZooKeeper. Each way has stamps of its own: one that is the same as
last time is an old beat read again. A beat that names its node counts for executors that are
assigned to that node only: what an executor did where it was before says nothing about where it is
now. Silence is `storm_py.nimbus.liveness`' to measure.

Kept in memory alone, and by leaders alone: whoever becomes one waits for the first beats. Used by
several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from storm_py.cluster.records import Assignment, Executor
from storm_py.heartbeat import ExecutorStatistics

from .liveness import Alive, Liveness, Timeouts

__all__ = ["Beat", "Beats"]

_Key: TypeAlias = tuple[str, Executor]


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life of some executors of a topology."""

    topology_id: str
    executors: tuple[Executor, ...]
    #: What its sender changes with each.
    stamp: int
    #: The supervisor of the worker, None if it does not say.
    node: str | None = None
    statistics: tuple[ExecutorStatistics, ...] = ()


class Beats:
    """The executors that are assigned."""

    def __init__(self) -> None:
        self._liveness: Liveness[_Key] = Liveness()
        self._assigned: dict[str, Assignment] = {}
        self._timeouts: dict[str, Timeouts] = {}
        self._stamps: dict[tuple[str, _Key], int] = {}
        self._statistics: dict[str, dict[Executor, ExecutorStatistics]] = {}
        self._news = 0
        self._lock = threading.Lock()

    def expect(
        self, topology_id: str, assignment: Assignment, timeouts: Timeouts, now: float
    ) -> None:
        """Beats of these executors are expected from now on, and of no other of the topology."""
        with self._lock:
            before = self._assigned.get(topology_id)
            gone = set() if before is None else before.executor_node_port.keys()
            self._assigned[topology_id] = assignment
            for executor in gone - assignment.executor_node_port.keys():
                self._forget(topology_id, executor)
            self._timeouts[topology_id] = timeouts
            self._expect_all(topology_id, assignment, now)

    def _expect_all(self, topology_id: str, assignment: Assignment, now: float) -> None:
        timeouts = self._timeouts[topology_id]
        for executor, started in assignment.executor_start_time_secs.items():
            self._liveness.expect((topology_id, executor), timeouts, now, started)

    def forget(self, topology_id: str) -> None:
        """Expect nothing of a topology any more."""
        with self._lock:
            before = self._assigned.pop(topology_id, None)
            for executor in () if before is None else before.executor_node_port:
                self._forget(topology_id, executor)
            self._statistics.pop(topology_id, None)
            self._timeouts.pop(topology_id, None)

    def pardon(self, now: float) -> None:
        """Expect all anew: that nothing was heard for a time was nobody's silence."""
        with self._lock:
            self._liveness = Liveness()
            for topology_id, assignment in self._assigned.items():
                self._expect_all(topology_id, assignment, now)

    def reset(self) -> None:
        """Expect nothing at all: the silence of a time in which nobody listened is none."""
        with self._lock:
            self._liveness = Liveness()
            self._assigned.clear()
            self._timeouts.clear()
            self._stamps.clear()
            self._statistics.clear()

    def knows(self, topology_id: str) -> bool:
        """Whether anything of a topology is expected."""
        return topology_id in self._assigned

    def hear(self, way: str, beat: Beat, now: float) -> bool:
        """Take a beat that came in this way; whether somebody who was dead is alive again."""
        with self._lock:
            assignment = self._assigned.get(beat.topology_id)
            if assignment is None:
                return False
            revived = False
            for executor in beat.executors:
                slot = assignment.executor_node_port.get(executor)
                if slot is None or beat.node not in (None, slot[0]):
                    continue
                started = assignment.executor_start_time_secs[executor]
                revived |= self._hear_one(way, (beat.topology_id, executor), beat, started, now)
            self._note(assignment, beat)
            return revived

    def _hear_one(self, way: str, key: _Key, beat: Beat, started: int, now: float) -> bool:
        if self._stamps.get((way, key)) == beat.stamp:
            return False
        self._stamps[way, key] = beat.stamp
        self._news += 1
        return any(isinstance(a, Alive) for a in self._liveness.beat(key, self._news, now, started))

    def _note(self, assignment: Assignment, beat: Beat) -> None:
        found = self._statistics.setdefault(beat.topology_id, {})
        for one in beat.statistics:
            executor = (one.first_task, one.last_task)
            if executor in beat.executors and executor in assignment.executor_node_port:
                found[executor] = one

    def tick(self, now: float) -> bool:
        """Whether somebody has been silent for too long since this was asked last."""
        with self._lock:
            return bool(self._liveness.tick(now))

    def next_timeout(self) -> float | None:
        """When `tick` should be called next."""
        with self._lock:
            return self._liveness.next_timeout()

    def dead(self, topology_id: str) -> frozenset[Executor]:
        """The executors of a topology that have been silent for too long."""
        with self._lock:
            return frozenset(
                executor for id_, executor in self._liveness.dead if id_ == topology_id
            )

    def statistics(self, topology_id: str) -> Mapping[Executor, ExecutorStatistics]:
        """What the executors of a topology said last."""
        with self._lock:
            return dict(self._statistics.get(topology_id, {}))

    def _forget(self, topology_id: str, executor: Executor) -> None:
        key = (topology_id, executor)
        self._liveness.forget(key)
        for stale in [stamp for stamp in self._stamps if stamp[1] == key]:
            del self._stamps[stale]
        self._statistics.get(topology_id, {}).pop(executor, None)
