"""``TopologyContext``: what a running task can ask about itself and its topology.

Mirrors the read-only part of Storm's class of that name. It is a value: it holds no socket and
changes nothing. ``storm_py.engine`` makes one per task and passes it to ``open`` and ``prepare``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.errors import did_you_mean

from .grouping import Grouping
from .spec import ComponentSpec, StormTopology
from .tuples import Fields, GlobalStreamId

__all__ = ["TopologyContext"]


class TopologyContext:
    """Where a task stands: its id, its siblings, its neighbours, its worker and its configuration.

    All of it is fixed when the task starts. Asking for a component, task or stream that does not
    exist raises ValueError with the names that do.
    """

    __slots__ = (
        "_component_tasks",
        "_conf",
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
