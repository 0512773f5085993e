"""What the tests of tuple trees are made of: a spout that keeps score, several bolts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    Batch,
    BatchBolt,
    BatchOutputCollector,
    BoltDeclarer,
    FailedException,
    OutputCollector,
    OutputFieldsDeclarer,
    ReportedFailedException,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from storm_py.api.component import Bolt
from tests.world import World


class Feed(BaseRichSpout):
    """Emits 0 to n - 1 with themselves as message ids, and remembers what it hears of them.

    Task number k adds `base`, 1000 k, to what it emits.
    """

    def __init__(self, n: int, replay: bool = False, anonymous: bool = False) -> None:
        self.n = n
        self.anonymous = anonymous
        self.replay = replay
        self.next = 0
        self.dests: dict[object, tuple[int, ...]] = {}
        self.acked: list[int] = []
        self.failed: list[int] = []
        self.most = 0

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.base = 1000 * context.this_task_index
        self.collector = collector

    def is_done(self) -> bool:
        """Whether everything was emitted and answered."""
        return len(self.acked) + len(self.failed) >= self.n

    def next_tuple(self) -> None:
        if self.next < self.n:
            msg_id = None if self.anonymous else self.next
            self.dests[self.next] = tuple(self.collector.emit([self.base + self.next], msg_id))
            self.next += 1
            self.most = max(self.most, self.next - len(self.acked) - len(self.failed))
        elif not self.replay or len(self.acked) == self.n:
            self.collector.end_of_input()

    def ack(self, msg_id: object) -> None:
        assert isinstance(msg_id, int)
        self.acked.append(msg_id)

    def fail(self, msg_id: object) -> None:
        assert isinstance(msg_id, int)
        self.failed.append(msg_id)
        if self.replay:
            self.collector.emit([msg_id], msg_id)


class Step(BaseRichBolt):
    """Emits `children` tuples for each it receives, then acks; the modes are what may go wrong.

    late: acks only in `release`, in another order. batch: emits in `release`, anchored to all.
    two: every other tuple goes to stream "side". seed: seeds the module's generator first. Whatever
    the mode, numbers in `bad` are failed.
    """

    def __init__(self, mode: str = "", children: int = 1, bad: tuple[int, ...] = ()) -> None:
        self.mode, self.children, self.bad = mode, children, bad
        self.held: list[Tuple] = []
        self.seen: list[object] = []
        self.ended = False

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number")
        declarer.declare_stream("side", ["number"])

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        self.seen.append(tup[0])
        if tup[0] in self.bad:
            self.collector.fail(tup)
            return
        if self.mode == "seed":
            random.seed(42)
        if self.mode != "batch":
            for i in range(self.children):
                side = self.mode == "two" and i % 2 == 0
                self.collector.emit([tup[0]], tup, "side" if side else "default")
        if self.mode in ("late", "batch"):
            self.held.append(tup)
        else:
            self.collector.ack(tup)

    def release(self) -> None:
        """Finish what is held."""
        held, self.held = self.held, []
        if held and self.mode == "batch":
            self.collector.emit([-1], [*held, held[0]])
        for tup in held[1::2] + held[::2]:
            self.collector.ack(tup)

    def end_of_input(self) -> None:
        self.ended = True


class Basic(BaseBasicBolt):
    """Emits twice, then fails what is in `bad`: what it emitted before does not save the tree."""

    def __init__(self, bad: tuple[int, ...] = (), reported: bool = False) -> None:
        self.bad = bad
        self.error = ReportedFailedException if reported else FailedException

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit(tup.values)
        collector.emit(tup.values)
        if tup[0] in self.bad:
            raise self.error(f"{tup[0]} is bad")


class BatchStep(BatchBolt):
    """As `Step`, a frame at a time.

    Anchored row by row, or to the whole batch (mode "whole"). Numbers in `bad` are failed: each by
    itself, or the rest of the batch with them by an exception (mode "raises").
    """

    def __init__(self, mode: str = "", children: int = 1, bad: tuple[int, ...] = ()) -> None:
        self.mode, self.children, self.bad = mode, children, bad
        self.held: list[tuple[Batch, list[int]]] = []
        self.seen: list[object] = []
        self.sizes: list[int] = []
        self.ended = False

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number")
        declarer.declare_stream("side", ["number"])

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchOutputCollector
    ) -> None:
        self.collector = collector

    def execute_batch(self, rows: list[list[int]], batch: Batch) -> None:
        self.seen += [number for (number,) in rows]
        self.sizes.append(len(rows))
        bad = [i for i, (number,) in enumerate(rows) if number in self.bad]
        good = [i for i in range(len(rows)) if i not in bad]
        if self.mode == "whole":
            self.collector.emit_batch(rows * self.children)
        else:
            for _ in range(self.children):
                self.collector.emit_batch([rows[i] for i in good], good)
        if bad and self.mode == "raises":
            raise FailedException(f"{bad} are bad")
        if bad:
            self.collector.fail(batch, bad)
        self.finish(batch, good)

    def finish(self, batch: Batch, good: list[int]) -> None:
        """What follows is acked by the engine."""

    def end_of_input(self) -> None:
        self.ended = True


class LateBatchStep(BatchStep):
    """Acks rows one by one in `release`, in another order."""

    auto_ack = False

    def finish(self, batch: Batch, good: list[int]) -> None:
        self.held.append((batch, good))

    def release(self) -> None:
        """Finish what is held."""
        held, self.held = self.held, []
        for batch, rows in held[1::2] + held[::2]:
            self.collector.emit([-1], rows[:2], batch=batch)
            for row in rows[1::2]:
                self.collector.ack(batch, row)
            if rows:
                self.collector.ack(batch, rows[::2])


def chain(spout: Feed, *bolts: Bolt, tasks: int = 1, near: str = "") -> TopologyBuilder:
    """feed -> b1 -> b2 ..., shuffled; the bolts named in `near` by local_or_shuffle: fused."""
    builder = TopologyBuilder()
    builder.set_spout("feed", spout, tasks)
    source = "feed"
    for i, bolt in enumerate(bolts, 1):
        declarer = builder.set_bolt(f"b{i}", bolt, tasks)
        subscribe(declarer, source, "near" if f"b{i}" in near.split() else "shuffle", "default")
        source = f"b{i}"
    return builder


#: Which of two bolts are fused with what they read: none, one, or both with the spout.
NEAR = ["", "b1", "b2", "b1 b2"]
GROUPINGS = ["shuffle", "near", "near", "fields", "all", "global"]


def subscribe(declarer: BoltDeclarer, source: str, grouping: str, stream: str) -> None:
    """Read a stream by a grouping, by its name."""
    match grouping:
        case "shuffle":
            declarer.shuffle_grouping(source, stream)
        case "near":
            declarer.local_or_shuffle_grouping(source, stream)
        case "fields":
            declarer.fields_grouping(source, ["number"], stream)
        case "all":
            declarer.all_grouping(source, stream)
        case _:
            declarer.global_grouping(source, stream)


BATCHED: dict[str, type[BatchStep]] = {
    "rows": BatchStep,
    "whole": BatchStep,
    "late rows": LateBatchStep,
}


def _bolt(mode: str, children: int) -> Bolt:
    if mode == "basic":
        return Basic()
    return BATCHED.get(mode, Step)(mode, children)


@st.composite
def graphs(draw: st.DrawFn) -> TopologyBuilder:
    """Acyclic graphs with branches and joins, of bolts that behave, each in its own way."""
    builder = TopologyBuilder()
    builder.set_spout("feed", Feed(draw(st.integers(1, 9))), draw(st.integers(1, 2)))
    sources, two = ["feed"], list[str]()
    for i in range(draw(st.integers(1, 4))):
        mode = draw(st.sampled_from(["", "two", "late", "batch", "basic", "seed", *BATCHED]))
        bolt = _bolt(mode, draw(st.integers(0, 2)))
        declarer = builder.set_bolt(f"b{i}", bolt, draw(st.integers(1, 2)))
        for source in draw(st.lists(st.sampled_from(sources), min_size=1, unique=True)):
            subscribe(declarer, source, draw(st.sampled_from(GROUPINGS)), "default")
            if source in two and draw(st.booleans()):
                subscribe(declarer, source, draw(st.sampled_from(GROUPINGS)), "side")
        sources.append(f"b{i}")
        two += [f"b{i}"] if mode == "two" else []
    return builder


def release_all(world: World) -> None:
    """Let bolts that hold tuples go on until none does."""
    world.run()
    while any(step.held for step in holding(world)):
        for step in holding(world):
            step.release()
        world.run()


def holding(world: World) -> list[Step | LateBatchStep]:
    """The bolts that may hold tuples."""
    return [*world.all(Step), *world.all(LateBatchStep)]


def stopped_inside(world: World, inner: str) -> int:
    """Run until nothing may be emitted, with rows on their way to the bolt `inner`, fused.

    It takes its time, and b3, the sink, is stopped. Returns the instance.
    """
    (instance,), (sink,) = world.instances_of(inner), world.instances_of("b3")
    world.stopped.add(sink)
    (task,) = world.plan.tasks_of(inner)
    bolt: Any = world.objects[task]
    method = "execute_batch" if isinstance(bolt, BatchBolt) else "execute"
    execute = getattr(bolt, method)

    def slowly(*args: object) -> None:
        world.now += 0.001
        execute(*args)

    setattr(bolt, method, slowly)
    world.run()
    core = world.instances[instance]
    assert core.paused
    assert core.statistics(inner).queued > 0
    return instance


# ---- accidents ---------------------------------------------------------------------------------

#: What happens, to which process, and after how many rounds.
Accident = tuple[str, int, int]
accidents = st.lists(
    st.tuples(
        st.sampled_from(["instance", "manager", "stop", "time", "step", "step"]),
        st.integers(0, 7),
        st.integers(0, 3),
    ),
    max_size=12,
)


def go_through(world: World, events: list[Accident]) -> None:
    """Let it happen to the bolts b1 and b2, then run until a message timeout of 10 s is over."""
    bolts = [*world.instances_of("b1"), *world.instances_of("b2")]
    for what, which, rounds in events:
        for _ in range(rounds if what != "step" else 0):
            world.round()
        victim, worker = bolts[which % len(bolts)], world.plan.workers[which % 2]
        if what == "stop":
            world.stopped.symmetric_difference_update({victim})
        elif what == "time":
            world.advance(4)
        elif what == "step":  # and some messages are on their way when the next thing happens
            world.step(which)
            world.settle(at_most=rounds)
        elif what == "instance":
            world.kill_instance(victim)
            if which % 2:
                world.settle()
            world.start_instance(victim)
        else:
            world.kill_manager(worker)
            if which % 3:
                world.round()
            world.start_manager(worker)
    world.stopped.clear()
    left, periods = 3, 0  # a few periods more than it takes: nothing may be answered again
    while left > 0 and periods < 50:
        release_all(world)
        world.advance(10)
        periods += 1
        left -= world.open_trees == 0 and all(map(Feed.is_done, world.all(Feed)))
