"""Acking in an instance: what its tasks tell the trackers, gathered per flush.

`Acks` holds records until the next flush: inits of spouts, acks merged to one value per root, fails
and resets. `anchor_row` does for a row with any anchors what the generated emit does inline for the
usual one. The edge ids come from the instance's own generator: with the module's, user code that
calls random.seed() in two bolts would make them draw the same ids, and trees would complete that
are not. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from storm_py.api.tuples import TrackedTuple, Tuple
from storm_py.core.batching import OpenBatch, Root
from storm_py.core.roots import ID_BITS, RandomBits, spout_task
from storm_py.errors import EmitError, a_type
from storm_py.wire.acks import AckRecords
from storm_py.wire.frames import Tracking

#: What one root of a row takes in the tracking columns of a frame: its id and the edge.
ROOT_BYTES: Final = 16


class Acks:
    """Records of one instance that wait for a flush; closures hold on to the containers."""

    def __init__(self, rng: RandomBits) -> None:
        self.rng = rng
        self.bits = rng.getrandbits
        self.init_roots: list[int] = []
        self.init_values: list[int] = []
        self.acks: dict[int, int] = {}
        self.fails: list[int] = []
        self.resets: list[int] = []
        #: The collector's ack.
        self.ack: Callable[[Tuple], None] = self._quick_ack()

    def __bool__(self) -> bool:
        return bool(self.init_roots or self.acks or self.fails or self.resets)

    def _quick_ack(self) -> Callable[[Tuple], None]:
        """One function for the usual tuple, with one root; the rest goes to `_ack`."""
        acks, get, general = self.acks, self.acks.get, self._ack

        def ack(tup: Tuple) -> None:
            if tup.__class__ is TrackedTuple and (root := tup.root).__class__ is int:
                if root:
                    acks[root] = get(root, 0) ^ tup.xor
                tup.root = None
            else:
                general(tup)

        return ack

    def _ack(self, tup: Tuple) -> None:
        if not isinstance(tup, TrackedTuple):
            _check_tuple(tup, "ack")
            return
        root = tup.root
        if isinstance(root, int):
            root = ((root, 0),) if root else ()
        elif root is None:
            raise _answered(tup, "acked")
        for each, edge in root:
            self.acks[each] = self.acks.get(each, 0) ^ edge ^ tup.xor
        tup.root = None

    def fail(self, tup: Tuple) -> None:
        """The collector's fail."""
        self.fails.extend(self._roots(tup, "fail", "failed"))
        if isinstance(tup, TrackedTuple):
            tup.root = None

    def reset_timeout(self, tup: Tuple) -> None:
        """The collector's reset_timeout."""
        self.resets.extend(self._roots(tup, "reset_timeout", "renewed"))

    def _roots(self, tup: Tuple, call: str, verb: str) -> list[int]:
        if not isinstance(tup, TrackedTuple):
            _check_tuple(tup, call)
            return []
        if tup.root is None:
            raise _answered(tup, verb)
        if isinstance(tup.root, int):
            return [tup.root] if tup.root else []
        return [root for root, _ in tup.root]

    def anchor_row(self, batch: OpenBatch, anchors: Sequence[TrackedTuple]) -> None:
        """Track the row appended last to `batch` as a child of every anchor (Storm's rules).

        Each anchor gets an edge of its own; the row carries, per root, the XOR of those edges.
        """
        found: dict[int, int] = {}
        for anchor in anchors:
            edge = self.bits(ID_BITS)
            anchor.xor ^= edge
            root = anchor.root
            if isinstance(root, int):
                found[root] = found.get(root, 0) ^ edge
            elif root is not None:
                for each, _ in root:
                    found[each] = found.get(each, 0) ^ edge
        found.pop(0, None)
        if len(found) == 1:
            ((root, edge),) = found.items()
            batch.track(root, edge)
        elif found:
            batch.track(tuple(found.items()), 0)
            batch.extra_bytes += ROOT_BYTES * len(found)

    def take(self, worker_of: Callable[[int], int | None]) -> Iterator[tuple[int, AckRecords]]:
        """The records by tracker: (a spout task that it hosts, records). Empty afterwards."""
        split: dict[int, tuple[list[int], ...]] = {}
        tasks: dict[int, int] = {}

        def columns(root: int) -> tuple[list[int], ...]:
            task = spout_task(root)
            worker = worker_of(task)
            if worker is None:
                return ([], [], [], [], [], [])  # of no spout that we know: nobody to tell
            tasks.setdefault(worker, task)
            return split.setdefault(worker, ([], [], [], [], [], []))

        for root, value in zip(self.init_roots, self.init_values, strict=True):
            found = columns(root)
            found[0].append(root)
            found[1].append(value)
        for root, value in self.acks.items():
            found = columns(root)
            found[2].append(root)
            found[3].append(value)
        for root in self.fails:
            columns(root)[4].append(root)
        for root in self.resets:
            columns(root)[5].append(root)
        self.clear()
        return ((tasks[worker], AckRecords(*found)) for worker, found in split.items())

    def take_all(self, task: int) -> tuple[int, AckRecords]:
        """The same where one tracker hosts every spout, `task` among them: nothing to split."""
        records = AckRecords(
            self.init_roots[:],
            self.init_values[:],
            list(self.acks),
            list(self.acks.values()),
            self.fails[:],
            self.resets[:],
        )
        self.clear()
        return task, records

    def clear(self) -> None:
        """Forget what waits."""
        for container in (self.init_roots, self.init_values, self.fails, self.resets):
            container.clear()
        self.acks.clear()


def count_roots(anchors: Sequence[TrackedTuple]) -> int:
    """How many roots a row anchored to these tuples has, at most."""
    count = len(anchors)
    for tup in anchors:
        if tup.root.__class__ is not int:
            count += len(tup.root or ()) - 1  # type: ignore[arg-type]
    return count


def anchor_list(anchors: object) -> list[TrackedTuple]:
    """What emit got as anchors, as a list of tuples that can be tracked; EmitError if it is not."""
    given = [anchors] if isinstance(anchors, Tuple) else anchors
    if not isinstance(given, (list, tuple)):
        raise EmitError(
            f"emit got anchors of type {type(anchors).__name__}; expected the input tuple or a "
            "list of input tuples (a stream id goes into stream=...)"
        )
    for anchor in given:
        if not isinstance(anchor, Tuple):
            raise EmitError(
                f"emit got {anchor!r:.80}, an anchor of type {type(anchor).__name__}, expected a "
                "Tuple; the call is emit(values, anchors)"
            )
        if isinstance(anchor, TrackedTuple) and anchor.root is None:
            raise _answered(anchor, "used as an anchor")
    return [anchor for anchor in given if isinstance(anchor, TrackedTuple)]


def _check_tuple(tup: object, call: str) -> None:
    """An untracked tuple has nobody to tell; what is no tuple at all is a mistake."""
    if not isinstance(tup, Tuple):
        raise EmitError(
            f"{call} got {a_type(tup)}; expected the input tuple that execute was given"
        )


def _answered(tup: Tuple, verb: str) -> EmitError:
    return EmitError(
        f"{tup!r} cannot be {verb}: it was acked or failed before; ack or fail each input tuple "
        "once, after the last tuple anchored to it was emitted"
    )


def tracking_columns(roots: list[Root], edges: list[int]) -> Tracking:
    """The columns of a frame, with a count per row if any row has several roots."""
    if tuple not in set(map(type, roots)):
        return Tracking(roots, edges)  # type: ignore[arg-type]
    flat_roots: list[int] = []
    flat_edges: list[int] = []
    counts: list[int] = []
    for root, edge in zip(roots, edges, strict=True):
        pairs = ((root, edge),) if isinstance(root, int) else root
        counts.append(len(pairs))
        for each, its_edge in pairs:
            flat_roots.append(each)
            flat_edges.append(its_edge)
    return Tracking(flat_roots, flat_edges, counts)
