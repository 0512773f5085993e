"""LocalAssignment: what one slot has to run. Values only, with their form on disk.

Pure: who decides by them is `storm_py.supervisor.slot`; who keeps them is
`storm_py.supervisor.local_state` and `storm_py.supervisor.launcher`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What a worker runs, and for whom. Another code needs another worker."""

    topology_id: str
    #: sha256 of the code archive, in hex.
    checksum: str
    #: Who submitted the topology.
    owner: str = ""

    def is_of_same_topology(self, other: Code) -> bool:
        """Whether they differ in the checksum at most."""
        return (self.topology_id, self.owner) == (other.topology_id, other.owner)

    def updates(self, other: Code) -> bool:
        """Whether it is another code of the same topology."""
        return self.is_of_same_topology(other) and self.checksum != other.checksum


@dataclass(frozen=True, slots=True)
class LocalAssignment:
    """What one slot has to run, as of one version of the topology's assignment."""

    topology_id: str
    #: Of the assignment: it grows with each change that nimbus makes for this topology.
    version: int
    #: First and last task of each executor; their order says nothing.
    executors: tuple[tuple[int, int], ...]
    #: sha256 of the code archive, in hex.
    checksum: str
    #: Who submitted the topology.
    owner: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "executors", tuple(sorted(self.executors)))

    @property
    def code(self) -> Code:
        """What it takes a worker of its own to run."""
        return Code(self.topology_id, self.checksum, self.owner)

    def is_older(self, other: LocalAssignment) -> bool:
        """Whether it is an earlier version of another one."""
        return self.topology_id == other.topology_id and self.version < other.version

    def to_dict(self) -> dict[str, object]:
        """As JSON can hold it."""
        return {
            "topology_id": self.topology_id,
            "version": self.version,
            "executors": [list(executor) for executor in self.executors],
            "checksum": self.checksum,
            "owner": self.owner,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> LocalAssignment:
        """What `to_dict` made; ValueError says which field is not as it should be."""
        executors = data.get("executors")
        if not isinstance(executors, list) or not all(map(_is_executor, executors)):
            raise ValueError(f"executors is {executors!r}, not a list of [first task, last task]")
        version = data.get("version")
        if not isinstance(version, int):
            raise ValueError(f"version is {version!r}, not a number")
        for name in ("topology_id", "checksum", "owner"):
            if not isinstance(data.get(name), str):
                raise ValueError(f"{name} is {data.get(name)!r}, not a text")
        return cls(
            topology_id=str(data["topology_id"]),
            version=version,
            executors=tuple((first, last) for first, last in executors),
            checksum=str(data["checksum"]),
            owner=str(data["owner"]),
        )

    def __str__(self) -> str:
        return f"{self.topology_id} v{self.version}"


def _is_executor(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(task) is int for task in value)
