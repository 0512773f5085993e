"""Random topologies: what a `Simulation` runs when it is given nothing else.

Up to two spouts and four bolts, linked in any acyclic way by any grouping, some on several streams.
The spouts replay what fails until all of it is acked, and know after a restart what was; the bolts
ack at once, late, in another order, or fail, keep or drop tuples and raise errors - but only the
first attempts of a message, so that every message can be finished in the end.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from storm_py.api.batches import Batch
from storm_py.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt, Bolt
from storm_py.api.context import TopologyContext
from storm_py.api.declarers import BoltDeclarer, OutputFieldsDeclarer
from storm_py.api.topology import TopologyBuilder
from storm_py.api.tuples import Tuple
from storm_py.config import Config
from storm_py.errors import FailedException, ReportedFailedException

#: From this attempt on bolts behave.
GOOD_ATTEMPT = 2
KEYS = ["x", "y", 1, -7, ("z", 2), None, 0.5]
FIELDS = ["message", "attempt", "key"]


@dataclass
class Source:
    """What a spout's tuples come from: it outlives the spout, as a file or a queue would."""

    messages: int
    tracked: bool
    #: per task, how often each message that was not acked has been emitted
    attempts: dict[int, dict[int, int]] = field(default_factory=dict)

    def of(self, task: int) -> dict[int, int]:
        """The messages of a task that were not acked."""
        return self.attempts.setdefault(task, dict.fromkeys(range(self.messages), 0))

    def __deepcopy__(self, memo: object) -> Source:
        return self


class RandomSpout(BaseRichSpout):
    """Emits the messages of its source, and once more what fails."""

    def __init__(self, name: str, source: Source, streams: Mapping[str, bool]) -> None:
        self.name, self.source, self.streams = name, source, streams

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream, direct in self.streams.items():
            declarer.declare_stream(stream, FIELDS, direct=direct)

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.rng = random.Random(f"{self.name} {context.this_task_id}")
        self.collector = collector
        self.left = self.source.of(context.this_task_id)
        self.todo = deque(self.left)
        self.direct_tasks = direct_tasks(context, self.streams)
        self.done = False

    def next_tuple(self) -> None:
        for _ in range(self.rng.choice([0, 1, 1, 1, 3])):
            if self.todo:
                self._emit(self.todo.popleft())
        if not self.todo and not self.done and (not self.source.tracked or not self.left):
            self.done = True
            self.collector.end_of_input()

    def _emit(self, message: int) -> None:
        stream = self.rng.choice(list(self.streams))
        attempt = self.left[message]
        values = [message, attempt, self.rng.choice(KEYS)]
        msg_id = message if self.source.tracked else None
        if msg_id is None:
            del self.left[message]
        else:
            self.left[message] += 1
        send(self, stream, values, msg_id)
        if self.rng.random() < 0.1:
            send(self, self.rng.choice(list(self.streams)), [-1, GOOD_ATTEMPT, "untracked"], None)

    def ack(self, msg_id: Any) -> None:
        self.left.pop(msg_id, None)

    def fail(self, msg_id: Any) -> None:
        self.todo.append(msg_id)


@dataclass
class Manners:
    """How often a bolt does something special with a tuple of an early attempt."""

    fail: float = 0.0
    drop: float = 0.0
    hold: float = 0.0
    error: float = 0.0
    children: tuple[int, ...] = (0, 1, 1, 2)
    #: how many errors are left: a bolt that raises for ever ends no run
    errors_left: int = 3
    #: how many objects there were, so that each does something else
    born: int = 0

    def __deepcopy__(self, memo: object) -> Manners:
        return self

    def rng(self, name: str, task: int) -> random.Random:
        """The generator of one more object."""
        self.born += 1
        return random.Random(f"{name} {task} {self.born}")

    def raises(self, rng: random.Random) -> bool:
        """Whether to raise an error now."""
        if self.errors_left and rng.random() < self.error:
            self.errors_left -= 1
            return True
        return False


class RandomBolt(BaseRichBolt):
    """Emits a few tuples for each, anchored to it, to several, or to none; answers as it likes."""

    def __init__(self, name: str, manners: Manners, streams: Mapping[str, bool]) -> None:
        self.name, self.manners, self.streams = name, manners, streams

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream, direct in self.streams.items():
            declarer.declare_stream(stream, FIELDS, direct=direct)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.rng = self.manners.rng(self.name, context.this_task_id)
        self.collector = collector
        self.held: list[Tuple] = []
        self.direct_tasks = direct_tasks(context, self.streams)

    def execute(self, tup: Tuple) -> None:
        rng, manners = self.rng, self.manners
        first = tup["attempt"] < GOOD_ATTEMPT
        if first and manners.raises(rng):
            raise ValueError("a mistake in user code")
        for _ in range(rng.choice(manners.children)):
            many = [tup, *self.held[:2]]
            anchors = rng.choice([tup, tup, many, [tup], None])
            if self.streams:
                stream = rng.choice(list(self.streams))
                send(self, stream, [tup["message"], tup["attempt"], rng.choice(KEYS)], anchors)
        if first and rng.random() < manners.fail:
            self.collector.fail(tup)
        elif first and rng.random() < manners.hold:
            self.held.append(tup)
            if rng.random() < 0.2:
                self.collector.reset_timeout(tup)
        elif not (first and rng.random() < manners.drop):
            self.collector.ack(tup)
        if len(self.held) > 5 or (self.held and not first):
            self.release()

    def release(self) -> None:
        """Ack what was held, in another order."""
        self.rng.shuffle(self.held)
        for tup in self.held:
            self.collector.ack(tup)
        self.held.clear()

    def end_of_input(self) -> None:
        self.release()
        for stream in self.streams:
            send(self, stream, [-1, GOOD_ATTEMPT, "the last"], None)


class RandomBasicBolt(BaseBasicBolt):
    """The same where the engine anchors and acks."""

    def __init__(self, name: str, manners: Manners, streams: Mapping[str, bool]) -> None:
        self.name, self.manners, self.streams = name, manners, streams

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream, direct in self.streams.items():
            declarer.declare_stream(stream, FIELDS, direct=direct)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.rng = self.manners.rng(self.name, context.this_task_id)
        self.direct_tasks = direct_tasks(context, self.streams)

    def execute(self, tup: Tuple, collector: Any) -> None:
        self.collector = collector
        first = tup["attempt"] < GOOD_ATTEMPT
        for _ in range(self.rng.choice(self.manners.children)):
            if self.streams:
                stream = self.rng.choice(list(self.streams))
                send(self, stream, [tup["message"], tup["attempt"], self.rng.choice(KEYS)])
        if first and self.rng.random() < self.manners.fail:
            raise self.rng.choice([FailedException, ReportedFailedException])("not now")


class RandomBatchBolt(BatchBolt):
    """The same a frame at a time: anchored to rows or to the whole batch, answered row by row.

    One that neither holds nor drops leaves the acks to the engine.
    """

    def __init__(self, name: str, manners: Manners, streams: Mapping[str, bool]) -> None:
        self.name, self.manners, self.streams = name, manners, streams
        self.auto_ack = not (manners.hold or manners.drop)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream, direct in self.streams.items():
            declarer.declare_stream(stream, FIELDS, direct=direct)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.rng = self.manners.rng(self.name, context.this_task_id)
        self.collector = collector
        self.held: list[tuple[Batch, int]] = []
        self.direct_tasks = direct_tasks(context, self.streams)

    def execute_batch(self, rows: list[list[Any]], batch: Batch) -> None:
        first = [n for n, (_, attempt, _) in enumerate(rows) if attempt < GOOD_ATTEMPT]
        if first and self.manners.raises(self.rng):
            raise ValueError("a mistake in user code")
        if self.streams:
            self._emit(rows)
        if not self.auto_ack:
            self._answer(rows, batch)
        elif first and self.rng.random() < self.manners.fail:
            raise self.rng.choice([FailedException, ReportedFailedException])("not now")

    def _emit(self, rows: list[list[Any]]) -> None:
        rng = self.rng
        stream = rng.choice(list(self.streams))
        sources = [n for n in range(len(rows)) for _ in range(rng.choice(self.manners.children))]
        made = [[*rows[n][:2], rng.choice(KEYS)] for n in sources]
        attempts = [attempt for _, attempt, _ in rows]
        if self.streams[stream]:
            for values, n in zip(made, sources, strict=True):
                send(self, stream, values, n)
        elif rng.random() < 0.7:
            self.collector.emit_batch(made, sources, stream)
        else:
            self.collector.emit_batch([[-1, min(attempts), rng.choice(KEYS)]], stream=stream)

    def _answer(self, rows: list[list[Any]], batch: Batch) -> None:
        rng, manners = self.rng, self.manners
        good, bad = [], []
        for n, (_, attempt, _) in enumerate(rows):
            first = attempt < GOOD_ATTEMPT
            if first and rng.random() < manners.fail:
                bad.append(n)
            elif first and rng.random() < manners.hold:
                self.held.append((batch, n))
            elif not (first and rng.random() < manners.drop):
                good.append(n)
        if bad:
            self.collector.fail(batch, bad)
        if good:
            self.collector.ack(batch, good)
            if len(good) + len(bad) < len(rows) and rng.random() < 0.2:
                self.collector.reset_timeout(batch)
        if len(self.held) > 5 or (self.held and good):
            self.release()

    def release(self) -> None:
        """Ack what was held, in another order."""
        self.rng.shuffle(self.held)
        for batch, n in self.held:
            self.collector.ack(batch, n)
        self.held.clear()

    def end_of_input(self) -> None:
        self.release()
        for stream in self.streams:
            send(self, stream, [-1, GOOD_ATTEMPT, "the last"])


def direct_tasks(context: TopologyContext, streams: Mapping[str, bool]) -> list[int]:
    """The tasks that read a direct stream of this one."""
    return [
        task
        for stream, consumers in context.this_targets.items()
        if streams[stream]
        for consumer in consumers
        for task in context.component_tasks(consumer)
    ]


def send(component: Any, stream: str, values: list[Any], *how: Any) -> None:
    """Emit on a stream of either kind."""
    if not component.streams[stream]:
        component.collector.emit(values, *how, stream=stream)
    elif component.direct_tasks:
        task = component.rng.choice(component.direct_tasks)
        component.collector.emit_direct(task, values, *how, stream=stream)
    elif how and isinstance(how[0], int):
        component.collector.emit_direct(1, values, *how, stream=stream)


def random_topology(rng: random.Random) -> tuple[TopologyBuilder, dict[str, Any], dict[str, float]]:
    """A topology, its configuration, and the seconds that each component takes for a tuple."""
    builder = TopologyBuilder()
    prefix = f"{rng.getrandbits(32):x}"
    streams_of: dict[str, Mapping[str, bool]] = {}
    conf = _random_conf(rng)
    # What is held is acked when more arrives, which a small bound may not let happen; what is
    # dropped keeps its place until it fails for its time, one after the other.
    may_hold = conf[Config.TOPOLOGY_MAX_SPOUT_PENDING] not in (1, 5)
    row_secs: dict[str, float] = {}
    shapes: list[dict[str, bool]] = [
        {"default": False},
        {"default": False, "side": False},
        {"side": False, "picked": True},
    ]
    spouts = rng.choice([1, 1, 2])
    for i in range(spouts + rng.randint(1, 4)):
        name = rng.choice("abc") + str(i)  # so that tasks are numbered in any order
        tasks = rng.randint(1, 3)
        streams = rng.choice(shapes)
        row_secs[name] = rng.choice([1e-5, 1e-5, 1e-4, 1e-3])
        if i < spouts:
            source = Source(rng.choice([0, 5, 20, 40, 80]), tracked=rng.random() < 0.85)
            spout = RandomSpout(f"{prefix} {name}", source, streams)
            builder.set_spout(name, spout, rng.randint(1, min(tasks, 2))).set_num_tasks(tasks)
        else:
            last = rng.random() < 0.3
            bolt = _random_bolt(rng, f"{prefix} {name}", {} if last else streams, may_hold)
            declarer = builder.set_bolt(name, bolt, rng.randint(1, tasks)).set_num_tasks(tasks)
            heard = rng.sample(list(streams_of), rng.randint(1, min(2, len(streams_of))))
            for before in heard:
                _subscribe(rng, declarer, before, streams_of[before])
            if last:
                continue
        streams_of[name] = streams
    return builder, conf, row_secs


def _random_bolt(
    rng: random.Random, name: str, streams: Mapping[str, bool], may_hold: bool
) -> Bolt:
    manners = Manners(
        fail=rng.choice([0, 0, 0.02, 0.1]),
        drop=rng.choice([0, 0, 0.01]) if may_hold else 0,
        hold=rng.choice([0, 0, 0.1, 0.5]) if may_hold else 0,
        error=rng.choice([0, 0, 0, 0.005]),
        children=rng.choice([(1,), (0, 1, 1), (0, 1, 1, 2)]),
    )
    make: Any = rng.choice([RandomBolt, RandomBolt, RandomBasicBolt, RandomBatchBolt])
    bolt: Bolt = make(name, manners, streams)
    return bolt


def _subscribe(
    rng: random.Random, declarer: BoltDeclarer, source: str, streams: Mapping[str, bool]
) -> None:
    for stream, direct in streams.items():
        if direct:
            declarer.direct_grouping(source, stream)
            continue
        match rng.choice(["shuffle", "shuffle", "fields", "fields", "all", "global"]):
            case "shuffle":
                declarer.shuffle_grouping(source, stream)
            case "fields":
                declarer.fields_grouping(source, rng.choice([["key"], ["key", "message"]]), stream)
            case "all":
                declarer.all_grouping(source, stream)
            case "global":
                declarer.global_grouping(source, stream)


def _random_conf(rng: random.Random) -> dict[str, Any]:
    return {
        Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: rng.choice([5, 10, 30]),
        Config.TOPOLOGY_MAX_SPOUT_PENDING: rng.choice([None, None, 1, 5, 50]),
        Config.TOPOLOGY_ACKER_EXECUTORS: rng.choice([None] * 9 + [0]),
        Config.STORM_PY_BATCH_ROWS: rng.choice([1, 4, 64, 256]),
        Config.STORM_PY_BATCH_BYTES: rng.choice([64, 65536]),
        Config.STORM_PY_BACKPRESSURE_HIGH_BYTES: rng.choice([1024, 1 << 20]),
        Config.STORM_PY_BACKPRESSURE_WINDOW_SECS: rng.choice([0.02, 0.5]),
    }
