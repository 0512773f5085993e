"""The user's objects as bytes: how components and custom groupings reach the tasks that use them.

Whoever runs a topology packs its objects once; every task unpacks copies of its own, also the first
one, and also where all run in one thread. What is read here is the user's code: only instances may
unpack, never a stream manager, the parent of a worker or a daemon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cloudpickle

from .api.grouping import CustomStreamGrouping
from .api.spec import ComponentSpec, StormTopology
from .errors import InvalidTopologyException, a_type

__all__ = ["TaskObjects", "pack", "unpack"]


@dataclass(frozen=True, slots=True)
class TaskObjects:
    """One task's own objects."""

    component: object
    #: Custom groupings of the streams that it emits on, by stream and consuming component.
    groupings: Mapping[tuple[str, str], CustomStreamGrouping]


def pack(topology: StormTopology) -> dict[str, bytes]:
    """Per component: its object, and the custom groupings of the streams that it emits on.

    Raises InvalidTopologyException that names what cannot be copied, and why as far as can be seen.
    """
    packed = {}
    for spec in topology.components.values():
        made_in = "open" if spec.kind == "spout" else "prepare"
        component = _dumps(spec.label, spec.component, made_in)
        groupings = {}
        for edge in topology.edges:
            if edge.producer == spec.id and edge.grouping.custom is not None:
                label = (
                    f"{topology.components[edge.consumer].label}, custom grouping on {spec.id!r}"
                )
                # Each by itself: in one pickle an object given twice would be one object again.
                found = _dumps(label, edge.grouping.custom, "prepare")
                groupings[edge.stream_id, edge.consumer] = found
        packed[spec.id] = cloudpickle.dumps((component, groupings))
    return packed


def unpack(spec: ComponentSpec, packed: bytes) -> TaskObjects:
    """The objects of one task of a component, new ones at each call.

    Raises InvalidTopologyException if the user's classes fail to make them.
    """
    component, groupings = cloudpickle.loads(packed)
    return TaskObjects(
        _loads(spec.label, component),
        {
            (stream, consumer): _loads(
                f"bolt {consumer!r}, custom grouping on {spec.id!r}", grouping
            )
            for (stream, consumer), grouping in groupings.items()
        },
    )


def _dumps(label: str, value: object, made_in: str) -> tuple[str, bytes]:
    """What the value is, for the error of a copy that fails, and its bytes."""
    try:
        return a_type(value), cloudpickle.dumps(value)
    except Exception as error:
        raise InvalidTopologyException(
            f"{label}: {a_type(value)} cannot be copied for its tasks{_culprit(value)}: {error}; "
            f"make files, sockets, threads and locks in {made_in}(), not in __init__"
        ) from error


def _culprit(value: object) -> str:
    """Name the attribute that cannot be pickled, if it is one of the object's own."""
    for name, attribute in getattr(value, "__dict__", {}).items():
        try:
            cloudpickle.dumps(attribute)
        except Exception:  # noqa: BLE001 - whatever pickling it raises, it is the culprit
            return f", because of its attribute {name!r}"
    return ""


def _loads(label: str, packed: tuple[str, bytes]) -> Any:
    what, data = packed
    try:
        return cloudpickle.loads(data)
    except Exception as error:
        raise InvalidTopologyException(
            f"{label}: the copy of {what} for a task fails with "
            f"{type(error).__name__}: {error}; see its __setstate__, __reduce__ or __init__"
        ) from error
