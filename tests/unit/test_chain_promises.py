"""InstanceCore of fused components: the end of the input, trees, and what is around a chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_py import BaseTaskHook, BoltExecuteInfo, EmitInfo, Tuple
from storm_py.wire import frames
from storm_py.wire.acks import AckRecords, decode_acks
from storm_py.wire.control import Pressure, Welcome
from tests.builders import (
    LOCAL,
    SHUFFLE,
    Data,
    End,
    bolt,
    hello,
    plan_of,
    rows,
    spout,
)
from tests.instance import Instance, ScriptedBasicBolt, ScriptedBolt, ScriptedSpout
from tests.unit.test_chain import (
    bolts,
    executed,
    go_on,
    once,
    spouted,
    twice,
)


class TestEnd:
    def test_each_component_ends_behind_its_rows(self) -> None:
        def act(spout: Any) -> None:
            if spout.count == 1:
                spout.collector.emit(["a"])
            else:
                spout.collector.end_of_input()

        plan = plan_of(
            spout("x", "n"), bolt("y", {"x": LOCAL}, "n"), bolt("z", {"y": LOCAL}, "n"), fuse=True
        )
        instance = Instance(
            plan,
            1,
            {
                "x": lambda log: ScriptedSpout(log, act),
                "y": lambda log: ScriptedBolt(log, go_on, lambda b: b.collector.emit(["last"])),
                "z": ScriptedBolt,
            },
        ).open()
        for _ in range(4):
            instance.spins()
        assert instance.done() == [
            *((2, 1, "default", "a"), (3, 2, "default", "a")),
            *((2, "end of input"), (3, 2, "default", "last"), (3, "end of input")),
        ]
        assert instance.port.ended_executors == [(1, 1, False), (2, 1, False), (3, 1, False)]

    def test_the_fused_tasks_of_other_instances_are_told_by_markers(self) -> None:
        plan = plan_of(spout("x", "n", tasks=2), bolt("y", {"x": LOCAL}, tasks=2), fuse=True)
        instance = spouted(lambda spout: spout.collector.end_of_input(), plan=plan)
        assert instance.spins() == [Data(501, 1, [End(1, 4, 1)])]
        instance.spins()
        assert instance.port.ended_executors == [(1, 1, False)]
        instance.gets(11, 1, End(2, 3, wave=1))
        instance.spins()
        assert instance.done() == [(3, "end of input")]
        assert instance.port.ended_executors == [(1, 1, False), (3, 1, False)]

    def test_a_later_wave_is_forwarded_by_all(self) -> None:
        plan = plan_of(spout("x", "n"), bolt("y", {"x": LOCAL}, "n"), bolt("z", "y"), fuse=True)
        instance = spouted(lambda spout: spout.collector.end_of_input(), plan=plan)
        instance.spins()
        assert instance.spins() == [Data(501, 1, [End(2, 3, 1)])]
        instance.on_wave(4)
        assert instance.spins() == [Data(501, 2, [End(2, 3, 4)])]
        assert instance.done() == [(2, "end of input")]
        assert instance.port.ended_executors[2:] == [(1, 4, False), (2, 4, False)]

    def test_what_was_handed_over_is_executed_while_spouts_pause(self) -> None:
        instance = spouted(once(["a"]), go_on)
        instance.spins()
        instance.core.deactivate()
        instance.spins()
        assert executed(instance) == [(2, "a"), (3, "a")]


class TestTracking:
    """Inits, acks and fails that trackers are told of; a settled tree has the value 0."""

    def told(self, instance: Instance) -> tuple[list[int], int, int]:
        instance.core.spin()
        instance.core.spin()
        (records,) = (
            decode_acks(message, frame)
            for data, message in instance.port.sent
            if data
            for frame in frames.frames(message)
            if frame.kind == frames.FrameKind.ACK
        )
        assert isinstance(records, AckRecords)
        return list(records.init_values), len(records.ack_roots), len(records.fail_roots)

    def test_a_tree_that_ends_where_it_began_is_one_record(self) -> None:
        instance = spouted(once(["a"], "id"), lambda bolt, tup: bolt.collector.ack(tup))
        assert self.told(instance) == ([0], 0, 0)

    def test_a_tree_that_goes_on_elsewhere_stays_open(self) -> None:
        def act(bolt: Any, tup: Tuple) -> None:
            go_on(bolt, tup)
            bolt.collector.ack(tup)

        plan = plan_of(spout("x", "n"), bolt("y", {"x": LOCAL}, "n"), bolt("z", "y"), fuse=True)
        (value,), acks, fails = self.told(spouted(once(["a"], "id"), act, plan=plan))
        assert value != 0
        assert (acks, fails) == (0, 0)

    def test_a_tree_of_which_a_tuple_is_held_stays_open(self) -> None:
        def act(bolt: Any, tup: Tuple) -> None:
            go_on(bolt, tup)
            bolt.collector.ack(tup)

        (value,), acks, fails = self.told(spouted(once(["a"], "id"), act))
        assert value != 0
        assert (acks, fails) == (0, 0)

    def test_a_failure_is_told(self) -> None:
        instance = spouted(once(["a"], "id"), lambda bolt, tup: bolt.collector.fail(tup))
        (value,), acks, fails = self.told(instance)
        assert value != 0
        assert (acks, fails) == (0, 1)

    def test_each_basic_bolt_anchors_to_its_own_tuple(self) -> None:
        made: Mapping[str, Any] = {
            "x": lambda log: ScriptedSpout(log, once(["a"], "id")),
            "y": lambda log: ScriptedBasicBolt(log, lambda bolt, _: bolt.collector.emit(["b"])),
            "z": ScriptedBasicBolt,
        }
        plan = plan_of(
            spout("x", "n"), bolt("y", {"x": LOCAL}, "n"), bolt("z", {"y": LOCAL}), fuse=True
        )
        assert self.told(Instance(plan, 1, made).open()) == ([0], 0, 0)

    def test_several_roots_travel_along(self) -> None:
        """y joins two trees into one tuple, which z answers."""
        kept: list[Tuple] = []

        def act(spout: Any) -> None:
            if spout.count <= 2:
                spout.collector.emit([spout.count], spout.count)

        def join(bolt: Any, tup: Tuple) -> None:
            kept.append(tup)
            if len(kept) == 2:
                bolt.collector.emit(["both"], kept)
                for each in kept:
                    bolt.collector.ack(each)

        instance = spouted(act, join, lambda bolt, tup: bolt.collector.ack(tup))
        instance.core.spin()
        assert self.told(instance) == ([0, 0], 0, 0)


class TestSurroundings:
    def test_the_stream_managers_death_takes_nothing_that_was_handed_over(self) -> None:
        instance = bolts(twice, lambda bolt, tup: instance.hears(11, Pressure(5, True, 1)))
        instance.gets(11, 1, rows(1, 2, ["a"], ["b"]))
        instance.works()
        instance.disconnect()
        instance.connect()
        instance.hears(12, hello("s0", 2))
        instance.hears(12, Welcome(502))
        instance.may_send()
        instance.done()
        while instance.core.has_work and not instance.core.paused:
            instance.works()
        assert (3, "a") in executed(instance)

    def test_ticks_and_calls_of_other_threads_emit_into_the_chain(self) -> None:
        instance = bolts(go_on)
        first = instance.components[2]
        assert isinstance(first, ScriptedBolt)
        first.context.call_soon(first.collector.emit, ["called"])
        instance.ticks(1.0)
        assert instance.core.has_work
        instance.works()
        assert executed(instance) == [(3, "called")]

    def test_the_watch_hears_of_every_task(self) -> None:
        instance = spouted(once(["a"]), go_on)
        instance.spins()
        instance.watch.seen.clear()
        instance.spins()
        assert instance.watch.seen == [
            ("execute", 2, 1, "default", 0, 0),
            ("execute", 3, 2, "default", 0, 0),
            ("next_tuple", 1),
        ]

    def test_each_component_is_counted_for_itself(self) -> None:
        instance = bolts(twice, twice, go_on)
        instance.gets(11, 1, rows(1, 2, ["a"]))
        instance.works()
        instance.flushes()
        found = [instance.core.statistics(name) for name in "xyz"]
        assert [(one.executed, one.emitted, one.transferred) for one in found] == [
            *((1, 2, 2), (2, 4, 4), (4, 4, 4)),
        ]
        whole = instance.core.statistics()
        assert (whole.executed, whole.emitted, whole.transferred, whole.queued) == (7, 10, 10, 0)

    def test_what_waits_is_counted_where_it_waits(self) -> None:
        instance = bolts(twice, lambda bolt, tup: instance.hears(11, Pressure(5, True, 1)))
        instance.gets(11, 1, rows(1, 2, ["a"]), rows(1, 2, ["b"]))
        instance.works()
        assert [instance.core.statistics(name).queued for name in "xyz"] == [1, 1, 0]
        assert instance.core.statistics().queued == 2

    def test_hooks_hear_of_every_component(self) -> None:
        heard: list[tuple[object, ...]] = []

        class Listen(BaseTaskHook):
            def emit(self, info: EmitInfo) -> None:
                heard.append(("emit", info.task_id, info.values, list(info.out_tasks)))

            def bolt_execute(self, info: BoltExecuteInfo) -> None:
                heard.append(("execute", info.executing_task_id, info.tuple.values))

        instance = bolts(go_on)
        for task in (2, 3):
            component = instance.components[task]
            assert isinstance(component, ScriptedBolt)
            component.context.add_task_hook(Listen())
        instance.gets(11, 1, rows(1, 2, ["a"]))
        instance.works()
        assert heard == [
            *(("emit", 2, ["a"], [3]), ("execute", 2, ["a"]), ("execute", 3, ["a"])),
        ]

    def test_debug_logs_every_emit(self) -> None:
        plan = plan_of(spout("x", "n"), bolt("y", {"x": LOCAL}), fuse=True, topology_debug=True)
        instance = spouted(once(["a"]), plan=plan)
        instance.spins()
        (line,) = instance.port.logged
        assert "'a'" in line

    def test_what_goes_back_to_the_head_takes_the_way_round(self) -> None:
        plan = plan_of(
            spout("a", "n"),
            bolt("x", {"a": SHUFFLE, "y": LOCAL}, "n", tasks=2),
            bolt("y", {"x": LOCAL}, "n", tasks=2),
            fuse=True,
        )
        instance = bolts(go_on, go_on, plan=plan)
        instance.gets(11, 1, rows(1, 2, ["a"], ["b"]))
        instance.works()
        sent = [each for each in instance.flushes() if isinstance(each, Data)]
        assert sent == [Data(501, 1, [rows(4, 2, ["a"]), rows(4, 3, ["b"])])]
