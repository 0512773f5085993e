"""Random components: what a random topology of a `Simulation` is made of.

The spouts replay what fails until all of it is acked, and know after a restart what was; the bolts
ack at once, late, in another order, on behalf of another thread, or fail, keep or drop tuples and
raise errors - but only the first attempts of a message, so that every message can be finished in
the end. What another thread would do happens between any two steps of the simulation.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from storm_py.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout
from storm_py.api.context import TopologyContext
from storm_py.api.declarers import OutputFieldsDeclarer
from storm_py.api.grouping import CustomStreamGrouping
from storm_py.api.metrics import CountMetric, DataPoint, MetricsConsumer, TaskInfo
from storm_py.api.tuples import GlobalStreamId, Tuple
from storm_py.errors import FailedException, ReportedFailedException

#: Has something done after so many seconds, as a thread of the user's would.
Later: TypeAlias = Callable[[float, Callable[[], object]], None]

#: From this attempt on bolts behave.
GOOD_ATTEMPT = 2
KEYS = ["x", "y", 1, -7, ("z", 2), None, 0.5]
FIELDS = ["message", "attempt", "key"]
#: Seconds that another thread takes.
DELAYS = [0.0, 0.0001, 0.01, 0.5]


class Mistake(Exception):
    """What the bolts below raise, as user code does that has a mistake."""


@dataclass
class Source:
    """What a spout's tuples come from: it outlives the spout, as a file or a queue would."""

    messages: int
    tracked: bool
    #: how often another thread emits
    pushed: float = 0.0
    #: per task, how often each message that was not acked has been emitted
    attempts: dict[int, dict[int, int]] = field(default_factory=dict)

    def of(self, task: int) -> dict[int, int]:
        """The messages of a task that were not acked."""
        return self.attempts.setdefault(task, dict.fromkeys(range(self.messages), 0))

    def __deepcopy__(self, memo: object) -> Source:
        return self


class RandomSpout(BaseRichSpout):
    """Emits the messages of its source, and once more what fails; some for another thread."""

    def __init__(
        self, name: str, source: Source, streams: Mapping[str, bool], later: Later
    ) -> None:
        self.name, self.source, self.streams, self.later = name, source, streams, later

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream, direct in self.streams.items():
            declarer.declare_stream(stream, FIELDS, direct=direct)

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.rng = random.Random(f"{self.name} {context.this_task_id}")
        self.context = context
        self.collector = collector
        self.emitted = measured(context)
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
        elif self.rng.random() < self.source.pushed:
            self.later(self.rng.choice(DELAYS), partial(self.context.call_soon, self.push))

    def push(self) -> None:
        """Another thread wants a message emitted."""
        if self.todo and not self.done:
            self._emit(self.todo.popleft())

    def _emit(self, message: int) -> None:
        self.emitted.incr()
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
    #: how often another thread acks
    later: float = 0.0
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

    def __init__(
        self, name: str, manners: Manners, streams: Mapping[str, bool], later: Later
    ) -> None:
        self.name, self.manners, self.streams, self.later = name, manners, streams, later

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream, direct in self.streams.items():
            declarer.declare_stream(stream, FIELDS, direct=direct)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.rng = self.manners.rng(self.name, context.this_task_id)
        self.collector = collector
        self.context = context
        self.seen = measured(context)
        self.held: list[Tuple] = []
        #: in the hands of another thread, in the order in which they came there
        self.lent: dict[Tuple, None] = {}
        self.direct_tasks = direct_tasks(context, self.streams)

    def execute(self, tup: Tuple) -> None:
        rng, manners = self.rng, self.manners
        self.seen.incr()
        if tup.is_tick:
            self.tick()
            return
        first = tup["attempt"] < GOOD_ATTEMPT
        if first and manners.raises(rng):
            raise Mistake("a mistake in user code")
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
        elif rng.random() < manners.later:
            self.lent[tup] = None
            self.later(rng.choice(DELAYS), partial(self.context.call_soon, self.finish, tup))
        elif not (first and rng.random() < manners.drop):
            self.collector.ack(tup)
        if len(self.held) > 5 or (self.held and not first):
            self.release()

    def tick(self) -> None:
        """By the clock: release what was held, or emit on behalf of nobody."""
        if self.rng.random() < 0.5:
            self.release()
        elif self.streams:
            values = [-1, GOOD_ATTEMPT, "a tick"]
            send(self, self.rng.choice(list(self.streams)), values, None)

    def finish(self, tup: Tuple) -> None:
        """Another thread is done with a tuple."""
        if tup not in self.lent:
            return  # the input has ended before
        del self.lent[tup]
        if self.streams:
            values = [tup["message"], tup["attempt"], "from another thread"]
            send(self, self.rng.choice(list(self.streams)), values, tup)
        self.collector.ack(tup)

    def release(self) -> None:
        """Ack what was held, in another order."""
        self.rng.shuffle(self.held)
        for tup in self.held:
            self.collector.ack(tup)
        self.held.clear()

    def end_of_input(self) -> None:
        self.release()
        for tup in list(self.lent):
            self.finish(tup)
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
        if tup.is_tick:
            for stream in self.streams:
                send(self, stream, [-1, GOOD_ATTEMPT, "a tick"])
            return
        first = tup["attempt"] < GOOD_ATTEMPT
        for _ in range(self.rng.choice(self.manners.children)):
            if self.streams:
                stream = self.rng.choice(list(self.streams))
                send(self, stream, [tup["message"], tup["attempt"], self.rng.choice(KEYS)])
        if first and self.rng.random() < self.manners.fail:
            raise self.rng.choice([FailedException, ReportedFailedException])("not now")


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


class RandomGrouping(CustomStreamGrouping):
    """Chooses nobody, one task, several, or one twice."""

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(
        self, context: TopologyContext, stream: GlobalStreamId, target_tasks: list[int]
    ) -> None:
        self.rng = random.Random(f"{self.name} {context.this_task_id} {stream}")
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: list[Any]) -> list[int]:
        return self.rng.choices(self.tasks, k=self.rng.choice([0, 1, 1, 1, 2, 3]))


class NoConsumer(MetricsConsumer):
    """Listens to metrics and thinks its part."""

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        assert task_info.src_component_id
        assert [point.name for point in data_points] == ["seen"]


def measured(context: TopologyContext) -> CountMetric:
    """A metric of every task."""
    return context.register_metric("seen", CountMetric(), 0.25)
