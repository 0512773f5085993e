"""A built topology as frozen values: what is sent to, checked by and run by everything else.

``StormTopology`` mirrors Storm's class of that name, ``ComponentSpec`` its ``Bolt`` and
``SpoutSpec``. This module knows no builder and no user call: ``storm_py.api.topology`` makes these
values, ``storm_py.api.validation`` judges them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.errors import InvalidTopologyException, did_you_mean

from .grouping import KEYED, Grouping
from .tuples import Fields, GlobalStreamId

__all__ = ["ComponentSpec", "Edge", "StormTopology", "StreamInfo", "apply_limits"]


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What a component declared about one of its output streams."""

    #: Names of the values of every tuple on the stream.
    fields: Fields
    #: Whether the producer picks the receiving task itself, with ``emit_direct``.
    direct: bool = False


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """One spout or bolt of a topology, with all that was declared about it."""

    id: str
    kind: Literal["spout", "bolt"]
    #: The user's object; each task gets a copy of its own.
    component: object
    #: Number of executors, each a process; at most ``num_tasks``.
    parallelism: int
    #: Number of tasks, fixed for the life of the topology.
    num_tasks: int
    #: Output streams by id.
    streams: Mapping[str, StreamInfo]
    #: Subscriptions; empty for a spout.
    inputs: Mapping[GlobalStreamId, Grouping]
    #: The component's own configuration, which overrides the topology's.
    config: Mapping[str, object]

    @property
    def label(self) -> str:
        """Kind and id as every message writes them, e.g. ``bolt 'count'``."""
        return f"{self.kind} {self.id!r}"


@dataclass(frozen=True, slots=True)
class Edge:
    """One subscription: ``consumer`` reads ``stream_id`` of ``producer`` by ``grouping``."""

    producer: str
    stream_id: str
    consumer: str
    grouping: Grouping


@dataclass(frozen=True, slots=True)
class StormTopology:
    """A whole topology: its components by id, in the order they were set."""

    components: Mapping[str, ComponentSpec]

    @property
    def spouts(self) -> Mapping[str, ComponentSpec]:
        """The spouts by id."""
        return {id_: spec for id_, spec in self.components.items() if spec.kind == "spout"}

    @property
    def bolts(self) -> Mapping[str, ComponentSpec]:
        """The bolts by id."""
        return {id_: spec for id_, spec in self.components.items() if spec.kind == "bolt"}

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Every subscription, in the order the bolts were set and subscribed."""
        return tuple(
            Edge(source.component_id, source.stream_id, spec.id, grouping)
            for spec in self.components.values()
            for source, grouping in spec.inputs.items()
        )

    def consumers(
        self, component_id: str, stream_id: str = DEFAULT_STREAM_ID
    ) -> tuple[tuple[str, Grouping], ...]:
        """Return (bolt id, grouping) of each subscriber of one stream; empty when there is none.

        Raises InvalidTopologyException for a component that does not exist.
        """
        self.component(component_id)
        source = GlobalStreamId(component_id, stream_id)
        return tuple(
            (spec.id, spec.inputs[source])
            for spec in self.components.values()
            if source in spec.inputs
        )

    def component(self, component_id: str) -> ComponentSpec:
        """Return the component with this id; raises InvalidTopologyException if there is none."""
        spec = self.components.get(component_id)
        if spec is None:
            raise InvalidTopologyException(
                f"no component {component_id!r} in this topology; it has: "
                f"{', '.join(self.components) or 'none'}"
                f"{did_you_mean(component_id, self.components)}"
            )
        return spec


def apply_limits(topology: StormTopology, conf: Mapping[str, object]) -> StormTopology:
    """Return ``topology`` with the task and executor counts that ``conf`` leads to.

    For each component its own configuration overrides ``conf``. ``topology.tasks`` sets the number
    of tasks, ``topology.max.task.parallelism`` caps it, and executors are capped at tasks, as in
    Storm. ``conf`` must be valid. Applying the same conf twice changes nothing more.

    Raises InvalidTopologyException when a bolt with a grouping by key has more tasks than there
    are key groups (``storm_py.key.groups``), because some would never receive a tuple.
    """
    components: dict[str, ComponentSpec] = {}
    for spec in topology.components.values():
        combined = {**conf, **spec.config}
        tasks = _count(combined, "topology.tasks", spec.num_tasks)
        tasks = min(tasks, _count(combined, "topology.max.task.parallelism", tasks))
        limited = replace(spec, num_tasks=tasks, parallelism=min(spec.parallelism, tasks))
        _check_key_groups(limited, _count(conf, "storm_py.key.groups", tasks))
        components[spec.id] = limited
    return StormTopology(components)


def _count(conf: Mapping[str, object], key: str, default: int) -> int:
    value = conf.get(key)
    return value if isinstance(value, int) else default


def _check_key_groups(spec: ComponentSpec, groups: int) -> None:
    keyed = [grouping.kind for grouping in spec.inputs.values() if grouping.kind in KEYED]
    if keyed and spec.num_tasks > groups:
        raise InvalidTopologyException(
            f"{spec.label} has {spec.num_tasks} tasks and a {keyed[0].words} grouping, but keys "
            f"fall into only {groups} groups; lower its tasks or raise storm_py.key.groups"
        )
