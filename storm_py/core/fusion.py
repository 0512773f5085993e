"""Fusion: which components share the processes of the one they read from.

A bolt that reads from one component only, by local_or_shuffle, with as many tasks and executors,
gains nothing from a process of its own but parallelism: executor by executor it runs in the
instance of its source, and rows are handed over as they are. Component, tasks and executors stay
what they are; what a user gives up is told in docs/performance.md. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from storm_py.api.grouping import GroupingKind
from storm_py.api.spec import ComponentSpec, StormTopology
from storm_py.constants import RESERVED_PREFIX

FUSE_KEY: Final = "storm_py.fuse"


def fused(topology: StormTopology, conf: Mapping[str, object]) -> dict[str, str]:
    """The components that run in the instances of another, and of which: the first of the chain.

    `conf` is the topology's whole configuration; a component's own may say otherwise of it.
    """
    source_of = {
        spec.id: source
        for spec in topology.components.values()
        if (source := _only_source(topology, spec)) and spec.config.get(FUSE_KEY, conf[FUSE_KEY])
    }
    return {id_: head for id_ in source_of if (head := _head(id_, source_of)) is not None}


def _only_source(topology: StormTopology, spec: ComponentSpec) -> str | None:
    """The component that this one could run with, None if there is none."""
    sources = {source.component_id for source in spec.inputs}
    kinds = {grouping.kind for grouping in spec.inputs.values()}
    if len(sources) != 1 or kinds != {GroupingKind.LOCAL_OR_SHUFFLE}:
        return None
    source = topology.components[sources.pop()]
    same = (source.parallelism, source.num_tasks) == (spec.parallelism, spec.num_tasks)
    return source.id if same and not spec.id.startswith(RESERVED_PREFIX) else None


def _head(component_id: str, source_of: Mapping[str, str]) -> str | None:
    """Where the chain of a component begins; None on a cycle, which begins nowhere."""
    seen = {component_id}
    while component_id in source_of:
        component_id = source_of[component_id]
        if component_id in seen:
            return None
        seen.add(component_id)
    return component_id
