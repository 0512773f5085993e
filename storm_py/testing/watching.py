"""Watched components: user objects between the engine and a checker.

Every stream gets one more field, the number of the emission, which collectors add and `execute` and
custom groupings do not see (`storm_py.testing.watch`), so that user code sees the tuples that it
would see anyway - except that `TopologyContext` knows of that last field. Message ids are replaced
by numbers, because a spout may use one of its own again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from storm_py.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt
from storm_py.api.context import TopologyContext
from storm_py.api.grouping import CustomStreamGrouping
from storm_py.api.spec import StormTopology, StreamInfo
from storm_py.api.tuples import Fields, GlobalStreamId, Tuple, Value
from storm_py.constants import RESERVED_PREFIX
from storm_py.errors import FailedException

from .checker import Checker
from .watch import NUMBER, BasicCollector, BoltCollector, SpoutCollector, Watch
from .watched_batches import WatchedBatchBolt


def numbered(topology: StormTopology) -> StormTopology:
    """The topology with the hidden field on every stream of the user's."""
    return StormTopology(
        {
            id_: replace(
                spec,
                streams={
                    name: info
                    if name.startswith(RESERVED_PREFIX)
                    else StreamInfo(Fields([*info.fields, NUMBER]), info.direct)
                    for name, info in spec.streams.items()
                },
            )
            for id_, spec in topology.components.items()
        }
    )


class WatchedSpout(BaseRichSpout):
    """A spout whose emits and answers are watched."""

    def __init__(self, spout: BaseRichSpout, watch: Watch) -> None:
        self.it = spout
        self.watch = watch

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.it.open(conf, context, SpoutCollector(collector, self.watch))

    def next_tuple(self) -> None:
        self.watch.calls("next_tuple")
        self.watch.spend()
        self.it.next_tuple()

    def ack(self, msg_id: object) -> None:
        self.watch.calls("ack")
        self.it.ack(self.watch.checker.answered(self.watch.life, msg_id, "acked"))

    def fail(self, msg_id: object) -> None:
        self.watch.calls("fail")
        self.it.fail(self.watch.checker.answered(self.watch.life, msg_id, "failed"))

    def activate(self) -> None:
        self.watch.calls("activate")
        self.it.activate()

    def deactivate(self) -> None:
        self.watch.calls("deactivate")
        self.it.deactivate()

    def close(self) -> None:
        self.it.close()


class WatchedBolt(BaseRichBolt):
    """A bolt whose input, emits, acks and fails are watched."""

    def __init__(self, bolt: BaseRichBolt, watch: Watch) -> None:
        self.it = bolt
        self.watch = watch

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.it.prepare(conf, context, BoltCollector(collector, self.watch))

    def execute(self, tup: Tuple) -> None:
        shown, _ = self.watch.take(tup)
        with self.watch.executing(shown):
            self.it.execute(shown)

    def end_of_input(self) -> None:
        self.watch.calls("end_of_input")
        self.watch.checker.ended(self.watch.life)
        self.it.end_of_input()

    def cleanup(self) -> None:
        self.it.cleanup()


class WatchedBasicBolt(BaseBasicBolt):
    """A basic bolt, whose tuples count as acked when `execute` returns."""

    def __init__(self, bolt: BaseBasicBolt, watch: Watch) -> None:
        self.it = bolt
        self.watch = watch

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.it.prepare(conf, context)

    def execute(self, tup: Tuple, collector: Any) -> None:
        shown, reception = self.watch.take(tup)
        anchors = [] if reception is None else [reception]
        try:
            with self.watch.executing(shown):
                self.it.execute(shown, BasicCollector(collector, self.watch, anchors))
        except FailedException:
            self.watch.answer(shown, acked=False)
            raise
        self.watch.answer(shown, acked=True)

    def end_of_input(self, collector: Any) -> None:
        self.watch.calls("end_of_input")
        self.watch.checker.ended(self.watch.life)
        self.it.end_of_input(BasicCollector(collector, self.watch, []))

    def cleanup(self) -> None:
        self.it.cleanup()


class WatchedGrouping(CustomStreamGrouping):
    """A custom grouping whose answers the checker learns."""

    def __init__(self, grouping: CustomStreamGrouping, checker: Checker, consumer: str) -> None:
        self._it = grouping
        self._checker = checker
        self._consumer = consumer

    def prepare(
        self, context: TopologyContext, stream: GlobalStreamId, target_tasks: list[int]
    ) -> None:
        self._it.prepare(context, stream, target_tasks)

    def choose_tasks(self, task_id: int, values: list[Value]) -> Sequence[int]:
        *own, number = values
        answer = self._it.choose_tasks(task_id, own)
        assert isinstance(number, int)
        self._checker.chose(number, self._consumer, answer)
        return answer


def watched_grouping(
    grouping: CustomStreamGrouping, checker: Checker, consumer: str
) -> WatchedGrouping:
    """One task's copy of a user's grouping, watched; errors call it by the name of its class."""
    named: type[WatchedGrouping] = type(type(grouping).__name__, (WatchedGrouping,), {})
    return named(grouping, checker, consumer)


def watched(component: object, watch: Watch) -> object:
    """The user's object of one incarnation of a task, watched."""
    if isinstance(component, BaseRichSpout):
        return WatchedSpout(component, watch)
    if isinstance(component, BaseRichBolt):
        return WatchedBolt(component, watch)
    if isinstance(component, BaseBasicBolt):
        return WatchedBasicBolt(component, watch)
    if isinstance(component, BatchBolt):
        return WatchedBatchBolt(component, watch)
    raise TypeError(f"{type(component).__name__} is neither a spout nor a bolt")
