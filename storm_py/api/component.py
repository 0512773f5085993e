"""Base classes of spouts and bolts: no-op hooks that a topology's author overrides.

They mirror Storm's ``BaseRichSpout``, ``BaseRichBolt`` and ``BaseBasicBolt``; ``BatchBolt``, which
gets many rows in one call, has no counterpart there. Nothing here runs
anything: ``storm_py.engine`` calls these methods, always on one thread per task, and
``storm_py.api.validation`` checks that the necessary ones are overridden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from .batches import Batch
from .collector import (
    BasicOutputCollector,
    BatchOutputCollector,
    OutputCollector,
    SpoutOutputCollector,
)
from .context import TopologyContext
from .declarers import OutputFieldsDeclarer
from .tuples import Tuple

__all__ = [
    "BaseBasicBolt",
    "BaseComponent",
    "BaseRichBolt",
    "BaseRichSpout",
    "BatchBolt",
    "Bolt",
]


class BaseComponent:
    """What spouts and bolts have in common.

    One object is given to the builder; every task runs its own copy of it, in another process.
    So ``__init__`` keeps plain settings; files, sockets and threads are opened in ``open`` or
    ``prepare``.
    """

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare each output stream on ``declarer``; a component that emits nothing needs none.

        Called while the topology is built, not where it runs.
        """

    def get_component_configuration(self) -> Mapping[str, object] | None:
        """Return configuration for this component only, or None.

        It overrides the topology's configuration and is overridden by what is set on the
        declarer that ``set_spout`` or ``set_bolt`` returns.
        """
        return None


class BaseRichSpout(BaseComponent):
    """A source of tuples (Storm's ``BaseRichSpout``); ``next_tuple`` must be overridden."""

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Get ready: called once per task, in its process, before anything else.

        ``conf`` is the configuration of this component, ``context`` says which task this is,
        ``collector`` is what to emit on; keep what you need.
        """

    def next_tuple(self) -> None:
        """Emit the next tuple or tuples, or none; return soon, because ack and fail wait for it.

        Called again and again while the spout is active and allowed to emit. When a call emits
        nothing the next one comes after a short wait that grows with the silence, up to
        ``storm_py.spout.wait.ms``; a spout that cannot wait so long offers ``wait_fd``.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define next_tuple(self)")

    def wait_fd(self) -> int | None:
        """Offer a file descriptor that can be read when there may be something to emit, or None.

        Asked once, after ``open``. While it is quiet ``next_tuple`` is called about once a second
        only, and at once when it is not: for sockets, pipes, and threads that write a byte into a
        pipe for what they put into a queue. Whoever makes it readable must be read by
        ``next_tuple``; one that stays so while nothing is emitted is not waited for any more, until
        something is. (No counterpart in Storm.)
        """
        return None

    def ack(self, msg_id: object) -> None:
        """Learn that the tuple emitted with ``msg_id`` was processed completely."""

    def fail(self, msg_id: object) -> None:
        """Learn that the tuple emitted with ``msg_id`` failed or timed out; replay it or not."""

    def activate(self) -> None:
        """Learn that the topology becomes active; also called once after ``open``."""

    def deactivate(self) -> None:
        """Learn that the topology is paused: no ``next_tuple`` until ``activate``."""

    def close(self) -> None:
        """Clean up at the end; not called when the process is killed."""


class BaseRichBolt(BaseComponent):
    """A processing step that acks its tuples itself (Storm's ``BaseRichBolt``).

    ``execute`` must be overridden. Anchor emits to the tuples they come from and ack or fail every
    tuple; ``BaseBasicBolt`` does both by itself.
    """

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        """Get ready: called once per task, in its process, before the first tuple.

        The arguments are those of ``BaseRichSpout.open``.
        """

    def execute(self, tup: Tuple) -> None:
        """Process one tuple; it may be acked now or at any later time.

        An exception that leaves this method ends the executor's process.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define execute(self, tup)")

    def end_of_input(self) -> None:
        """Emit what was held back: all inputs have ended and no tuple will follow.

        Called once per incarnation of the task, after the last ``execute``; the place for final
        results. Tuples emitted here are not tracked. Inputs end only if all spouts call
        ``end_of_input`` on their collectors. (No counterpart in Storm.)
        """

    def cleanup(self) -> None:
        """Clean up at the end; not called when the process is killed."""


class BaseBasicBolt(BaseComponent):
    """A processing step with automatic anchors and acks (Storm's ``BaseBasicBolt``).

    ``execute`` must be overridden. Everything it emits is anchored to its tuple, which is acked on
    return and failed on ``FailedException``.
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Get ready: called once per task, in its process, before the first tuple."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Process one tuple completely and emit on ``collector``.

        Raise ``FailedException`` to fail the tuple, ``ReportedFailedException`` to report the
        reason as well; any other exception ends the executor's process.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define execute(self, tup, collector)"
        )

    def end_of_input(self, collector: BasicOutputCollector) -> None:
        """Emit what was held back: all inputs have ended and no tuple will follow.

        As ``BaseRichBolt.end_of_input``, with the collector to emit on.
        """

    def cleanup(self) -> None:
        """Clean up at the end; not called when the process is killed."""


class BatchBolt(BaseComponent):
    """A processing step that gets all rows of a frame in one call (no counterpart in Storm).

    ``execute_batch`` must be overridden. The guarantees are those of other bolts; what is paid once
    per call there is paid once per frame here.
    """

    #: Whether what was neither acked nor failed is acked when ``execute_batch`` returns, and failed
    #: on ``FailedException``. With False the bolt acks and fails itself, now or at any later time.
    auto_ack: bool = True
    #: How rows are handed over: None as a list of lists of values, "arrow" as a
    #: pyarrow.RecordBatch, "numpy" as a dict of numpy arrays by field.
    columns: Literal["arrow", "numpy"] | None = None

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchOutputCollector
    ) -> None:
        """Get ready: called once per task, in its process, before the first batch.

        The arguments are those of ``BaseRichSpout.open``.
        """

    def execute_batch(self, rows: Any, batch: Batch) -> None:
        """Process the rows that one task emitted on one stream, as many as came in one frame.

        ``rows`` is a ``list[list[Value]]`` that the bolt may keep and change, unless ``columns``
        says otherwise. ``batch`` says where they come from; a tick is a batch of one row. An
        exception that leaves this method ends the executor's process, except for
        ``FailedException`` with ``auto_ack``: it fails the rows that were not answered.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define execute_batch(self, rows, batch)"
        )

    def end_of_input(self) -> None:
        """Emit what was held back: all inputs have ended and no batch will follow.

        As ``BaseRichBolt.end_of_input``.
        """

    def cleanup(self) -> None:
        """Clean up at the end; not called when the process is killed."""


#: Every kind of bolt.
Bolt: TypeAlias = BaseRichBolt | BaseBasicBolt | BatchBolt
