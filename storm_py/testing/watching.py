"""Watched components: user objects between the engine and a checker.

Every stream gets one more field, the number of the emission, which the collectors below add and
`execute` takes off again, so that user code sees the tuples that it would see anyway - except that
`TopologyContext` and custom groupings know of that last field. Message ids are replaced by numbers,
because a spout may use one of its own again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from storm_py.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt
from storm_py.api.context import TopologyContext
from storm_py.api.spec import StormTopology, StreamInfo
from storm_py.api.tuples import Fields, TrackedTuple, Tuple, TupleContext
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.errors import FailedException

from .checker import Checker, Life, Reception
from .network import Died
from .watched_batches import WatchedBatchBolt

#: The name of the hidden field.
NUMBER = "__number"


def numbered(topology: StormTopology) -> StormTopology:
    """The topology with the hidden field on every stream."""
    return StormTopology(
        {
            id_: replace(
                spec,
                streams={
                    name: StreamInfo(Fields([*info.fields, NUMBER]), info.direct)
                    for name, info in spec.streams.items()
                },
            )
            for id_, spec in topology.components.items()
        }
    )


class Watch:
    """What the watchers of one task share; `spend` lets the time pass that a call takes."""

    def __init__(self, checker: Checker, life: Life, spend: Callable[[], None]) -> None:
        self.checker = checker
        self.life = life
        self.spend = spend
        self._contexts: dict[TupleContext, TupleContext] = {}
        self._held: dict[Tuple, Reception] = {}

    def take(self, tup: Tuple) -> tuple[Tuple, Reception | None]:
        """The tuple as user code knows it, and what the checker knows of it."""
        fields = tup.context.fields
        if not len(fields) or fields[-1] != NUMBER:
            return tup, None  # of the system
        context = self._contexts.get(tup.context)
        if context is None:
            it = tup.context
            context = TupleContext(
                it.source_component, it.source_stream_id, it.source_task, Fields(fields[:-1])
            )
            self._contexts[it] = context
        *values, number = tup.values
        reception = self.checker.receives(self.life, number, context.source_task)
        if isinstance(tup, TrackedTuple):
            shown: Tuple = TrackedTuple(values, context, tup.root, tup.xor)
        else:
            shown = Tuple(values, context)
        if reception is not None:
            self._held[shown] = reception
        return shown, reception

    def answer(self, tup: Tuple, acked: bool) -> None:
        """User code has acked or failed a tuple."""
        reception = self._held.pop(tup, None)
        if reception is not None:
            self.checker.answers(reception, acked)

    def receptions(self, anchors: object) -> list[Reception]:
        """What the checker knows of the anchors of an emit."""
        given = anchors if isinstance(anchors, (list, tuple)) else [anchors]
        return [self._held[tup] for tup in given if isinstance(tup, Tuple) and tup in self._held]

    def emit(
        self,
        call: Callable[[Sequence[object]], Any],
        values: Sequence[object],
        stream: str,
        anchors: Sequence[Reception] = (),
        msg_id: object = None,
        direct: int | None = None,
        number: int = 0,
    ) -> Any:
        """Emit with a number; nothing is known of it if the engine refuses."""
        number = number or self.checker.next_number()
        try:
            dests = call([*values, number])
        except Died:
            self.checker.interrupted(number, self.life, stream)
            raise
        where = dests
        if direct is not None:
            where = self.checker.direct_dests(self.life, stream, direct)
        self.checker.emitted(
            number, self.life, stream, values, where, anchors, msg_id, direct is not None
        )
        return dests


class WatchedSpout(BaseRichSpout):
    """A spout whose emits and answers are watched."""

    def __init__(self, spout: BaseRichSpout, watch: Watch) -> None:
        self.it = spout
        self._watch = watch

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.it.open(conf, context, _SpoutCollector(collector, self._watch))

    def next_tuple(self) -> None:
        self._watch.spend()
        self.it.next_tuple()

    def ack(self, msg_id: object) -> None:
        self.it.ack(self._watch.checker.answered(self._watch.life, msg_id, "acked"))

    def fail(self, msg_id: object) -> None:
        self.it.fail(self._watch.checker.answered(self._watch.life, msg_id, "failed"))

    def activate(self) -> None:
        self.it.activate()

    def deactivate(self) -> None:
        self.it.deactivate()

    def close(self) -> None:
        self.it.close()


class WatchedBolt(BaseRichBolt):
    """A bolt whose input, emits, acks and fails are watched."""

    def __init__(self, bolt: BaseRichBolt, watch: Watch) -> None:
        self.it = bolt
        self._watch = watch

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.it.prepare(conf, context, _BoltCollector(collector, self._watch))

    def execute(self, tup: Tuple) -> None:
        self._watch.spend()
        self.it.execute(self._watch.take(tup)[0])

    def end_of_input(self) -> None:
        self._watch.checker.ended(self._watch.life)
        self.it.end_of_input()

    def cleanup(self) -> None:
        self.it.cleanup()


class WatchedBasicBolt(BaseBasicBolt):
    """A basic bolt, whose tuples count as acked when `execute` returns."""

    def __init__(self, bolt: BaseBasicBolt, watch: Watch) -> None:
        self.it = bolt
        self._watch = watch

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.it.prepare(conf, context)

    def execute(self, tup: Tuple, collector: Any) -> None:
        self._watch.spend()
        shown, reception = self._watch.take(tup)
        anchors = [] if reception is None else [reception]
        try:
            self.it.execute(shown, _BasicCollector(collector, self._watch, anchors))
        except FailedException:
            self._watch.answer(shown, acked=False)
            raise
        self._watch.answer(shown, acked=True)

    def end_of_input(self, collector: Any) -> None:
        self._watch.checker.ended(self._watch.life)
        self.it.end_of_input(_BasicCollector(collector, self._watch, []))

    def cleanup(self) -> None:
        self.it.cleanup()


def watched(
    component: object, checker: Checker, life: Life, spend: Callable[[], None]
) -> WatchedSpout | WatchedBolt | WatchedBasicBolt | WatchedBatchBolt:
    """The user's object of one incarnation of a task, watched."""
    watch = Watch(checker, life, spend)
    if isinstance(component, BaseRichSpout):
        return WatchedSpout(component, watch)
    if isinstance(component, BaseRichBolt):
        return WatchedBolt(component, watch)
    if isinstance(component, BaseBasicBolt):
        return WatchedBasicBolt(component, watch)
    if isinstance(component, BatchBolt):
        return WatchedBatchBolt(component, watch)
    raise TypeError(f"{type(component).__name__} is neither a spout nor a bolt")


# ---- collectors --------------------------------------------------------------------------------


class _Collector:
    """What all collectors have in common: the rest of the real one as it is."""

    def __init__(self, real: Any, watch: Watch) -> None:
        self._real = real
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _SpoutCollector(_Collector):
    def emit(
        self, values: Sequence[object], msg_id: object = None, stream: str = DEFAULT_STREAM_ID
    ) -> Any:
        number = self._watch.checker.next_number()
        sent_id = None if msg_id is None else number
        return self._watch.emit(
            lambda row: self._real.emit(row, sent_id, stream),
            values,
            stream,
            msg_id=msg_id,
            number=number,
        )

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        msg_id: object = None,
        stream: str = DEFAULT_STREAM_ID,
    ) -> None:
        number = self._watch.checker.next_number()
        sent_id = None if msg_id is None else number
        self._watch.emit(
            lambda row: self._real.emit_direct(task_id, row, sent_id, stream),
            values,
            stream,
            msg_id=msg_id,
            direct=task_id,
            number=number,
        )


class _BoltCollector(_Collector):
    def emit(
        self, values: Sequence[object], anchors: Any = None, stream: str = DEFAULT_STREAM_ID
    ) -> Any:
        return self._watch.emit(
            lambda row: self._real.emit(row, anchors, stream),
            values,
            stream,
            self._watch.receptions(anchors),
        )

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        anchors: Any = None,
        stream: str = DEFAULT_STREAM_ID,
    ) -> None:
        self._watch.emit(
            lambda row: self._real.emit_direct(task_id, row, anchors, stream),
            values,
            stream,
            self._watch.receptions(anchors),
            direct=task_id,
        )

    def ack(self, tup: Tuple) -> None:
        self._real.ack(tup)
        self._watch.answer(tup, acked=True)

    def fail(self, tup: Tuple) -> None:
        self._real.fail(tup)
        self._watch.answer(tup, acked=False)


class _BasicCollector(_Collector):
    def __init__(self, real: Any, watch: Watch, anchors: Sequence[Reception]) -> None:
        super().__init__(real, watch)
        self._anchors = anchors

    def emit(self, values: Sequence[object], stream: str = DEFAULT_STREAM_ID) -> Any:
        return self._watch.emit(
            lambda row: self._real.emit(row, stream), values, stream, self._anchors
        )

    def emit_direct(
        self, task_id: int, values: Sequence[object], stream: str = DEFAULT_STREAM_ID
    ) -> None:
        self._watch.emit(
            lambda row: self._real.emit_direct(task_id, row, stream),
            values,
            stream,
            self._anchors,
            direct=task_id,
        )
