"""Localizer: brings the code of topologies to this node, once for all slots, and removes it again.

Theory of operation. What a topology is on a node is one folder, named by topology id and checksum
of its code: the unpacked archive and two files. It is put together in a folder of its own and moved
to its place when all of it is verified and on the disk; so what is there is whole. A newer code of
a topology is another folder, and a worker of the older one keeps what it runs.

Each slot that needs it is a reference. The first begins the download, on a thread; those that come
while it runs share it, and its outcome. One that failed holds no references. When the last
reference is given back the folder goes, also if that happens during the download. References are
not kept on the disk: after a restart slots ask for what their workers run, and are answered at
once; then `remove_unused` removes the rest.

Decides nothing about slots: that is `storm_py.supervisor.slot`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from storm_py.errors import BlobError
from storm_py.files import make_folder, sync_file_system, sync_folder

from .assignment import Code
from .folders import LocalFolder
from .unpacking import Limits, unpack

#: In the folder of a topology: the unpacked archive, the topology, and its configuration.
CODE: Final = "code"
STORMCODE: Final = "stormcode.ser"
STORMCONF: Final = "stormconf.ser"


class Blobs(Protocol):
    """Where blobs come from, by Storm's names for them; called from several threads."""

    def checksum(self, key: str) -> str:
        """sha256 of a blob, in hex; StormPyError or OSError if it cannot be had."""
        ...

    def read(self, key: str) -> Iterator[bytes]:
        """The bytes of a blob, in pieces; raises as `checksum` does, at any piece."""
        ...


@dataclass(slots=True)
class _Entry:
    """A code that is on the disk, or on its way there."""

    folder: Future[Path]
    ports: set[int] = field(default_factory=set)
    complete: bool = False


class Localizer:
    """The code on one node. One at a time for a local folder; its methods do not block."""

    def __init__(
        self, folder: LocalFolder, blobs: Blobs, limits: Limits | None = None, threads: int = 2
    ) -> None:
        self._folder = folder
        self._blobs = blobs
        self._limits = Limits() if limits is None else limits
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="localizer")
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._closing = False
        make_folder(folder.stormdist)
        for left in make_folder(folder.tmp).iterdir():  # by a supervisor that was killed
            shutil.rmtree(left)

    def close(self) -> None:
        """Give up downloads that run, and wait for that. The folders stay for the next start."""
        self._closing = True
        self._executor.shutdown(wait=True, cancel_futures=True)

    # ---- references ----------------------------------------------------------------------------

    def localize(self, code: Code, port: int) -> Future[Path]:
        """Hold a code for the slot of a port: its folder, once it is there.

        The future is shared: do not cancel it. It fails with a BlobError, and nothing is held then.
        """
        key = (code.topology_id, code.checksum)
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry(self._executor.submit(self._fetch, code))
            entry.ports.add(port)
            return entry.folder

    def release(self, code: Code, port: int) -> None:
        """The slot of this port needs a code no more; without effect if it does not hold it."""
        key = (code.topology_id, code.checksum)
        removed = None
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return
            entry.ports.discard(port)
            if not entry.ports and entry.complete:
                del self._entries[key]
                removed = self._take_away(self.folder(code))
        _remove(removed)

    def remove_unused(self) -> None:
        """Remove all that no slot holds: what is left of topologies that ended meanwhile."""
        for path in list(self._folder.stormdist.glob("*/*")):
            with self._lock:
                used = (path.parent.name, path.name) in self._entries
                removed = None if used else self._take_away(path)
            _remove(removed)

    def folder(self, code: Code) -> Path:
        """Where a code lies, once it is localised."""
        return self._folder.stormdist / code.topology_id / code.checksum

    def _take_away(self, path: Path) -> Path | None:
        """Move a folder to where it can be removed without haste."""
        if not path.is_dir():
            return None
        away = Path(tempfile.mkdtemp(dir=self._folder.tmp))
        path.replace(away / path.name)
        try:
            path.parent.rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another code of the topology
                raise
        return away

    # ---- download, on a thread -----------------------------------------------------------------

    def _fetch(self, code: Code) -> Path:
        target = self.folder(code)
        removed = None
        try:
            if not target.is_dir():
                self._download(code, target)
        except BaseException:
            with self._lock:
                del self._entries[code.topology_id, code.checksum]
            raise
        with self._lock:
            entry = self._entries[code.topology_id, code.checksum]
            entry.complete = True
            if not entry.ports:
                del self._entries[code.topology_id, code.checksum]
                removed = self._take_away(target)
        _remove(removed)
        return target

    def _download(self, code: Code, target: Path) -> None:
        tmp = Path(tempfile.mkdtemp(dir=self._folder.tmp))
        try:
            whole = tmp / "whole"
            whole.mkdir(mode=0o700)
            archive = tmp / "archive"
            jar = f"{code.topology_id}-stormjar.jar"
            self._download_blob(jar, archive, code.checksum)
            unpack(archive, whole / CODE, f"blob {jar}", self._limits, self._may_go_on)
            for name in (STORMCODE, STORMCONF):
                key = f"{code.topology_id}-{name}"
                self._download_blob(key, whole / name, self._blobs.checksum(key))
            sync_file_system(whole)  # once, which is far less than once for each file
            with self._lock:  # which keeps `_take_away` from the folder above it
                make_folder(target.parent)
                whole.rename(target)
            sync_folder(target.parent)
        except OSError as error:
            raise BlobError(
                f"the code of {code.topology_id} cannot be brought to {target}: {error}; "
                f"{shutil.disk_usage(self._folder.tmp).free} bytes are free there"
            ) from error
        finally:
            shutil.rmtree(tmp, ignore_errors=True)

    def _download_blob(self, key: str, path: Path, checksum: str) -> None:
        digest = hashlib.sha256()
        size = 0
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            for chunk in self._blobs.read(key):
                self._may_go_on()
                size += len(chunk)
                if size > self._limits.blob_bytes:
                    raise BlobError(
                        f"blob {key} is larger than the limit of {self._limits.blob_bytes} bytes"
                    )
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != checksum:
            raise BlobError(
                f"blob {key} is damaged or another one: sha256 of its {size} bytes is "
                f"{digest.hexdigest()}, expected {checksum}; if trying again does not help, "
                "submit the topology again"
            )

    def _may_go_on(self) -> None:
        if self._closing:
            raise BlobError("the supervisor stops; the download is begun anew when it is back")


def _remove(path: Path | None) -> None:
    if path is not None:
        shutil.rmtree(path)
