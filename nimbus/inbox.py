"""Inbox: archives that clients upload, piece by piece, until a topology is made of them.

Each upload is a file of its own; its path is what Storm calls its location, and what the client
names again. It has another name while it grows: what was not finished when nimbus stopped can never
be, and is removed at the next start. What nobody made a topology of is removed when it is old.
"""

from __future__ import annotations

import os
import threading
import uuid
from pathlib import Path
from typing import Final

from storm_py.archive import size_words
from storm_py.errors import BlobError
from storm_py.files import make_folder

from .blobstore import no_room

__all__ = ["Inbox"]

_PREFIX: Final = "stormjar-"
_JAR: Final = ".jar"
_PART: Final = ".part"


class Inbox:
    """The uploads below one folder; used by several threads, each upload by one at a time."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        """Make the folder."""
        with no_room("uploads", folder):
            self._folder = make_folder(folder)
        self._max_bytes = max_bytes
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()

    def clean(self) -> None:
        """Remove what an earlier nimbus did not receive to its end; before the first upload."""
        for path in self._folder.glob(f"*{_PART}"):
            path.unlink()

    def begin(self) -> str:
        """Begin an upload; gives its location."""
        path = self._folder / f"{_PREFIX}{uuid.uuid4()}{_JAR}"
        with no_room("an upload", self._folder):
            os.close(os.open(_part(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with self._lock:
            self._sizes[str(path)] = 0
        return str(path)

    def append(self, location: str, chunk: bytes) -> None:
        """Add to an upload. BlobError if it is none, grows too large or the disk is full.

        After an error it is none any more.
        """
        path = self._unfinished(location)
        size = self._sizes[location] + len(chunk)
        if size > self._max_bytes:
            self._give_up(location)
            raise BlobError(
                f"the upload has more than {size_words(self._max_bytes)}, the limit of this "
                "cluster: leave files out, or raise storm_py.submit.max.bytes in the storm.yaml "
                "of nimbus"
            )
        try:
            with no_room("an upload", self._folder), _part(path).open("ab") as file:
                file.write(chunk)
        except BlobError:
            self._give_up(location)
            raise
        self._sizes[location] = size

    def finish(self, location: str) -> None:
        """End an upload: it may become a topology from now on. BlobError if it is none."""
        path = self._unfinished(location)
        with self._lock:
            del self._sizes[location]
        with no_room("an upload", self._folder):
            os.replace(_part(path), path)

    def finished(self, location: str) -> Path:
        """The file of an upload that was finished; BlobError if there is none."""
        path = Path(location)
        if location in self._sizes:
            raise BlobError(f"the upload {location!r:.200} is not finished: send the rest of it")
        ours = path.parent == self._folder and path.name.startswith(_PREFIX)
        if not ours or path.suffix != _JAR or not path.is_file():
            raise _none(location)
        return path

    def expire(self, older_than: float) -> list[str]:
        """Remove what was last written before this time, in seconds since 1970; the locations."""
        found = []
        for path in sorted(self._folder.iterdir()):
            try:
                if path.stat().st_mtime >= older_than:
                    continue
                path.unlink()
            except FileNotFoundError:  # it has become a topology meanwhile
                continue
            location = str(path).removesuffix(_PART)
            with self._lock:
                self._sizes.pop(location, None)
            found.append(location)
        return found

    def _unfinished(self, location: str) -> Path:
        if location not in self._sizes:
            raise _none(location)
        return Path(location)

    def _give_up(self, location: str) -> None:
        with self._lock:
            self._sizes.pop(location, None)
        _part(Path(location)).unlink(missing_ok=True)


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}{_PART}")


def _none(location: str) -> BlobError:
    return BlobError(
        f"there is no upload {location!r:.200}: nimbus was started anew meanwhile, another one "
        "leads, or it is too old; submit again"
    )
