"""The law of fusion: a topology does the same fused and not, but for the processes it takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py import (
    BaseRichBolt,
    BaseRichSpout,
    Batch,
    BatchBolt,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from tests.world import World

FIELDS = ["number", "path"]


class Numbers(BaseRichSpout):
    """Emits 0 to n - 1, some of them untracked, and remembers the answers."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.next = 0
        self.answers: list[tuple[str, object]] = []

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(*FIELDS)

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.task = context.this_task_id

    def next_tuple(self) -> None:
        if self.next < self.n:
            msg_id = None if self.next % 5 == 3 else self.next
            self.collector.emit([self.next, [self.task]], msg_id)
            self.next += 1
        else:
            self.collector.end_of_input()

    def ack(self, msg_id: object) -> None:
        self.answers.append(("ack", msg_id))

    def fail(self, msg_id: object) -> None:
        self.answers.append(("fail", msg_id))


class Tracing:
    """What both kinds of bolts have in common."""

    def __init__(self, children: int, bad: int, last_words: bool) -> None:
        self.children, self.bad, self.last_words = children, bad, last_words
        self.seen: dict[tuple[int, ...], list[object]] = defaultdict(list)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(*FIELDS)
        declarer.declare_stream("side", FIELDS)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.collector = collector
        self.task = context.this_task_id

    def takes(self, number: int, path: list[int], source: str, stream: str) -> list[str]:
        """Note a row; the streams of its copies."""
        self.seen[*path].append((source, stream, number))
        return ["side" if (number + i) % 3 == 0 else "default" for i in range(self.children)]

    def end_of_input(self) -> None:
        self.seen[()].append("end")
        if self.last_words:
            self.collector.emit([-1, [self.task]])


class Trace(Tracing, BaseRichBolt):
    """Notes what it gets by the way it came; emits copies that know the way, fails what is bad."""

    def execute(self, tup: Tuple) -> None:
        number, path = tup
        for stream in self.takes(number, path, tup.source_component, tup.source_stream_id):
            self.collector.emit([number, [*path, self.task]], tup, stream)
        if number == self.bad:
            self.collector.fail(tup)
        else:
            self.collector.ack(tup)


class BatchTrace(Tracing, BatchBolt):
    """The same with the rows of a frame, whose copies go out in their order."""

    def execute_batch(self, rows: list[list[Any]], batch: Batch) -> None:
        made = [
            (stream, [number, [*path, self.task]], n)
            for n, (number, path) in enumerate(rows)
            for stream in self.takes(number, path, batch.source_component, batch.source_stream_id)
        ]
        for stream, some in groupby(made, key=itemgetter(0)):
            _, copies, sources = zip(*some, strict=True)
            self.collector.emit_batch(copies, sources, stream)
        bad = [n for n, (number, _) in enumerate(rows) if number == self.bad]
        self.collector.fail(batch, bad)


@st.composite
def trees(draw: st.DrawFn) -> tuple[TopologyBuilder, int]:
    """A topology in which each bolt reads one component, and how many workers it runs on.

    Each worker has one executor of each component, and the way of each tuple is determined: so
    what takes it must be the same, and in the same order.
    """
    workers = draw(st.integers(1, 2))
    tasks = workers * draw(st.sampled_from([1, 1, 2]))
    builder = TopologyBuilder()
    spout = Numbers(draw(st.integers(0, 12)))
    builder.set_spout("m", spout, workers).set_num_tasks(tasks)
    names = ["m"]
    for i in range(draw(st.integers(1, 4))):
        source = draw(st.sampled_from(names))
        names.append(draw(st.sampled_from("az")) + str(i))
        how_it_is = draw(st.integers(0, 2)), draw(st.integers(-1, 12)), draw(st.booleans())
        trace = BatchTrace(*how_it_is) if draw(st.booleans()) else Trace(*how_it_is)
        declarer = builder.set_bolt(names[-1], trace, workers).set_num_tasks(tasks)
        streams = (
            ["default"]
            if source == "m"
            else draw(st.sampled_from([["default"], ["default", "side"]]))
        )
        how = draw(st.sampled_from(["near", "near", "near", "fields", "all"]))
        for stream in streams:
            if how == "near" and tasks == workers:
                declarer.local_or_shuffle_grouping(source, stream)
            elif how == "all":
                declarer.all_grouping(source, stream)
            else:
                declarer.fields_grouping(source, ["number"], stream)
    return builder, workers


def run(builder: TopologyBuilder, workers: int, conf: Mapping[str, object]) -> World:
    world = World(builder, {"storm_py.batch.rows": 3, **conf}, workers)
    world.run()
    return world


def deeds(world: World) -> dict[int, object]:
    """What each task has done, as far as that is determined."""
    return {
        task: sorted(object.answers, key=str) if isinstance(object, Numbers) else dict(object.seen)
        for task, object in world.objects.items()
        if isinstance(object, (Numbers, Tracing))
    }


@settings(max_examples=150)
@given(trees(), st.sampled_from([None, 0]), st.booleans())
def test_fused_and_not_do_the_same(
    tree: tuple[TopologyBuilder, int], ackers: int | None, serialize: bool
) -> None:
    conf = {"topology.acker.executors": ackers}
    serialized = {"topology.testing.always.try.serialize": serialize}
    fused = run(*tree, {**conf, **serialized})
    apart = run(*tree, {**conf, "storm_py.fuse": False})
    assert deeds(fused) == deeds(apart)
    assert fused.ended == apart.ended == {executor.id for executor in fused.plan.executors}
    assert fused.open_trees == apart.open_trees == 0
    for component in fused.topology.components:
        totals = [
            [
                sum(getattr(core.statistics(component), name) for core in world.instances.values())
                for name in ("executed", "emitted", "transferred", "queued", "acked", "failed")
            ]
            for world in (fused, apart)
        ]
        assert totals[0] == totals[1]


@pytest.mark.parametrize("tasks", [1, 2])
def test_it_takes_fewer_processes(tasks: int) -> None:
    builder = TopologyBuilder()
    builder.set_spout("m", Numbers(5), tasks)
    builder.set_bolt("a", Trace(1, -1, False), tasks).local_or_shuffle_grouping("m")
    builder.set_bolt("b", Trace(1, -1, False), tasks).local_or_shuffle_grouping("a")
    fused, apart = run(builder, 1, {}), run(builder, 1, {"storm_py.fuse": False})
    assert (len(fused.instances), len(apart.instances)) == (tasks, 3 * tasks)
