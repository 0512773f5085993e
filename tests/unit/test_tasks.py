"""Running tasks: whatever user code does, it is said where; collectors fit their component."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    EmitError,
    FailedException,
    Fields,
    ReportedFailedException,
    Tuple,
)
from storm_py.api.tuples import TupleContext
from storm_py.core.plan import PhysicalPlan
from storm_py.engine.calls import Calls
from storm_py.engine.port import Watch
from storm_py.engine.reports import Reports
from storm_py.engine.tasks import BoltTask, SpoutTask, UserError
from storm_py.wire.control import ErrorReport
from tests.builders import FakeClock, Recorder, bolt, plan_of, settings_of, spout
from tests.instance import Act, ScriptedBasicBolt, ScriptedBolt, ScriptedSpout, nothing

#: count is tasks 1 and 2, words task 3
PLAN = plan_of(spout("words", "word"), bolt("count", "words", "word", tasks=2), workers=2)
CONTEXT = TupleContext("words", "default", 3, Fields("word"))


class Made:
    """A task with what it reports; `due` batches are dropped."""

    def __init__(self, kind: type[Any], task: int, component: object, plan: PhysicalPlan) -> None:
        self.reports: list[ErrorReport] = []
        clock = FakeClock()
        self.task = kind(
            plan,
            task,
            component,
            settings_of(plan),
            lambda batch, task: None,
            Reports(plan.conf, clock, self.reports.append),
            None,
            clock,
            Calls(Watch()),
        )


def a_bolt(make: Callable[..., object], act: Act = nothing, on_end: Act = nothing) -> Made:
    made = Made(BoltTask, 1, make(Recorder(), act, on_end), PLAN)
    made.task.open()
    return made


def a_spout(act: Act = nothing, on_open: Act = nothing) -> Made:
    return Made(SpoutTask, 3, ScriptedSpout(Recorder(), act, on_open), PLAN)


def raising(error: BaseException, at: str = "") -> Act:
    def act(component: Any, tup: Any = None) -> None:
        if tup is None or not at or tup[0] == at:
            raise error

    return act


def run(made: Made, *words: str) -> list[object]:
    """Execute these rows; what the component saw."""
    made.task.run(iter([[word] for word in words]), CONTEXT, None, ())
    return [log[-1] for log in made.task._bolt.recorder.take()]


BOLTS = [ScriptedBolt, ScriptedBasicBolt]


class TestKinds:
    @pytest.mark.parametrize("wrong", [ScriptedBolt(Recorder()), object()])
    def test_a_spout_task_needs_a_spout(self, wrong: object) -> None:
        with pytest.raises(TypeError, match=r"task 3 is a \w+, expected a spout"):
            Made(SpoutTask, 3, wrong, PLAN)

    @pytest.mark.parametrize("wrong", [ScriptedSpout(Recorder()), None])
    def test_a_bolt_task_needs_a_bolt(self, wrong: object) -> None:
        with pytest.raises(TypeError, match=r"task 1 is a \w+, expected a bolt"):
            Made(BoltTask, 1, wrong, PLAN)

    def test_hooks_need_not_be_there(self) -> None:
        for base, task in ((BaseRichSpout, 3), (BaseRichBolt, 1), (BaseBasicBolt, 1)):
            made = Made(SpoutTask if task == 3 else BoltTask, task, base(), PLAN)
            made.task.open()
            made.task.close()
            assert made.reports == []

    def test_context_and_configuration(self) -> None:
        component = ScriptedBolt(Recorder())
        made = Made(BoltTask, 2, component, PLAN)
        made.task.open()
        assert component.context.this_task_id == 2
        assert component.context.this_task_index == 1
        assert component.context.this_component_id == "count"
        assert component.context.this_worker_tasks == (2,)
        assert component.conf == {**PLAN.conf}

    def test_a_component_overrides_the_configuration(self) -> None:
        plan = plan_of(spout("words", "word"), bolt("count", "words"))
        spec = plan.topology.components["count"]
        spec.config["my.key"] = 5  # type: ignore[index]
        component = ScriptedBolt(Recorder())
        Made(BoltTask, 1, component, plan).task.open()
        assert component.conf == {**plan.conf, "my.key": 5}


class TestCollectors:
    def test_of_a_spout(self) -> None:
        def check(spout: Any) -> None:
            assert spout.collector.emit(["a"], msg_id=1) in ((1,), (2,))
            spout.collector.report_error(ValueError("odd line"))

        made = a_spout(on_open=check)
        made.task.open()
        (report,) = made.reports
        assert (report.component, report.task, report.where) == ("words", 3, "report_error")
        assert (report.message, report.fatal) == ("ValueError: odd line", False)
        assert not hasattr(made.task._spout.collector, "ack")

    @pytest.mark.parametrize("batch_rows", [1, 256])
    def test_the_largest_frame_bounds_a_tuple_whatever_the_batches(self, batch_rows: int) -> None:
        plan = plan_of(
            spout("words", "word"),
            bolt("count", "words"),
            batch_rows=batch_rows,
            frame_max_bytes=1024,
        )
        spout_ = ScriptedSpout(Recorder())
        Made(SpoutTask, 2, spout_, plan).task.open()
        spout_.collector.emit(["x" * 1000])
        with pytest.raises(EmitError, match="a tuple of 1104 bytes is above the limit of 1024"):
            spout_.collector.emit(["x" * 1100])

    def test_of_a_bolt(self) -> None:
        def check(bolt: Any, tup: Tuple) -> None:
            bolt.collector.emit([tup[0]], anchors=[tup])
            bolt.collector.ack(tup)
            bolt.collector.fail(tup)
            bolt.collector.report_error(ValueError("odd word"))

        made = a_bolt(ScriptedBolt, check)
        run(made, "a", "b")
        assert [report.message for report in made.reports] == ["ValueError: odd word"] * 2
        assert made.task.output.emissions.emitted == 2

    def test_of_a_basic_bolt(self) -> None:
        made = a_bolt(ScriptedBasicBolt, lambda bolt, tup: bolt.collector.emit([tup[0]]))
        run(made, "a", "b")
        assert made.task.output.emissions.emitted == 2


class TestExecute:
    @pytest.mark.parametrize("make", BOLTS)
    def test_rows(self, make: Any) -> None:
        assert run(a_bolt(make), "a", "b") == ["a", "b"]

    @pytest.mark.parametrize("make", BOLTS)
    @pytest.mark.parametrize("error", [ZeroDivisionError("no"), SystemExit(3)])
    def test_an_exception_stops_behind_its_row(self, make: Any, error: BaseException) -> None:
        made = a_bolt(make, raising(error, at="b"))
        rows: Any = iter([["a"], ["b"], ["c"], ["d"]])
        with pytest.raises(UserError) as caught:
            made.task.run(rows, CONTEXT, None, ())
        assert str(caught.value) == f"count (task 1), execute: {type(error).__name__}: {error}"
        assert caught.value.error is error
        assert list(rows) == [["c"], ["d"]]

    def test_the_report_shows_the_line(self) -> None:
        made = a_bolt(ScriptedBolt, raising(KeyError("x")))
        with pytest.raises(UserError) as caught:
            run(made, "a")
        report = caught.value.report(fatal=True)
        assert report.message == "KeyError: 'x'"
        assert report.fatal
        assert report.traceback.startswith("Traceback (most recent call last):\n")
        assert "raise error" in report.traceback
        assert report.traceback.endswith("KeyError: 'x'\n")

    def test_a_failed_tuple_of_a_basic_bolt_is_its_own_fault_only(self) -> None:
        made = a_bolt(ScriptedBasicBolt, raising(FailedException("bad row"), at="b"))
        assert run(made, "a", "b", "c") == ["a", "b", "c"]
        assert made.reports == []

    def test_a_reported_failure_is_reported(self) -> None:
        made = a_bolt(ScriptedBasicBolt, raising(ReportedFailedException("bad row"), at="b"))
        assert run(made, "a", "b", "c", "b") == ["a", "b", "c", "b"]
        assert [report.message for report in made.reports] == [
            "ReportedFailedException: bad row"
        ] * 2
        assert not made.reports[0].fatal

    def test_a_rich_bolt_fails_its_tuples_itself(self) -> None:
        made = a_bolt(ScriptedBolt, raising(FailedException("bad row"), at="b"))
        with pytest.raises(UserError, match="FailedException: bad row"):
            run(made, "a", "b", "c")

    def test_a_keyboard_interrupt_is_not_of_user_code(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            run(a_bolt(ScriptedBolt, raising(KeyboardInterrupt())), "a")


class TestWaitFd:
    @pytest.mark.parametrize("fd", [None, 0, 7])
    def test_is_asked_for_behind_open(self, fd: int | None) -> None:
        made = a_spout(on_open=lambda spout: setattr(spout, "wait_fd", lambda: fd))
        made.task.open()
        assert made.task.wait_fd == fd

    @pytest.mark.parametrize("wrong", ["3", True, -1, 1.0])
    def test_what_is_none_is_refused(self, wrong: object) -> None:
        made = a_spout(on_open=lambda spout: setattr(spout, "wait_fd", lambda: wrong))
        message = f"wait_fd of ScriptedSpout returned {wrong!r}; expected a file descriptor, as "
        with pytest.raises(UserError, match=re.escape(message)):
            made.task.open()


class TestEnds:
    @pytest.mark.parametrize("make", BOLTS)
    def test_of_a_bolt(self, make: Any) -> None:
        made = a_bolt(make, on_end=lambda bolt: bolt.collector.emit(["total"]))
        made.task.end_of_input()
        assert (made.task.ended, made.task.failed, made.reports) == (True, False, [])
        assert made.task.output.emissions.emitted == 1

    @pytest.mark.parametrize("make", BOLTS)
    def test_of_a_bolt_that_raises(self, make: Any) -> None:
        made = a_bolt(make, on_end=raising(ValueError("wrong")))
        made.task.end_of_input()
        assert (made.task.ended, made.task.failed) == (True, True)
        assert [report.message for report in made.reports] == ["ValueError: wrong"]

    @pytest.mark.parametrize("make", BOLTS)
    def test_a_deliberate_failure_is_its_message(self, make: Any) -> None:
        made = a_bolt(make, on_end=raising(FailedException("3 words are missing")))
        made.task.end_of_input()
        assert made.reports == [
            ErrorReport("count", 1, "end_of_input", "3 words are missing", "", False)
        ]
        assert made.task.failed

    @pytest.mark.parametrize("make", BOLTS)
    def test_cleanup_that_raises_is_reported(self, make: Any) -> None:
        made = a_bolt(make)
        made.task._bolt.cleanup = lambda: raising(OSError("disk"))(None)
        made.task.close()
        assert [(r.where, r.message) for r in made.reports] == [("cleanup", "OSError: disk")]


class TestBursts:
    def test_until_nothing_is_emitted(self) -> None:
        def act(spout: Any) -> None:
            if spout.count != 4:
                spout.collector.emit([spout.count])

        made = a_spout(act)
        made.task.open()
        assert [made.task.burst(lambda: 0.0) for _ in range(3)] == [True, True, False]
        assert made.task._spout.count == 4  # 1, then 2 and 3, then the idle 4: there it stops
        assert made.task.output.emissions.emitted == 3

    def test_an_idle_spout(self) -> None:
        made = a_spout()
        made.task.open()
        assert made.task.burst(lambda: 0.0) is False

    def test_one_that_is_halted_goes_on_with_the_next_burst(self) -> None:
        def act(spout: Any) -> None:
            spout.collector.emit([spout.count])
            if spout.count in (5, 6):
                made.task.halt()

        made = a_spout(act)
        made.task.open()
        counts = []
        for _ in range(5):
            assert made.task.burst(lambda: 0.0) is True
            counts.append(made.task._spout.count)
        assert counts == [1, 3, 5, 6, 10]  # bursts of 1, 2, 4 and 4 calls, two of them cut short

    def test_several_emits_in_one_call(self) -> None:
        made = a_spout(lambda spout: [spout.collector.emit([n]) for n in range(3)])
        made.task.open()
        assert made.task.burst(lambda: 0.0) is True
        assert made.task.output.emissions.emitted == 3
