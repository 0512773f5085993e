"""What user code emits, acks and reports with, as protocols to type against.

They mirror Storm's ``SpoutOutputCollector``, ``OutputCollector`` and ``BasicOutputCollector``;
``BatchOutputCollector`` has no counterpart there.
No behaviour lives here: ``storm_py.engine`` makes the collectors, with methods built for exactly
the streams and consumers of one task, and hands them to ``open``, ``prepare`` or ``execute``.

An emit does not wait for its consumers - while they are behind, spouts and bolts are not called -
and never fails late: what cannot be delivered at all (undeclared stream, wrong number of values, a
value that cannot be serialised, the rules of direct streams) raises EmitError at the call. A
list of values is packed at once, so the caller may reuse it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from storm_py.constants import DEFAULT_STREAM_ID

from .batches import Batch
from .tuples import Tuple

__all__ = [
    "BasicOutputCollector",
    "BatchOutputCollector",
    "OutputCollector",
    "SpoutOutputCollector",
]


class SpoutOutputCollector(Protocol):
    """What a spout emits with.

    Use it only on the thread that calls the spout; other threads go through ``context.call_soon``.
    """

    def emit(
        self, values: Sequence[object], msg_id: object = None, stream: str = DEFAULT_STREAM_ID
    ) -> Sequence[int]:
        """Emit one tuple and return the ids of the tasks that it goes to.

        ``values`` are in the order of the stream's fields. With a ``msg_id`` other than None the
        tuple is tracked and ``ack(msg_id)`` or ``fail(msg_id)`` of the spout is called later.
        Raises EmitError, also after ``end_of_input``.
        """
        ...

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        msg_id: object = None,
        stream: str = DEFAULT_STREAM_ID,
    ) -> None:
        """Emit one tuple on a direct stream to the one task ``task_id``.

        Nothing is sent if that task's component does not subscribe to the stream. Raises EmitError.
        """
        ...

    def end_of_input(self) -> None:
        """Declare that this task will never emit again; call it once.

        When all spouts have, and nothing is pending, bolts are told in order and a local run ends.
        (No counterpart in Storm.) Raises EmitError when called a second time.
        """
        ...

    def report_error(self, error: BaseException) -> None:
        """Show ``error`` to the operator of the topology without ending the process."""
        ...


class OutputCollector(Protocol):
    """What a ``BaseRichBolt`` emits, acks and fails with.

    Use it only on the thread that calls the bolt; other threads hand their work over with
    ``context.call_soon``, from which tuples may be acked at any later time.
    """

    def emit(
        self,
        values: Sequence[object],
        anchors: Tuple | Sequence[Tuple] | None = None,
        stream: str = DEFAULT_STREAM_ID,
    ) -> Sequence[int]:
        """Emit one tuple and return the ids of the tasks that it goes to.

        ``anchors`` are the input tuple or tuples it was made from: if it fails, they fail.
        Raises EmitError.
        """
        ...

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        anchors: Tuple | Sequence[Tuple] | None = None,
        stream: str = DEFAULT_STREAM_ID,
    ) -> None:
        """Emit one tuple on a direct stream to the one task ``task_id``.

        Nothing is sent if that task's component does not subscribe to the stream. Raises EmitError.
        """
        ...

    def ack(self, tup: Tuple) -> None:
        """Say that ``tup`` is processed; call ack or fail once for every input tuple."""
        ...

    def fail(self, tup: Tuple) -> None:
        """Say that ``tup`` could not be processed, so that its spout is told at once."""
        ...

    def reset_timeout(self, tup: Tuple) -> None:
        """Start the message timeout of the trees of ``tup`` anew; it costs a message, so rarely."""
        ...

    def report_error(self, error: BaseException) -> None:
        """Show ``error`` to the operator of the topology without ending the process."""
        ...


class BasicOutputCollector(Protocol):
    """What a ``BaseBasicBolt`` emits with; every emit is anchored to the tuple being executed."""

    def emit(self, values: Sequence[object], stream: str = DEFAULT_STREAM_ID) -> Sequence[int]:
        """Emit one tuple and return the ids of the tasks that it goes to. Raises EmitError."""
        ...

    def emit_direct(
        self, task_id: int, values: Sequence[object], stream: str = DEFAULT_STREAM_ID
    ) -> None:
        """Emit one tuple on a direct stream to the one task ``task_id``.

        Nothing is sent if that task's component does not subscribe to the stream. Raises EmitError.
        """
        ...

    def report_error(self, error: BaseException) -> None:
        """Show ``error`` to the operator of the topology without ending the process."""
        ...


class BatchOutputCollector(Protocol):
    """What a ``BatchBolt`` emits, acks and fails with.

    What it emits is anchored to the batch that is being executed, or to ``batch`` where that is
    given; outside of ``execute_batch`` and without ``batch`` it is anchored to nothing. Use it only
    on the thread that calls the bolt; other threads hand their work over with
    ``context.call_soon``, from which batches may be acked at any later time.
    """

    def emit_batch(
        self,
        rows: Any,
        source_index: Any = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> Sequence[Sequence[int]]:
        """Emit rows, each to the tasks that it would go to by itself, and return for each which.

        ``rows`` are lists or tuples of values in the order of the stream's fields, or a
        pyarrow.RecordBatch or a dict of equally long numpy arrays, with exactly the stream's
        fields in any order. ``source_index`` names for each row the input row that it was made
        from: if it fails, that one fails. None anchors each row to the whole batch: if any fails,
        all of the batch fail. Raises EmitError, and emits nothing, if one row is refused.
        """
        ...

    def emit(
        self,
        values: Sequence[object],
        source_index: int | Sequence[int] | None = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> Sequence[int]:
        """Emit one row and return the ids of the tasks that it goes to.

        ``source_index`` names the input row or rows that it was made from, None the whole batch,
        an empty list none. Raises EmitError.
        """
        ...

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        source_index: int | Sequence[int] | None = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> None:
        """Emit one row on a direct stream to the one task ``task_id``.

        Nothing is sent if that task's component does not subscribe to the stream. Raises EmitError.
        """
        ...

    def ack(self, batch: Batch, rows: int | Sequence[int] | None = None) -> None:
        """Say that rows are processed: those at these positions, or all that are unanswered.

        Raises EmitError for a row that was acked or failed before, and if none is left.
        """
        ...

    def fail(self, batch: Batch, rows: int | Sequence[int] | None = None) -> None:
        """Say that rows could not be processed, so that their spout is told; see ``ack``."""
        ...

    def reset_timeout(self, batch: Batch) -> None:
        """Start the message timeout of all trees of the unanswered rows anew; do so rarely."""
        ...

    def report_error(self, error: BaseException) -> None:
        """Show ``error`` to the operator of the topology without ending the process."""
        ...
