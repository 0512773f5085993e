"""Task hooks: be told of what a task emits, executes, acks and fails (Storm's ``BaseTaskHook``).

A hook is added with ``context.add_task_hook`` in ``open`` or ``prepare``, or named in the
configuration key ``topology.auto.task.hooks``, which gives every task one of its own. Its methods
run on the thread of the task, each for one tuple: without hooks a tuple pays nothing for them, with
hooks it pays for every call. What a hook raises ends the executor as any exception of user code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .tuples import Tuple

if TYPE_CHECKING:  # the context takes hooks
    from .context import TopologyContext

__all__ = [
    "BaseTaskHook",
    "BoltAckInfo",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "EmitInfo",
    "SpoutAckInfo",
    "SpoutFailInfo",
]


@dataclass(frozen=True, slots=True)
class EmitInfo:
    """A tuple was emitted."""

    values: Sequence[object]
    stream: str
    #: The task that emitted it.
    task_id: int
    #: The tasks it goes to.
    out_tasks: Sequence[int]


@dataclass(frozen=True, slots=True)
class SpoutAckInfo:
    """A spout's tuple was processed completely."""

    message_id: object
    spout_task_id: int
    #: Since its emit; None if it was emitted before the hook was added.
    complete_latency_ms: float | None


@dataclass(frozen=True, slots=True)
class SpoutFailInfo:
    """A spout's tuple failed or timed out."""

    message_id: object
    spout_task_id: int
    #: Since its emit; None if it was emitted before the hook was added.
    fail_latency_ms: float | None


@dataclass(frozen=True, slots=True)
class BoltExecuteInfo:
    """``execute`` has returned; ticks are executed as well."""

    tuple: Tuple
    executing_task_id: int
    execute_latency_ms: float


@dataclass(frozen=True, slots=True)
class BoltAckInfo:
    """A bolt acked a tuple."""

    tuple: Tuple
    acking_task_id: int
    #: Since the call of execute; None if that was before the hook was added.
    process_latency_ms: float | None


@dataclass(frozen=True, slots=True)
class BoltFailInfo:
    """A bolt failed a tuple."""

    tuple: Tuple
    failing_task_id: int
    #: Since the call of execute; None if that was before the hook was added.
    fail_latency_ms: float | None


class BaseTaskHook:
    """A hook that does nothing; override what you want to hear of (Storm's ``ITaskHook``)."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Get ready: called when the hook is added."""

    def cleanup(self) -> None:
        """Clean up, behind the task's own ``close`` or ``cleanup``; not called on a kill."""

    def emit(self, info: EmitInfo) -> None:
        """A spout or bolt has emitted."""

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """The spout's ``ack`` has returned."""

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """The spout's ``fail`` has returned."""

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """The bolt's ``execute`` has returned."""

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """The bolt has acked a tuple."""

    def bolt_fail(self, info: BoltFailInfo) -> None:
        """The bolt has failed a tuple."""
