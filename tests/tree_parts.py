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


def chain(
    spout: Feed, *bolts: BaseRichBolt | BaseBasicBolt, tasks: int = 1, near: str = ""
) -> TopologyBuilder:
    """feed -> b1 -> b2 ..., shuffled; the bolts named in `near` by local_or_shuffle: fused."""
    builder = TopologyBuilder()
    builder.set_spout("feed", spout, tasks)
    source = "feed"
    for i, bolt in enumerate(bolts, 1):
        declarer = builder.set_bolt(f"b{i}", bolt, tasks)
        subscribe(declarer, source, "near" if f"b{i}" in near.split() else "shuffle", "default")
        source = f"b{i}"
    return builder


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


@st.composite
def graphs(draw: st.DrawFn) -> TopologyBuilder:
    """Acyclic graphs with branches and joins, of bolts that behave, each in its own way."""
    builder = TopologyBuilder()
    builder.set_spout("feed", Feed(draw(st.integers(1, 9))), draw(st.integers(1, 2)))
    sources, two = ["feed"], list[str]()
    for i in range(draw(st.integers(1, 4))):
        mode = draw(st.sampled_from(["", "two", "late", "batch", "basic", "seed"]))
        bolt = Basic() if mode == "basic" else Step(mode, draw(st.integers(0, 2)))
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
    while any(step.held for step in world.all(Step)):
        for step in world.all(Step):
            step.release()
        world.run()
