"""Spies: what is put between the engine and a component under test, to see what passes.

A spy is a component itself: to the engine it is the user's object, to the user's object it is the
engine. It changes nothing and adds one thing: a spout's spy also emits what a test feeds it. What
it sees goes to a `Log`. Only public hooks of the base classes are used, so whatever else those
offer passes through untouched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from storm_py.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt
from storm_py.api.context import TopologyContext
from storm_py.api.tuples import Tuple
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.errors import EmitError

from .batch_spies import BatchBoltSpy
from .spying import Answer, Emitted, Log, Spying

__all__ = ["BasicBoltSpy", "BatchBoltSpy", "BoltSpy", "Emitted", "Log", "SpoutSpy", "Spy", "spy_on"]


class _Collector:
    """The engine's collector with an eye on what is emitted."""

    def __init__(self, collector: Any, spy: Any) -> None:
        self._collector = collector
        self._spy = spy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collector, name)


# ---- spouts ------------------------------------------------------------------------------------


class _SpoutCollector(_Collector):
    def emit(
        self, values: Sequence[object], msg_id: object = None, stream: str = DEFAULT_STREAM_ID
    ) -> Sequence[int]:
        tasks: Sequence[int] = self._collector.emit(values, msg_id, stream)
        self._spy.emitted(values, stream, tasks, msg_id)
        return tasks

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        msg_id: object = None,
        stream: str = DEFAULT_STREAM_ID,
    ) -> None:
        self._collector.emit_direct(task_id, values, msg_id, stream)
        self._spy.emitted(values, stream, (task_id,), msg_id)


class SpoutSpy(Spying, BaseRichSpout):
    """Between the engine and a spout; emits what is `fed` first, then lets the spout speak."""

    def __init__(self, component: BaseRichSpout, log: Log) -> None:
        super().__init__(component, log)
        self.fed: deque[tuple[Sequence[object], object, str]] = deque()
        #: why the engine refused what was fed
        self.refused: EmitError | None = None
        #: how often the spout's own next_tuple may still be called, None without end
        self.calls_left: int | None = None

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.begin(context)
        self.collector = _SpoutCollector(collector, self)
        self.component.open(conf, context, self.collector)

    def next_tuple(self) -> None:
        if self.fed:
            values, msg_id, stream = self.fed.popleft()
            try:
                self.collector.emit(values, msg_id, stream)
            except EmitError as error:
                self.refused = error
        elif self.calls_left is None:
            self.component.next_tuple()
        elif self.calls_left:
            self.calls_left -= 1
            self.component.next_tuple()

    def ack(self, msg_id: object) -> None:
        self.log.acked.append(Answer(self.component_id, self.task, msg_id))
        self.component.ack(msg_id)

    def fail(self, msg_id: object) -> None:
        self.log.failed.append(Answer(self.component_id, self.task, msg_id))
        self.component.fail(msg_id)

    def close(self) -> None:
        self.watch("close")


# ---- bolts -------------------------------------------------------------------------------------


class _BoltCollector(_Collector):
    def emit(
        self, values: Sequence[object], anchors: Any = None, stream: str = DEFAULT_STREAM_ID
    ) -> Sequence[int]:
        tasks: Sequence[int] = self._collector.emit(values, anchors, stream)
        self._spy.emitted(values, stream, tasks, anchors=anchors)
        return tasks

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        anchors: Any = None,
        stream: str = DEFAULT_STREAM_ID,
    ) -> None:
        self._collector.emit_direct(task_id, values, anchors, stream)
        self._spy.emitted(values, stream, (task_id,), anchors=anchors)

    def ack(self, tup: Tuple) -> None:
        self._collector.ack(tup)
        self._spy.unanswered.pop(id(tup), None)

    def fail(self, tup: Tuple) -> None:
        self._collector.fail(tup)
        self._spy.unanswered.pop(id(tup), None)


class BoltSpy(Spying, BaseRichBolt):
    """Between the engine and a bolt that acks by itself."""

    def __init__(self, component: BaseRichBolt, log: Log) -> None:
        super().__init__(component, log)
        self.executing: Tuple | None = None
        #: tracked tuples that were neither acked nor failed, by id()
        self.unanswered: dict[int, Tuple] = {}

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.begin(context)
        self.component.prepare(conf, context, _BoltCollector(collector, self))

    def execute(self, tup: Tuple) -> None:
        self.received(tup)
        if tup.message_id:
            self.unanswered[id(tup)] = tup
        self.executing = tup
        self.component.execute(tup)
        self.executing = None

    def end_of_input(self) -> None:
        self.watch("end_of_input")

    def cleanup(self) -> None:
        self.watch("cleanup")


class _BasicCollector(_Collector):
    def emit(self, values: Sequence[object], stream: str = DEFAULT_STREAM_ID) -> Sequence[int]:
        tasks: Sequence[int] = self._collector.emit(values, stream)
        self._spy.emitted(values, stream, tasks, anchors=self._spy.executing)
        return tasks

    def emit_direct(
        self, task_id: int, values: Sequence[object], stream: str = DEFAULT_STREAM_ID
    ) -> None:
        self._collector.emit_direct(task_id, values, stream)
        self._spy.emitted(values, stream, (task_id,), anchors=self._spy.executing)


class BasicBoltSpy(Spying, BaseBasicBolt):
    """Between the engine and a bolt with automatic acks."""

    def __init__(self, component: BaseBasicBolt, log: Log) -> None:
        super().__init__(component, log)
        self.executing: Tuple | None = None
        self._collector: Any = None

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.begin(context)
        self.component.prepare(conf, context)

    def execute(self, tup: Tuple, collector: Any) -> None:
        self.received(tup)
        self.executing = tup
        self.component.execute(tup, self._eye(collector))
        self.executing = None

    def end_of_input(self, collector: Any) -> None:
        self.executing = None  # a tuple that was failed is none of its anchors
        self.watch("end_of_input", self._eye(collector))

    def cleanup(self) -> None:
        self.watch("cleanup")

    def _eye(self, collector: Any) -> _BasicCollector:
        if self._collector is None or self._collector._collector is not collector:
            self._collector = _BasicCollector(collector, self)
        eye: _BasicCollector = self._collector
        return eye


Spy: TypeAlias = SpoutSpy | BoltSpy | BasicBoltSpy | BatchBoltSpy


def spy_on(component: object, log: Log) -> Spy:
    """A spy on a component that tells `log` what it sees."""
    if isinstance(component, BaseRichSpout):
        return SpoutSpy(component, log)
    if isinstance(component, BaseRichBolt):
        return BoltSpy(component, log)
    if isinstance(component, BaseBasicBolt):
        return BasicBoltSpy(component, log)
    if isinstance(component, BatchBolt):
        return BatchBoltSpy(component, log)
    raise TypeError(f"{component!r} is neither a spout nor a bolt")
