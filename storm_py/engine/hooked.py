"""Tasks with hooks: the functions that take the place of the plain ones once a hook is added.

Without hooks nothing of this runs. Times travel with what they belong to - a spout's message ids
and a bolt's tuples are replaced by ones that know when they began - so that nothing has to be kept
for a tuple that is never answered. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from storm_py.api.context import TopologyContext
from storm_py.api.hooks import (
    BaseTaskHook,
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
)
from storm_py.api.tuples import TrackedTuple, Tuple, TupleContext
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.core.batching import Root
from storm_py.errors import a_type

from .user_code import Report, UserError, call_user


class TimedTuple(Tuple):
    """A tuple that nobody tracks, with the second in which its execute began."""

    __slots__ = ("began",)
    began: float


class TimedTrackedTuple(TrackedTuple):
    """A tuple that may be tracked, with the second in which its execute began."""

    __slots__ = ("began",)
    began: float


class TimedMessageId:
    """A message id with the second of its emit; only the engine sees it."""

    __slots__ = ("at", "msg_id")

    def __init__(self, msg_id: object, at: float) -> None:
        self.msg_id = msg_id
        self.at = at

    def __repr__(self) -> str:
        return repr(self.msg_id)


class Hooks:
    """The hooks of one task, called in the order they were added."""

    def __init__(self, component: str, task: int, clock: Callable[[], float]) -> None:
        self._component = component
        self._task = task
        self.clock = clock
        self._hooks: list[BaseTaskHook] = []

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def add(self, hook: BaseTaskHook, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare a hook and call it from now on."""
        if not isinstance(hook, BaseTaskHook):
            raise TypeError(f"add_task_hook got {a_type(hook)}; expected a BaseTaskHook")
        self._call(hook, "prepare", conf, context)
        self._hooks.append(hook)

    def cleanup(self, report: Report) -> None:
        """Clean up every hook; what they raise is reported."""
        for hook in self._hooks:
            try:
                self._call(hook, "cleanup")
            except UserError as error:
                report(error.report(fatal=False))

    def _call(self, hook: BaseTaskHook, method: str, *args: object) -> None:
        where = f"hook {type(hook).__name__}.{method}"
        call_user(self._component, self._task, where, getattr(hook, method), *args)

    def tell(self, method: str, info: object) -> None:
        """Call this method of every hook."""
        for hook in self._hooks:
            self._call(hook, method, info)

    def since(self, began: float | None) -> float | None:
        """Milliseconds since then."""
        return None if began is None else (self.clock() - began) * 1000

    # ---- collectors ----------------------------------------------------------------------------

    def emits(
        self, style: str, emit: Callable[..., Any], emit_direct: Callable[..., Any]
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """`emit` and `emit_direct` of a collector of this style, with hooks behind them."""
        task = self._task

        def told(values: Sequence[object], stream: str, out_tasks: Sequence[int]) -> Sequence[int]:
            self.tell("emit", EmitInfo(values, stream, task, out_tasks))
            return out_tasks

        if style == "spout":
            return self._spout_emits(emit, emit_direct, told)
        if style == "basic":

            def basic_emit(
                values: Sequence[object], stream: str = DEFAULT_STREAM_ID
            ) -> Sequence[int]:
                return told(values, stream, emit(values, stream))

            def basic_direct(
                task_id: int, values: Sequence[object], stream: str = DEFAULT_STREAM_ID
            ) -> None:
                emit_direct(task_id, values, stream)
                told(values, stream, (task_id,))

            return basic_emit, basic_direct

        def bolt_emit(
            values: Sequence[object], anchors: object = None, stream: str = DEFAULT_STREAM_ID
        ) -> Sequence[int]:
            return told(values, stream, emit(values, anchors, stream))

        def bolt_direct(
            task_id: int,
            values: Sequence[object],
            anchors: object = None,
            stream: str = DEFAULT_STREAM_ID,
        ) -> None:
            emit_direct(task_id, values, anchors, stream)
            told(values, stream, (task_id,))

        return bolt_emit, bolt_direct

    def _spout_emits(
        self,
        emit: Callable[..., Any],
        emit_direct: Callable[..., Any],
        told: Callable[[Sequence[object], str, Sequence[int]], Sequence[int]],
    ) -> tuple[Callable[..., Any], Callable[..., Any]]:
        def timed(msg_id: object) -> object:
            return None if msg_id is None else TimedMessageId(msg_id, self.clock())

        def spout_emit(
            values: Sequence[object], msg_id: object = None, stream: str = DEFAULT_STREAM_ID
        ) -> Sequence[int]:
            return told(values, stream, emit(values, timed(msg_id), stream))

        def spout_direct(
            task_id: int,
            values: Sequence[object],
            msg_id: object = None,
            stream: str = DEFAULT_STREAM_ID,
        ) -> None:
            emit_direct(task_id, values, timed(msg_id), stream)
            told(values, stream, (task_id,))

        return spout_emit, spout_direct

    def ack(self, ack: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """`ack` with hooks behind it."""

        def hooked(tup: Tuple) -> None:
            ack(tup)
            latency = self.since(getattr(tup, "began", None))
            self.tell("bolt_ack", BoltAckInfo(tup, self._task, latency))

        return hooked

    def fail(self, fail: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """`fail` with hooks behind it."""

        def hooked(tup: Tuple) -> None:
            fail(tup)
            latency = self.since(getattr(tup, "began", None))
            self.tell("bolt_fail", BoltFailInfo(tup, self._task, latency))

        return hooked

    # ---- calls of user code --------------------------------------------------------------------

    def answer(self, where: str, function: Callable[[object], object], msg_ids: list[Any]) -> None:
        """Call a spout's ack or fail ("ack" or "fail") for each message id."""
        for given in msg_ids:
            timed = isinstance(given, TimedMessageId)
            msg_id = given.msg_id if timed else given
            function(msg_id)
            latency = self.since(given.at if timed else None)
            if where == "ack":
                self.tell("spout_ack", SpoutAckInfo(msg_id, self._task, latency))
            else:
                self.tell("spout_fail", SpoutFailInfo(msg_id, self._task, latency))

    def execute(
        self,
        execute: Callable[[Any], object],
        rows: Iterator[list[Any]],
        context: TupleContext,
        roots: Iterable[Root] | None,
        edges: Iterable[int],
    ) -> None:
        """Call `execute` with a tuple for each row; `roots` is None for rows nobody tracks."""
        clock = self.clock
        tup: TimedTuple | TimedTrackedTuple
        tracked = roots is not None
        columns = (repeat(0), repeat(0)) if roots is None else (roots, edges)
        for values, root, edge in zip(rows, *columns, strict=False):
            if tracked:
                tup = TimedTrackedTuple(values, context, root, edge)
            else:
                tup = TimedTuple(values, context)
            tup.began = began = clock()
            execute(tup)
            latency = (clock() - began) * 1000
            self.tell("bolt_execute", BoltExecuteInfo(tup, self._task, latency))
