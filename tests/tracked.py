"""One producing task with acking on, and Storm's rules of tracking as they are written down.

`Producer` is the real, generated output of a task; what it emitted is read back from the bytes of
its frames. `Plain` states Storm's rules with a map of roots to edges for each tuple; it draws its
edges from a generator with the same seed, so that a test can compare both sides exactly.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy

from hypothesis import strategies as st

from storm_py.api.grouping import KEYED, GroupingKind
from storm_py.api.spec import StreamInfo
from storm_py.api.tuples import Fields, TrackedTuple, TupleContext
from storm_py.core.batching import Batcher, OpenBatch
from storm_py.core.pending import PendingTuples
from storm_py.core.roots import ID_BITS, Roots
from storm_py.core.routing import Router, Target
from storm_py.engine.acking import Acks, tracking_columns
from storm_py.engine.emitters import TaskOutput
from storm_py.wire import frames, values
from tests.builders import Scatter

TASK, GROUPS = 4, 64
CONTEXT = TupleContext("words", "default", 1, Fields("word"))
STREAMS = {
    "default": StreamInfo(Fields("a", "b")),
    "side": StreamInfo(Fields("c")),
    "picked": StreamInfo(Fields("d"), direct=True),
}
CONSUMERS = {"one": (10,), "two": (11, 12), "three": (13, 14, 15)}
DESTS = [task for tasks in CONSUMERS.values() for task in tasks]

#: A row as it arrives: stream, values, root -> edge.
Row = tuple[str, list[object], dict[int, int]]
Targets = Mapping[str, Sequence[Target]]


def target(component: str, kind: GroupingKind) -> Target:
    """A subscription of a component; keys are the first field, the last task is the local one."""
    tasks = CONSUMERS[component]
    near = tasks[-1:] if kind is GroupingKind.LOCAL_OR_SHUFFLE else ()
    custom = Scatter(tasks) if kind is GroupingKind.CUSTOM else None
    return Target(component, kind, tasks, (0,) if kind in KEYED else (), near, custom)


class Producer:
    """One task's output with acking on; `received` reads back the frames it made."""

    def __init__(
        self,
        style: str,
        targets: Targets,
        seed: int = 1,
        rows: int = 3,
        acking: bool = True,
        max_row_bytes: int = 5000,
        log: Callable[[str], None] | None = None,
        output: type[TaskOutput] = TaskOutput,
    ) -> None:
        self.received: dict[int, list[Row]] = {dest: [] for dest in DESTS}
        self.multi_frames = self.plain_frames = 0
        self.acks = Acks(random.Random(seed))
        self.pending = PendingTuples(None, None, 0.0)
        self.batcher = Batcher(DESTS, rows, 3000)
        self.output = output(
            "words",
            TASK,
            style,
            STREAMS,
            {**dict.fromkeys(STREAMS, ()), **targets},
            self.batcher,
            GROUPS,
            max_row_bytes,
            self._flush,
            self.acks if acking else None,
            Roots(TASK, self.acks.rng) if acking and style == "spout" else None,
            self.pending,
            log=log,
        )
        self.emit: Callable[..., tuple[int, ...]] = self.output.emit
        self.emit_direct: Callable[..., None] = self.output.emit_direct

    def _flush(self, batch: OpenBatch) -> None:
        tracked = batch.take_tracking()
        runs, rows = batch.take()
        tracking = None if tracked is None else tracking_columns(*tracked)
        buf = b"".join(frames.encode_data(1, TASK, batch.dest, 0, runs, rows, tracking))
        (frame,) = frames.frames(buf, 0)
        found, _ = frames.read_tracking(buf, frame)
        self.multi_frames += bool(frame.flags & frames.FLAG_MULTI)
        self.plain_frames += frame.flags == 0
        decoded_runs, packed = frames.decode_data(buf, frame)
        streams = [list(STREAMS)[stream] for stream, count in decoded_runs for _ in range(count)]
        ids = self._ids(found, len(streams))
        self.received[batch.dest] += zip(
            streams, values.PLAIN.unpack_rows(packed), ids, strict=True
        )

    @staticmethod
    def _ids(tracking: frames.Tracking | None, rows: int) -> list[dict[int, int]]:
        if tracking is None:
            return [{} for _ in range(rows)]
        pairs = iter(zip(tracking.roots, tracking.edges, strict=True))
        counts = tracking.counts or [1] * rows
        return [{r: e for r, e in (next(pairs) for _ in range(n)) if r} for n in counts]

    def flush(self) -> dict[int, list[Row]]:
        """Everything emitted so far, by destination."""
        for batch in list(self.batcher.open()):
            self._flush(batch)
        self.batcher.check()
        return self.received


class PlainTuple:
    """Storm's tuple: its ids by root, and the value that its ack will add to each."""

    def __init__(self, ids: dict[int, int]) -> None:
        self.ids = ids
        self.ack_val = 0
        self.answered = False


class Plain:
    """Storm's rules, as they are written down."""

    def __init__(self, targets: Targets, seed: int, roots: bool = False) -> None:
        self._rng = random.Random(seed)
        self._roots = Roots(TASK, self._rng) if roots else None
        targets = deepcopy(
            targets
        )  # custom groupings remember: these are no business of a Producer
        self._targets = targets
        self._router = Router(
            {name: found for name, found in targets.items() if name != "picked"}, GROUPS, TASK
        )
        self.received: dict[int, list[Row]] = {dest: [] for dest in DESTS}
        self.acks: dict[int, int] = {}
        self.fails: list[int] = []
        self.inits: list[tuple[int, int]] = []
        self.acked: list[object] = []

    def dests(self, stream: str, row: list[object], direct: int | None) -> tuple[int, ...]:
        """Where a row goes."""
        if direct is None:
            return self._router.route(stream, row)
        known = any(direct in found.tasks for found in self._targets.get(stream, ()))
        return (direct,) if known else ()

    def emit_from_spout(
        self, stream: str, row: list[object], msg_id: object, direct: int | None = None
    ) -> tuple[int, ...]:
        """A spout emits: a tree of its own for each message id."""
        dests = self.dests(stream, row, direct)
        if msg_id is not None and not dests:
            self.acked.append(msg_id)
        assert self._roots is not None
        tracked = msg_id is not None and bool(dests)
        # A root is spent also where nobody listens, but not on a direct emit.
        root = self._roots.next() if msg_id is not None and (dests or direct is None) else 0
        value = 0
        for dest in dests:
            edge = self._rng.getrandbits(ID_BITS) if tracked else 0
            value ^= edge
            self.received[dest].append((stream, row, {root: edge} if tracked else {}))
        if tracked:
            self.inits.append((root, value))
        return dests

    def emit(
        self,
        stream: str,
        row: list[object],
        anchors: Sequence[PlainTuple],
        direct: int | None = None,
    ) -> tuple[int, ...]:
        """A bolt emits: for each copy and anchor an edge, known to all roots of the anchor."""
        dests = self.dests(stream, row, direct)
        for dest in dests:
            ids: dict[int, int] = {}
            for anchor in anchors:
                edge = self._rng.getrandbits(ID_BITS)
                anchor.ack_val ^= edge
                for root in anchor.ids:
                    ids[root] = ids.get(root, 0) ^ edge
            self.received[dest].append((stream, row, ids))
        return dests

    def ack(self, tup: PlainTuple) -> None:
        """A bolt acks."""
        for root, edge in tup.ids.items():
            self.acks[root] = self.acks.get(root, 0) ^ edge ^ tup.ack_val

    def fail(self, tup: PlainTuple) -> None:
        """A bolt fails."""
        self.fails += tup.ids


def tracked(ids: Mapping[int, int]) -> TrackedTuple:
    """A tuple as the instance makes it of a row with these ids."""
    if len(ids) == 1:
        ((root, edge),) = ids.items()
        return TrackedTuple(["storm"], CONTEXT, root, edge)
    return TrackedTuple(["storm"], CONTEXT, tuple(ids.items()) if ids else 0, 0)


KINDS = [kind for kind in GroupingKind if kind is not GroupingKind.DIRECT]


@st.composite
def topologies(draw: st.DrawFn) -> dict[str, list[Target]]:
    """Per stream its consumers, each with a grouping; "picked" is direct."""
    found: dict[str, list[Target]] = {}
    for stream in STREAMS:
        kinds = st.sampled_from(KINDS if stream != "picked" else [GroupingKind.DIRECT])
        chosen = draw(st.dictionaries(st.sampled_from(sorted(CONSUMERS)), kinds, max_size=3))
        found[stream] = [target(component, kind) for component, kind in chosen.items()]
    return found
