"""The user's objects on their way to the tasks: copies for each, and who is named if one fails."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from storm_py import (
    BaseRichBolt,
    BaseRichSpout,
    CustomStreamGrouping,
    InvalidTopologyException,
    OutputFieldsDeclarer,
    StormTopology,
    TopologyBuilder,
    Tuple,
)
from storm_py.components import pack, unpack
from storm_py.core.plan import dump_plan, load_plan, make_plan


class Lines(BaseRichSpout):
    def __init__(self) -> None:
        self.settings: dict[str, object] = {"path": "here"}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line")
        declarer.declare_stream("side", "line")

    def next_tuple(self) -> None:
        pass


class Sink(BaseRichBolt):
    def execute(self, tup: Tuple) -> None:
        pass


class First(CustomStreamGrouping):
    """To the first task; `marks` shows which object it is."""

    def __init__(self) -> None:
        self.marks: list[object] = []

    def choose_tasks(self, task_id: int, values: list[object]) -> Sequence[int]:
        return []


class Fragile:
    """Can be pickled, and not unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return int, ("fragile",)


def topology(spout: Lines, grouping: CustomStreamGrouping) -> StormTopology:
    builder = TopologyBuilder()
    builder.set_spout("lines", spout)
    both = builder.set_bolt("both", Sink()).custom_grouping("lines", grouping)
    both.custom_grouping("lines", grouping, "side")
    builder.set_bolt("one", Sink()).custom_grouping("lines", grouping)
    builder.set_bolt("other", Sink()).shuffle_grouping("lines")
    return builder.create_topology()


def test_every_unpacking_gives_objects_that_share_nothing() -> None:
    made = topology(Lines(), First())
    packed = pack(made)
    spec = made.components["lines"]
    tasks = [unpack(spec, packed["lines"]) for _ in range(2)]
    assert [list(each.groupings) for each in tasks] == [
        [("default", "both"), ("side", "both"), ("default", "one")]
    ] * 2
    groupings = [grouping for each in tasks for grouping in each.groupings.values()]
    for n, grouping in enumerate(groupings):
        assert isinstance(grouping, First)
        grouping.marks.append(n)
    assert [grouping.marks for grouping in groupings if isinstance(grouping, First)] == [
        [n] for n in range(6)
    ]
    first, second = (each.component for each in tasks)
    assert isinstance(first, Lines)
    assert isinstance(second, Lines)
    assert first.settings == second.settings
    assert first.settings is not second.settings


def test_who_emits_nothing_by_a_custom_grouping_carries_none() -> None:
    made = topology(Lines(), First())
    assert unpack(made.components["one"], pack(made)["one"]).groupings == {}


def test_the_plan_carries_no_object_of_the_users() -> None:
    made = topology(Lines(), First())
    plan = make_plan("lines-1-1", made, {}, workers=1)
    custom = [edge.grouping for edge in plan.topology.edges if edge.grouping.kind == "CUSTOM"]
    assert [(str(each), each.custom) for each in custom] == [("custom", None)] * 3
    assert all(spec.component is None for spec in plan.topology.components.values())
    assert load_plan(dump_plan(plan)) == plan
    assert b"First" not in dump_plan(plan)


def test_a_spout_that_cannot_be_copied() -> None:
    spout = Lines()
    spout.settings["lock"] = threading.Lock()
    with pytest.raises(InvalidTopologyException) as caught:
        pack(topology(spout, First()))
    assert str(caught.value) == (
        "spout 'lines': a Lines cannot be copied for its tasks, because of its attribute "
        "'settings': cannot pickle '_thread.lock' object; make files, sockets, threads and locks "
        "in open(), not in __init__"
    )


def test_a_grouping_that_cannot_be_copied() -> None:
    grouping = First()
    grouping.marks.append(threading.Lock())
    with pytest.raises(InvalidTopologyException) as caught:
        pack(topology(Lines(), grouping))
    assert str(caught.value) == (
        "bolt 'both', custom grouping on 'lines': a First cannot be copied for its tasks, because "
        "of its attribute 'marks': cannot pickle '_thread.lock' object; make files, sockets, "
        "threads and locks in prepare(), not in __init__"
    )


def test_a_copy_that_fails() -> None:
    spout, grouping = Lines(), First()
    spout.settings["fragile"] = Fragile()
    made = topology(spout, First())
    reason = "ValueError: invalid literal for int() with base 10: 'fragile'; see its __setstate__"
    with pytest.raises(InvalidTopologyException) as caught:
        unpack(made.components["lines"], pack(made)["lines"])
    start = "spout 'lines': the copy of a Lines for a task fails with"
    assert str(caught.value).startswith(f"{start} {reason}")
    grouping.marks.append(Fragile())
    made = topology(Lines(), grouping)
    with pytest.raises(InvalidTopologyException) as caught:
        unpack(made.components["lines"], pack(made)["lines"])
    start = "bolt 'both', custom grouping on 'lines': the copy of a First for a task fails with"
    assert str(caught.value).startswith(f"{start} {reason}")
