"""What the parts of a nimbus share: its configuration, its place in the cluster, its disk, time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storm_py.cluster.records import NimbusSummary, StormBase
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.config import Config
from storm_py.errors import InvalidRecord, NotAliveException, did_you_mean

from .beats import Beats
from .blobstore import BlobStore
from .catalogue import Catalogue
from .downloads import Downloads
from .inbox import Inbox
from .orphans import Orphans

__all__ = ["NimbusData"]

_LOG = logging.getLogger("storm_py.nimbus")

#: Pieces of a download, unless the largest frame is smaller: Storm's are 64 KiB.
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class NimbusData:
    """One nimbus; all of it may be used by several threads."""

    #: Checked, with all defaults.
    conf: Mapping[str, Any]
    me: NimbusSummary
    state: ClusterState
    blobs: BlobStore
    inbox: Inbox
    downloads: Downloads
    catalogue: Catalogue
    beats: Beats
    orphans: Orphans
    #: Seconds that pass, whatever is done to the clock of the machine: for waits.
    clock: Callable[[], float]
    #: Seconds since 1970: for what others read.
    wall: Callable[[], float]
    #: Ids of submissions, of all terms of this process: none is given again, however short the
    #: lives are, and wherever the clock is set.
    ids_given: set[str] = field(default_factory=set)

    @classmethod
    def make(
        cls,
        conf: Mapping[str, Any],
        me: NimbusSummary,
        state: ClusterState,
        folder: Path,
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> NimbusData:
        """A nimbus whose disk is this folder. BlobError if nothing can be stored there."""
        blobs = BlobStore(folder / "blobs")
        catalogue = Catalogue(blobs)
        delay_secs = conf[Config.NIMBUS_TOPOLOGY_BLOBSTORE_DELETION_DELAY_MS] / 1000
        chunk_bytes = min(_CHUNK_BYTES, conf[Config.NIMBUS_THRIFT_MAX_BUFFER_SIZE] // 2)
        return cls(
            conf=conf,
            me=me,
            state=state,
            blobs=blobs,
            inbox=Inbox(folder / "inbox", conf[Config.STORM_PY_SUBMIT_MAX_BYTES]),
            downloads=Downloads(chunk_bytes),
            catalogue=catalogue,
            beats=Beats(),
            orphans=Orphans(blobs, catalogue, delay_secs),
            clock=clock,
            wall=wall,
        )

    def bases(self) -> dict[str, StormBase]:
        """All topologies by their ids, but for those whose StormBase cannot be read."""
        found = {}
        for id_ in self.state.storms():
            try:
                base = self.state.storm_base(id_)
            except InvalidRecord as error:  # which is no reason to show none of the others
                _LOG.warning("%s is left out: %s", id_, error)
                continue
            if base is not None:
                found[id_] = base
        return found

    def named(self, name: str) -> tuple[str, StormBase]:
        """The topology of this name; NotAliveException if there is none."""
        bases = self.bases()
        for id_, base in bases.items():
            if base.name == name:
                return id_, base
        raise not_alive(name, [base.name for base in bases.values()])

    def base(self, topology_id: str) -> StormBase:
        """The topology of this id; NotAliveException if there is none."""
        found = None if "/" in topology_id else self.state.storm_base(topology_id)
        if found is None:
            raise not_alive(topology_id, self.state.storms())
        return found


def not_alive(what: str, known: list[str] | tuple[str, ...]) -> NotAliveException:
    """The error for a topology that is not there."""
    there = f"; there are: {', '.join(sorted(known))}" if known else "; there is no topology at all"
    return NotAliveException(f"{what} is not alive{did_you_mean(what, known) or there}")
