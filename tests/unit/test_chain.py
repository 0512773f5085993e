"""InstanceCore of fused components: rows are handed over, and every promise stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from storm_py import BaseTaskHook, BoltExecuteInfo, EmitError, EmitInfo, Tuple
from storm_py.core.plan import PhysicalPlan
from storm_py.engine.tasks import UserError
from storm_py.wire import frames
from storm_py.wire.acks import AckRecords, decode_acks
from storm_py.wire.control import Credit, Pressure, Welcome
from tests.builders import (
    LOCAL,
    SHUFFLE,
    Data,
    End,
    FakeClock,
    bolt,
    frame_size,
    hello,
    plan_of,
    rows,
    spout,
)
from tests.counter import said
from tests.instance import Act, Instance, ScriptedBasicBolt, ScriptedBolt, ScriptedSpout, nothing

#: x is task 1, y 2 and z 3, all in i1; seen is task 4 (i4)
SPOUTED = plan_of(
    spout("x", "n"), bolt("y", {"x": LOCAL}, "n"), bolt("z", {"y": LOCAL}, "n"), bolt("~", "z"),
    fuse=True,
)  # fmt: skip
#: x is task 2, y 3 and z 4, all in i2, behind a spout that is task 1; seen is task 5 (i5)
BOLTS = plan_of(
    spout("a", "n"),
    bolt("x", "a", "n"), bolt("y", {"x": LOCAL}, "n"), bolt("z", {"y": LOCAL}, "n"), bolt("~", "z"),
    fuse=True,
)  # fmt: skip


def go_on(bolt: Any, tup: Tuple) -> None:
    bolt.collector.emit(tup.values, tup)


def twice(bolt: Any, tup: Tuple) -> None:
    for _ in range(2):
        go_on(bolt, tup)


def counts(spout: Any) -> None:
    spout.collector.emit([spout.count])


def once(values: list[Any], msg_id: object = None) -> Act:
    """Emit this in the first call of next_tuple, and then nothing."""
    return lambda spout: spout.collector.emit(values, msg_id) if spout.count == 1 else None


def spouted(
    act: Act, *bolts: Act, plan: PhysicalPlan = SPOUTED, clock: FakeClock | None = None
) -> Instance:
    """x, a spout that does `act`, and behind it y, z, ..., bolts that do `bolts`, then nothing."""
    made: dict[str, Any] = {"x": lambda log: ScriptedSpout(log, act)}
    for name, does in zip("yz", [*bolts, nothing, nothing], strict=False):
        made[name] = lambda log, does=does: ScriptedBolt(log, does)
    return Instance(plan, 1, made, clock).open()


def bolts(*acts: Act, clock: FakeClock | None = None, plan: PhysicalPlan = BOLTS) -> Instance:
    """x, y and z, bolts that do these, then nothing."""
    made = {
        name: lambda log, does=does: ScriptedBolt(log, does)
        for name, does in zip("xyz", [*acts, nothing, nothing, nothing], strict=False)
    }
    return Instance(plan, 2, made, clock).open()


def executed(instance: Instance) -> list[tuple[object, object]]:
    """Task and first value of each tuple that was executed since the last call."""
    return [(what[0], what[3]) for what in instance.done() if len(what) == 4]


class TestHandingOver:
    def test_rows_are_executed_here_and_not_sent(self) -> None:
        instance = spouted(once(["a"]), go_on)
        assert instance.spins() == []
        assert instance.spins() == []
        assert instance.done() == [(2, 1, "default", "a"), (3, 2, "default", "a")]

    def test_the_end_of_the_chain_sends(self) -> None:
        instance = bolts(go_on, go_on, go_on)
        instance.gets(11, 1, rows(1, 2, ["a"], ["b"]))
        instance.works()
        sent, *_ = instance.flushes()
        assert sent == Data(501, 1, [rows(4, 5, ["a"], ["b"])])

    def test_emit_names_the_task_here(self) -> None:
        found: list[object] = []
        instance = spouted(lambda spout: found.append(spout.collector.emit([1])))
        instance.spins()
        assert found == [(2,)]

    def test_a_list_that_is_used_again_changes_nothing(self) -> None:
        values = [0]

        def act(spout: Any) -> None:
            values[0] = spout.count
            spout.collector.emit(values)

        instance = spouted(act)
        for _ in range(3):
            instance.spins()
        assert [value for _, value in executed(instance)] == [1, 2, 3]

    def test_what_the_values_hold_is_shared(self) -> None:
        thing, got = object(), list[object]()
        instance = spouted(once([thing]), lambda bolt, tup: got.append(tup[0]))
        instance.spins()
        instance.spins()
        assert got == [thing]

    def test_a_tuple_of_values_will_do(self) -> None:
        instance = spouted(lambda spout: spout.collector.emit((spout.count,)))
        instance.spins()
        instance.spins()
        assert executed(instance) == [(2, 1)]

    def test_each_of_two_bolts_gets_a_list_of_its_own(self) -> None:
        plan = plan_of(spout("x", "n"), bolt("y", {"x": LOCAL}), bolt("z", {"x": LOCAL}), fuse=True)
        instance = spouted(once([1]), lambda _, tup: tup.values.append("mine"), plan=plan)
        instance.spins()
        instance.spins()
        assert sorted(executed(instance)) == [(2, 1), (3, 1)]

    def test_a_bolt_elsewhere_gets_the_row_as_well(self) -> None:
        plan = plan_of(spout("x", "n"), bolt("y", {"x": LOCAL}), bolt("z", "x"), fuse=True)
        instance = spouted(once(["a"]), plan=plan)
        instance.spins()
        sent = instance.spins()
        assert sent == [Data(501, 1, [rows(1, 3, ["a"])])]
        assert executed(instance) == [(2, "a")]

    def test_a_row_too_large_to_be_sent_is_handed_to_nobody(self) -> None:
        plan = plan_of(
            spout("x", "n"), bolt("y", {"x": LOCAL}), bolt("z", "x"), fuse=True,
            frame_max_bytes=65536,
        )  # fmt: skip
        refused: list[str] = []

        def act(spout: Any) -> None:
            if spout.count == 1:
                try:
                    spout.collector.emit(["x" * 70_000], "id")
                except EmitError as error:
                    refused.append(str(error))

        instance = spouted(act, plan=plan)
        instance.spins()
        instance.spins()
        assert len(refused) == 1
        assert instance.done() == []
        assert instance.core.statistics().queued == 0

    def test_streams_keep_their_names_and_order(self) -> None:
        plan = plan_of(
            spout("x", "n; side: m"), bolt("y", {"x": LOCAL, "x:side": LOCAL}), fuse=True
        )

        def act(spout: Any) -> None:
            if spout.count == 1:
                for i in range(5):
                    spout.collector.emit([i], None, "side" if i in (1, 2) else "default")

        instance = spouted(act, plan=plan)
        instance.spins()
        instance.spins()
        streams = [(2, 1, "side" if i in (1, 2) else "default", i) for i in range(5)]
        assert instance.done() == streams

    def test_rows_go_to_the_tasks_of_the_executor_in_turn(self) -> None:
        plan = plan_of(
            spout("x", "n", tasks=2, executors=1),
            bolt("y", {"x": LOCAL}, tasks=2, executors=1),
            fuse=True,
        )
        found: dict[int, list[tuple[int, ...]]] = {1: [], 2: []}

        def act(spout: Any) -> None:
            found[spout.context.this_task_id].append(spout.collector.emit([spout.count]))

        instance = spouted(act, plan=plan)
        for _ in range(2):
            instance.spins()
        assert found == {1: [(4,), (3,), (4,)], 2: [(3,), (4,), (3,)]}

    def test_a_spout_gets_its_turn_though_the_other_always_leaves_work(self) -> None:
        """A turn ends when a flush is due, here in the middle of what the first has emitted."""
        clock = FakeClock()
        plan = plan_of(
            spout("x", "n", tasks=2, executors=1),
            bolt("y", {"x": LOCAL}, tasks=2, executors=1),
            fuse=True,
        )

        def act(spout: Any) -> None:
            for _ in range(10):
                spout.collector.emit([spout.context.this_task_id])

        def slow(bolt: Any, tup: Tuple) -> None:
            clock.now += 0.001

        instance = spouted(act, slow, plan=plan, clock=clock)
        for _ in range(40):
            instance.spins()
        emitted_by = [value for _, value in executed(instance)]
        assert abs(emitted_by.count(1) - emitted_by.count(2)) <= 20
        assert emitted_by.count(2) >= 20

    def test_what_waits_is_bounded_however_much_each_row_becomes(self) -> None:
        """The end of the chain goes first: nothing runs while rows wait behind it."""

        def many(bolt: Any, tup: Tuple) -> None:
            for _ in range(100):
                go_on(bolt, tup)

        most = 0

        def look(bolt: Any, tup: Tuple) -> None:
            nonlocal most
            most = max(most, instance.core.statistics().queued)

        instance = bolts(many, many, look)
        instance.gets(11, 1, rows(1, 2, *([i] for i in range(20))))
        while instance.core.has_work:
            instance.works()
        assert len(executed(instance)) == 20 + 20 * 100 + 20 * 100 * 100
        assert most <= 20 + 2 * (1024 + 100)  # a frame of each, and what the last row became

    def test_a_slow_bolt_slows_its_source(self) -> None:
        clock = FakeClock()

        def slow(bolt: Any, tup: Tuple) -> None:
            clock.now += 0.01

        instance = spouted(counts, slow, clock=clock)
        for _ in range(20):
            instance.spins()
            assert instance.core.statistics("y").queued <= 1


class TestSerializing:
    def plan(self, **conf: Any) -> PhysicalPlan:
        return plan_of(spout("x", "n"), bolt("y", {"x": LOCAL}), fuse=True, **conf)

    def test_every_tuple_is_packed_if_that_is_asked_for(self) -> None:
        values, got = [{"a": [1]}], list[Any]()
        plan = self.plan(topology_testing_always_try_serialize=True)
        instance = spouted(once(values), lambda bolt, tup: got.append(tup.values), plan=plan)
        instance.spins()
        instance.spins()
        assert got == [values]
        assert got[0][0] is not values[0]

    @pytest.mark.parametrize("serialize", [False, True])
    def test_values_that_cannot_travel(self, serialize: bool) -> None:
        instance = spouted(
            once([object()]), plan=self.plan(topology_testing_always_try_serialize=serialize)
        )
        if serialize:
            with pytest.raises(UserError, match=r"x \(task 1\), next_tuple.*field 'n': value\[0\]"):
                instance.spins()
        else:
            instance.spins()
            instance.spins()
            assert len(instance.done()) == 1


class TestCredits:
    def test_input_is_credited_when_the_whole_chain_is_through(self) -> None:
        clock = FakeClock()

        def slow(bolt: Any, tup: Tuple) -> None:
            go_on(bolt, tup)
            clock.now += 0.002

        instance = bolts(twice, slow, clock=clock)
        frame = rows(1, 2, ["a"])
        instance.gets(11, 1, frame)
        assert instance.works() == []  # a flush was due behind the first row of y
        assert executed(instance) == [(2, "a"), (3, "a")]
        assert instance.flushes() == []
        assert instance.works() == []
        assert executed(instance) == [(4, "a"), (3, "a")]
        assert instance.works() == [said(501, Credit(2, 1, frame_size(frame), busy_us=4000))]
        assert executed(instance) == [(4, "a")]

    def test_they_come_though_each_flush_finds_something_in_the_chain(self) -> None:
        """Rows of x take so long that a flush is due behind each, when y has just got something."""
        clock = FakeClock()

        def slow(bolt: Any, tup: Tuple) -> None:
            go_on(bolt, tup)
            clock.now += 0.01

        instance = bolts(slow, clock=clock)
        credited: list[Any] = []
        for seq in range(1, 11):
            instance.gets(11, seq, rows(1, 2, [seq]))
        while instance.core.has_work:
            credited += instance.works()
        assert len(credited) >= 8

    def test_a_failing_end_keeps_the_input_uncredited(self) -> None:
        def fail(bolt: Any, tup: Tuple) -> None:
            raise KeyError("as told")

        instance = bolts(go_on, fail)
        instance.gets(11, 1, rows(1, 2, ["a"]))
        with pytest.raises(UserError, match=r"y \(task 3\), execute: KeyError: 'as told'"):
            instance.works()
        assert instance.flushes() == []  # its stream manager fails what is not credited

    def test_rows_count_once(self) -> None:
        instance = bolts(twice, twice)
        instance.gets(11, 1, rows(1, 2, ["a"], ["b"]))
        instance.works()
        (credit,) = instance.flushes()
        assert credit == said(501, Credit(2, 2, frame_size(rows(1, 2, ["a"], ["b"]))))


class TestPressure:
    def test_it_stops_the_whole_chain_where_it_is(self) -> None:
        instance = bolts(twice, lambda bolt, tup: pressed(), go_on)

        def pressed() -> None:
            instance.hears(11, Pressure(5, True, 1))

        instance.gets(11, 1, rows(1, 2, ["a"]))
        instance.works()
        assert executed(instance) == [(2, "a"), (3, "a")]
        assert (instance.core.paused, instance.core.has_work) == (True, True)
        assert instance.works() == []
        assert executed(instance) == []
        instance.hears(11, Pressure(5, False, 1))
        instance.works()
        assert executed(instance) == [(3, "a")]

    def test_a_spout_waits_for_what_its_chain_sends_to(self) -> None:
        instance = spouted(counts, go_on, go_on)
        instance.hears(11, Pressure(4, True, 256))
        instance.spins()
        assert not instance.core.spouting
        assert instance.core.statistics().emitted == 0

    def test_nobody_waits_for_a_task_of_the_own_chain(self) -> None:
        instance = spouted(counts, go_on)
        instance.hears(11, Pressure(2, True, 1))
        assert not instance.core.paused


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
