"""The calls that carry files: uploads for submissions, blobs for supervisors and other nimbuses.

Uploads are the leader's, so that a client learns at once that it asks the wrong one. Blobs are read
from any nimbus that has them.
"""

from __future__ import annotations

from storm_py.rpc import definitions

from .commands import Leadership
from .data import NimbusData

__all__ = ["Transfers"]


class Transfers:
    """Upload and download."""

    def __init__(self, data: NimbusData, leadership: Leadership) -> None:
        self._data = data
        self._leadership = leadership

    def beginFileUpload(self) -> str:
        """Begin to upload an archive; gives its location."""
        self._leadership.check_leads()
        return self._data.inbox.begin()

    def uploadChunk(self, location: str, chunk: bytes) -> None:
        """Append to an upload."""
        self._data.inbox.append(location, chunk)

    def finishFileUpload(self, location: str) -> None:
        """End an upload."""
        self._data.inbox.finish(location)

    def beginFileDownload(self, file: str) -> str:
        """Begin to download a blob by its key; gives the id. Storm 1.x only."""
        return self._data.downloads.begin(self._data.blobs.open(file), self._data.clock())

    def downloadChunk(self, id: str) -> bytes:
        """The next piece, empty at the end."""
        return self._data.downloads.next(id, self._data.clock())

    def getBlobMeta(self, key: str) -> definitions.ReadableBlobMeta:
        """Version and checksum of a blob."""
        info = self._data.blobs.info(key)
        settable = definitions.SettableBlobMeta(acl=[], replication_factor=1)
        return definitions.ReadableBlobMeta(
            settable=settable, version=info.version, sha256=info.sha256
        )

    def beginBlobDownload(self, key: str) -> definitions.BeginDownloadResult:
        """Begin to download a blob; gives the session."""
        info = self._data.blobs.info(key)
        session = self._data.downloads.begin(self._data.blobs.open(key), self._data.clock())
        return definitions.BeginDownloadResult(
            version=info.version, session=session, data_size=info.size_bytes
        )

    def downloadBlobChunk(self, session: str) -> bytes:
        """The next piece, empty at the end."""
        return self._data.downloads.next(session, self._data.clock())
