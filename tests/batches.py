"""One task of a batch bolt with acking on, and batches as an instance makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_py import Batch
from storm_py.api.grouping import GroupingKind
from storm_py.api.tuples import TupleContext
from storm_py.engine.batch_output import BatchOutput
from tests.tracked import CONTEXT, Producer, Targets, target, tracked

ONE = {"default": [target("one", GroupingKind.GLOBAL)]}
THREE = {"default": [target("three", GroupingKind.FIELDS)]}


class BatchProducer(Producer):
    """A producer whose task is a batch bolt's."""

    output: BatchOutput

    def __init__(self, targets: Targets, **bounds: Any) -> None:
        super().__init__("bolt", targets, output=BatchOutput, **bounds)
        self.emit_batch = self.output.emit_batch

    def executes(self, batch: Batch | None) -> None:
        """From now on this batch is being executed."""
        self.output.batch = batch

    @property
    def answers(self) -> Any:
        """What acks and fails rows."""
        return self.output.batch_acks


def batch_of(*inputs: Mapping[int, int], context: TupleContext = CONTEXT) -> Batch:
    """A batch as an instance makes it of rows with these edges by root."""
    tuples = [tracked(ids) for ids in inputs]
    roots, edges = [tup.root for tup in tuples], [tup.xor for tup in tuples]
    return Batch([["storm"] for _ in inputs], context, roots, edges)
