"""Task hooks: Storm's calls with Storm's facts, in order, and nobody else's path is touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from storm_py import (
    BaseTaskHook,
    EmitInfo,
    FailedException,
    Fields,
    SpoutAckInfo,
    SpoutFailInfo,
    Tuple,
)
from storm_py.api.tuples import TupleContext
from storm_py.engine.tasks import BoltTask, UserError
from storm_py.wire.acks import AckResults, encode_acks
from storm_py.wire.frames import message_header
from tests.builders import DIRECT, FakeClock, bolt, plan_of, rows, spout
from tests.instance import Act, Instance, ScriptedBasicBolt, ScriptedBolt, ScriptedSpout, nothing

CONTEXT = TupleContext("lines", "default", 2, Fields("word"))


class Telling(BaseTaskHook):
    """Tells the recorder of its task whatever it hears; raises in one method if it should."""

    def __init__(self, recorder: Any, raise_in: str = "") -> None:
        self.recorder = recorder
        self.raise_in = raise_in

    def heard(self, method: str, *what: object) -> None:
        self.recorder.add(method, *what)
        if method == self.raise_in:
            raise ValueError("hook on purpose")

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        self.heard("prepare", context.this_task_id, conf["topology.workers"])

    def cleanup(self) -> None:
        self.heard("cleanup")

    def emit(self, info: Any) -> None:
        self.heard("emit", info)

    def spout_ack(self, info: Any) -> None:
        self.heard("spout_ack", info)

    def spout_fail(self, info: Any) -> None:
        self.heard("spout_fail", info)

    def bolt_execute(self, info: Any) -> None:
        self.heard(
            "bolt_execute", list(info.tuple), info.executing_task_id, info.execute_latency_ms
        )

    def bolt_ack(self, info: Any) -> None:
        self.heard("bolt_ack", list(info.tuple), info.acking_task_id, info.process_latency_ms)

    def bolt_fail(self, info: Any) -> None:
        self.heard("bolt_fail", list(info.tuple), info.failing_task_id, info.fail_latency_ms)


def adding(component: Any) -> None:
    component.context.add_task_hook(Telling(component.recorder))


class HookedBolt(ScriptedBolt):
    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        adding(self)


class HookedBasicBolt(ScriptedBasicBolt):
    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        super().prepare(conf, context)
        adding(self)


def a_bolt(kind: type[Any], act: Act, clock: FakeClock | None = None, **conf: Any) -> Instance:
    """count, task 1, with a hook; its input is lines, task 2, its output goes to total, task 3."""
    plan = plan_of(
        spout("lines", "word"), bolt("count", "lines", "word"), bolt("total", "count"), **conf
    )
    return Instance(plan, 1, lambda recorder: kind(recorder, act), clock).open()


def executes(instance: Instance, *words: str) -> list[tuple[object, ...]]:
    instance.gets(11, 1, rows(2, 1, *[[each] for each in words]))
    while instance.core.has_work:
        instance.works()
    return [seen for seen in instance.done() if not isinstance(seen[0], int)]


@pytest.mark.parametrize("ackers", [0, None])
class TestBolts:
    def test_a_rich_bolt(self, ackers: int | None) -> None:
        def act(component: Any, tup: Tuple) -> None:
            clock.now += 0.25
            component.collector.emit([tup[0] * 2], tup)
            if tup[0] == "a":
                component.collector.ack(tup)
            else:
                component.collector.fail(tup)
            clock.now += 0.25

        clock = FakeClock()
        instance = a_bolt(HookedBolt, act, clock, topology_acker_executors=ackers)
        assert executes(instance, "a", "b") == [
            ("emit", EmitInfo(["aa"], "default", 1, (3,))),
            ("bolt_ack", ["a"], 1, 250.0),
            ("bolt_execute", ["a"], 1, 500.0),
            ("emit", EmitInfo(["bb"], "default", 1, (3,))),
            ("bolt_fail", ["b"], 1, 250.0),
            ("bolt_execute", ["b"], 1, 500.0),
        ]

    def test_a_basic_bolt(self, ackers: int | None) -> None:
        def act(component: Any, tup: Tuple) -> None:
            clock.now += 0.5
            if tup[0] == "b":
                raise FailedException("no b")
            component.collector.emit([tup[0] * 2])

        clock = FakeClock()
        instance = a_bolt(HookedBasicBolt, act, clock, topology_acker_executors=ackers)
        assert executes(instance, "a", "b") == [
            ("emit", EmitInfo(["aa"], "default", 1, (3,))),
            ("bolt_ack", ["a"], 1, 500.0),
            ("bolt_execute", ["a"], 1, 500.0),
            ("bolt_fail", ["b"], 1, 500.0),
            ("bolt_execute", ["b"], 1, 500.0),
        ]

    def test_ticks_are_executed_and_acked_too(self, ackers: int | None) -> None:
        instance = a_bolt(
            HookedBasicBolt,
            nothing,
            topology_acker_executors=ackers,
            topology_tick_tuple_freq_secs=5,
        )
        instance.core.tick(5.0)
        assert instance.done()[1:] == [("bolt_ack", [5], 1, 0.0), ("bolt_execute", [5], 1, 0.0)]


@pytest.mark.parametrize("kind", [ScriptedBolt, ScriptedBasicBolt])
def test_trees_grow_and_shrink_as_without_hooks(kind: type[Any]) -> None:
    """The same acks, fails and anchored rows, with the same edges: hooks only listen."""

    def act(component: Any, tup: Tuple) -> None:
        rich = kind is ScriptedBolt
        component.collector.emit(["x"], *([tup] if rich else []))
        if rich:
            (component.collector.ack if tup[0] == "a" else component.collector.fail)(tup)
        elif tup[0] != "a":
            raise FailedException

    def records(hooked: bool) -> tuple[object, ...]:
        instance = a_bolt(kind, act)
        if hooked:
            adding(instance.only)
        [task] = instance.core.tasks
        assert isinstance(task, BoltTask)
        assert task.acks is not None
        several = ((5, 6), (7, 8))
        words = iter([["a"], ["b"], ["a"], ["a"]])
        task.run(words, CONTEXT, [3, 4, several, 0], [30, 40, 0, 0])
        [batch] = task.output.batcher.open()
        return dict(task.acks.acks), list(task.acks.fails), batch.take_tracking(), batch.take()

    assert records(hooked=True) == records(hooked=False)


class TestSpouts:
    def a_spout(self, act: Act, clock: FakeClock, **conf: Any) -> Instance:
        """lines, task 2; its output goes to count, task 1."""
        plan = plan_of(spout("lines", "word"), bolt("count", "lines"), **conf)
        return Instance(plan, 2, lambda log: ScriptedSpout(log, act, adding), clock).open()

    def emit_two(self, component: Any) -> None:
        if component.count == 1:
            component.collector.emit(["a"], msg_id=7)
            component.collector.emit(["b"], msg_id=8)

    def test_answers_come_with_the_time_since_the_emit(self) -> None:
        clock = FakeClock()
        instance = self.a_spout(self.emit_two, clock)
        instance.spins()
        assert instance.done() == [
            ("emit", EmitInfo(["a"], "default", 2, (1,))),
            ("emit", EmitInfo(["b"], "default", 2, (1,))),
        ]
        clock.now = 1.5
        [task] = instance.core.tasks
        first, second = task.pending.newer
        results = encode_acks(1, 1, 2, 7, AckResults(complete=[first], failed=[second]))
        instance.core.on_data(message_header(11, 1) + results)
        assert instance.done() == [
            ("ack", 7),
            ("spout_ack", SpoutAckInfo(7, 2, 1500.0)),
            ("fail", 8),
            ("spout_fail", SpoutFailInfo(8, 2, 1500.0)),
        ]

    def test_without_acking_answers_come_at_once(self) -> None:
        clock = FakeClock()
        instance = self.a_spout(self.emit_two, clock, topology_acker_executors=0)
        instance.spins()
        assert instance.done()[2:] == [
            ("ack", 7),
            ("spout_ack", SpoutAckInfo(7, 2, 0.0)),
            ("ack", 8),
            ("spout_ack", SpoutAckInfo(8, 2, 0.0)),
        ]

    def test_what_was_emitted_before_the_hook_has_no_latency(self) -> None:
        def act(component: Any) -> None:
            if component.count == 1:
                component.collector.emit(["a"], 7)
                component.context.add_task_hook(Telling(component.recorder))

        plan = plan_of(spout("lines", "word"), bolt("count", "lines"), topology_acker_executors=0)
        instance = Instance(plan, 2, lambda log: ScriptedSpout(log, act)).open()
        instance.spins()
        assert instance.done()[-1] == ("spout_ack", SpoutAckInfo(7, 2, None))


@pytest.mark.parametrize("kind", [HookedBolt, HookedBasicBolt])
def test_emit_direct_is_told_with_its_task(kind: type[Any]) -> None:
    plan = plan_of(
        spout("lines", "word"),
        bolt("count", "lines", "picked!: word"),
        bolt("total", {"count:picked": DIRECT}),
    )

    def act(component: Any, tup: Tuple) -> None:
        component.collector.emit_direct(3, ["x"], stream="picked")

    instance = Instance(plan, 1, lambda recorder: kind(recorder, act)).open()
    assert executes(instance, "a")[0] == ("emit", EmitInfo(["x"], "picked", 1, (3,)))


class TestLife:
    def test_prepared_first_cleaned_up_last_in_the_order_they_were_added(self) -> None:
        class Two(ScriptedBolt):
            def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
                super().prepare(conf, context, collector)
                adding(self)
                adding(self)

        plan = plan_of(spout("lines", "word"), bolt("count", "lines"))
        instance = Instance(plan, 1, Two)
        instance.core.open()
        assert instance.done() == [("prepare", 1, 1)] * 2
        instance.core.close()
        assert instance.done() == [(1, "cleanup"), ("cleanup",), ("cleanup",)]

    def test_hooks_of_the_configuration_are_there_before_the_task(self) -> None:
        plan = plan_of(
            spout("lines", "word"),
            bolt("count", "lines"),
            topology_auto_task_hooks=[f"{__name__}:Automatic"],
        )
        Automatic.made.clear()
        instance = Instance(plan, 1, ScriptedBolt).open()
        executes(instance, "a")
        assert Automatic.made == ["prepare count", "execute a"]

    def test_only_a_hook(self) -> None:
        instance = a_bolt(ScriptedBolt, nothing)
        with pytest.raises(TypeError, match=r"add_task_hook got a str; expected a BaseTaskHook"):
            instance.only.context.add_task_hook("Telling")


class Automatic(BaseTaskHook):
    made: list[str] = []  # noqa: RUF012 - shared with the test that reads it

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        self.made.append(f"prepare {context.this_component_id}")

    def bolt_execute(self, info: Any) -> None:
        self.made.append(f"execute {info.tuple[0]}")


class TestHooksThatRaise:
    @pytest.mark.parametrize("method", ["emit", "bolt_ack", "bolt_execute"])
    @pytest.mark.parametrize("kind", [ScriptedBolt, ScriptedBasicBolt])
    def test_a_users_error_that_names_the_hook(self, kind: type[Any], method: str) -> None:
        def act(component: Any, tup: Tuple) -> None:
            component.collector.emit(["x"])
            if kind is ScriptedBolt:
                component.collector.ack(tup)

        instance = a_bolt(kind, act)
        instance.only.context.add_task_hook(Telling(instance.recorder, raise_in=method))
        expected = rf"count \(task 1\), hook Telling\.{method}: ValueError: hook on purpose"
        with pytest.raises(UserError, match=expected) as raised:
            executes(instance, "a")
        assert "hook on purpose" in raised.value.report(fatal=True).traceback

    def test_prepare(self) -> None:
        instance = a_bolt(ScriptedBolt, nothing)
        with pytest.raises(UserError, match=r"hook Telling\.prepare: ValueError"):
            instance.only.context.add_task_hook(Telling(instance.recorder, raise_in="prepare"))

    def test_cleanup_is_reported(self) -> None:
        instance = a_bolt(ScriptedBolt, nothing)
        instance.only.context.add_task_hook(Telling(instance.recorder, raise_in="cleanup"))
        instance.core.close()
        [report] = instance.port.reports
        assert (report.where, report.fatal) == ("hook Telling.cleanup", False)

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("nowhere:Hook", "the module nowhere cannot be imported (ModuleNotFoundError"),
            (f"{__name__}:Teling", "has no Teling; did you mean 'Telling'?"),
            (f"{__name__}:adding", "a function; expected a BaseTaskHook"),
            ("Telling", "is no import path; expected package.module:Name"),
        ],
    )
    def test_a_hook_of_the_configuration_that_is_none(self, path: str, message: str) -> None:
        plan = plan_of(
            spout("lines", "word"), bolt("count", "lines"), topology_auto_task_hooks=[path]
        )
        with pytest.raises(UserError) as raised:
            Instance(plan, 1, ScriptedBolt).core.open()
        assert f"topology.auto.task.hooks names {path!r}" in str(raised.value)
        assert message in str(raised.value)


def test_without_hooks_the_collector_is_the_plain_one() -> None:
    """What is off costs nothing: the generated function itself is what user code calls."""
    plan = plan_of(spout("lines", "word"), bolt("count", "lines", "word"), bolt("total", "count"))
    instance = Instance(plan, 1, ScriptedBolt).open()
    [task] = instance.core.tasks
    collector = instance.only.collector
    assert collector.emit is task.output.emit
    assert collector.ack == task.acks.ack  # type: ignore[union-attr]
    adding(instance.only)
    assert collector.emit is not task.output.emit
