"""RunCore: workers meet, spouts go, the end comes through - and what deaths change about that."""

from __future__ import annotations

import pytest

from storm_py.engine import losses
from storm_py.engine.run_core import (
    FAILURES_APART_SECS,
    QUIET_REWAVE_SECS,
    REWAVE_SECS,
    Note,
    StartWorker,
    TellWorker,
)
from storm_py.engine.worker_core import BACKOFF_SECS, HEALTHY_SECS, newest_incarnation
from storm_py.wire.control import (
    Activate,
    Disconnect,
    Stop,
    Wave,
)
from tests.builders import LOCAL, bolt, plan_of, spout
from tests.runs import Run, both, meet, notes, running

#: lines is executors 1 and 2 (workers 0 and 1), words executors 3 and 4, fused with them
FUSED = plan_of(
    spout("lines", tasks=2), bolt("words", {"lines": LOCAL}, tasks=2), workers=2, fuse=True
)


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

    def test_spouts_that_end_before_the_run_begins(self) -> None:
        run = Run()
        run.start()
        for worker in (0, 1):
            run.up(worker)
        assert run.ended(1, 1, 2, 3) == []
        run.ready(0)
        assert run.ready(1) == both(Stop())

    def test_a_marker_may_be_lost_although_nothing_dies(self) -> None:
        run = running()
        run.now = 100.0
        run.ended(1, 3)
        assert run.tick(100.0 + QUIET_REWAVE_SECS - 0.1) == []
        assert run.tick(100.0 + QUIET_REWAVE_SECS) == both(Wave(2, drain=False))
        assert run.tick(100.0 + 3 * QUIET_REWAVE_SECS - 0.1) == []
        assert run.tick(100.0 + 3 * QUIET_REWAVE_SECS) == both(Wave(3, drain=False))

    def test_a_marker_between_fused_chains_may_be_lost_as_well(self) -> None:
        """Both spouts have ended, and no bolt behind them: each waits for the other chain."""
        run = running(FUSED)
        run.ended(1, 1, 2)
        assert run.tick(QUIET_REWAVE_SECS) == both(Wave(2, drain=False))
        assert run.ended(2, 1, 2, 3) == []
        assert run.ended(2, 4) == both(Stop())

    def test_the_restart_of_a_chain_undoes_the_ends_of_all_its_executors(self) -> None:
        run = running(FUSED)
        run.ended(1, 1, 2, 3)
        (note, *wave) = run.restarted("instance", 1)
        assert isinstance(note, Note)
        assert note.text == "lines + words (tasks 1, 3) was restarted: signal 9"
        assert wave == both(Wave(2, drain=False))
        assert run.ended(2, 2, 4, 1) == []
        assert run.ended(2, 3) == both(Stop())


def renewed_twice() -> Run:
    """Something died, a spout has ended, and its wave was renewed by the clock at 1 s and 3 s."""
    run = running()
    run.restarted("instance", 2)
    run.ended(2, 3)
    assert run.tick(1.0) == both(Wave(3, drain=False))
    assert run.tick(3.0) == both(Wave(4, drain=False))
    return run


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
        ("role", "executor", "what"),
        [
            ("instance", 2, "count (task 2)"),
            ("stream-manager", 0, "a stream manager"),
        ],
    )
    def test_a_new_wave(self, role: str, executor: int, what: str) -> None:
        run = running()
        run.ended(1, 3, 1)
        assert run.restarted(role, executor) == [
            Note(f"{what} was restarted: signal 9"),
            *both(Wave(2, drain=False)),
        ]
        lost = losses.of_process(role, is_spout=False, acking=True)
        assert run.core.lost == (f"{what} was restarted (signal 9); {lost}",)
        assert run.ended(1, 2) == []  # the wave of before
        assert run.ended(2, 1, 3) == []
        assert run.ended(2, 2) == both(Stop())
        assert run.core.restarts == 1

    def test_a_spout_has_lost_its_memory(self) -> None:
        run = running()
        run.restarted("instance", 3)
        [sentence] = run.core.lost
        lost = losses.of_process("instance", is_spout=True, acking=True)
        assert sentence == f"words (task 3) was restarted (signal 9); {lost}"

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

    def test_each_time_it_is_given_twice_as_long_up_to_a_minute(self) -> None:
        run = running()
        run.restarted("instance", 2)
        run.ended(2, 3)
        for wave, secs in enumerate((1, 2, 4, 8, 16, 32, 60, 60), 3):
            begun = run.now
            assert run.tick(begun + secs - 0.1) == []
            assert run.tick(begun + secs) == both(Wave(wave, drain=False))

    def test_while_a_spout_goes_on_nobody_waits_for_a_wave(self) -> None:
        """Executors 2 and 3 are spouts: however late the second one ends, the wait is short."""
        run = running(plan_of(spout("words", tasks=2), bolt("count", "words"), workers=2))
        run.restarted("instance", 1)
        run.ended(2, 2)
        assert run.tick(100.0) == []
        run.ended(2, 3)
        assert run.tick(100.0 + REWAVE_SECS - 0.1) == []
        assert run.tick(100.0 + REWAVE_SECS) == both(Wave(3, drain=False))

    def test_nor_while_one_that_was_started_again_does(self) -> None:
        run = running()
        run.ended(1, 3)
        run.restarted("instance", 3)
        assert run.tick(100.0) == []
        run.ended(2, 3)
        assert run.tick(100.0 + REWAVE_SECS) == both(Wave(3, drain=False))

    def test_a_death_begins_that_anew(self) -> None:
        run = renewed_twice()
        assert run.restarted("instance", 2)[1:] == both(Wave(5, drain=False))
        assert run.tick(3.0 + REWAVE_SECS - 0.1) == []
        assert run.tick(3.0 + REWAVE_SECS) == both(Wave(6, drain=False))

    def test_so_does_the_death_of_a_worker_and_its_return(self) -> None:
        run = renewed_twice()
        run.died(1)
        assert run.tick(3.0 + REWAVE_SECS) == both(Wave(5, drain=False))
        run.up(1, 2)
        assert run.ready(1, 2)[2:] == both(Wave(6, drain=False))
        assert run.tick(3.0 + 2 * REWAVE_SECS) == both(Wave(7, drain=False))

    def test_a_wave_that_takes_its_time_comes_through(self) -> None:
        """Ten seconds from the spout to the last bolt; a newer one starts from the front."""
        run = running()
        run.restarted("instance", 2)
        run.ended(2, 3)
        wave, begun = 2, run.now
        while run.phase == "running" and run.now < 100.0:
            if run.tick(run.now + 0.5):
                wave, begun = wave + 1, run.now
            elif run.now - begun >= 10.0:
                run.ended(wave, 1, 2, 3)
        assert (run.phase, wave) == ("stopping", 6)

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
        lost = f"worker 1 was restarted (signal 9); {losses.of_worker(acking=True)}"
        assert run.core.lost == (lost,)
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

    def test_what_it_said_comes_too_late_while_it_waits_for_its_restart(self) -> None:
        run = running()
        run.died(0)
        assert run.died(0) == [
            Note("worker 0 died (signal 9) and is started again"),
            TellWorker(1, Disconnect("s0", newest_incarnation(2))),
        ]
        assert run.up(0, 2) == run.ready(0, 2) == run.stream_manager_down(0, 1, 2) == []
        assert run.tick(BACKOFF_SECS[1]) == [StartWorker(0, 3)]
        assert run.up(0, 3) == [meet(1, 0), meet(0, 1)]

    def test_waiting_for_its_restart_when_the_run_stops(self) -> None:
        run = running()
        run.died(1)
        run.died(1)  # the second in a row waits
        run.ended(1, 1, 3)
        run.core._stop()
        assert run.core.gone == {1}
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
