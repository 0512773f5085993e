"""Catalogue: what has been submitted of each topology, read from its blobs once.

Structure and configuration only: the packed components in the stormcode stay bytes, as everywhere
outside of workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from storm_py.api.spec import StormTopology
from storm_py.bundle import code_key, conf_key, jar_key, load_conf, load_structure
from storm_py.core.fusion import fused

from .blobstore import BlobStore
from .executors import Group, compute_executors, make_groups, number_tasks

__all__ = ["Catalogue", "Submitted"]


@dataclass(frozen=True, slots=True)
class Submitted:
    """A topology as it was submitted; no rebalance changes any of it."""

    topology: StormTopology
    #: Its whole configuration.
    conf: Mapping[str, object]
    #: The tasks of each component.
    tasks: Mapping[str, range]
    #: sha256 of the archive.
    checksum: str

    def component_of(self, task: int) -> str:
        """The component of a task; KeyError if there is no such task."""
        for id_, own in self.tasks.items():
            if task in own:
                return id_
        raise KeyError(task)

    def heads(self, num_executors: Mapping[str, int]) -> dict[str, str]:
        """Which components run in the processes of which other, with so many executors each."""
        specs = {
            id_: replace(spec, parallelism=num_executors.get(id_, spec.parallelism))
            for id_, spec in self.topology.components.items()
        }
        return fused(StormTopology(specs), self.conf)

    def groups(self, num_executors: Mapping[str, int]) -> tuple[Group, ...]:
        """What has to be given places."""
        executors = compute_executors(self.tasks, num_executors)
        return make_groups(executors, self.heads(num_executors))


class Catalogue:
    """The topologies of a blob store; used by several threads."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._known: dict[str, Submitted] = {}

    def get(self, topology_id: str) -> Submitted:
        """A topology. KeyNotFoundException if its blobs are not there, BlobError if broken."""
        found = self._known.get(topology_id)
        if found is None:
            found = self._known[topology_id] = self._read(topology_id)
        return found

    def forget(self, topology_id: str) -> None:
        """The topology is no more."""
        self._known.pop(topology_id, None)

    def _read(self, topology_id: str) -> Submitted:
        code, conf = code_key(topology_id), conf_key(topology_id)
        topology = load_structure(self._blobs.read(code), code)
        return Submitted(
            topology=topology,
            conf=load_conf(self._blobs.read(conf), conf),
            tasks=number_tasks({id_: s.num_tasks for id_, s in topology.components.items()}),
            checksum=self._blobs.info(jar_key(topology_id)).sha256,
        )
