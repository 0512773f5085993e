"""Replication: a nimbus fetches the blobs that it does not have from the others.

So that any may lead when the leader dies. A blob that does not have the checksum which its owner
names is not kept. Which topologies there are is what ZooKeeper says.
"""

from __future__ import annotations

import hashlib
import logging

from storm_py.cluster.records import NimbusSummary
from storm_py.errors import BlobError, StormPyError
from storm_py.rpc.client import Patience, ThriftClient
from storm_py.rpc.interface import Nimbus

from .blobstore import BlobStore, keys_of
from .data import NimbusData

__all__ = ["missing_blobs", "replicate"]

_LOG = logging.getLogger("storm_py.nimbus")

#: Another nimbus answers soon, or is not there.
_PATIENCE = Patience(connect_secs=2.0, attempts=1, answer_secs=30.0)


def missing_blobs(data: NimbusData) -> list[str]:
    """The topologies of which a blob is missing here."""
    return [id_ for id_ in data.state.storms() if not data.blobs.has_all(id_)]


def replicate(data: NimbusData) -> None:
    """Fetch what is missing here and another nimbus has. ConnectionLost without ZooKeeper."""
    missing = missing_blobs(data)
    if not missing:
        return
    for other in data.state.nimbuses():
        if other.nimbus_id != data.me.nimbus_id:
            missing = [id_ for id_ in missing if not _fetch(data.blobs, other, id_)]


def _fetch(blobs: BlobStore, other: NimbusSummary, topology_id: str) -> bool:
    """Whether all blobs of a topology are here now."""
    try:
        with ThriftClient(other.host, other.port, _PATIENCE) as client:
            for key in sorted(set(keys_of(topology_id)) - blobs.keys()):
                blobs.put(key, _read(client.nimbus, key))
    except StormPyError as error:
        _LOG.info("%s cannot be fetched from %s: %s", topology_id, other.nimbus_id, error)
        return False
    _LOG.info("the blobs of %s were fetched from %s", topology_id, other.nimbus_id)
    return True


def _read(nimbus: Nimbus, key: str) -> bytes:
    sha256 = nimbus.getBlobMeta(key).sha256
    session = nimbus.beginBlobDownload(key).session
    pieces = list(iter(lambda: nimbus.downloadBlobChunk(session), b""))
    found = b"".join(pieces)
    if hashlib.sha256(found).hexdigest() != sha256:
        raise BlobError(f"{key} came damaged: its sha256 is not {sha256}")
    return found
