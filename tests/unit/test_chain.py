"""InstanceCore of fused components: rows are handed over, and every promise stays."""

from __future__ import annotations

from typing import Any

import pytest

from storm_py import EmitError, Tuple
from storm_py.core.plan import PhysicalPlan
from storm_py.engine.tasks import UserError
from storm_py.wire.control import Credit, Pressure
from tests.builders import (
    LOCAL,
    Data,
    FakeClock,
    bolt,
    frame_size,
    plan_of,
    rows,
    spout,
)
from tests.counter import said
from tests.instance import Act, Instance, ScriptedBolt, ScriptedSpout, nothing

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
