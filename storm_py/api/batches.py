"""``Batch``: what the rows of one frame have in common, and how a bolt names them in its answers.

A ``BatchBolt`` gets the rows themselves as lists of values; the batch beside them says where they
come from, and is what acks, fails and anchors refer to. The tracking columns travel in it, out of
the user's sight: ``storm_py.engine.batch_acking`` alone reads and writes them.
"""

from __future__ import annotations

from .tuples import Sourced, TupleContext, Value

__all__ = ["Batch", "RowRoot"]

#: The root of a row: an id, 0 if it is untracked, (root, edge) pairs if it has several, None once
#: it was acked or failed.
RowRoot = int | tuple[tuple[int, int], ...] | None


class Batch(Sourced):
    """Rows of one stream that one task emitted, as they came in one frame.

    Batches compare by identity. ``len(batch)`` is the number of rows; rows are named by their
    positions, from 0.
    """

    __slots__ = ("context", "edges", "left", "roots", "rows", "several")

    def __init__(
        self,
        rows: list[list[Value]],
        context: TupleContext,
        roots: list[RowRoot] | None = None,
        edges: list[int] | None = None,
    ) -> None:
        """Describe ``rows``; ``roots`` and ``edges`` run in parallel, None if nothing is tracked.

        Both lists are the batch's own from now on.
        """
        self.rows = rows
        self.context = context
        self.roots = roots
        #: per row what its ack will tell the tracker: its own edge, and those of its children
        self.edges = [] if edges is None else edges
        #: rows that were neither acked nor failed
        self.left = len(rows)
        #: whether a row may belong to several trees; such a row has no edge of its own
        self.several = (
            roots is not None
            and 0 in self.edges
            and not all(root.__class__ is int for root in roots)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        context = self.context
        return (
            f"Batch(source={context.source_component}:{context.source_stream_id}"
            f"[{context.source_task}], rows={len(self.rows)})"
        )
