"""The sending half of a task with everything around it in the test's hands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from storm_py.core.batching import Batcher, OpenBatch
from storm_py.core.pending import PendingTuples
from storm_py.core.plan import PhysicalPlan
from storm_py.engine.emitters import TaskOutput
from storm_py.wire import frames
from storm_py.wire.values import PLAIN, Codec
from tests.builders import (
    DIRECT,
    SHUFFLE,
    Rows,
    bolt,
    by,
    in_words,
    key_groups,
    plan_of,
    scatters,
    spout,
)

STYLES = ["spout", "bolt", "basic"]
Received = dict[int, list[tuple[str, list[object]]]]


class Producer:
    """The output of the first task of "source", and what its frames bring to whom."""

    def __init__(
        self,
        plan: PhysicalPlan,
        style: str = "spout",
        rows: int = 4,
        nbytes: int = 4096,
        max_row_bytes: int = 50_000,
        codec: Codec = PLAIN,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self.streams = plan.topology.components["source"].streams
        self.task = plan.tasks_of("source")[0]
        self.batcher = Batcher(plan.downstream_tasks("source"), rows, nbytes)
        self.frames: list[Rows] = []
        self.sizes: list[int] = []
        self.style = style
        targets = plan.targets("source", plan.executor_of(self.task), scatters(plan, "source"))
        self.output = TaskOutput(
            "source",
            self.task,
            style,
            self.streams,
            targets,
            self.batcher,
            key_groups(plan),
            max_row_bytes,
            self._flush,
            None,
            None,
            PendingTuples(None, None, 0.0),
            codec,
            log,
        )
        self.emit = self.output.emit
        self.emit_direct = self.output.emit_direct

    def _flush(self, batch: OpenBatch) -> None:
        runs, content = batch.take()
        message = frames.message_header(1, 1) + b"".join(
            frames.encode_data(1, self.task, batch.dest, 7, runs, content)
        )
        words: Any = in_words(True, message)
        self.frames += words.frames
        self.sizes.append(len(message))

    def on(self, stream: str, values: Sequence[object]) -> tuple[int, ...]:
        """Emit without a message id or anchors."""
        if self.style == "basic":
            return self.emit(values, stream)
        return self.emit(values, None, stream)

    def direct(self, task: int, stream: str, values: Sequence[object]) -> None:
        """Emit to one task."""
        if self.style == "basic":
            self.emit_direct(task, values, stream)
        else:
            self.emit_direct(task, values, None, stream)

    def received(self) -> Received:
        """Flush and tell what has arrived at each task, in order, with the stream's name."""
        for batch in list(self.batcher.open()):
            self._flush(batch)
        names = list(self.streams)
        found: Received = {}
        for frame in self.frames:
            for stream, run in frame.runs:
                found.setdefault(frame.dest, []).extend((names[stream], row) for row in run)
        return found


def words(style: str = "spout", **bounds: Any) -> Producer:
    """A producer of (word, n), counted by two tasks, with a side stream and a direct one."""
    plan = plan_of(
        spout("source", "word n; side: value; picked!: value; unheard: value"),
        bolt("count", {"source": by("word"), "source:side": SHUFFLE}, tasks=2),
        bolt("direct", {"source:picked": DIRECT}, tasks=2),
    )
    return Producer(plan, style, **bounds)
