"""BlobStore: the blobs of topologies on the disk of a nimbus, each with its checksum beside it.

Theory of operation. A blob is a file named by its key; ``<key>.sha256`` is written after it, and
only with that it is there. So whoever is killed while writing leaves a file without a checksum,
which the next start removes, as it does with one whose checksum is wrong. A blob is never changed:
another submission has other keys. Both files are on the disk when `put` or `adopt` returns.

Which blobs there ought to be, and when one is too old, is the leader's to say; what is in them is
`storm_py.bundle` and `storm_py.archive`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from storm_py.bundle import code_key, conf_key, jar_key
from storm_py.errors import BlobError, KeyNotFoundException
from storm_py.files import make_folder, sync_folder, write_atomically

__all__ = ["BlobInfo", "BlobStore", "keys_of", "no_room"]

_LOG = logging.getLogger("storm_py.nimbus")

_SUM: Final = ".sha256"
_READ_BYTES: Final = 1 << 20
#: What keys of blobs end with, behind the id of their topology.
_ENDINGS: Final = tuple(key("") for key in (jar_key, code_key, conf_key))


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """What is known of a blob without reading it."""

    key: str
    sha256: str
    size_bytes: int
    #: Another one for another content.
    version: int


def keys_of(topology_id: str) -> tuple[str, str, str]:
    """The keys of the three blobs of a topology."""
    return jar_key(topology_id), code_key(topology_id), conf_key(topology_id)


@contextlib.contextmanager
def no_room(what: str, folder: Path) -> Iterator[None]:
    """Have what the disk refuses within the block raise a BlobError that says what to do."""
    try:
        yield
    except OSError as error:
        raise BlobError(
            f"nimbus cannot store {what} in {folder}: {error.strerror or error}; make room there, "
            "or have storm.local.dir of nimbus name another folder"
        ) from error


class BlobStore:
    """The blobs below one folder, which no other process writes to; used by several threads."""

    def __init__(self, folder: Path) -> None:
        """Make the folder. BlobError if that is not possible."""
        with no_room("blobs", folder):
            self._folder = make_folder(folder)

    @property
    def folder(self) -> Path:
        """Where they are."""
        return self._folder

    def check(self) -> list[str]:
        """Read all blobs and remove what is broken; the keys of those."""
        broken = []
        for path in sorted(self._folder.iterdir()):
            key = path.name.removesuffix(_SUM)
            whole = not path.name.startswith(".") and self._is_whole(key)
            if not whole and key not in broken:
                broken.append(key)
        for key in broken:
            _LOG.warning("the blob %s was not written to its end, or is damaged: removed", key)
            self.delete(key)
        return broken

    def _is_whole(self, key: str) -> bool:
        try:
            expected = (self._folder / f"{key}{_SUM}").read_text()
            with (self._folder / key).open("rb") as file:
                return _digest(file) == expected
        except (FileNotFoundError, UnicodeDecodeError):
            return False

    def keys(self) -> frozenset[str]:
        """The keys of all blobs."""
        names = {path.name for path in self._folder.iterdir()}
        return frozenset(name for name in names if f"{name}{_SUM}" in names)

    def topologies(self) -> frozenset[str]:
        """The ids of topologies of which there is any blob."""
        return frozenset(
            key.removesuffix(ending)
            for key in self.keys()
            for ending in _ENDINGS
            if key.endswith(ending)
        )

    def has_all(self, topology_id: str) -> bool:
        """Whether all blobs of a topology are there."""
        return self.keys().issuperset(keys_of(topology_id))

    def info(self, key: str) -> BlobInfo:
        """A blob without its content; KeyNotFoundException if it is not there."""
        path = self._path(key)
        try:
            sha256 = (self._folder / f"{key}{_SUM}").read_text()
            size = path.stat().st_size
        except FileNotFoundError:  # removed meanwhile
            raise _missing(key) from None
        return BlobInfo(key, sha256, size, int(sha256[:15], 16))

    def open(self, key: str) -> BinaryIO:
        """A blob to be read, which stays readable if it is removed; KeyNotFoundException."""
        try:
            return self._path(key).open("rb")
        except FileNotFoundError:
            raise _missing(key) from None

    def read(self, key: str) -> bytes:
        """A blob; KeyNotFoundException if it is not there."""
        with self.open(key) as file:
            return file.read()

    def put(self, key: str, data: bytes) -> str:
        """Store a blob, and return its sha256. BlobError if there is no room for it."""
        sha256 = hashlib.sha256(data).hexdigest()
        with no_room(f"the blob {key}", self._folder):
            write_atomically(self._folder / key, data)
            self._seal(key, sha256)
        return sha256

    def adopt(self, key: str, path: Path, sha256: str) -> None:
        """Make a file of the same disk, which has this checksum, a blob: it is moved here."""
        with no_room(f"the blob {key}", self._folder):
            with path.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(path, self._folder / key)
            sync_folder(self._folder)
            self._seal(key, sha256)

    def delete(self, key: str) -> None:
        """Remove a blob; nothing happens if it is not there."""
        (self._folder / f"{key}{_SUM}").unlink(missing_ok=True)
        (self._folder / key).unlink(missing_ok=True)

    def delete_topology(self, topology_id: str) -> None:
        """Remove all blobs of a topology."""
        for key in keys_of(topology_id):
            self.delete(key)

    def _seal(self, key: str, sha256: str) -> None:
        try:
            write_atomically(self._folder / f"{key}{_SUM}", sha256.encode())
        except OSError:
            self.delete(key)
            raise

    def _path(self, key: str) -> Path:
        # Keys come from strangers: only what is listed is opened.
        if key not in self.keys():
            raise _missing(key)
        return self._folder / key


def _missing(key: str) -> KeyNotFoundException:
    return KeyNotFoundException(
        f"there is no blob {key!r:.200}: its topology was removed, or it was never submitted here"
    )


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_READ_BYTES):
        digest.update(chunk)
    return digest.hexdigest()
