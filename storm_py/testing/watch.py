"""Watch: what one task emits, receives and answers, told to the checker.

`Watch` adds the hidden last value, the number of the emission, and takes it off again; collectors
go through it. The components themselves are wrapped by `storm_py.testing.watching`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from storm_py.api.tuples import Fields, TrackedTuple, Tuple, TupleContext
from storm_py.constants import DEFAULT_STREAM_ID

from .checker import Checker, Life, Reception
from .network import Process

#: The name of the hidden field.
NUMBER: Final = "__number"


class Watch:
    """What the watchers of one task share; `spend` lets the time pass that a call takes.

    `process` is the one that runs the task.
    """

    def __init__(
        self, checker: Checker, life: Life, process: Process, spend: Callable[[], None]
    ) -> None:
        self.checker = checker
        self.life = life
        self.spend = spend
        #: what the last execute that raised was given
        self.guilty: Tuple | None = None
        self._process = process
        self._contexts: dict[TupleContext, TupleContext] = {}
        self._held: dict[Tuple, Reception] = {}

    def calls(self, what: str) -> None:
        """User code is called, which may not be while a send of its process waits."""
        if self._process.blocked is not None:
            self.checker.complain(f"{what} of {self.life} is called while a send of it waits")

    @contextmanager
    def executing(self, tup: Tuple) -> Iterator[None]:
        """User code executes a tuple, which takes its time."""
        self.calls("execute")
        self.spend()
        try:
            yield
        except Exception:
            self.guilty = tup
            raise

    def take(self, tup: Tuple) -> tuple[Tuple, Reception | None]:
        """The tuple as user code knows it, and what the checker knows of it."""
        fields = tup.context.fields
        if not len(fields) or fields[-1] != NUMBER:
            return tup, None  # of the system
        context = self._contexts.get(tup.context)
        if context is None:
            it = tup.context
            context = TupleContext(
                it.source_component, it.source_stream_id, it.source_task, Fields(fields[:-1])
            )
            self._contexts[it] = context
        *values, number = tup.values
        reception = self.checker.receives(self.life, number, context.source_task)
        if isinstance(tup, TrackedTuple):
            shown: Tuple = TrackedTuple(values, context, tup.root, tup.xor)
        else:
            shown = Tuple(values, context)
        if reception is not None:
            self._held[shown] = reception
        return shown, reception

    def answer(self, tup: Tuple, acked: bool) -> None:
        """User code has acked or failed a tuple."""
        reception = self._held.pop(tup, None)
        if reception is not None:
            self.checker.answers(reception, acked)

    def receptions(self, anchors: object) -> list[Reception]:
        """What the checker knows of the anchors of an emit."""
        given = anchors if isinstance(anchors, (list, tuple)) else [anchors]
        return [self._held[tup] for tup in given if isinstance(tup, Tuple) and tup in self._held]

    def emit(
        self,
        call: Callable[[Sequence[object], object], Any],
        values: Sequence[object],
        stream: str,
        anchors: Sequence[Reception] = (),
        msg_id: object = None,
        direct: int | None = None,
    ) -> Any:
        """Emit with a number, which stands for the message id; engines may refuse."""
        emission = self.checker.emits(self.life, stream, msg_id)
        try:
            dests = call([*values, emission.number], None if msg_id is None else emission.number)
        except Exception:
            self.checker.refused(emission)
            raise
        where = dests
        if direct is not None:
            where = self.checker.direct_dests(self.life, stream, direct)
        self.checker.emitted(emission, values, where, anchors, direct is not None)
        return dests


class _Collector:
    """What all collectors have in common: the rest of the real one as it is."""

    def __init__(self, real: Any, watch: Watch) -> None:
        self._real = real
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class SpoutCollector(_Collector):
    """A spout's."""

    def emit(
        self, values: Sequence[object], msg_id: object = None, stream: str = DEFAULT_STREAM_ID
    ) -> Any:
        return self._watch.emit(
            lambda row, number: self._real.emit(row, number, stream), values, stream, msg_id=msg_id
        )

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        msg_id: object = None,
        stream: str = DEFAULT_STREAM_ID,
    ) -> None:
        self._watch.emit(
            lambda row, number: self._real.emit_direct(task_id, row, number, stream),
            values,
            stream,
            msg_id=msg_id,
            direct=task_id,
        )


class BoltCollector(_Collector):
    """A rich bolt's."""

    def emit(
        self, values: Sequence[object], anchors: Any = None, stream: str = DEFAULT_STREAM_ID
    ) -> Any:
        return self._watch.emit(
            lambda row, _: self._real.emit(row, anchors, stream),
            values,
            stream,
            self._watch.receptions(anchors),
        )

    def emit_direct(
        self,
        task_id: int,
        values: Sequence[object],
        anchors: Any = None,
        stream: str = DEFAULT_STREAM_ID,
    ) -> None:
        self._watch.emit(
            lambda row, _: self._real.emit_direct(task_id, row, anchors, stream),
            values,
            stream,
            self._watch.receptions(anchors),
            direct=task_id,
        )

    def ack(self, tup: Tuple) -> None:
        self._real.ack(tup)
        self._watch.answer(tup, acked=True)

    def fail(self, tup: Tuple) -> None:
        self._real.fail(tup)
        self._watch.answer(tup, acked=False)


class BasicCollector(_Collector):
    """A basic bolt's, whose emits are anchored to the tuple that it executes."""

    def __init__(self, real: Any, watch: Watch, anchors: Sequence[Reception]) -> None:
        super().__init__(real, watch)
        self._anchors = anchors

    def emit(self, values: Sequence[object], stream: str = DEFAULT_STREAM_ID) -> Any:
        return self._watch.emit(
            lambda row, _: self._real.emit(row, stream), values, stream, self._anchors
        )

    def emit_direct(
        self, task_id: int, values: Sequence[object], stream: str = DEFAULT_STREAM_ID
    ) -> None:
        self._watch.emit(
            lambda row, _: self._real.emit_direct(task_id, row, stream),
            values,
            stream,
            self._anchors,
            direct=task_id,
        )
