"""What a well-formed topology becomes: specs, edges, configuration, limits."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    Fields,
    GlobalStreamId,
    Grouping,
    GroupingKind,
    InvalidTopologyException,
    OutputFieldsDeclarer,
    TopologyBuilder,
    Tuple,
)
from storm_py.api.spec import Edge, StreamInfo, apply_limits
from storm_py.config import defaults, merge


class Lines(BaseRichSpout):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line", "number")
        declarer.declare_stream("control", Fields("command"))
        declarer.declare_stream("chosen", ["line"], direct=True)

    def next_tuple(self) -> None:
        pass


class Split(BaseBasicBolt):
    def __init__(self, conf: Mapping[str, object] | None = None) -> None:
        self.conf = conf

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))

    def get_component_configuration(self) -> Mapping[str, object] | None:
        return self.conf

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass


class Count(BaseRichBolt):
    def execute(self, tup: Tuple) -> None:
        pass


def word_count() -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(), 2)
    builder.set_bolt("split", Split(), 3).shuffle_grouping("lines")
    builder.set_bolt("count", Count(), 4).fields_grouping("split", Fields("word")).all_grouping(
        "lines", "control"
    )
    return builder


class TestSpecs:
    def test_a_whole_topology(self) -> None:
        topology = word_count().create_topology()
        assert list(topology.components) == ["lines", "split", "count"]
        assert list(topology.spouts) == ["lines"]
        assert list(topology.bolts) == ["split", "count"]
        lines, split, count = topology.components.values()
        assert (lines.kind, lines.parallelism, lines.num_tasks) == ("spout", 2, 2)
        assert lines.streams == {
            "default": StreamInfo(Fields("line", "number"), direct=False),
            "control": StreamInfo(Fields("command"), direct=False),
            "chosen": StreamInfo(Fields("line"), direct=True),
        }
        assert lines.inputs == {}
        assert (split.kind, split.streams) == ("bolt", {"default": StreamInfo(Fields("word"))})
        assert split.inputs == {GlobalStreamId("lines"): Grouping(GroupingKind.SHUFFLE)}
        assert count.streams == {}
        assert count.inputs == {
            GlobalStreamId("split"): Grouping(GroupingKind.FIELDS, Fields("word")),
            GlobalStreamId("lines", "control"): Grouping(GroupingKind.ALL),
        }
        assert isinstance(count.component, Count)
        assert count.label == "bolt 'count'"

    def test_every_grouping(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("lines", Lines())
        for name in ("a", "b", "c", "d", "e"):
            builder.set_spout(name, Lines())
        declarer = builder.set_bolt("all", Count())
        declarer.shuffle_grouping("a").all_grouping("b").global_grouping("c")
        declarer.fields_grouping("d", "line").fields_grouping("e", ["line", "number"])
        declarer.direct_grouping("a", "chosen").fields_grouping("b", ("command",), "control")
        inputs = builder.create_topology().components["all"].inputs
        assert {str(source): str(grouping) for source, grouping in inputs.items()} == {
            "a:default": "shuffle",
            "b:default": "all",
            "c:default": "global",
            "d:default": "fields(line)",
            "e:default": "fields(line, number)",
            "a:chosen": "direct",
            "b:control": "fields(command)",
        }

    def test_a_component_may_subscribe_to_one_that_is_set_later_or_to_itself(self) -> None:
        builder = TopologyBuilder()
        builder.set_bolt("split", Split()).shuffle_grouping("lines").shuffle_grouping("split")
        builder.set_spout("lines", Lines())
        assert list(builder.create_topology().spouts) == ["lines"]

    def test_a_topology_of_spouts_only(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("lines", Lines())
        assert builder.create_topology().bolts == {}

    def test_creating_twice_gives_equal_topologies_and_more_may_be_added(self) -> None:
        builder = word_count()
        first = builder.create_topology()
        assert builder.create_topology() == first
        builder.set_bolt("more", Count()).global_grouping("split")
        assert "more" in builder.create_topology().components
        assert "more" not in first.components

    def test_a_topology_does_not_change_with_its_builder(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("lines", Lines())
        declarer = builder.set_bolt("split", Split()).shuffle_grouping("lines")
        topology = builder.create_topology()
        declarer.shuffle_grouping("lines", "control").set_debug(True)
        assert len(topology.components["split"].inputs) == 1
        assert topology.components["split"].config == {}

    def test_a_topology_can_be_pickled(self) -> None:
        topology = word_count().create_topology()
        twin = pickle.loads(pickle.dumps(topology))
        assert twin.edges == topology.edges
        assert [spec.streams for spec in twin.components.values()] == [
            spec.streams for spec in topology.components.values()
        ]

    def test_methods_set_on_the_object_count_as_defined(self) -> None:
        bolt = BaseRichBolt()
        bolt.execute = lambda tup: None  # type: ignore[method-assign]
        builder = TopologyBuilder()
        builder.set_spout("lines", Lines())
        builder.set_bolt("bolt", bolt).shuffle_grouping("lines")
        assert builder.create_topology().components["bolt"].component is bolt


class TestGraph:
    def test_edges(self) -> None:
        assert word_count().create_topology().edges == (
            Edge("lines", "default", "split", Grouping(GroupingKind.SHUFFLE)),
            Edge("split", "default", "count", Grouping(GroupingKind.FIELDS, Fields("word"))),
            Edge("lines", "control", "count", Grouping(GroupingKind.ALL)),
        )

    def test_consumers(self) -> None:
        topology = word_count().create_topology()
        assert topology.consumers("lines") == (("split", Grouping(GroupingKind.SHUFFLE)),)
        assert topology.consumers("lines", "control") == (("count", Grouping(GroupingKind.ALL)),)
        assert topology.consumers("lines", "chosen") == ()
        assert topology.consumers("count", "default") == ()

    def test_consumers_of_nothing(self) -> None:
        with pytest.raises(InvalidTopologyException, match="no component 'line' in") as caught:
            word_count().create_topology().consumers("line")
        assert "did you mean 'lines'?" in str(caught.value)

    def test_component(self) -> None:
        topology = word_count().create_topology()
        assert topology.component("split") is topology.components["split"]


class TestConfiguration:
    def test_declarer_calls_override_the_component(self) -> None:
        builder = TopologyBuilder()
        conf = {"topology.debug": False, "topology.max.spout.pending": 5, "mine": 1}
        builder.set_spout("lines", Lines())
        declarer = builder.set_bolt("split", Split(conf)).shuffle_grouping("lines")
        declarer.set_debug(True).set_max_spout_pending(7).add_configuration("other", 2)
        declarer.add_configurations({"topology.name": "x"}).set_max_task_parallelism(9)
        assert builder.create_topology().components["split"].config == {
            "topology.debug": True,
            "topology.max.spout.pending": 7,
            "mine": 1,
            "other": 2,
            "topology.name": "x",
            "topology.max.task.parallelism": 9,
        }

    def test_the_components_own_dict_is_copied(self) -> None:
        builder = TopologyBuilder()
        conf: dict[str, object] = {"mine": 1}
        builder.set_spout("lines", Lines())
        builder.set_bolt("split", Split(conf)).shuffle_grouping("lines")
        topology = builder.create_topology()
        conf["mine"] = 2
        assert topology.components["split"].config == {"mine": 1}

    @pytest.mark.parametrize(
        ("hint", "tasks", "expected"),
        [(3, None, (3, 3)), (3, 6, (3, 6)), (3, 2, (2, 2)), (1, 1, (1, 1))],
    )
    def test_tasks(self, hint: int, tasks: int | None, expected: tuple[int, int]) -> None:
        builder = TopologyBuilder()
        declarer = builder.set_spout("lines", Lines(), hint)
        if tasks is not None:
            declarer.set_num_tasks(tasks)
        lines = builder.create_topology().components["lines"]
        assert (lines.parallelism, lines.num_tasks) == expected

    def test_tasks_from_the_component_and_over_it(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("lines", Lines())
        builder.set_bolt("a", Split({"topology.tasks": 8}), 2).shuffle_grouping("lines")
        builder.set_bolt("b", Split({"topology.tasks": 8}), 2).shuffle_grouping(
            "lines"
        ).set_num_tasks(4)
        bolts = builder.create_topology().bolts
        assert {id_: spec.num_tasks for id_, spec in bolts.items()} == {"a": 8, "b": 4}


class TestLimits:
    @staticmethod
    def limited(
        hint: int, own: Mapping[str, object], conf: Mapping[str, object]
    ) -> tuple[int, int]:
        builder = TopologyBuilder()
        builder.set_spout("lines", Lines(), hint).add_configurations(own)
        topology = apply_limits(builder.create_topology(), merge(defaults(), conf))
        assert apply_limits(topology, merge(defaults(), conf)) == topology
        lines = topology.components["lines"]
        return lines.parallelism, lines.num_tasks

    def test_no_limit(self) -> None:
        assert self.limited(4, {}, {}) == (4, 4)

    def test_the_cap_holds_for_both(self) -> None:
        assert self.limited(4, {}, {"topology.max.task.parallelism": 2}) == (2, 2)
        own = {"topology.tasks": 8}
        assert self.limited(4, own, {"topology.max.task.parallelism": 6}) == (4, 6)
        assert self.limited(4, own, {"topology.max.task.parallelism": 3}) == (3, 3)
        assert self.limited(4, {}, {"topology.max.task.parallelism": 100}) == (4, 4)

    def test_the_components_own_setting_wins(self) -> None:
        own = {"topology.max.task.parallelism": 3}
        assert self.limited(4, own, {"topology.max.task.parallelism": 2}) == (3, 3)
        assert self.limited(4, {"topology.tasks": 5}, {"topology.tasks": 9}) == (4, 5)

    def test_tasks_for_all(self) -> None:
        assert self.limited(4, {}, {"topology.tasks": 6}) == (4, 6)
        assert self.limited(4, {}, {"topology.tasks": 2}) == (2, 2)

    def test_more_tasks_than_key_groups(self) -> None:
        topology = word_count().create_topology()
        with pytest.raises(InvalidTopologyException) as caught:
            apply_limits(topology, {"storm_py.key.groups": 3})
        assert "bolt 'count' has 4 tasks and a fields grouping" in str(caught.value)
        assert "only 3 groups" in str(caught.value)
        assert apply_limits(topology, {"storm_py.key.groups": 4}) == topology

    @given(
        st.integers(1, 50),
        st.none() | st.integers(1, 50),
        st.none() | st.integers(1, 50),
        st.none() | st.integers(1, 50),
    )
    def test_law(self, hint: int, own: int | None, tasks: int | None, cap: int | None) -> None:
        conf = {"topology.tasks": tasks, "topology.max.task.parallelism": cap}
        executors, limited = self.limited(hint, {"topology.tasks": own} if own else {}, conf)
        assert limited == min(own or tasks or hint, cap or 1000)
        assert executors == min(hint, limited)
