"""WorkerCore: processes are linked, restarted and stopped in the right order."""

from __future__ import annotations

import pytest

from storm_py.engine.worker_actions import (
    Action,
    CannotStart,
    Leave,
    StartInstance,
    StartStreamManager,
    Tell,
    TellParent,
)
from storm_py.engine.worker_core import (
    BACKOFF_SECS,
    HEALTHY_SECS,
    STILLBORN,
    STILLBORN_SECS,
    WorkerCore,
    newest_incarnation,
)
from storm_py.wire.control import (
    Activate,
    Connect,
    Control,
    Deactivate,
    Disconnect,
    LogLevels,
    Ready,
    Register,
    Restarted,
    Stop,
    StreamManagerDown,
    Wave,
    WorkerReady,
    WorkerUp,
)

FIRST_SM = newest_incarnation(0) + 1


def register(executor: int, incarnation: int = 1) -> Register:
    role = "instance" if executor else "stream-manager"
    tcp = ("", "") if executor else ("tcp-d", "tcp-c")
    return Register(role, executor, incarnation, 900, f"d{executor}", f"c{executor}", *tcp)


def connect(executor: int, incarnation: int = 1) -> Connect:
    """The order to link to this process."""
    peer = f"i{executor}" if executor else "stmgr"
    return Connect(peer, incarnation, f"d{executor}", f"c{executor}")


def up(incarnation: int = FIRST_SM) -> TellParent:
    return TellParent(WorkerUp(4, 1, 900, "tcp-d", "tcp-c", incarnation))


class Worker:
    """Worker 4 with executors 7 and 8."""

    def __init__(self) -> None:
        self.core = WorkerCore(4, 1, [7, 8])
        self.now = 0.0

    def _checked(self, actions: list[Action]) -> list[Action]:
        self.core.check()
        return actions

    def start(self) -> list[Action]:
        return self._checked(self.core.start(self.now))

    def registered(self, executor: int, incarnation: int = 1) -> list[Action]:
        return self._checked(self.core.registered(register(executor, incarnation)))

    def ready(self, executor: int, incarnation: int = 1) -> list[Action]:
        return self._checked(self.core.ready(Ready(executor, incarnation)))

    def died(self, executor: int, incarnation: int = 1, reason: str = "killed") -> list[Action]:
        return self._checked(self.core.died(executor, incarnation, reason, self.now))

    def order(self, record: Control) -> list[Action]:
        return self._checked(self.core.order(record))

    def tick(self, now: float) -> list[Action]:
        self.now = now
        return self._checked(self.core.tick(now))


def running() -> Worker:
    """Everything is up, linked and active."""
    worker = Worker()
    worker.start()
    for executor, incarnation in ((0, FIRST_SM), (7, 1), (8, 1)):
        worker.registered(executor, incarnation)
    worker.ready(7)
    worker.ready(8)
    worker.order(Activate())
    return worker


class TestStart:
    def test_a_dialogue(self) -> None:
        worker = Worker()
        assert worker.start() == [
            StartStreamManager(FIRST_SM),
            StartInstance(7, 1),
            StartInstance(8, 1),
        ]
        assert worker.registered(7) == []
        assert worker.registered(0, FIRST_SM) == [
            up(),
            Tell("sm", connect(7)),
            Tell("i7", connect(0, FIRST_SM)),
        ]
        assert worker.registered(8) == [
            Tell("sm", connect(8)),
            Tell("i8", connect(0, FIRST_SM)),
        ]
        assert worker.ready(8) == []
        assert worker.order(Wave(3, False)) == [Tell("i8", Wave(3, False))]
        assert worker.order(LogLevels("{}")) == [Tell("i8", LogLevels("{}"))]
        assert worker.ready(7) == [
            Tell("i7", Wave(3, False)),
            Tell("i7", LogLevels("{}")),
            TellParent(WorkerReady(4, 1)),
        ]
        assert worker.order(Activate()) == [Tell("i7", Activate()), Tell("i8", Activate())]
        assert worker.order(Deactivate()) == [Tell("i7", Deactivate()), Tell("i8", Deactivate())]

    def test_other_workers_are_introduced_now_or_when_it_is_up(self) -> None:
        worker = Worker()
        worker.start()
        s1, s2 = (Connect(f"s{n}", 1, f"d{n}", f"c{n}") for n in (1, 2))
        assert worker.order(s1) == []
        assert worker.registered(0, FIRST_SM) == [up(), Tell("sm", s1)]
        assert worker.order(s2) == [Tell("sm", s2)]
        assert worker.order(Disconnect("s1", 1)) == [Tell("sm", Disconnect("s1", 1))]
        assert worker.died(0, FIRST_SM)[-1] == StartStreamManager(FIRST_SM + 1)
        assert worker.registered(0, FIRST_SM + 1) == [up(FIRST_SM + 1), Tell("sm", s2)]

    def test_incarnations_of_stream_managers_grow_beyond_a_restart_of_the_worker(self) -> None:
        assert WorkerCore(4, 2, []).start(0.0) == [StartStreamManager(newest_incarnation(1) + 1)]

    @pytest.mark.parametrize("record", [Ready(7, 1), Restarted(4, "instance", 7, 1, "")])
    def test_what_is_no_order(self, record: Control) -> None:
        with pytest.raises(ValueError, match=f"{type(record).__name__} is no order for a worker"):
            Worker().order(record)


class TestDeaths:
    def test_of_an_instance(self) -> None:
        worker = running()
        assert worker.died(7) == [Tell("sm", Disconnect("i7", 1)), StartInstance(7, 2)]
        assert worker.order(Wave(5, False)) == [Tell("i8", Wave(5, False))]
        assert worker.registered(7, 1) == []  # a message of the dead
        assert worker.registered(7, 2) == [
            Tell("sm", connect(7, 2)),
            Tell("i7", connect(0, FIRST_SM)),
        ]
        assert worker.ready(7, 1) == []
        assert worker.ready(7, 2) == [
            Tell("i7", Activate()),
            Tell("i7", Wave(5, False)),
            TellParent(Restarted(4, "instance", 7, 2, "killed")),
        ]
        assert worker.ready(7, 2) == [Tell("i7", Wave(5, False))]  # the rest is told once

    def test_of_the_stream_manager(self) -> None:
        worker = running()
        gone = Disconnect("stmgr", FIRST_SM)
        new = FIRST_SM + 1
        assert worker.died(0, FIRST_SM) == [
            *(Tell("i7", gone), Tell("i8", gone)),
            TellParent(StreamManagerDown(4, 1, FIRST_SM)),
            StartStreamManager(new),
        ]
        assert worker.order(Deactivate()) == [
            *(Tell("i7", Deactivate()), Tell("i8", Deactivate())),
        ]
        assert worker.registered(0, new) == [
            up(new),
            *(Tell("sm", connect(7)), Tell("i7", connect(0, new))),
            *(Tell("sm", connect(8)), Tell("i8", connect(0, new))),
        ]
        assert worker.ready(7) == []
        assert worker.ready(8) == [TellParent(Restarted(4, "stream-manager", 0, new, "killed"))]

    def test_of_both(self) -> None:
        worker = running()
        worker.died(7)
        worker.died(0, FIRST_SM)
        assert worker.registered(7, 2) == []
        assert worker.registered(0, FIRST_SM + 1)[1:3] == [
            Tell("sm", connect(7, 2)),
            Tell("i7", connect(0, FIRST_SM + 1)),
        ]
        worker.ready(8)
        assert worker.ready(7, 2)[1:] == [
            TellParent(Restarted(4, "instance", 7, 2, "killed")),
            TellParent(Restarted(4, "stream-manager", 0, FIRST_SM + 1, "killed")),
        ]

    def test_of_strangers(self) -> None:
        worker = running()
        assert worker.died(9) == worker.died(7, 2) == worker.died(0, 99) == []
        assert worker.ready(9) == worker.registered(9) == []

    def test_one_death_is_one_however_often_it_is_told(self) -> None:
        worker = running()
        worker.died(7)
        worker.died(7, 2)
        waiting = worker.core.next_timeout()
        assert waiting == BACKOFF_SECS[1]
        assert worker.died(7, 2) == []
        assert worker.core.next_timeout() == waiting


class TestStillborn:
    def test_one_that_never_comes_up_is_reported_once(self) -> None:
        worker = Worker()
        worker.start()
        reports = []
        for incarnation in range(1, STILLBORN + 3):
            worker.tick(worker.now + 60)
            reports.append(CannotStart(7, "killed") in worker.died(7, incarnation))
        assert reports == [n == STILLBORN for n in range(1, STILLBORN + 3)]

    def test_one_that_comes_up_now_and_then_is_not(self) -> None:
        worker = Worker()
        worker.start()
        for incarnation in range(1, 3 * STILLBORN):
            worker.tick(worker.now + 60)
            if incarnation % STILLBORN == 0:
                assert worker.registered(7, incarnation) == []
            assert CannotStart(7, "killed") not in worker.died(7, incarnation)

    def test_before_the_worker_is_up_it_waits_for_what_its_parent_makes_of_it(self) -> None:
        """A component that raises in open is not opened once more behind the word "stopping"."""
        worker = Worker()
        worker.start()
        worker.registered(8)
        assert worker.died(7) == [Tell("sm", Disconnect("i7", 1))]
        assert worker.core.next_timeout() == STILLBORN_SECS
        assert worker.order(Stop()) == [Tell("i8", Stop())]
        assert worker.tick(STILLBORN_SECS) == []

    def test_if_its_parent_says_nothing_it_is_started_again(self) -> None:
        worker = Worker()
        worker.start()
        worker.died(7)
        assert worker.tick(STILLBORN_SECS) == [StartInstance(7, 2)]

    def test_one_that_had_come_up_does_not_wait(self) -> None:
        worker = Worker()
        worker.start()
        worker.registered(7)
        assert worker.died(7)[-1] == StartInstance(7, 2)


class TestBackoff:
    def test_each_restart_in_a_row_waits_longer(self) -> None:
        worker = running()
        waits = []
        for incarnation in range(1, 10):
            worker.died(7, incarnation)
            due = worker.core.next_timeout()
            waits.append(0.0 if due is None else due - worker.now)
            if due is not None:
                assert worker.tick(due - 0.001) == []
                assert worker.tick(due) == [StartInstance(7, incarnation + 1)]
            assert worker.core.next_timeout() is None
        assert waits == pytest.approx([*BACKOFF_SECS, BACKOFF_SECS[-1], BACKOFF_SECS[-1]])

    def test_one_that_lived_long_starts_anew(self) -> None:
        worker = running()
        worker.died(7)
        worker.now = HEALTHY_SECS
        assert worker.died(7, 2)[-1] == StartInstance(7, 3)

    def test_others_do_not_wait(self) -> None:
        worker = running()
        worker.died(7)
        worker.died(7, 2)
        assert worker.died(8)[-1] == StartInstance(8, 2)


class TestStop:
    def test_instances_then_the_stream_manager_then_the_worker(self) -> None:
        worker = running()
        assert worker.order(Stop()) == [Tell("i7", Stop()), Tell("i8", Stop())]
        assert worker.died(8) == []
        assert worker.died(7) == [Tell("sm", Stop())]
        assert worker.died(0, FIRST_SM) == [Leave()]

    def test_nothing_is_started_any_more(self) -> None:
        worker = running()
        worker.died(7)
        worker.died(7, 2)  # waits for its restart
        assert worker.order(Stop()) == [Tell("i8", Stop())]
        assert worker.core.next_timeout() is None
        # i8 may wait for room in its socket
        assert worker.died(0, FIRST_SM) == [Tell("i8", Disconnect("stmgr", FIRST_SM))]
        assert worker.tick(100.0) == []
        assert worker.died(8) == [Leave()]

    def test_when_only_waiting_ones_are_left(self) -> None:
        worker = running()
        for executor in (7, 8):
            worker.died(executor)
            worker.died(executor, 2)
        assert worker.order(Stop()) == [Tell("sm", Stop())]

    def test_when_nothing_is_left(self) -> None:
        worker = running()
        for executor, incarnation in ((7, 1), (8, 1), (0, FIRST_SM)):
            worker.died(executor, incarnation)
            worker.died(executor, incarnation + 1)
        assert worker.order(Stop()) == [Leave()]
