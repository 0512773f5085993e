"""WorkerCore under another version of its plan: who leaves, stays and comes, in which order."""

from __future__ import annotations

from storm_py.engine.worker_actions import (
    Action,
    Adopt,
    KillInstance,
    ReplanStreamManager,
    StartInstance,
    StartStreamManager,
    Tell,
    TellParent,
)
from storm_py.engine.worker_core import LEAVE_SECS
from storm_py.wire.control import (
    Activate,
    Disconnect,
    Replan,
    Restarted,
    Stop,
    StreamManagerDown,
    WorkerReady,
)
from tests.unit.test_worker_core import FIRST_SM, Worker, connect, running, up

SECOND_SM = FIRST_SM + 1
#: What comes once everybody has left who had to, with 7 kept.
ADOPTED: list[Action] = [
    Adopt(2),
    Tell("i7", Disconnect("stmgr", FIRST_SM)),
    TellParent(StreamManagerDown(4, 1, FIRST_SM)),
    ReplanStreamManager(SECOND_SM, 2),
    Tell("i7", Replan(2, 0)),
]


def replanned(worker: Worker, instances: list[int], *kept: int) -> list[Action]:
    """The actions of a second version of the plan."""
    actions = worker.core.replan(2, instances, kept, worker.now)
    worker.core.check()
    return actions


class TestWhoIsKept:
    def test_nobody_has_to_leave(self) -> None:
        worker = running()
        assert replanned(worker, [7, 8, 9], 7, 8) == [
            Adopt(2),
            Tell("i7", Disconnect("stmgr", FIRST_SM)),
            Tell("i8", Disconnect("stmgr", FIRST_SM)),
            TellParent(StreamManagerDown(4, 1, FIRST_SM)),
            ReplanStreamManager(SECOND_SM, 2),
            Tell("i7", Replan(2, 0)),
            Tell("i8", Replan(2, 0)),
            StartInstance(9, 1),
        ]

    def test_they_are_linked_again_and_stay_active(self) -> None:
        worker = running()
        replanned(worker, [7, 8], 7, 8)
        assert worker.registered(0, FIRST_SM) == []  # what it said before it heard of the plan
        assert worker.registered(0, SECOND_SM) == [
            up(SECOND_SM),
            *(Tell("sm", connect(7)), Tell("i7", connect(0, SECOND_SM))),
            *(Tell("sm", connect(8)), Tell("i8", connect(0, SECOND_SM))),
        ]
        assert worker.ready(7) == []
        assert worker.ready(8) == [TellParent(WorkerReady(4, 1))]

    def test_one_that_comes_up_meanwhile_is_told_as_well(self) -> None:
        worker = running()
        worker.died(8)
        assert StartInstance(8, 2) not in replanned(worker, [7, 8], 7, 8)
        assert worker.registered(8, 2) == []
        worker.registered(0, SECOND_SM)
        worker.ready(7)
        assert worker.ready(8, 2) == [
            Tell("i8", Activate()),
            TellParent(Restarted(4, "instance", 8, 2, "killed")),
            TellParent(WorkerReady(4, 1)),
        ]


class TestWhoLeaves:
    def test_the_others_wait_until_it_has_gone(self) -> None:
        worker = running()
        assert replanned(worker, [7], 7) == [Tell("i8", Stop())]
        assert worker.died(8) == [Tell("sm", Disconnect("i8", 1)), *ADOPTED]

    def test_one_that_waits_for_its_restart_is_forgotten(self) -> None:
        worker = running()
        for incarnation in (1, 2):
            worker.died(8, incarnation)
        assert worker.core.next_timeout() is not None
        assert replanned(worker, [7], 7) == ADOPTED
        assert worker.core.next_timeout() is None

    def test_it_comes_back_if_it_is_wanted_but_not_kept(self) -> None:
        worker = running()
        assert replanned(worker, [7, 8], 7) == [Tell("i8", Stop())]
        assert worker.died(8)[1:] == [*ADOPTED, StartInstance(8, 2)]

    def test_it_is_killed_if_it_stays_and_again(self) -> None:
        worker = running()
        replanned(worker, [7], 7)
        assert worker.core.next_timeout() == LEAVE_SECS
        for n in (1, 2):
            assert worker.tick(n * LEAVE_SECS - 0.1) == []
            assert worker.tick(n * LEAVE_SECS) == [KillInstance(8, 1)]
        assert worker.died(8)[1:] == ADOPTED
        assert worker.tick(100.0) == []

    def test_one_that_hangs_before_it_has_registered_is_killed_too(self) -> None:
        worker = Worker()
        worker.start()
        worker.registered(0, FIRST_SM)
        assert replanned(worker, [7], 7) == [Tell("i8", Stop())]
        assert worker.tick(LEAVE_SECS) == [KillInstance(8, 1)]
        assert worker.died(8)[1:] == ADOPTED

    def test_a_newer_plan_gives_it_no_more_time(self) -> None:
        worker = running()
        replanned(worker, [7], 7)
        worker.now = LEAVE_SECS - 1
        worker.core.replan(3, [7], [7], worker.now)
        assert worker.core.next_timeout() == LEAVE_SECS

    def test_one_that_comes_back_later_counts_on(self) -> None:
        worker = running()
        replanned(worker, [7], 7)
        worker.died(8)
        assert worker.core.replan(3, [7, 8], [7], worker.now)[-1] == StartInstance(8, 2)

    def test_a_newer_plan_waits_for_them_too(self) -> None:
        worker = running()
        replanned(worker, [7], 7)
        assert worker.core.replan(3, [8], [8], worker.now) == [Tell("i7", Stop())]
        worker.died(7)
        assert worker.died(8)[1:] == [
            Adopt(3),
            TellParent(StreamManagerDown(4, 1, FIRST_SM)),
            ReplanStreamManager(SECOND_SM, 3),
            StartInstance(8, 2),
        ]


class TestDeaths:
    def test_a_stream_manager_that_waits_for_its_restart_starts_under_the_new_plan(self) -> None:
        worker = running()
        worker.died(0, FIRST_SM)
        worker.died(0, SECOND_SM)
        assert replanned(worker, [7], 7) == [Tell("i8", Stop())]
        assert worker.died(8)[1:] == [Adopt(2), Tell("i7", Replan(2, 0))]
        assert worker.tick(1.0) == [StartStreamManager(FIRST_SM + 2)]

    def test_one_that_dies_of_the_plan_starts_as_its_next_incarnation(self) -> None:
        worker = running()
        replanned(worker, [7, 8], 7, 8)
        assert worker.died(0, FIRST_SM) == []
        assert worker.died(0, SECOND_SM)[-1] == StartStreamManager(FIRST_SM + 2)


class TestTheEnd:
    def test_a_worker_that_stops_heeds_no_plan(self) -> None:
        worker = running()
        worker.order(Stop())
        assert replanned(worker, [9]) == []

    def test_who_is_leaving_is_told_once(self) -> None:
        worker = running()
        replanned(worker, [7], 7)
        assert worker.order(Stop()) == [Tell("i7", Stop())]
        worker.died(7)
        assert worker.died(8) == [Tell("sm", Stop())]
