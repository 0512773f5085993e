"""Unpacking of a code archive, of which nothing is believed.

An archive is a zip file of plain files and folders: `storm-py submit` makes such, and so are the
jars of streamparse. Whatever else is in it, or would lie elsewhere once unpacked, refuses it as a
whole. What went wrong with the disk is an OSError, what is wrong with the archive a BlobError.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from storm_py.errors import BlobError
from storm_py.files import make_folder

_CHUNK_BYTES: Final = 1 << 20
#: The system that a zip file has to name for its modes to be those of files.
_UNIX: Final = 3
#: What `zipfile` raises for bytes that are no zip file, or a broken one.
_BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one topology a node takes."""

    #: Size of a blob: nimbus decides by storm_py.submit.max.bytes, and this is the most of that.
    blob_bytes: int = 1024 * 1024 * 1024
    #: Size of all files of an archive, unpacked.
    unpacked_bytes: int = 1024 * 1024 * 1024
    #: Files and folders in an archive.
    files: int = 100_000


def unpack(
    archive: Path, target: Path, name: str, limits: Limits, may_go_on: Callable[[], None]
) -> None:
    """Unpack `archive` to the folder `target`, which must not be there; it is on the disk then.

    `name` is what errors call the archive; `may_go_on` is called now and then, and raises if this
    is to end. What was unpacked before an error stays: unpack where it can be thrown away. Nothing
    is on the disk for certain when this returns.
    """
    target.mkdir(mode=0o700)
    try:
        with zipfile.ZipFile(archive) as packed:
            infos = packed.infolist()
            _check(name, infos, limits)
            for info in infos:
                path = target / info.filename
                make_folder(path if info.is_dir() else path.parent)
                if not info.is_dir():
                    _unpack_file(packed, info, path, may_go_on)
    except _BROKEN as error:
        raise BlobError(
            f"{name} is no zip file that can be unpacked: {error}; submit the topology again"
        ) from error


def _unpack_file(
    packed: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, may_go_on: Callable[[], None]
) -> None:
    executable = info.create_system == _UNIX and info.external_attr >> 16 & 0o100
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = 0o700 if executable else 0o600
    with packed.open(info) as source, open(os.open(path, flags, mode), "wb") as file:
        # `source` gives no more than the size that was looked at, whatever follows it.
        while chunk := source.read(_CHUNK_BYTES):
            file.write(chunk)
            may_go_on()


def _check(name: str, infos: list[zipfile.ZipInfo], limits: Limits) -> None:
    if len(infos) > limits.files:
        raise BlobError(f"{name} holds {len(infos)} files; the limit is {limits.files}")
    size = sum(info.file_size for info in infos)
    if size > limits.unpacked_bytes:
        raise BlobError(
            f"{name} holds {size} bytes unpacked; the limit is {limits.unpacked_bytes} bytes"
        )
    for info in infos:
        if problem := _problem(info):
            raise BlobError(f"{name}: {info.filename!r:.200} {problem}; nothing is unpacked")
    files = [PurePosixPath(info.filename) for info in infos if not info.is_dir()]
    if twice := _twice(files):
        raise BlobError(f"{name}: {str(twice)!r:.200} is there twice; nothing is unpacked")
    known = set(files)
    for info in infos:
        path = PurePosixPath(info.filename)
        above = [path, *path.parents] if info.is_dir() else path.parents
        if found := next((each for each in above if each in known), None):
            raise BlobError(
                f"{name}: {str(found)!r:.200} is a file and a folder; nothing is unpacked"
            )


def _twice(paths: Iterable[PurePosixPath]) -> PurePosixPath | None:
    seen: set[PurePosixPath] = set()
    for path in paths:
        if path in seen:
            return path
        seen.add(path)
    return None


def _problem(info: zipfile.ZipInfo) -> str:
    """Why this may not be unpacked; empty if it may be."""
    path = PurePosixPath(info.filename)
    # The name as it stands in the archive: `zipfile` ends it at a null byte.
    if "\0" in info.orig_filename or "\\" in info.filename or not path.parts:
        return "is no name of a file"
    if path.is_absolute() or ".." in path.parts:
        return "would be unpacked outside of its folder"
    kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system == _UNIX else 0
    if kind not in (0, stat.S_IFDIR if info.is_dir() else stat.S_IFREG):
        return "is a link or a device, not a plain file"
    return "is encrypted" if info.flag_bits & 1 else ""
