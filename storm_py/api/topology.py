"""``TopologyBuilder``: where a topology is put together (Storm's class of that name).

Build with ``set_spout`` and ``set_bolt``, connect with the grouping methods of what they return,
finish with ``create_topology``. The builder starts nothing. The values it makes live in
``storm_py.api.spec`` and are re-exported here, the declarers in ``storm_py.api.declarers``, the
checks in ``storm_py.api.validation``.
"""

from __future__ import annotations

from storm_py.config import Config

from . import validation
from .component import BaseRichSpout, Bolt
from .declarers import (
    BoltDeclarer,
    ComponentDraft,
    OutputFieldsDeclarer,
    SpoutDeclarer,
)
from .spec import ComponentSpec, Edge, StormTopology, StreamInfo, apply_limits

__all__ = [
    "BoltDeclarer",
    "ComponentSpec",
    "Edge",
    "OutputFieldsDeclarer",
    "SpoutDeclarer",
    "StormTopology",
    "StreamInfo",
    "TopologyBuilder",
    "apply_limits",
]


class TopologyBuilder:
    """Collects components and connections and turns them into a checked ``StormTopology``."""

    __slots__ = ("_drafts",)

    def __init__(self) -> None:
        """Start empty."""
        self._drafts: dict[str, ComponentDraft] = {}

    def set_spout(self, id: str, spout: BaseRichSpout, parallelism_hint: int = 1) -> SpoutDeclarer:
        """Add a spout under ``id`` and return the declarer of its settings.

        ``parallelism_hint`` is its number of executors, that is processes. Raises
        InvalidTopologyException for an id that is taken or reserved, an object that is not a
        spout and a hint that is not a positive int.
        """
        validation.check_component("spout", id, spout, parallelism_hint, self._drafts)
        draft = ComponentDraft(id, "spout", spout, parallelism_hint)
        self._drafts[id] = draft
        return SpoutDeclarer(draft)

    def set_bolt(self, id: str, bolt: Bolt, parallelism_hint: int = 1) -> BoltDeclarer:
        """Add a bolt under ``id`` and return the declarer of its inputs and settings.

        Arguments and errors are those of ``set_spout``. Every bolt needs at least one input.
        """
        validation.check_component("bolt", id, bolt, parallelism_hint, self._drafts)
        draft = ComponentDraft(id, "bolt", bolt, parallelism_hint)
        self._drafts[id] = draft
        return BoltDeclarer(draft)

    def create_topology(self) -> StormTopology:
        """Ask every component for its streams and return the checked topology.

        May be called again, also after more was added. Raises InvalidTopologyException that names
        the component, what is wrong and what would be right.
        """
        topology = StormTopology({id_: _spec(draft) for id_, draft in self._drafts.items()})
        places = {id_: draft.places for id_, draft in self._drafts.items()}
        validation.check_topology(topology, places)
        return topology


def _spec(draft: ComponentDraft) -> ComponentSpec:
    streams = validation.declared_streams(draft)
    config = {**validation.component_configuration(draft), **draft.config}
    tasks = config.get(Config.TOPOLOGY_TASKS)
    num_tasks = tasks if isinstance(tasks, int) else draft.parallelism_hint
    return ComponentSpec(
        id=draft.id,
        kind=draft.kind,
        component=draft.component,
        parallelism=min(draft.parallelism_hint, num_tasks),
        num_tasks=num_tasks,
        streams=streams,
        inputs=dict(draft.inputs),
        config=config,
    )
