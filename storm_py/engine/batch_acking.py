"""Acking whole batches: what a batch bolt answers, and how its emits are anchored to rows.

The rows of a `Batch` follow the rules of single tuples (`storm_py.engine.acking`), a column at a
time: `roots` says which trees a row belongs to, `edges` what its ack will tell the tracker. Where
rows are anchored to a whole batch of many trees, each copy carries one edge that counts in all of
them: edges cancel tree by tree, so a tree sees no more of it than if it had an edge of its own.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import repeat
from operator import index, xor
from typing import Any, Final, Protocol

from storm_py.api.batches import Batch, RowRoot
from storm_py.core.batching import Root
from storm_py.core.roots import ID_BITS
from storm_py.errors import EmitError, a_type

from .acking import Acks

#: Edges drawn at a time, as one random number: a fraction of the price of one by one.
_POOL: Final = 512
_POOL_MASK: Final = int.from_bytes(((1 << ID_BITS) - 1).to_bytes(8, "little") * _POOL, "little")

#: The roots and the edges of rows.
Columns = tuple[list[Root], list[int]]


class Anchors(Protocol):
    """What the rows of one emit are anchored to."""

    #: roots that a row may have, at most
    most_roots: int

    def columns(self, picked: Sequence[int]) -> Columns:
        """One more copy of the emitted rows at these positions goes out: its roots and edges.

        The input rows learn of the edges.
        """


class BatchAcks:
    """The answers of the batch bolts of one instance, merged into its records."""

    def __init__(self, acks: Acks) -> None:
        self._acks = acks
        self._pool: list[int] = []

    def draw(self, count: int) -> list[int]:
        """New edge ids."""
        pool = self._pool
        while len(pool) < count:
            drawn = self._acks.bits(64 * _POOL) & _POOL_MASK
            pool += memoryview(drawn.to_bytes(8 * _POOL, "little")).cast("Q").tolist()
        found = pool[len(pool) - count :]
        del pool[len(pool) - count :]
        return found

    # ---- answers -------------------------------------------------------------------------------

    def ack(self, batch: Batch, rows: int | Sequence[int] | None = None) -> None:
        """The collector's ack."""
        self._answer(batch, rows, "ack", "acked", self._ack_rows)

    def fail(self, batch: Batch, rows: int | Sequence[int] | None = None) -> None:
        """The collector's fail."""
        self._answer(batch, rows, "fail", "failed", self._fail_rows)

    def reset_timeout(self, batch: Batch) -> None:
        """The collector's reset_timeout."""
        _check_batch(batch, "reset_timeout")
        if batch.roots is not None:
            if not batch.left:
                raise _answered(batch, None, "renewed")
            self._acks.resets.extend(_distinct(batch.roots))

    def ack_rest(self, batch: Batch) -> None:
        """Ack what was not answered, if there is any."""
        if batch.left and batch.roots is not None:
            self._ack_rows(batch, None)

    def fail_rest(self, batch: Batch) -> None:
        """Fail what was not answered, if there is any."""
        if batch.left and batch.roots is not None:
            self._fail_rows(batch, None)

    def _answer(
        self,
        batch: Batch,
        rows: int | Sequence[int] | None,
        call: str,
        verb: str,
        answer: Callable[[Batch, Sequence[int] | None], None],
    ) -> None:
        _check_batch(batch, call)
        named = None if rows is None else positions(rows, batch, call)
        if batch.roots is None or not len(batch):
            return  # nobody to tell
        if named is None:
            if not batch.left:
                raise _answered(batch, None, verb)
        elif batch.left < len(batch) or len(set(named)) < len(named):
            seen: set[int] = set()
            for i in named:
                if not batch.left or batch.roots[i] is None or i in seen:
                    raise _answered(batch, i, verb)
                seen.add(i)
        answer(batch, named)

    def _ack_rows(self, batch: Batch, rows: Sequence[int] | None) -> None:
        """Merge these rows, or all that are left, into the records."""
        roots, edges, acks = batch.roots, batch.edges, self._acks.acks
        assert roots is not None
        get = acks.get
        if rows is None and batch.left == len(batch) and not batch.several:
            for root, edge in zip(roots, edges, strict=True):
                acks[root] = get(root, 0) ^ edge  # type: ignore[index, arg-type]
            acks.pop(0, None)
            batch.left = 0
            return
        for i in range(len(batch)) if rows is None else rows:
            for each, own in _pairs(roots[i]):
                acks[each] = get(each, 0) ^ own ^ edges[i]
        _mark(batch, rows)

    def _fail_rows(self, batch: Batch, rows: Sequence[int] | None) -> None:
        roots = batch.roots
        assert roots is not None
        self._acks.fails.extend(_distinct(roots if rows is None else [roots[i] for i in rows]))
        _mark(batch, rows)

    # ---- anchors -------------------------------------------------------------------------------

    def to_rows(self, batch: Batch, rows: list[int]) -> Anchors | None:
        """Anchors of an emit whose row number n is made from input row `rows[n]`; None: of nothing.

        Raises EmitError if one of them was answered.
        """
        roots = batch.roots
        if roots is None or not rows:
            return None
        found = [roots[i] for i in rows]
        if batch.left < len(batch):
            _check_open(batch, rows)
        if batch.several:
            return _Each(self, batch, [[i] for i in rows])
        return _Row(self, batch, rows, found) if any(found) else None  # type: ignore[arg-type]

    def to_several(self, batch: Batch, rows: list[int]) -> Anchors | None:
        """Anchors of one row that is made from all these input rows."""
        if batch.roots is None or not rows:
            return None
        if batch.left < len(batch):
            _check_open(batch, rows)
        return _Each(self, batch, [rows]) if any(batch.roots[i] for i in rows) else None

    def to_whole(self, batch: Batch, count: int) -> Anchors | None:
        """Anchors of an emit of `count` rows that are made from the whole batch."""
        roots = batch.roots
        if roots is None:
            return None
        if batch.left < len(batch):
            raise EmitError(
                f"{batch!r}: rows were acked or failed before this emit, which is anchored to the "
                "whole batch; name the rows that it is made from with source_index"
            )
        if batch.several:
            return _Each(self, batch, [range(len(batch))] * count)
        found: dict[int, int] = dict(zip(roots, range(len(roots)), strict=True))  # type: ignore[arg-type]
        found.pop(0, None)
        return _Whole(self, batch, found) if found else None


class _Row:
    """Each row is made from one input row of one tree."""

    most_roots = 1

    def __init__(self, acks: BatchAcks, batch: Batch, rows: list[int], roots: list[int]) -> None:
        self._acks = acks
        self._batch = batch
        self._rows = rows
        self._roots = roots

    def columns(self, picked: Sequence[int]) -> Columns:
        rows, roots = self._rows, self._roots
        if picked.__class__ is not range:
            rows, roots = [rows[n] for n in picked], [roots[n] for n in picked]
        edges, own = self._acks.draw(len(rows)), self._batch.edges
        for i, edge in zip(rows, edges, strict=True):
            own[i] ^= edge
        return roots, edges  # type: ignore[return-value]


class _Whole:
    """Each row is made from the whole batch; `places` has a position for each root in it."""

    def __init__(self, acks: BatchAcks, batch: Batch, places: dict[int, int]) -> None:
        self._acks = acks
        self._batch = batch
        self._places = places
        self.most_roots = len(places)

    def columns(self, picked: Sequence[int]) -> Columns:
        edges, own = self._acks.draw(len(picked)), self._batch.edges
        total = reduce(xor, edges, 0)
        for i in self._places.values():
            own[i] ^= total
        if len(self._places) == 1:
            return [*self._places] * len(edges), edges
        return [tuple(zip(self._places, repeat(edge))) for edge in edges], [0] * len(edges)


class _Each:
    """Each row is made from any input rows of any trees: Storm's rules, edge by edge."""

    def __init__(self, acks: BatchAcks, batch: Batch, rows: Sequence[Sequence[int]]) -> None:
        self._acks = acks
        self._batch = batch
        self._rows = rows
        self.most_roots = max(self._count(anchors) for anchors in rows)

    def _count(self, anchors: Sequence[int]) -> int:
        roots = self._batch.roots or []
        return sum(len(_pairs(roots[i])) for i in anchors)

    def columns(self, picked: Sequence[int]) -> Columns:
        found = [self._one(self._rows[n]) for n in picked]
        return [root for root, _ in found], [edge for _, edge in found]

    def _one(self, anchors: Sequence[int]) -> tuple[Root, int]:
        roots, own = self._batch.roots or [], self._batch.edges
        found: dict[int, int] = {}
        for i, edge in zip(anchors, self._acks.draw(len(anchors)), strict=True):
            own[i] ^= edge
            for each, _ in _pairs(roots[i]):
                found[each] = found.get(each, 0) ^ edge
        if len(found) == 1:
            [(only, edge)] = found.items()
            return only, edge
        return (tuple(found.items()), 0) if found else (0, 0)


def positions(rows: object, batch: Batch, call: str) -> list[int]:
    """Positions of rows in a batch, given as one or several; EmitError for what is none."""
    given: Iterable[object]
    # The usual "each from its own": its ends say all about it.
    if isinstance(rows, range) and rows and rows[0] in (of := range(len(batch))) and rows[-1] in of:
        return list(rows)
    if isinstance(rows, Iterable) and not isinstance(rows, (str, bytes)):
        given = rows.tolist() if hasattr(rows, "tolist") else rows
    elif hasattr(rows, "__index__") and not isinstance(rows, bool):
        given = [rows]
    else:
        raise EmitError(
            f"{call} got rows of {a_type(rows)}; expected positions in {batch!r}, as in [0, 2]"
        )
    found: list[Any] = list(given)
    try:
        numbers = found if set(map(type, found)) <= {int} else list(map(index, found))
    except TypeError:
        wrong = next(each for each in found if not hasattr(each, "__index__"))
        raise EmitError(
            f"{call} got {wrong!r:.80}, {a_type(wrong)}, among its rows; expected positions in "
            f"{batch!r}"
        ) from None
    if numbers and (min(numbers) < 0 or max(numbers) >= len(batch)):
        wrong = next(each for each in numbers if not 0 <= each < len(batch))
        raise EmitError(
            f"{call} got row {wrong}, which {batch!r} does not have; its rows are 0 to "
            f"{len(batch) - 1}"
        )
    return numbers


def _pairs(root: RowRoot) -> Sequence[tuple[int, int]]:
    """The trees of a row that was not answered, each with its edge, 0 where the row has that."""
    if isinstance(root, int):
        return ((root, 0),) if root else ()
    return root or ()


def _check_batch(batch: object, call: str) -> None:
    if not isinstance(batch, Batch):
        raise EmitError(
            f"{call} got {a_type(batch)}; expected the batch that execute_batch was given"
        )


def _check_open(batch: Batch, rows: Iterable[int]) -> None:
    for i in rows:
        if not batch.left or batch.roots is None or batch.roots[i] is None:
            raise _answered(batch, i, "used as an anchor")


def _distinct(roots: Iterable[Root | None]) -> Iterable[int]:
    """Every root in these rows once."""
    found: dict[int, None] = {}
    for root in roots:
        found.update((each, None) for each, _ in _pairs(root))
    return found


def _mark(batch: Batch, rows: Sequence[int] | None) -> None:
    """These rows, or all, are answered."""
    if rows is None:
        batch.left = 0
        return
    for i in rows:
        batch.roots[i] = None  # type: ignore[index]
    batch.left -= len(rows)


def _answered(batch: Batch, row: int | None, verb: str) -> EmitError:
    which = repr(batch) if row is None else f"row {row} of {batch!r}"
    return EmitError(
        f"{which} cannot be {verb}: it was acked or failed before; ack or fail each input row "
        "once, after the last row anchored to it was emitted"
    )
