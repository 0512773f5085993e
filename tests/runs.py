"""A RunCore in the hands of a test: two workers, a spout and a bolt, and what they report."""

from __future__ import annotations

from collections.abc import Sequence

from storm_py.core.plan import PhysicalPlan
from storm_py.engine.run_core import (
    Action,
    Note,
    RunCore,
    TellWorker,
)
from storm_py.wire.control import (
    Activate,
    Connect,
    Control,
    Ended,
    ErrorReport,
    Restarted,
    StreamManagerDown,
    WorkerReady,
    WorkerUp,
)
from tests.builders import bolt, plan_of, spout

#: count is executors 1 and 2 (workers 0 and 1), words executor 3 (worker 0)
PLAN = plan_of(spout("words", "word"), bolt("count", "words", tasks=2), workers=2)


def up(worker: int, incarnation: int = 1, manager: int = 1) -> WorkerUp:
    return WorkerUp(worker, incarnation, 900, f"d{worker}", f"c{worker}", manager)


def meet(worker: int, other: int, manager: int = 1) -> TellWorker:
    """The order to a worker to connect to another one's stream manager."""
    return TellWorker(worker, Connect(f"s{other}", manager, f"d{other}", f"c{other}"))


def both(record: Control) -> list[Action]:
    return [TellWorker(0, record), TellWorker(1, record)]


class Run:
    """A run in the hands of a test."""

    def __init__(self, plan: PhysicalPlan = PLAN) -> None:
        self.core = RunCore(plan)
        self.now = 0.0

    @property
    def phase(self) -> str:
        return self.core.phase

    def _checked(self, actions: list[Action]) -> list[Action]:
        self.core.check()
        return actions

    def start(self) -> list[Action]:
        return self._checked(self.core.start(self.now))

    def up(self, worker: int, incarnation: int = 1, manager: int = 1) -> list[Action]:
        return self._checked(self.core.worker_up(up(worker, incarnation, manager)))

    def ready(self, worker: int, incarnation: int = 1) -> list[Action]:
        return self._checked(self.core.worker_ready(WorkerReady(worker, incarnation), self.now))

    def restarted(self, role: str, executor: int) -> list[Action]:
        record = Restarted(0, role, executor, 2, "signal 9")
        return self._checked(self.core.restarted(record, self.now))

    def ended(self, wave: int, *executors: int, failed: bool = False) -> list[Action]:
        actions: list[Action] = []
        for executor in executors:
            actions += self._checked(self.core.ended(Ended(executor, 1, wave, failed), self.now))
        return actions

    def died(self, worker: int) -> list[Action]:
        return self._checked(self.core.worker_died(worker, "signal 9", self.now))

    def drain(self) -> list[Action]:
        return self._checked(self.core.drain())

    def error(self, fatal: bool = True) -> list[Action]:
        record = ErrorReport("count", 1, "prepare", "no", "", fatal)
        return self._checked(self.core.failed_to_run(record, self.now))

    def stream_manager_down(self, worker: int, manager: int, incarnation: int = 1) -> list[Action]:
        record = StreamManagerDown(worker, incarnation, manager)
        return self._checked(self.core.stream_manager_down(record))

    def tick(self, now: float) -> list[Action]:
        """A tick, which does something if one was asked for by now, and only then."""
        self.now = now
        due = self.core.next_timeout()
        actions = self._checked(self.core.tick(now))
        assert bool(actions) == (due is not None and now >= due)
        return actions


def running(plan: PhysicalPlan = PLAN) -> Run:
    run = Run(plan)
    run.start()
    for worker in (0, 1):
        run.up(worker)
    run.ready(0)
    assert run.ready(1) == both(Activate())
    return run


def notes(actions: Sequence[Action]) -> list[str]:
    return [action.text for action in actions if isinstance(action, Note)]
