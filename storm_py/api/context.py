"""``TopologyContext``: what a running task can ask about itself and its topology.

Mirrors Storm's class of that name. What it says is fixed when the task starts; what it does -
calls from other threads, hooks, metrics - it hands to the ``TaskServices`` it was made with.
``storm_py.engine`` makes one per task and passes it to ``open`` and ``prepare``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.errors import did_you_mean

from .grouping import Grouping
from .hooks import BaseTaskHook
from .metrics import Counter, Gauge, Histogram, Metric
from .spec import ComponentSpec, StormTopology
from .tuples import Fields, GlobalStreamId

__all__ = ["TaskServices", "TopologyContext"]

_M = TypeVar("_M", bound=Metric)


class TaskServices(Protocol):
    """What a running task does for its context; ``storm_py.engine`` provides it."""

    def call_soon(
        self,
        context: TopologyContext,
        function: Callable[..., object],
        args: tuple[object, ...],
    ) -> bool: ...

    def add_task_hook(self, context: TopologyContext, hook: BaseTaskHook) -> None: ...

    def register_metric(
        self, context: TopologyContext, name: str, metric: Metric, secs: float
    ) -> None: ...


class TopologyContext:
    """Where a task stands: its id, its siblings, its neighbours, its worker and its configuration.

    All of that is fixed when the task starts. Asking for a component, task or stream that does not
    exist raises ValueError with the names that do.
    """

    __slots__ = (
        "_component_tasks",
        "_conf",
        "_services",
        "_storm_id",
        "_task_id",
        "_task_to_component",
        "_topology",
        "_worker_port",
        "_worker_tasks",
    )

    def __init__(
        self,
        storm_id: str,
        topology: StormTopology,
        task_to_component: Mapping[int, str],
        task_id: int,
        worker_port: int,
        worker_tasks: tuple[int, ...],
        conf: Mapping[str, object],
        services: TaskServices | None = None,
    ) -> None:
        """Describe task ``task_id``; raises ValueError if it is not in ``task_to_component``."""
        tasks: dict[str, list[int]] = {id_: [] for id_ in topology.components}
        for task, component_id in sorted(task_to_component.items()):
            tasks.setdefault(component_id, []).append(task)
        self._storm_id = storm_id
        self._topology = topology
        self._task_to_component = MappingProxyType(dict(task_to_component))
        self._component_tasks = {id_: tuple(ids) for id_, ids in tasks.items()}
        self._task_id = task_id
        self._worker_port = worker_port
        self._worker_tasks = tuple(worker_tasks)
        self._conf = MappingProxyType(dict(conf))
        self._services = services
        self.component_id(task_id)

    @property
    def storm_id(self) -> str:
        """Id of the running topology: ``name-n-epoch``."""
        return self._storm_id

    @property
    def conf(self) -> Mapping[str, object]:
        """Configuration of this task's component, all layers merged."""
        return self._conf

    @property
    def this_task_id(self) -> int:
        """Id of this task, unique in the topology, counted from 1."""
        return self._task_id

    @property
    def this_component_id(self) -> str:
        """Id of the component that this task runs."""
        return self._task_to_component[self._task_id]

    @property
    def this_task_index(self) -> int:
        """Position of this task among the tasks of its component, counted from 0."""
        return self.component_tasks(self.this_component_id).index(self._task_id)

    @property
    def this_streams(self) -> tuple[str, ...]:
        """Ids of the output streams of this component, in the order of declaration."""
        return tuple(self._this.streams)

    @property
    def this_sources(self) -> Mapping[GlobalStreamId, Grouping]:
        """Streams this component subscribes to, with the grouping of each."""
        return self.sources(self.this_component_id)

    @property
    def this_targets(self) -> Mapping[str, Mapping[str, Grouping]]:
        """Subscribers of this component: stream id -> component id -> grouping."""
        return self.targets(self.this_component_id)

    @property
    def this_worker_port(self) -> int:
        """Port of the slot whose worker runs this task."""
        return self._worker_port

    @property
    def this_worker_tasks(self) -> tuple[int, ...]:
        """Ids of all tasks in the same worker, this one included."""
        return self._worker_tasks

    @property
    def component_ids(self) -> tuple[str, ...]:
        """Ids of all components, in the order they were set on the builder."""
        return tuple(self._topology.components)

    @property
    def task_to_component(self) -> Mapping[int, str]:
        """Component id of every task of the topology."""
        return self._task_to_component

    def component_id(self, task_id: int) -> str:
        """Return the id of the component that task ``task_id`` runs."""
        component_id = self._task_to_component.get(task_id)
        if component_id is None:
            known = sorted(self._task_to_component)
            span = f"{known[0]} to {known[-1]}" if known else "none"
            raise ValueError(f"no task {task_id!r} in topology {self._storm_id!r}; tasks: {span}")
        return component_id

    def component_tasks(self, component_id: str) -> tuple[int, ...]:
        """Return the ids of the tasks of a component, ascending."""
        self._component(component_id)
        return self._component_tasks[component_id]

    def this_output_fields(self, stream: str = DEFAULT_STREAM_ID) -> Fields:
        """Return the fields that this component declared for ``stream``."""
        return self.component_output_fields(self.this_component_id, stream)

    def component_output_fields(self, component_id: str, stream: str = DEFAULT_STREAM_ID) -> Fields:
        """Return the fields that a component declared for ``stream``."""
        spec = self._component(component_id)
        info = spec.streams.get(stream)
        if info is None:
            raise ValueError(
                f"{spec.label} declares no stream {stream!r}; it declares: "
                f"{', '.join(spec.streams) or 'none'}{did_you_mean(stream, spec.streams)}"
            )
        return info.fields

    def sources(self, component_id: str) -> Mapping[GlobalStreamId, Grouping]:
        """Return the streams a component subscribes to, with the grouping of each."""
        return MappingProxyType(dict(self._component(component_id).inputs))

    def targets(self, component_id: str) -> Mapping[str, Mapping[str, Grouping]]:
        """Return the subscribers of a component: stream id -> component id -> grouping.

        Streams that nobody subscribes to are left out.
        """
        self._component(component_id)
        found: dict[str, dict[str, Grouping]] = {}
        for edge in self._topology.edges:
            if edge.producer == component_id:
                found.setdefault(edge.stream_id, {})[edge.consumer] = edge.grouping
        return found

    # ---- what a running task does --------------------------------------------------------------

    def call_soon(self, function: Callable[..., object], *args: object) -> bool:
        """Have ``function(*args)`` called on this task's thread, between two tuples.

        The only method of a task that any thread may use: collectors belong to the task's own
        thread, so a thread that has finished some work acks or emits through here. Calls are made
        in the order they came; what they raise ends the executor. Those that wait when the task
        stops are made before ``close`` or ``cleanup``, later ones are dropped and False is
        returned: True means that the call was made or will be, unless an exception or a death
        ends the executor first. Returns at once in any case. (No counterpart in Storm.)
        """
        return self._running("call_soon").call_soon(self, function, args)

    def add_task_hook(self, hook: BaseTaskHook) -> None:
        """Call ``hook`` from now on.

        Call this in ``open`` or ``prepare``, before you keep a method of the collector
        (``self.emit = collector.emit``): the collector's methods are replaced by ones that call
        hooks.
        """
        self._running("add_task_hook").add_task_hook(self, hook)

    def register_metric(self, name: str, metric: _M, time_bucket_size_in_secs: float) -> _M:
        """Read ``metric`` once per bucket and return it; in ``open`` or ``prepare`` only.

        Raises ValueError for a name that is taken, RuntimeError when it is too late.
        """
        services = self._running("register_metric")
        services.register_metric(self, name, metric, time_bucket_size_in_secs)
        return metric

    def register_counter(self, name: str) -> Counter:
        """Register a counter.

        It is read once per ``topology.builtin.metrics.bucket.size.secs``, as the next two are.
        """
        return self.register_metric(name, Counter(), self._bucket_secs)

    def register_gauge(self, name: str, function: Callable[[], object]) -> Gauge:
        """Register a gauge: what ``function`` returns is its value."""
        return self.register_metric(name, Gauge(function), self._bucket_secs)

    def register_histogram(self, name: str) -> Histogram:
        """Register a histogram."""
        return self.register_metric(name, Histogram(), self._bucket_secs)

    @property
    def _bucket_secs(self) -> float:
        secs = self._conf["topology.builtin.metrics.bucket.size.secs"]
        assert isinstance(secs, (int, float))
        return secs

    def _running(self, method: str) -> TaskServices:
        if self._services is None:
            raise RuntimeError(f"{method} needs a running task, and this context belongs to none")
        return self._services

    @property
    def _this(self) -> ComponentSpec:
        return self._component(self.this_component_id)

    def _component(self, component_id: str) -> ComponentSpec:
        spec = self._topology.components.get(component_id)
        if spec is None:
            raise ValueError(
                f"no component {component_id!r} in topology {self._storm_id!r}; it has: "
                f"{', '.join(self.component_ids)}{did_you_mean(component_id, self.component_ids)}"
            )
        return spec

    def __repr__(self) -> str:
        return (
            f"TopologyContext({self._storm_id!r}, task {self._task_id} of "
            f"{self.this_component_id!r})"
        )
