"""RunCore with workers that come up, restart and die in any order: in the end it is over."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.engine.run_core import (
    Action,
    RunCore,
    StartWorker,
    TellWorker,
)
from storm_py.wire.control import (
    Ended,
    Restarted,
    Stop,
    Wave,
    WorkerReady,
)
from tests.runs import PLAN, up


class World:
    """Workers that do what they are told, but may die; markers may be lost with them."""

    def __init__(self) -> None:
        self.core = RunCore(PLAN)
        self.now = 0.0
        self.alive: dict[int, int] = {}
        self.wave: dict[int, int] = {}
        self.up: dict[int, int] = {}
        self.stopped: set[int] = set()
        self.perform(self.core.start(self.now))

    def perform(self, actions: list[Action]) -> None:
        self.core.check()
        for action in actions:
            if isinstance(action, StartWorker):
                assert action.worker not in self.alive
                self.alive[action.worker] = action.incarnation
                self.wave[action.worker] = 1
            elif isinstance(action, TellWorker) and action.worker in self.alive:
                if isinstance(action.record, Wave):
                    self.wave[action.worker] = action.record.wave
                elif isinstance(action.record, Stop):
                    self.stopped.add(action.worker)

    def step(self, what: str, worker: int) -> None:
        incarnation = self.alive.get(worker, 0)
        self.now += 0.3
        if what == "tick":
            due = self.core.next_timeout()
            actions = self.core.tick(self.now)
            assert bool(actions) == (due is not None and self.now >= due)
            self.perform(actions)
        elif incarnation and what == "die":
            del self.alive[worker]
            self.perform(self.core.worker_died(worker, "killed", self.now))
        elif what == "up" and incarnation > self.up.get(worker, 0):
            self.up[worker] = incarnation
            self.perform(self.core.worker_up(up(worker, incarnation)))
            self.perform(self.core.worker_ready(WorkerReady(worker, incarnation), self.now))
        elif what == "restart" and incarnation and incarnation == self.up.get(worker):
            record = Restarted(worker, "stream-manager", 0, 2, "killed")
            self.perform(self.core.restarted(record, self.now))
        elif what == "end" and incarnation and incarnation == self.up.get(worker):
            for executor in PLAN.on_worker(worker):
                self.perform(self.core.ended(Ended(executor.id, 1, self.wave[worker], False), 0.0))

    def settle(self) -> None:
        """Nothing dies any more."""
        for _ in range(40):
            for worker in (0, 1):
                for what in ("tick", "up", "end") if worker not in self.stopped else ("die",):
                    self.step(what, worker)


steps = st.tuples(st.sampled_from(["tick", "die", "up", "restart", "end"]), st.integers(0, 1))


@settings(max_examples=100)
@given(st.lists(steps, max_size=25), st.booleans())
def test_it_ends_once_nothing_dies(history: list[tuple[str, int]], drain: bool) -> None:
    world = World()
    for what, worker in history:
        world.step(what, worker)
    if drain:
        world.perform(world.core.drain())
    world.settle()
    assert world.core.phase == "done"
    assert world.alive == {}
