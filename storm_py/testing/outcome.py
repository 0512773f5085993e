"""What came of a topology: everything its components emitted and received, to be asked for by name.

A `TopologyDriver` is one while it runs, `complete_topology` returns one at the end. A component,
stream or task that does not exist is an error, so that a misspelt name is never an empty list.
"""

from __future__ import annotations

from typing import Any

from storm_py.api.spec import ComponentSpec
from storm_py.api.tuples import Tuple
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.core.plan import PhysicalPlan
from storm_py.errors import did_you_mean
from storm_py.wire.control import ErrorReport

from .spying import Answer, Emitted, Log

__all__ = ["Outcome"]


class Outcome:
    """What was seen of the components of a topology so far."""

    def __init__(self, plan: PhysicalPlan, log: Log, errors: list[ErrorReport]) -> None:
        """Read from ``log``; users get outcomes, they do not make them."""
        #: Which tasks there are.
        self.plan = plan
        self._log = log
        #: What user code reported without ending anything, and errors at the end; each with
        #: component, task, where, message and traceback.
        self.errors = errors

    def outputs(
        self, component: str, stream: str = DEFAULT_STREAM_ID, *, task_index: int | None = None
    ) -> list[list[Any]]:
        """The values that a component emitted on a stream, in order; of all tasks or of one.

        It does not matter whether anybody subscribes to the stream.
        """
        spec = self._spec(component)
        if stream not in spec.streams:
            raise ValueError(
                f"{spec.label} does not declare stream {stream!r}; it declares: "
                f"{', '.join(spec.streams) or 'none'}{did_you_mean(stream, spec.streams)}"
            )
        found = self.emitted(component, task_index=task_index)
        return [each.values for each in found if each.stream == stream]

    def emitted(self, component: str, *, task_index: int | None = None) -> list[Emitted]:
        """What a component emitted on all of its streams, with anchors, message ids and tasks."""
        tasks = self._tasks(component, task_index)
        return [each for each in self._log.emitted if each.task in tasks]

    def received(self, bolt: str, *, task_index: int | None = None) -> list[list[Any]]:
        """The values of the tuples that a bolt was given, in order, without ticks."""
        tasks = self._tasks(bolt, task_index, "bolt")
        found = self._log.received
        return [each.values for each in found if each.task in tasks and not each.tuple.is_tick]

    def tuples(self, bolt: str, *, task_index: int | None = None) -> list[Tuple]:
        """The tuples that a bolt was given, in order, with their sources; ticks included."""
        tasks = self._tasks(bolt, task_index, "bolt")
        return [each.tuple for each in self._log.received if each.task in tasks]

    def acked(self, spout: str | None = None) -> list[object]:
        """The message ids for which ``ack`` was called, in order; of one spout or of all."""
        return self._answers(self._log.acked, spout)

    def failed(self, spout: str | None = None) -> list[object]:
        """The message ids for which ``fail`` was called, in order; of one spout or of all."""
        return self._answers(self._log.failed, spout)

    def _answers(self, answers: list[Answer], spout: str | None) -> list[object]:
        tasks = None if spout is None else self._tasks(spout, None, "spout")
        return [each.msg_id for each in answers if tasks is None or each.task in tasks]

    # ---- names ---------------------------------------------------------------------------------

    def _spec(self, component: str, kind: str = "") -> ComponentSpec:
        spec = self.plan.topology.component(component)
        if kind and spec.kind != kind:
            what = "only bolts receive tuples" if kind == "bolt" else "only spouts have message ids"
            raise ValueError(f"{component!r} is a {spec.kind}, and {what}; name a {kind}")
        return spec

    def _tasks(self, component: str, task_index: int | None, kind: str = "") -> tuple[int, ...]:
        spec = self._spec(component, kind)
        tasks = self.plan.tasks_of(component)
        if task_index is None:
            return tasks
        if task_index not in range(len(tasks)):
            raise ValueError(
                f"{spec.label} has {len(tasks)} task(s), so a task_index is from 0 to "
                f"{len(tasks) - 1}; got {task_index!r}"
            )
        return (tasks[task_index],)
