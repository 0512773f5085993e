"""Batch bolts as they run: frames in, ticks, errors, hooks, and the tools for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from storm_py import (
    BaseRichSpout,
    BaseTaskHook,
    Batch,
    BatchBolt,
    Config,
    FailedException,
    InvalidTopologyException,
    ReportedFailedException,
    TopologyBuilder,
)
from storm_py.testing import CapturingBolt, FixedTupleSpout, TopologyDriver, complete_topology
from tests.builders import bolt, plan_of, spout
from tests.builders import rows as frame_of
from tests.instance import Instance

Act = Callable[..., object]


class Scripted(BatchBolt):
    """Calls `act(self, rows, batch)`, and records what it was given."""

    def __init__(self, act: Act = lambda *_: None, **settings: Any) -> None:
        self.act = act
        self.seen: list[list[list[Any]]] = []
        for name, value in settings.items():
            setattr(self, name, value)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("word", "count")
        declarer.declare_stream("picked", ["word"], direct=True)

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.context, self.collector = context, collector

    def execute_batch(self, rows: Any, batch: Batch) -> None:
        self.seen.append(list(rows))
        self.act(self, rows, batch)


def an_instance(act: Act = lambda *_: None, **settings: Any) -> tuple[Instance, Scripted]:
    """Task 1 of a batch bolt, which hears of task 2."""
    plan = plan_of(spout("words", "word"), bolt("batched", "words", "word count"))
    component = Scripted(act, **settings)
    return Instance(plan, 1, lambda recorder: component).open(), component


def driven(act: Act, **settings: Any) -> TopologyDriver:
    return TopologyDriver.for_bolt(Scripted(act, **settings), fields="word")


class TestFrames:
    def test_all_rows_of_a_frame_come_in_one_call(self) -> None:
        instance, component = an_instance()
        instance.gets(11, 1, frame_of(2, 1, ["a"], ["b"]), frame_of(2, 1, ["c"]))
        instance.works()
        assert component.seen == [[["a"], ["b"]], [["c"]]]
        assert instance.core.statistics().executed == 3

    def test_however_long_the_last_one_took(self) -> None:
        def slow(bolt: Scripted, rows: object, batch: Batch) -> None:
            instance.clock.now += 5

        instance, component = an_instance(slow)
        for seq in (1, 2):
            instance.gets(11, seq, frame_of(2, 1, *([n] for n in range(50))))
            instance.works()
        assert [len(rows) for rows in component.seen] == [50, 50]

    def test_the_batch_says_where_its_rows_come_from(self) -> None:
        found: list[object] = []

        def look(bolt: Scripted, rows: object, batch: Batch) -> None:
            found.extend([batch.source_component, batch.source_stream_id, batch.source_task])
            found.extend([batch.source_global_stream_id.component_id, list(batch.fields)])
            found.extend([len(batch), batch.is_tick, repr(batch)])

        instance, _ = an_instance(look)
        instance.gets(11, 1, frame_of(2, 1, ["a"], ["b"]))
        instance.works()
        assert found == [
            "words", "default", 2, "words", ["word"], 2, False,
            "Batch(source=words:default[2], rows=2)",
        ]  # fmt: skip

    def test_the_bolt_may_change_its_list(self) -> None:
        kept: list[Batch] = []

        def change(bolt: Scripted, rows: list[object], batch: Batch) -> None:
            kept.append(batch)
            rows.clear()

        instance, _ = an_instance(change)
        instance.gets(11, 1, frame_of(2, 1, ["a"], ["b"]))
        instance.works()
        assert not instance.core.has_work
        assert (len(kept[0]), kept[0].rows) == (2, [["a"], ["b"]])

    def test_what_it_is_busy_with(self) -> None:
        instance, _ = an_instance()
        instance.gets(11, 1, frame_of(2, 1, ["a"], ["b"]))
        instance.works()
        assert ("execute_batch", 1, 2, "default", 0, 1) in instance.watch.seen

    def test_pressure_is_heeded_between_batches(self) -> None:
        def emit(bolt: Scripted, rows: list[list[str]], batch: Batch) -> None:
            bolt.collector.emit_batch([[word, n] for n in range(400) for (word,) in rows])

        plan = plan_of(
            spout("words", "word"), bolt("batched", "words", "word count"), bolt("end", "batched")
        )
        component = Scripted(emit)
        instance = Instance(plan, 1, lambda recorder: component)
        instance.open()
        instance.core._out.unheard()  # a session begins with a small grant
        instance.gets(11, 1, frame_of(3, 1, ["a"]), frame_of(3, 1, ["b"]))
        instance.works()
        assert component.seen == [[["a"]]]
        assert instance.core.paused


class TestErrors:
    def test_an_exception_names_the_batch(self) -> None:
        def fail(bolt: Scripted, rows: object, batch: Batch) -> None:
            raise ValueError("odd")

        instance, _ = an_instance(fail)
        instance.gets(11, 1, frame_of(2, 1, ["a"], ["b"], ["c"]))
        with pytest.raises(Exception, match="odd") as caught:
            instance.works()
        assert str(caught.value) == (
            "batched (task 1), execute_batch, rows 0..2 of a frame from words (task 2): "
            "ValueError: odd"
        )

    def test_a_failure_with_a_report(self) -> None:
        def fail(bolt: Scripted, rows: object, batch: Batch) -> None:
            raise ReportedFailedException("bad rows")

        with driven(fail) as driver:
            driver.feed("input", ["a"], msg_id=1)
            assert driver.failed() == [1]
            assert [report.message for report in driver.errors] == [
                "ReportedFailedException: bad rows"
            ]

    def test_a_bolt_that_acks_itself_may_not_raise(self) -> None:
        def fail(bolt: Scripted, rows: object, batch: Batch) -> None:
            raise FailedException("bad rows")

        with driven(fail, auto_ack=False) as driver, pytest.raises(FailedException):
            driver.feed("input", ["a"], msg_id=1)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (type("Bare", (BatchBolt,), {}), "does not define execute_batch(self, rows, batch)"),
            (
                type("Old", (BatchBolt,), {"execute_batch": lambda self, rows: None}),
                "Old.execute_batch(rows) cannot be called as execute_batch(rows, batch)",
            ),
            (
                lambda: Scripted(columns="pandas"),
                "bolt 'b': columns is 'pandas'; expected None for rows, 'arrow' or 'numpy'",
            ),
            (lambda: Scripted(auto_ack=1), "bolt 'b': auto_ack is 1; expected True or False"),
        ],
    )
    def test_mistakes_are_found_when_the_topology_is_built(
        self, make: Callable[[], Any], message: str
    ) -> None:
        with pytest.raises(InvalidTopologyException) as caught:
            TopologyBuilder().set_bolt("b", make())
        assert message in str(caught.value)

    def test_a_collector_has_no_end_of_input(self) -> None:
        instance, component = an_instance()
        with pytest.raises(AttributeError, match="spouts end their input"):
            component.collector.end_of_input  # noqa: B018
        assert instance.core.tasks[0].component_id == "batched"


class TestTicks:
    def test_a_tick_is_a_batch_of_one_row(self) -> None:
        ticks: list[object] = []

        def act(bolt: Scripted, rows: list[list[Any]], batch: Batch) -> None:
            if batch.is_tick:
                ticks.append((rows, batch.source_task))
                bolt.collector.emit(["tick", 0])

        component = Scripted(act)
        builder = TopologyBuilder()
        builder.set_spout("input", FixedTupleSpout([], "word"))
        declarer = builder.set_bolt("bolt", component).shuffle_grouping("input")
        declarer.add_configuration(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 5)
        with TopologyDriver(builder, mock_sources=["input"]) as driver:
            driver.advance(10)
            assert driver.outputs("bolt") == [["tick", 0]] * 2
            seen = driver.component("bolt").seen
        assert seen == [[[5]], [[5]]]


class Spy(BaseTaskHook):
    """Keeps what it is told, in words."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def emit(self, info: Any) -> None:
        self.told.append(("emit", info.values, info.stream, tuple(info.out_tasks)))

    def bolt_execute(self, info: Any) -> None:
        self.told.append(("execute", info.tuple.values, info.tuple.source_task))

    def bolt_ack(self, info: Any) -> None:
        self.told.append(("ack", info.tuple.values))

    def bolt_fail(self, info: Any) -> None:
        self.told.append(("fail", info.tuple.values))


class TestHooks:
    def test_hooks_see_rows_as_tuples(self) -> None:
        hook = Spy()

        def act(bolt: Scripted, rows: list[list[Any]], batch: Batch) -> None:
            bolt.collector.emit_batch([[word, 1] for (word,) in rows], [0, 1])
            bolt.collector.fail(batch, 1)

        plan = plan_of(
            spout("words", "word"), bolt("batched", "words", "word count"), bolt("end", "batched")
        )
        component = Scripted(act)
        instance = Instance(plan, 1, lambda recorder: component).open()
        component.context.add_task_hook(hook)
        instance.gets(11, 1, frame_of(3, 1, ["a"], ["b"]))
        instance.works()
        assert hook.told[:2] == [
            ("emit", ["a", 1], "default", (2,)),
            ("emit", ["b", 1], "default", (2,)),
        ]
        assert hook.told[2] == ("fail", ["b"])
        assert hook.told[-2:] == [("execute", ["a"], 3), ("execute", ["b"], 3)]

    def test_debug_logs_each_row(self) -> None:
        plan = plan_of(
            spout("words", "word"),
            bolt("batched", "words", "word count"),
            bolt("end", "batched"),
            topology_debug=True,
        )
        component = Scripted(lambda b, rows, _: b.collector.emit_batch([["a", 1], ["b", 2]]))
        instance = Instance(plan, 1, lambda recorder: component).open()
        instance.gets(11, 1, frame_of(3, 1, ["x"]))
        instance.works()
        assert instance.port.logged == [
            "batched task 1 emits on stream 'default' to 2: ['a', 1]",
            "batched task 1 emits on stream 'default' to 2: ['b', 2]",
        ]


class TestDriver:
    def test_it_shows_rows_as_tuples(self) -> None:
        def act(bolt: Scripted, rows: list[list[str]], batch: Batch) -> None:
            sent = bolt.collector.emit_batch([[word, 1] for (word,) in rows], range(len(rows)))
            assert list(sent) == [bolt.collector.emit(["one", 1], 0)]
            bolt.collector.emit_direct(sent[0][0], ["picked"], [0], stream="picked")

        with driven(act) as driver:
            driver.feed("input", ["a"], msg_id=7)
            assert driver.received("bolt") == [["a"]]
            assert driver.outputs("bolt") == [["a", 1], ["one", 1]]
            assert driver.outputs("bolt", "picked") == [["picked"]]
            assert [e.anchors[0].values for e in driver.emitted("bolt")] == [["a"]] * 3
            assert driver.acked() == [7]
            assert driver.unanswered("bolt") == []

    def test_what_a_bolt_keeps_is_unanswered_until_it_acks(self) -> None:
        kept: list[Batch] = []
        with driven(lambda bolt, rows, batch: kept.append(batch), auto_ack=False) as driver:
            driver.feed("input", ["a"], msg_id=1)
            driver.feed("input", ["b"], msg_id=2)
            held = driver.component("bolt")
            assert [tup.values for tup in driver.unanswered("bolt")] == [["a"], ["b"]]
            batches = held.act.__closure__[0].cell_contents
            held.context.call_soon(held.collector.ack, batches[1])
            driver.run()
            assert driver.acked() == [2]
            assert [tup.values for tup in driver.unanswered("bolt")] == [["a"]]

    @pytest.mark.parametrize("count", [1, 300])
    def test_a_whole_topology(self, count: int) -> None:
        def split(bolt: Scripted, rows: list[list[str]], batch: Batch) -> None:
            words = [([word, 1], n) for n, (line,) in enumerate(rows) for word in line.split()]
            bolt.collector.emit_batch([row for row, _ in words], [n for _, n in words])

        last = CapturingBolt()
        builder = TopologyBuilder()
        builder.set_spout("lines", FixedTupleSpout([["a b"], ["b"]] * count, "line"))
        builder.set_bolt("split", Scripted(split), 2).shuffle_grouping("lines")
        builder.set_bolt("last", last, 2).fields_grouping("split", "word")
        complete_topology(builder)
        assert sorted(map(tuple, last.values)) == [("a", 1)] * count + [("b", 1)] * 2 * count

    def test_a_wide_row(self) -> None:
        class Wide(Scripted):
            def declare_output_fields(self, declarer: Any) -> None:
                declarer.declare([f"f{n}" for n in range(20)])

        def act(bolt: Scripted, rows: object, batch: Batch) -> None:
            bolt.collector.emit_batch([range(20), list(range(20))] if bolt.seen[1:] else [])
            bolt.collector.emit_batch([tuple(range(20)), list(range(20))])

        with TopologyDriver.for_bolt(Wide(act), fields="word") as driver:
            driver.feed("input", ["a"])
            assert driver.outputs("bolt") == [list(range(20))] * 2

    def test_the_end_of_input(self) -> None:
        class Total(Scripted):
            def end_of_input(self) -> None:
                self.collector.emit_batch([["total", sum(map(len, self.seen))]])

        with TopologyDriver.for_bolt(Total(), fields="word") as driver:
            driver.feed("input", ["a"])
            driver.feed("input", ["b"])
            driver.end_of_input()
            assert driver.outputs("bolt") == [["total", 2]]


def test_a_spout_is_no_bolt() -> None:
    with pytest.raises(InvalidTopologyException, match="which is a spout; use set_spout"):
        TopologyBuilder().set_bolt("b", BaseRichSpout())  # type: ignore[arg-type]
