"""RandomBatchBolt: the batch bolt among the random components of a `Simulation`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from storm_py.api.batches import Batch
from storm_py.api.component import BatchBolt
from storm_py.api.context import TopologyContext
from storm_py.api.declarers import OutputFieldsDeclarer
from storm_py.errors import FailedException, ReportedFailedException

from .random_components import (
    DELAYS,
    FIELDS,
    GOOD_ATTEMPT,
    KEYS,
    Later,
    Manners,
    Mistake,
    direct_tasks,
    measured,
    send,
)


class RandomBatchBolt(BatchBolt):
    """As `RandomBolt`, a frame at a time: anchored to rows or to the whole batch.

    One that neither holds nor drops, and lends nothing to another thread, leaves the acks to the
    engine.
    """

    def __init__(
        self, name: str, manners: Manners, streams: Mapping[str, bool], later: Later
    ) -> None:
        self.name, self.manners, self.streams, self.later = name, manners, streams, later
        self.auto_ack = not (manners.hold or manners.drop or manners.later)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        for stream, direct in self.streams.items():
            declarer.declare_stream(stream, FIELDS, direct=direct)

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: Any) -> None:
        self.rng = self.manners.rng(self.name, context.this_task_id)
        self.collector = collector
        self.context = context
        self.seen = measured(context)
        self.held: list[tuple[Batch, int]] = []
        #: what rows in the hands of another thread held, in the order in which they came there
        self.lent: dict[tuple[Batch, int], list[Any]] = {}
        self.direct_tasks = direct_tasks(context, self.streams)

    def execute_batch(self, rows: list[list[Any]], batch: Batch) -> None:
        self.seen.incr()
        if batch.is_tick:
            self.tick()
            return
        first = [n for n, (_, attempt, _) in enumerate(rows) if attempt < GOOD_ATTEMPT]
        if first and self.manners.raises(self.rng):
            raise Mistake("a mistake in user code")
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
            elif rng.random() < manners.later:
                self.lent[batch, n] = rows[n]
                done = partial(self.context.call_soon, self.finish, batch, n)
                self.later(rng.choice(DELAYS), done)
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

    def tick(self) -> None:
        """By the clock: release what was held, or emit on behalf of nobody."""
        if self.rng.random() < 0.5:
            self.release()
        elif self.streams:
            stream = self.rng.choice(list(self.streams))
            send(self, stream, [-1, GOOD_ATTEMPT, "a tick"])

    def finish(self, batch: Batch, n: int) -> None:
        """Another thread is done with a row."""
        values = self.lent.pop((batch, n), None)
        if values is None:
            return  # the input has ended before
        made = [[*values[:2], "from another thread"]]
        stream = self.rng.choice([*self.streams, None])
        if stream is not None and not self.streams[stream]:
            self.collector.emit_batch(made, [n], stream, batch)
        self.collector.ack(batch, n)

    def release(self) -> None:
        """Ack what was held, in another order."""
        self.rng.shuffle(self.held)
        for batch, n in self.held:
            self.collector.ack(batch, n)
        self.held.clear()

    def end_of_input(self) -> None:
        self.release()
        for batch, n in list(self.lent):
            self.finish(batch, n)
        for stream in self.streams:
            send(self, stream, [-1, GOOD_ATTEMPT, "the last"])
