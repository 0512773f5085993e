"""Claims: what nimbus has assigned to one supervisor, by port.

Pure. Who reads assignments is `storm_py.supervisor.cluster_watch`, who follows them
`storm_py.supervisor.slots`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storm_py.cluster.records import Assignment

from .assignment import LocalAssignment


@dataclass(frozen=True, slots=True)
class Claims:
    """What each topology wants of a supervisor, as of one look."""

    #: By topology and port.
    wanted: Mapping[str, Mapping[int, LocalAssignment]] = field(default_factory=dict)
    #: Topologies that have an assignment which cannot be read: what they want is not known.
    unreadable: frozenset[str] = frozenset()


def claims_of(
    topology_id: str, assignment: Assignment, supervisor_id: str
) -> dict[int, LocalAssignment]:
    """What one topology wants of a supervisor, by port."""
    executors: dict[int, list[tuple[int, int]]] = {}
    for executor, (node, port) in assignment.executor_node_port.items():
        if node == supervisor_id:
            executors.setdefault(port, []).append(executor)
    return {
        port: LocalAssignment(
            topology_id,
            assignment.version,
            tuple(found),
            assignment.code_checksum,
            assignment.owner,
        )
        for port, found in executors.items()
    }


def by_port(
    claims: Claims, current: Mapping[int, LocalAssignment | None]
) -> dict[int, LocalAssignment]:
    """What each port has to run, where it was `current` so far; a port that is missing, nothing.

    A port that goes from one topology to another is seen with both for a moment, as each
    assignment is written and read for itself: who has it keeps it until that is over.
    """
    found: dict[int, LocalAssignment] = {}
    for port, before in current.items():
        if before is not None and before.topology_id in claims.unreadable:
            found[port] = before
    for topology_id in sorted(claims.wanted):
        for port, wanted in claims.wanted[topology_id].items():
            before = current.get(port)
            if port not in found or (before is not None and before.topology_id == topology_id):
                found[port] = wanted
    return found
