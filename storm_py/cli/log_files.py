"""Log files of workers on this machine: where they are, what is in them, and what is added.

They are in ``logs/<topology id>/<port>/`` below a storm.local.dir (`storm_py.supervisor.folders`),
or below that of one of the supervisors that `storm-py cluster` starts, which have folders of their
own in it. Files are rotated by renaming: ``worker.log.1`` is what ``worker.log`` was, ``.2`` is
older still.

It reads and never writes; what is shown of it is in `storm_py.cli.logs`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote, unquote

__all__ = ["Follower", "LogFolder", "components", "last_lines", "log_files", "log_folders"]

#: Folders of supervisors that share a storm.local.dir.
_SUPERVISORS: Final = "supervisor-*"
#: A file of a worker's instance: component, first task, kind, and how often it was rotated.
_INSTANCE: Final = re.compile(r"(?P<component>.+)-\d+\.(log|out|err)(\.\d+)?")
_ROTATED: Final = re.compile(r"(?P<name>.+)\.(?P<age>\d+)")
#: As the names of files have it, cut so that the rest fits.
_COMPONENT_CHARS: Final = 200
_CHUNK_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, order=True)
class LogFolder:
    """The logs of all workers that a topology has had on a port."""

    topology_id: str
    port: int
    path: Path


def log_folders(local_dir: Path) -> list[LogFolder]:
    """All of this machine, by topology and port."""
    found = []
    for base in (local_dir, *local_dir.glob(_SUPERVISORS)):
        for path in (base / "logs").glob("*/*"):
            if path.name.isdecimal() and path.is_dir():
                found.append(LogFolder(path.parent.name, int(path.name), path))
    return sorted(found)


def log_files(folder: Path, component: str | None = None) -> list[Path]:
    """The files of a folder in the order to read them: what belongs together, the oldest first.

    Only those of one component's instances, if one is given; the worker's own belong to none.
    """
    found = [path for path in folder.glob("*") if path.is_file()]
    if component is not None:
        name = _file_part(component)
        found = [path for path in found if _component_part(path.name) == name]
    return sorted(found, key=_age)


def components(folders: Iterable[LogFolder]) -> list[str]:
    """The components that have files of their own in these folders."""
    parts = {_component_part(path.name) for one in folders for path in log_files(one.path)}
    return sorted(unquote(part) for part in parts if part is not None)


def _file_part(component: str) -> str:
    return quote(component, safe="")[:_COMPONENT_CHARS]


def _component_part(name: str) -> str | None:
    found = _INSTANCE.fullmatch(name)
    return None if found is None else found["component"]


def _age(path: Path) -> tuple[bool, str, int]:
    rotated = _ROTATED.fullmatch(path.name)
    name, age = (path.name, 0) if rotated is None else (rotated["name"], int(rotated["age"]))
    return not name.startswith("worker.log"), name, -age


def last_lines(file: BinaryIO, count: int) -> None:
    """Go to where the last `count` lines of a file begin; one that has no end yet is a line too."""
    at = end = file.seek(0, os.SEEK_END)
    left = count
    while at > 0:
        size = min(_CHUNK_BYTES, at)
        at = file.seek(at - size)
        chunk = file.read(size)
        stop = size - 1 if at + size == end else size  # what ends the last line begins no other
        while left and (newline := chunk.rfind(b"\n", 0, stop)) >= 0:
            left, stop = left - 1, newline
        if not left:
            file.seek(end if count == 0 else at + stop + 1)
            return
    file.seek(0)


@dataclass(slots=True)
class _Followed:
    """A file that is read as it grows."""

    file: BinaryIO
    #: Where it was when it was found; a rotated file keeps the name that it had.
    path: Path
    partial: bytes = b""


class Follower:
    """Whole lines as they are added to files, also to files that are new, rotated or cut.

    `find` says which files there are now. Of those of the beginning the last `count` lines come
    first, but not of what was rotated before.
    """

    def __init__(self, find: Callable[[], Sequence[Path]], count: int) -> None:
        self._find = find
        self._count = count
        self._begun = False
        #: By device and inode, which a file keeps when it is renamed.
        self._files: dict[tuple[int, int], _Followed] = {}

    def read(self) -> Iterator[tuple[Path, bytes]]:
        """What has been added since the last call: files, and lines without their ends."""
        present = self._look()
        for key, followed in list(self._files.items()):
            yield from self._added(followed)
            if key not in present:
                if followed.partial:
                    yield followed.path, followed.partial
                followed.file.close()
                del self._files[key]

    def close(self) -> None:
        """Close all files."""
        for followed in self._files.values():
            followed.file.close()
        self._files.clear()

    def _look(self) -> set[tuple[int, int]]:
        present = set()
        for path in self._find():
            try:
                key = _identity(path.stat())
                if key not in self._files:
                    file = path.open("rb")
                    key = _identity(os.fstat(file.fileno()))  # it may be another one by now
                    self._begin(_Followed(file, path), key)
            except FileNotFoundError:
                continue  # rotated away in this moment
            present.add(key)
        self._begun = True
        return present

    def _begin(self, followed: _Followed, key: tuple[int, int]) -> None:
        if key in self._files:
            followed.file.close()
            return
        self._files[key] = followed
        if not self._begun:
            rotated = _ROTATED.fullmatch(followed.path.name) is not None
            last_lines(followed.file, 0 if rotated else self._count)

    def _added(self, followed: _Followed) -> Iterator[tuple[Path, bytes]]:
        file = followed.file
        if os.fstat(file.fileno()).st_size < file.tell():
            file.seek(0)
            followed.partial = b""
        while chunk := file.read(_CHUNK_BYTES):
            *lines, followed.partial = (followed.partial + chunk).split(b"\n")
            for line in lines:
                yield followed.path, line


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
