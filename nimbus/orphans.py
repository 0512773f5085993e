"""Orphans: blobs of topologies that are not there, and since when.

A topology that is removed leaves its blobs, which are kept for some time (Storm's
nimbus.topology.blobstore.deletion.delay.ms): supervisors may still fetch them, and who looks at the
wrong ZooKeeper should not destroy what belongs to another one in its first second. What is not
whole was never a topology, and goes at once.
"""

from __future__ import annotations

import logging
from collections.abc import Set

from .blobstore import BlobStore
from .catalogue import Catalogue

__all__ = ["Orphans"]

_LOG = logging.getLogger("storm_py.nimbus")


class Orphans:
    """The orphans among the blobs of one nimbus; for its loop."""

    def __init__(self, blobs: BlobStore, catalogue: Catalogue, delay_secs: float) -> None:
        self._blobs = blobs
        self._catalogue = catalogue
        self._delay_secs = delay_secs
        self._since: dict[str, float] = {}

    def sweep(self, alive: Set[str], now: float) -> None:
        """Remove what is due; `alive` are the ids of topologies, and of those being submitted."""
        found = self._blobs.topologies() - alive
        self._since = {id_: self._since.get(id_, now) for id_ in found}
        for id_, since in self._since.items():
            if now - since >= self._delay_secs or not self._blobs.has_all(id_):
                self._blobs.delete_topology(id_)
                self._catalogue.forget(id_)
                _LOG.info("the blobs of %s are removed", id_)
