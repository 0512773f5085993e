"""What running components see: their context, their hooks, the shape of their collectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    Fields,
    GlobalStreamId,
    Grouping,
    GroupingKind,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    StormTopology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)


class Lines(BaseRichSpout):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line", "number")
        declarer.declare_stream("control", Fields("command"))

    def next_tuple(self) -> None:
        pass


class Split(BaseBasicBolt):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass


class Count(BaseRichBolt):
    def execute(self, tup: Tuple) -> None:
        pass


def word_count() -> StormTopology:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(), 2)
    builder.set_bolt("split", Split(), 3).shuffle_grouping("lines")
    builder.set_bolt("count", Count(), 4).fields_grouping("split", "word").all_grouping(
        "lines", "control"
    )
    return builder.create_topology()


def context_of(task_id: int) -> TopologyContext:
    topology = word_count()
    task_to_component = {
        task: id_
        for id_, tasks in {"count": (1, 2, 3, 4), "lines": (5, 6), "split": (7, 8, 9)}.items()
        for task in tasks
    }
    return TopologyContext(
        "words-1-1700000000", topology, task_to_component, task_id, 6700, (5, 7), {"mine": 1}
    )


class TestContext:
    def test_this_task(self) -> None:
        context = context_of(8)
        assert context.storm_id == "words-1-1700000000"
        assert context.this_task_id == 8
        assert context.this_component_id == "split"
        assert context.this_task_index == 1
        assert context.this_streams == ("default",)
        assert context.this_sources == {GlobalStreamId("lines"): Grouping(GroupingKind.SHUFFLE)}
        assert context.this_targets == {
            "default": {"count": Grouping(GroupingKind.FIELDS, Fields("word"))}
        }
        assert context.this_output_fields() == Fields("word")
        assert context.this_worker_port == 6700
        assert context.this_worker_tasks == (5, 7)
        assert context.conf == {"mine": 1}
        assert repr(context) == "TopologyContext('words-1-1700000000', task 8 of 'split')"

    def test_the_others(self) -> None:
        context = context_of(1)
        assert context.component_ids == ("lines", "split", "count")
        assert context.component_tasks("lines") == (5, 6)
        assert context.component_id(6) == "lines"
        assert context.task_to_component[9] == "split"
        assert len(context.task_to_component) == 9
        assert context.component_output_fields("lines", "control") == Fields("command")
        assert set(context.targets("lines")) == {"default", "control"}
        assert context.targets("count") == {}
        assert context.sources("lines") == {}

    def test_a_component_without_tasks_here(self) -> None:
        topology = word_count()
        context = TopologyContext("x", topology, {1: "lines"}, 1, 0, (1,), {})
        assert context.component_tasks("count") == ()

    def test_nothing_can_be_changed(self) -> None:
        context = context_of(1)
        with pytest.raises(AttributeError):
            context.this_task_id = 2  # type: ignore[misc]
        with pytest.raises(AttributeError):
            context.something = 2  # type: ignore[attr-defined]
        with pytest.raises(TypeError):
            context.conf["mine"] = 2  # type: ignore[index]
        with pytest.raises(TypeError):
            context.task_to_component[1] = "x"  # type: ignore[index]

    def test_unknown_names(self) -> None:
        context = context_of(8)
        for ask in (
            context.component_tasks,
            context.sources,
            context.targets,
            context.component_output_fields,
        ):
            with pytest.raises(ValueError, match="no component 'splitt' in topology") as caught:
                ask("splitt")
            assert "it has: lines, split, count; did you mean 'split'?" in str(caught.value)
        with pytest.raises(ValueError, match=r"no task 10 in topology .*; tasks: 1 to 9"):
            context.component_id(10)
        with pytest.raises(ValueError, match="'split' declares no stream 'x'; it declares: def"):
            context.this_output_fields("x")
        with pytest.raises(ValueError, match=r"'count' declares no stream .*; it declares: none"):
            context.component_output_fields("count")

    def test_a_task_that_does_not_exist(self) -> None:
        with pytest.raises(ValueError, match="no task 1 in topology 'x'; tasks: none"):
            TopologyContext("x", StormTopology({}), {}, 1, 0, (), {})


class TestComponents:
    def test_the_optional_hooks_do_nothing(self) -> None:
        """A user's class may call super() in any of them."""
        context = context_of(1)
        spout, rich, basic = Lines(), Count(), Split()
        collector = Attributes()
        spout.open({}, context, collector)
        for hook in (spout.activate, spout.deactivate, spout.close, rich.cleanup, basic.cleanup):
            hook()
        spout.ack(1)
        spout.fail(1)
        rich.prepare({}, context, Methods())
        rich.end_of_input()
        basic.prepare({}, context)
        basic.end_of_input(Basic())
        assert Count().get_component_configuration() is None

    def test_the_necessary_ones_say_that_they_are_missing(self) -> None:
        tup: Any = None
        with pytest.raises(NotImplementedError, match=r"BaseRichSpout does not define next_tuple"):
            BaseRichSpout().next_tuple()
        with pytest.raises(NotImplementedError, match=r"execute\(self, tup\)"):
            BaseRichBolt().execute(tup)
        with pytest.raises(NotImplementedError, match=r"execute\(self, tup, collector\)"):
            BaseBasicBolt().execute(tup, Basic())


class EmitOfSpout:
    """A callable object in place of a function."""

    def __call__(
        self, values: Sequence[object], msg_id: object = None, stream: str = "default"
    ) -> Sequence[int]:
        return (len(values),)


class EmitDirectOfSpout:
    def __call__(
        self,
        task_id: int,
        values: Sequence[object],
        msg_id: object = None,
        stream: str = "default",
    ) -> None:
        pass


class Attributes:
    """A spout's collector whose methods are attributes of one instance, as an engine makes them."""

    def __init__(self) -> None:
        self.emit = EmitOfSpout()
        self.emit_direct = EmitDirectOfSpout()
        self.end_of_input = lambda: None

    def report_error(self, error: BaseException) -> None:
        pass


class Basic:
    """A basic bolt's collector with plain methods."""

    def emit(self, values: Sequence[object], stream: str = "default") -> Sequence[int]:
        return (1,)

    def emit_direct(self, task_id: int, values: Sequence[object], stream: str = "default") -> None:
        pass

    def report_error(self, error: BaseException) -> None:
        pass


class Methods:
    """A rich bolt's collector with plain methods."""

    def emit(
        self,
        values: Sequence[object],
        anchors: Tuple | Sequence[Tuple] | None = None,
        stream: str = "default",
    ) -> Sequence[int]:
        return (1,)

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        anchors: Tuple | Sequence[Tuple] | None = None,
        stream: str = "default",
    ) -> None:
        pass

    def ack(self, tup: Tuple) -> None:
        pass

    def fail(self, tup: Tuple) -> None:
        pass

    def reset_timeout(self, tup: Tuple) -> None:
        pass

    def report_error(self, error: BaseException) -> None:
        pass


def test_collectors_may_be_methods_or_attributes() -> None:
    """Mostly a test of types: mypy reads it."""
    spout: SpoutOutputCollector = Attributes()
    basic: BasicOutputCollector = Basic()
    rich: OutputCollector = Methods()
    assert spout.emit(["a", "b"], msg_id=1, stream="control") == (2,)
    assert basic.emit(["a"]) == rich.emit(("a",), anchors=[], stream="x") == (1,)
