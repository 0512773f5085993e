"""RunCore: workers meet, spouts go, the end comes through - and what deaths change about that."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.engine.run_core import (
    FAILURES_APART_SECS,
    QUIET_REWAVE_SECS,
    REWAVE_SECS,
    Action,
    Note,
    RunCore,
    StartWorker,
    TellWorker,
)
from storm_py.engine.worker_core import BACKOFF_SECS, HEALTHY_SECS, newest_incarnation
from storm_py.wire.control import (
    Activate,
    Connect,
    Control,
    Disconnect,
    Ended,
    ErrorReport,
    Restarted,
    Stop,
    StreamManagerDown,
    Wave,
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

    def __init__(self) -> None:
        self.core = RunCore(PLAN)
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
        self.now = now
        return self._checked(self.core.tick(now))


def running() -> Run:
    run = Run()
    run.start()
    for worker in (0, 1):
        run.up(worker)
    run.ready(0)
    assert run.ready(1) == both(Activate())
    return run


def notes(actions: Sequence[Action]) -> list[str]:
    return [action.text for action in actions if isinstance(action, Note)]


class TestWithoutAccidents:
    def test_a_dialogue(self) -> None:
        run = Run()
        assert run.start() == [StartWorker(0, 1), StartWorker(1, 1)]
        assert run.up(1) == []
        assert run.up(0) == [meet(1, 0), meet(0, 1)]
        assert run.ready(0) == []
        assert run.phase == "starting"
        assert run.ready(1) == both(Activate())
        assert run.phase == "running"
        assert run.ended(1, 3, 1) == []
        assert run.ended(1, 2) == both(Stop())
        assert run.phase == "stopping"
        assert run.died(0) == []
        assert run.phase == "stopping"
        assert run.died(1) == []
        assert (run.phase, run.core.failed, run.core.restarts) == ("done", False, 0)
        assert run.core.lost == ()

    def test_a_drain(self) -> None:
        run = running()
        assert run.drain() == both(Wave(1, drain=True))
        assert (run.phase, run.drain()) == ("draining", [])
        assert run.ended(1, 1, 2, 3) == both(Stop())

    def test_a_drain_before_the_start_stops(self) -> None:
        run = Run()
        run.start()
        assert run.drain() == both(Stop())
        assert (run.phase, run.drain()) == ("stopping", [])

    def test_a_failed_end_is_a_failed_run(self) -> None:
        run = running()
        run.ended(1, 1, 2)
        assert run.ended(1, 3, failed=True) == both(Stop())
        assert run.core.failed

    def test_the_clock_alone_changes_nothing(self) -> None:
        run = running()
        run.ended(1, 3)
        assert run.tick(QUIET_REWAVE_SECS - 0.1) == []

    def test_a_marker_may_be_lost_although_nothing_dies(self) -> None:
        run = running()
        run.now = 100.0
        run.ended(1, 3)
        assert run.tick(100.0 + QUIET_REWAVE_SECS - 0.1) == []
        assert run.tick(100.0 + QUIET_REWAVE_SECS) == both(Wave(2, drain=False))


class TestErrors:
    def test_a_component_that_cannot_start_ends_the_run(self) -> None:
        run = Run()
        run.start()
        assert run.error(fatal=False) == []
        assert run.error() == [Note("a component could not start: stopping"), *both(Stop())]
        assert run.core.failed

    def test_an_error_while_running_is_remembered(self) -> None:
        run = running()
        assert run.error(fatal=False) == []
        assert not run.core.failed
        assert run.error() == []
        assert (run.core.failed, run.phase) == (True, "running")

    def test_a_task_that_fails_again_and_again_ends_the_run(self) -> None:
        run = running()
        for _ in range(9):
            run.now += FAILURES_APART_SECS - 0.1
            assert run.error() == []
        run.now += FAILURES_APART_SECS - 0.1
        why = "count (task 1) failed 10 times in a row"
        note = Note(f"{why}: stopping (storm_py.local.max.failures)")
        assert run.error() == [note, *both(Stop())]
        assert run.core.lost == (f"{why}, which ended the run early",)
        assert run.error() == []

    def test_a_task_that_is_healthy_in_between_may_fail_as_often_as_it_likes(self) -> None:
        run = running()
        for n in range(30):
            run.now += FAILURES_APART_SECS if n % 9 == 0 else 1.0
            assert run.error() == []


class TestRestartsInsideOfAWorker:
    @pytest.mark.parametrize(
        ("role", "executor", "what", "lost"),
        [
            ("instance", 2, "count (task 2)", "its memory and the tuples sent to it are lost"),
            ("stream-manager", 0, "a stream manager", "tuples on their way through it are lost"),
        ],
    )
    def test_a_new_wave(self, role: str, executor: int, what: str, lost: str) -> None:
        run = running()
        run.ended(1, 3, 1)
        assert run.restarted(role, executor) == [
            Note(f"{what} was restarted: signal 9"),
            *both(Wave(2, drain=False)),
        ]
        assert run.core.lost == (f"{what} was restarted (signal 9); {lost}",)
        assert run.ended(1, 2) == []  # the wave of before
        assert run.ended(2, 1, 3) == []
        assert run.ended(2, 2) == both(Stop())
        assert run.core.restarts == 1

    def test_the_new_stream_manager_is_introduced(self) -> None:
        run = running()
        assert run.up(0, manager=2) == [meet(1, 0, manager=2), meet(0, 1)]

    def test_the_death_of_the_old_one_is_told_at_once(self) -> None:
        run = running()
        gone = TellWorker(1, Disconnect("s0", 7))
        assert run.stream_manager_down(0, 7) == [gone]
        assert run.stream_manager_down(0, 7, incarnation=0) == []  # of a worker long gone
        run.ended(1, 1, 2, 3)
        assert run.stream_manager_down(0, 7) == []

    def test_a_wave_that_may_have_been_lost_is_sent_anew(self) -> None:
        run = running()
        run.restarted("instance", 2)
        assert run.tick(REWAVE_SECS) == []  # nothing has ended yet
        run.ended(2, 3)
        assert run.tick(2 * REWAVE_SECS) == both(Wave(3, drain=False))
        assert run.tick(3 * REWAVE_SECS - 0.1) == []
        assert run.tick(3 * REWAVE_SECS) == both(Wave(4, drain=False))

    def test_a_drain_stays_one(self) -> None:
        run = running()
        run.drain()
        assert run.restarted("instance", 3)[1:] == both(Wave(2, drain=True))


class TestDeadWorkers:
    def test_a_dialogue(self) -> None:
        run = running()
        run.ended(1, 1, 2)
        assert run.died(1) == [
            Note("worker 1 died (signal 9) and is started again"),
            TellWorker(0, Disconnect("s1", newest_incarnation(1))),
            StartWorker(1, 2),
        ]
        assert run.core.incarnations == {0: 1, 1: 2}
        assert run.core.lost == ("worker 1 was restarted (signal 9); what it held is lost",)
        assert run.ended(1, 3) == []  # 2 has to end again
        assert run.up(1, incarnation=1) == run.ready(1, incarnation=1) == []  # of the dead
        manager = newest_incarnation(1) + 1
        assert run.up(1, 2, manager) == [meet(0, 1, manager), meet(1, 0)]
        assert run.ready(1, 2) == [
            Note("worker 1 is up again"),
            TellWorker(1, Activate()),
            *both(Wave(2, drain=False)),
        ]
        assert run.ended(2, 1, 3) == []
        assert run.ended(2, 2) == both(Stop())

    def test_before_all_were_ready(self) -> None:
        run = Run()
        run.start()
        run.up(0)
        run.ready(0)
        assert run.died(0)[-1] == StartWorker(0, 2)
        run.up(1)
        assert run.ready(1) == []
        run.up(0, 2)
        assert run.ready(0, 2) == both(Activate())

    def test_during_a_drain_spouts_are_not_activated_again(self) -> None:
        run = running()
        run.drain()
        run.died(0)
        run.up(0, 2)
        assert run.ready(0, 2)[1:] == both(Wave(2, drain=True))

    def test_backoff(self) -> None:
        run = running()
        waits: list[float] = []
        for incarnation in range(1, 9):
            actions = run.died(1)
            died_at = run.now
            while StartWorker(1, incarnation + 1) not in actions:
                actions = run.tick(run.now + 0.05)
            waits.append(run.now - died_at)
        assert waits == pytest.approx([*BACKOFF_SECS, BACKOFF_SECS[-1]], abs=0.051)

    def test_one_that_lived_long_starts_anew(self) -> None:
        run = running()
        run.died(1)
        run.died(1)
        run.tick(1.0)
        run.now = 1.0 + HEALTHY_SECS
        assert run.died(1)[-1] == StartWorker(1, 4)

    def test_waiting_for_its_restart_when_the_run_stops(self) -> None:
        run = running()
        run.died(1)
        run.died(1)  # the second in a row waits
        run.ended(1, 1, 3)
        run.core._stop()
        assert run.tick(100.0) == []
        run.died(0)
        assert run.phase == "done"

    def test_nothing_is_left_when_the_run_stops(self) -> None:
        run = Run()
        run.start()
        for worker in (0, 1, 0, 1):
            run.died(worker)
        assert run.drain() == []
        assert run.phase == "done"

    def test_what_comes_late_changes_nothing(self) -> None:
        run = running()
        run.ended(1, 1, 2, 3)
        assert run.phase == "stopping"
        assert run.ready(1) == []
        assert notes(run.restarted("instance", 2)) == ["count (task 2) was restarted: signal 9"]
        assert run.ended(1, 1) == run.drain() == run.tick(100.0) == []


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
            self.perform(self.core.tick(self.now))
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
