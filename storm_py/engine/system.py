"""The part of a topology that the system adds, as Storm's `StormCommon.systemTopology` does.

Each metrics consumer becomes a bolt `__metrics_<class>`, fed by a stream `__metrics` of every
component. So consumers run in processes of their own, data points travel as tuples do, and a run
ends after the last of them. User code sees its own part only. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from storm_py.api.collector import OutputCollector
from storm_py.api.component import BaseRichBolt
from storm_py.api.context import TopologyContext
from storm_py.api.grouping import Grouping, GroupingKind
from storm_py.api.metrics import DataPoint, TaskInfo
from storm_py.api.registered import consumer_class
from storm_py.api.spec import ComponentSpec, StormTopology, StreamInfo
from storm_py.api.tuples import Fields, GlobalStreamId, Tuple
from storm_py.config import Config
from storm_py.constants import METRICS_COMPONENT_ID_PREFIX, METRICS_STREAM_ID, RESERVED_PREFIX


class MetricsConsumerBolt(BaseRichBolt):
    """Hands data points to the consumer that `path` names."""

    def __init__(self, path: str, argument: object) -> None:
        self._path = path
        self._argument = argument

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        """Make the consumer."""
        self._consumer = consumer_class(self._path)()
        self._consumer.prepare(conf, self._argument, context)

    def execute(self, tup: Tuple) -> None:
        """Hand on the values of one bucket."""
        info, points = tup.values
        self._consumer.handle_data_points(TaskInfo(*info), [DataPoint(*p) for p in points])

    def cleanup(self) -> None:
        """Clean up the consumer."""
        self._consumer.cleanup()


def system_topology(topology: StormTopology, conf: Mapping[str, Any]) -> StormTopology:
    """`topology` with a bolt for each metrics consumer of `conf`; as it is if there is none."""
    registered = conf[Config.TOPOLOGY_METRICS_CONSUMER_REGISTER] or ()
    if not registered or len(users_part(topology).components) < len(topology.components):
        return topology
    stream = {METRICS_STREAM_ID: StreamInfo(Fields("task-info", "data-points"))}
    components = {
        spec.id: replace(spec, streams={**spec.streams, **stream})
        for spec in topology.components.values()
    }
    shuffle = Grouping(GroupingKind.SHUFFLE)
    inputs = {GlobalStreamId(id_, METRICS_STREAM_ID): shuffle for id_ in topology.components}
    for consumer in registered:
        id_ = _free_id(consumer["class"], components)
        tasks = consumer.get("parallelism.hint", 1)
        bolt = MetricsConsumerBolt(consumer["class"], consumer.get("argument"))
        components[id_] = ComponentSpec(id_, "bolt", bolt, tasks, tasks, {}, inputs, {})
    return StormTopology(components)


def _free_id(path: str, taken: Mapping[str, object]) -> str:
    """`__metrics_<class>`, with `#2` and so on behind it for the next of that class."""
    name = f"{METRICS_COMPONENT_ID_PREFIX}_{path.replace(':', '.')}"
    number = 1
    found = name
    while found in taken:
        number += 1
        found = f"{name}#{number}"
    return found


def users_part(topology: StormTopology) -> StormTopology:
    """What the user built of `topology`."""
    return StormTopology(
        {
            spec.id: replace(
                spec,
                streams={
                    name: info
                    for name, info in spec.streams.items()
                    if not name.startswith(RESERVED_PREFIX)
                },
            )
            for spec in topology.components.values()
            if not spec.id.startswith(RESERVED_PREFIX)
        }
    )
