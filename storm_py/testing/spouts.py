"""Spouts for tests: one that is fed by the test, one that emits given tuples until all are acked.

They mirror Storm's ``FeederSpout`` and ``FixedTupleSpout``. Both work wherever a spout works; what
a test keeps of a `FeederSpout` is shared with its copies in the same process only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storm_py.api.collector import SpoutOutputCollector
from storm_py.api.component import BaseRichSpout
from storm_py.api.context import TopologyContext
from storm_py.api.declarers import OutputFieldsDeclarer
from storm_py.constants import DEFAULT_STREAM_ID

from .shared import Shared

__all__ = ["FeederSpout", "FixedTuple", "FixedTupleSpout"]


@dataclass(frozen=True, slots=True)
class FixedTuple:
    """Values and the stream to emit them on, where that is not the default stream."""

    values: Sequence[object]
    stream: str = DEFAULT_STREAM_ID


class _Source(BaseRichSpout):
    """A spout whose streams are arguments."""

    def __init__(
        self, fields: str | Iterable[str] | None, streams: Mapping[str, str | Iterable[str]] | None
    ) -> None:
        self._streams = dict(streams or {})
        if fields is not None:
            self._streams = {DEFAULT_STREAM_ID: fields, **self._streams}

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream, fields in self._streams.items():
            declarer.declare_stream(stream, fields)


class _Feed(Shared):
    """What a feeder and its copies share."""

    label = "FeederSpout"

    def __init__(self) -> None:
        super().__init__()
        self.waiting: deque[tuple[list[object], object, str]] = deque()
        self.acked: list[object] = []
        self.failed: list[object] = []
        self.ended = False


class FeederSpout(_Source):
    """A spout that emits what the test feeds it, and keeps which message ids were acked or failed.

    ``fields`` are those of the default stream, ``streams`` those of others by id. All tasks and
    copies share one queue, and so does the object that the test holds.
    """

    def __init__(
        self,
        fields: str | Iterable[str] | None = None,
        streams: Mapping[str, str | Iterable[str]] | None = None,
    ) -> None:
        """Declare the streams; nothing is emitted before it is fed."""
        super().__init__(fields, streams)
        self._feed = _Feed()

    def feed(
        self, values: Sequence[object], msg_id: object = None, stream: str = DEFAULT_STREAM_ID
    ) -> None:
        """Emit ``values`` at the next chance; tracked if there is a ``msg_id``."""
        self._feed.waiting.append((list(values), msg_id, stream))

    def end(self) -> None:
        """End the input behind all that was fed."""
        self._feed.ended = True

    @property
    def acked(self) -> list[object]:
        """The message ids that were acked, in order."""
        return list(self._feed.acked)

    @property
    def failed(self) -> list[object]:
        """The message ids that were failed, in order; feed them again if you want them replayed."""
        return list(self._feed.failed)

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self._collector = collector
        self._own = self._feed.waiting  # in another process this says why it cannot work

    def next_tuple(self) -> None:
        if self._own:
            values, msg_id, stream = self._own.popleft()
            self._collector.emit(values, msg_id, stream)
        elif self._feed.ended:
            self._collector.end_of_input()

    def ack(self, msg_id: object) -> None:
        self._feed.acked.append(msg_id)

    def fail(self, msg_id: object) -> None:
        self._feed.failed.append(msg_id)


class FixedTupleSpout(_Source):
    """A spout that emits given tuples, each again when it fails, and ends when all are acked.

    ``tuples`` are lists of values, or ``FixedTuple`` for another stream. Message ids are positions
    in ``tuples``. Several tasks deal the tuples out among themselves in turn, as in Storm. A tuple
    that failed ``max_fails`` times is not emitted again, so the input does not end.
    """

    def __init__(
        self,
        tuples: Iterable[Sequence[object] | FixedTuple],
        fields: str | Iterable[str] | None = None,
        streams: Mapping[str, str | Iterable[str]] | None = None,
        max_fails: int | None = None,
    ) -> None:
        """Take the tuples; ``fields`` and ``streams`` are those of ``FeederSpout``."""
        super().__init__(fields, streams)
        self.tuples = [t if isinstance(t, FixedTuple) else FixedTuple(list(t)) for t in tuples]
        #: message id -> how often it failed
        self.fails: dict[int, int] = {}
        self._max_fails = float("inf") if max_fails is None else max_fails
        self._waiting: deque[int] = deque()
        self._open = 0

    @property
    def completed(self) -> bool:
        """Whether every tuple of this task was acked."""
        return not self._open

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self._collector = collector
        tasks = len(context.component_tasks(context.this_component_id))
        self._waiting = deque(range(context.this_task_index, len(self.tuples), tasks))
        self._open = len(self._waiting)
        if not self._open:
            collector.end_of_input()

    def next_tuple(self) -> None:
        if self._waiting:
            position = self._waiting.popleft()
            fixed = self.tuples[position]
            self._collector.emit(fixed.values, position, fixed.stream)

    def ack(self, msg_id: object) -> None:
        self._open -= 1
        if not self._open:
            self._collector.end_of_input()

    def fail(self, msg_id: object) -> None:
        assert isinstance(msg_id, int)
        fails = self.fails[msg_id] = self.fails.get(msg_id, 0) + 1
        if fails < self._max_fails:
            self._waiting.append(msg_id)
