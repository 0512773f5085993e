"""What an instance does by the clock and for other threads: ticks, calls, throttled errors."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from storm_py import Tuple
from storm_py.engine.tasks import UserError
from storm_py.wire.control import Credit, Pressure
from tests.builders import End, FakeClock, bolt, frame_size, plan_of, rows, spout
from tests.counter import said, word
from tests.instance import Act, Instance, ScriptedBasicBolt, ScriptedBolt, ScriptedSpout, nothing

TICK = (-1, "__tick")


def counting(
    act: Act = nothing, kind: type[Any] = ScriptedBolt, on_end: Act = nothing, **conf: Any
) -> Instance:
    """count, task 1; lines is task 2, total task 3; the clock is at 0."""
    plan = plan_of(
        spout("lines", "word"),
        bolt("count", "lines", "word"),
        bolt("total", "count"),
        **{"topology_tick_tuple_freq_secs": 5, **conf},
    )
    return Instance(plan, 1, lambda recorder: kind(recorder, act, on_end)).open()


def executed(instance: Instance, now: float) -> list[tuple[object, ...]]:
    """What the bolt saw of a tick of the core at this time."""
    instance.clock.now = now
    instance.ticks(now)
    return [seen[1:] for seen in instance.done()]


@pytest.mark.parametrize("kind", [ScriptedBolt, ScriptedBasicBolt])
@pytest.mark.parametrize("ackers", [0, None])
class TestTicks:
    def test_once_per_interval_with_storms_names(self, kind: type[Any], ackers: int | None) -> None:
        seen: list[Tuple] = []

        def look(component: Any, tup: Tuple) -> None:
            seen.append(tup)
            assert tup.is_tick
            assert tup["rate_secs"] == 5
            assert tup.message_id == {}

        instance = counting(look, kind, topology_acker_executors=ackers)
        assert executed(instance, 4.9) == []
        assert executed(instance, 5.0) == [(*TICK, 5)]
        assert executed(instance, 9.9) == []
        assert executed(instance, 10.0) == [(*TICK, 5)]
        assert [tup.source_component for tup in seen] == ["__system"] * 2

    def test_what_a_tick_emits_goes_out_untracked(
        self, kind: type[Any], ackers: int | None
    ) -> None:
        instance = counting(
            lambda c, tup: c.collector.emit(["tock"]), kind, topology_acker_executors=ackers
        )
        executed(instance, 5.0)
        [message] = instance.flushes()
        assert message.frames == [rows(1, 3, ["tock"])]  # type: ignore[union-attr]

    def test_it_counts_neither_as_executed_nor_for_credits(
        self, kind: type[Any], ackers: int | None
    ) -> None:
        instance = counting(kind=kind, topology_acker_executors=ackers)
        executed(instance, 5.0)
        assert instance.core.statistics().executed == 0
        assert instance.flushes() == []
        instance.gets(11, 1, word("storm", src=2, dest=1))
        instance.works()
        [credit] = instance.flushes()
        size = frame_size(word("storm", src=2, dest=1))
        assert credit == said(501, Credit(1, 1, size, 0))
        assert instance.core.statistics().executed == 1


class TestTicksWait:
    def test_a_bolt_that_was_busy_gets_one_tick_not_all_it_missed(self) -> None:
        instance = counting()
        assert executed(instance, 23.0) == [(*TICK, 5)]
        assert executed(instance, 27.9) == []
        assert executed(instance, 28.0) == [(*TICK, 5)]

    def test_a_bolt_that_may_not_emit_waits_for_its_tick(self) -> None:
        instance = counting()
        instance.hears(11, Pressure(3, True, 64))
        assert executed(instance, 12.0) == []
        assert instance.due is None
        instance.hears(11, Pressure(3, False, 256))
        assert instance.due == 5.0
        assert executed(instance, 12.0) == [(*TICK, 5)]
        assert instance.due == 17.0

    def test_ticks_are_executed_ahead_of_waiting_rows(self) -> None:
        instance = counting()
        instance.gets(11, 1, rows(2, 1, *[[f"w{i}"] for i in range(100)]))
        assert executed(instance, 5.0) == [(*TICK, 5)]

    def test_a_bolt_whose_input_has_ended_gets_none(self) -> None:
        instance = counting()
        instance.gets(11, 1, End(2, 1, 1))
        instance.works()
        instance.done()
        assert executed(instance, 5.0) == []
        assert instance.due is None

    def test_a_tick_that_raises_is_a_user_error(self) -> None:
        instance = counting(lambda component, tup: [][0])
        with pytest.raises(UserError, match=r"count \(task 1\), execute: IndexError"):
            executed(instance, 5.0)

    def test_acking_and_failing_a_tick_changes_nothing(self) -> None:
        def answer(component: Any, tup: Tuple) -> None:
            component.collector.ack(tup)
            component.collector.fail(tup)
            component.collector.reset_timeout(tup)
            component.collector.emit(["tock"], tup)

        instance = counting(answer)
        executed(instance, 5.0)
        [message] = instance.flushes()
        assert message.frames == [rows(1, 3, ["tock"])]  # type: ignore[union-attr]

    def test_spouts_get_none(self) -> None:
        plan = plan_of(spout("words", "word"), topology_tick_tuple_freq_secs=5)
        instance = Instance(plan, 1, ScriptedSpout).open()
        instance.core.tick(100.0)
        assert (instance.done(), instance.due) == ([], None)


class TestCalls:
    def test_calls_of_a_thread_run_on_the_thread_of_the_task_in_order(self) -> None:
        held: list[Tuple] = []
        instance = counting(lambda component, tup: held.append(tup))
        instance.gets(11, 1, word("storm", src=2, dest=1))
        instance.works()
        context, collector = instance.only.context, instance.only.collector
        on: list[int] = []

        def finish(text: str, tup: Tuple) -> None:
            on.append(threading.get_ident())
            collector.emit([text], tup)
            collector.ack(tup)

        thread = threading.Thread(target=lambda: context.call_soon(finish, "done", held[0]))
        thread.start()
        thread.join()
        assert on == []
        instance.core.tick(0.0)
        assert on == [threading.get_ident()]
        message, *_ = instance.flushes()
        assert message.frames == [rows(1, 3, ["done"])]  # type: ignore[union-attr]

    def test_a_call_wakes_the_driver_once_until_it_looks(self) -> None:
        instance = counting()
        call = instance.only.context.call_soon
        assert call(nothing)
        assert call(nothing)
        assert instance.watch.wakes == 1
        instance.core.tick(0.0)
        assert call(nothing)
        assert instance.watch.wakes == 2

    def test_a_call_that_calls_again_does_not_keep_the_core(self) -> None:
        instance = counting()
        call = instance.only.context.call_soon
        runs: list[int] = []

        def again() -> None:
            runs.append(1)
            call(again)

        call(again)
        instance.core.tick(0.0)
        assert (len(runs), instance.watch.wakes) == (1, 2)
        instance.core.tick(0.0)
        assert len(runs) == 2

    def test_a_call_that_raises_is_a_user_error(self) -> None:
        instance = counting()
        instance.only.context.call_soon(lambda text: int(text), "storm")
        with pytest.raises(UserError, match=r"count \(task 1\), call_soon: ValueError: inv"):
            instance.core.tick(0.0)

    def test_calls_run_under_pressure_too(self) -> None:
        """What they ack may be what the pressure waits for."""
        instance = counting()
        instance.hears(11, Pressure(3, True, 64))
        instance.only.context.call_soon(instance.recorder.add, "called")
        assert executed(instance, 0.0) == [()]

    def test_what_waits_at_the_end_of_input_goes_ahead_of_the_marker(self) -> None:
        def wait_for_the_thread(component: Any) -> None:
            component.context.call_soon(component.collector.emit, ["late"])

        instance = counting(on_end=wait_for_the_thread)
        instance.gets(11, 1, End(2, 1, 1))
        found = [each for message in instance.works() for each in getattr(message, "frames", [])]
        assert found == [rows(1, 3, ["late"]), End(1, 3, 1)]

    def test_a_spout_may_be_fed_by_a_thread(self) -> None:
        """Without acking its message ids are acked all the same, though next_tuple has no part."""
        plan = plan_of(spout("lines", "word"), bolt("count", "lines"), topology_acker_executors=0)
        instance = Instance(plan, 2, ScriptedSpout).open()
        instance.only.context.call_soon(instance.only.collector.emit, ["a"], 7)
        instance.core.tick(0.0)
        assert instance.done() == [("ack", 7)]
        [message] = instance.flushes()
        assert message.frames == [rows(2, 1, ["a"])]  # type: ignore[union-attr]

    def test_calls_at_the_end_run_before_cleanup_and_later_ones_are_refused(self) -> None:
        instance = counting()
        context = instance.only.context
        assert context.call_soon(instance.recorder.add, "called") is True
        instance.core.close()
        assert instance.done() == [("called",), (1, "cleanup")]
        assert context.call_soon(instance.recorder.add, "too late") is False

    def test_a_call_that_raises_at_the_end_is_reported(self) -> None:
        instance = counting()
        instance.only.context.call_soon(int, "storm")
        instance.core.close()
        assert instance.done() == [(1, "cleanup")]
        [report] = instance.port.reports
        assert (report.where, report.fatal) == ("call_soon", False)

    def test_only_what_can_be_called(self) -> None:
        with pytest.raises(TypeError, match=r"call_soon got an int; expected a function to call"):
            counting().only.context.call_soon(3)


class TestThrottledErrors:
    def failing(self, **conf: Any) -> Instance:
        def act(component: Any, tup: Tuple) -> None:
            component.collector.report_error(ValueError(tup[0]))

        return counting(act, topology_tick_tuple_freq_secs=None, **conf)

    def errors(self, instance: Instance, *words: str) -> list[str]:
        seq = self.seq = getattr(self, "seq", 0) + 1
        instance.gets(11, seq, rows(2, 1, *[[each] for each in words]))
        instance.works()
        return self.shown(instance)

    def shown(self, instance: Instance) -> list[str]:
        found = [report.message for report in instance.port.reports]
        instance.port.reports.clear()
        return found

    def test_five_in_ten_seconds_and_then_how_many_more(self) -> None:
        instance = self.failing()
        words = [f"w{i}" for i in range(8)]
        assert self.errors(instance, *words) == [f"ValueError: {each}" for each in words[:5]]
        assert instance.due == 10.0
        instance.core.tick(9.9)
        assert self.shown(instance) == []
        instance.core.tick(10.0)
        assert self.shown(instance) == [
            "3 more errors within 10 s are not shown (topology.max.error.report.per.interval: 5); "
            "the last one: ValueError: w7"
        ]
        instance.clock.now = 10.0
        assert self.errors(instance, "again") == ["ValueError: again"]

    def test_the_keys(self) -> None:
        instance = self.failing(
            topology_error_throttle_interval_secs=2, topology_max_error_report_per_interval=1
        )
        assert self.errors(instance, "a", "b", "c") == ["ValueError: a"]
        assert instance.due == 2.0

    def test_nothing_is_swallowed_at_the_end(self) -> None:
        instance = self.failing(topology_max_error_report_per_interval=1)
        self.errors(instance, "a", "b")
        instance.core.close()
        assert [text.partition(" errors")[0] for text in self.shown(instance)] == ["1 more"]

    def test_errors_that_end_the_executor_are_not_throttled(self) -> None:
        def act(component: Any, tup: Tuple) -> None:
            component.collector.report_error(ValueError(tup[0]))
            if tup[0] == "c":
                raise KeyError(tup[0])

        instance = counting(act, topology_max_error_report_per_interval=1)
        instance.gets(11, 1, rows(2, 1, ["a"], ["b"], ["c"]))
        with pytest.raises(UserError, match="KeyError"):
            instance.works()


def test_the_first_interval_begins_when_the_task_is_open() -> None:
    """prepare may take long: its time is not the bolt's first interval."""

    class Slow(ScriptedBolt):
        def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            super().prepare(conf, context, collector)
            clock.now += 60

    clock = FakeClock()
    plan = plan_of(spout("words", "word"), bolt("count", "words"), topology_tick_tuple_freq_secs=5)
    instance = Instance(plan, 1, Slow, clock).open()
    assert instance.due == 65.0
