"""The archive of a project: a zip file with the user's code and a manifest, written and read.

What goes into it is decided in `storm_py.submit`; unpacking is the supervisor's. The same files
give the same bytes: names are sorted, times are fixed, and of modes only "executable" is kept.
There are files in it only: no links, and no empty folders, as in git.

An archive without a manifest is not ours, but may be one all the same: streamparse's jars are.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from .errors import BlobError, PackingError, a_type

__all__ = [
    "FORMAT",
    "MANIFEST",
    "Archive",
    "FileEntry",
    "Manifest",
    "OpenedArchive",
    "Packed",
    "PackedFile",
    "open_archive",
    "pack_archive",
    "size_words",
    "write_archive",
]

#: The manifest's name in the archive.
MANIFEST: Final = "storm_py.json"
#: Version of the manifest and of what this module does with an archive.
FORMAT: Final = 1
#: The earliest time that a zip file can hold.
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3
_CHUNK_BYTES: Final = 1 << 20
#: Manifests have a few hundred bytes; what claims more is not read.
_MANIFEST_MAX_BYTES: Final = 1 << 16
#: What `zipfile` raises for bytes that are no zip file, or a broken one.
_BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file that goes into an archive."""

    #: Its name there, with slashes.
    name: str
    path: Path
    size_bytes: int
    executable: bool


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a node has to know of an archive."""

    #: Version of storm_py that made it.
    storm_py: str
    #: Version of Python that built the topology, as 3.11.4.
    python: str
    #: Dotted name of the topology's module.
    module: str
    #: What has to be on `sys.path` to import it, relative to where the archive is unpacked.
    sys_path: str
    #: Name of the folder that was packed, for people.
    root: str

    def to_bytes(self) -> bytes:
        """As JSON, for people too."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1).encode() + b"\n"

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest in the folder of an unpacked archive; None if storm_py did not make that.

        Raises BlobError if there is one that holds none.
        """
        try:
            data = (folder / MANIFEST).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BlobError(f"{folder}: {MANIFEST} cannot be read: {error.strerror}") from error
        return cls.from_bytes(data, str(folder))

    @classmethod
    def from_bytes(cls, data: bytes, archive: str) -> Manifest:
        """The manifest in these bytes; BlobError, which names the archive, if they hold none."""
        place = f"{archive}: {MANIFEST}"
        try:
            plain = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise BlobError(f"{place} is no JSON: {error}") from error
        if not isinstance(plain, dict):
            raise BlobError(f"{place} holds {a_type(plain)}; expected an object")
        if plain.get("format") != FORMAT:
            raise BlobError(
                f"{place} has format {plain.get('format')!r:.40}, and this storm_py reads "
                f"{FORMAT}; use the same version of storm_py where topologies are submitted and on "
                "the nodes"
            )
        found = {field.name: plain.get(field.name) for field in fields(cls)}
        for name, value in found.items():
            if not isinstance(value, str) or not value:
                raise BlobError(f"{place}: {name!r} is {value!r:.80}; expected a text")
        folder = str(found["sys_path"])
        if not _is_inside(folder):
            raise BlobError(f"{place}: 'sys_path' is {folder!r:.80}, outside the archive")
        return cls(**{name: str(value) for name, value in found.items()})


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that was written."""

    path: Path
    sha256: str
    #: Size of the archive.
    size_bytes: int
    #: Number of the project's files in it.
    files: int


@dataclass(frozen=True, slots=True)
class Packed:
    """What was written of an archive, wherever that is."""

    sha256: str
    #: Size of the archive.
    size_bytes: int
    #: Number of the project's files in it.
    files: int


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One file in an archive."""

    name: str
    size_bytes: int
    executable: bool


@dataclass(frozen=True, slots=True)
class OpenedArchive:
    """What an archive holds, looked through: these files may be unpacked."""

    #: None if storm_py did not make the archive.
    manifest: Manifest | None
    #: Every file, the manifest included, in the order of the archive.
    files: tuple[PackedFile, ...]
    sha256: str

    @property
    def size_bytes(self) -> int:
        """Size of all files, unpacked."""
        return sum(file.size_bytes for file in self.files)


def size_words(size_bytes: float) -> str:
    """A size as messages write it: ``512 bytes``, ``1.5 KiB``, ``100.0 MiB``."""
    if size_bytes < 1024:
        return f"{size_bytes:.0f} bytes"
    for unit in ("KiB", "MiB"):
        size_bytes /= 1024
        if size_bytes < 1024:
            return f"{size_bytes:.1f} {unit}"
    return f"{size_bytes / 1024:.1f} GiB"


# ---- writing -----------------------------------------------------------------------------------


def write_archive(
    target: Path, files: Sequence[FileEntry], manifest: Manifest, max_bytes: int
) -> Archive:
    """Write the archive of these files, of at most `max_bytes`, to `target`.

    It appears there when it is complete; nothing is left behind if it cannot be. Raises
    PackingError for a file that cannot be read, a target that cannot be written, and for size.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        written = Path(name)
        try:
            with os.fdopen(handle, "w+b") as file:
                packed = pack_archive(file, files, manifest, max_bytes)
            os.replace(written, target)
        finally:
            written.unlink(missing_ok=True)
    except OSError as error:
        raise PackingError(f"cannot write the archive {target}: {error.strerror}") from error
    return Archive(target, packed.sha256, packed.size_bytes, packed.files)


def pack_archive(
    file: BinaryIO, files: Sequence[FileEntry], manifest: Manifest, max_bytes: int
) -> Packed:
    """Write the archive of these files to an empty file, which can be read as well.

    Raises PackingError for a file that cannot be read, and for size; OSError if that one cannot be
    written.
    """
    _write_zip(file, files, manifest)
    size = file.tell()
    if size > max_bytes:
        raise PackingError(
            f"the archive of {manifest.root} has {size_words(size)}; the limit is "
            f"{size_words(max_bytes)} (storm_py.submit.max.bytes)"
        )
    return Packed(_sha256(file), size, len(files))


def _write_zip(file: BinaryIO, files: Sequence[FileEntry], manifest: Manifest) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(_info(MANIFEST, False), manifest.to_bytes())
        for entry in sorted(files, key=lambda entry: entry.name.encode()):
            info = _info(entry.name, entry.executable)
            info.file_size = entry.size_bytes  # so that it can tell how large numbers may get
            with packed.open(info, "w") as content:
                for chunk in _chunks(entry):
                    content.write(chunk)
    file.seek(0, os.SEEK_END)


def _info(name: str, executable: bool) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = _UNIX
    info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
    return info


def _chunks(entry: FileEntry) -> Iterator[bytes]:
    try:
        with entry.path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise PackingError(f"{entry.path} cannot be read: {error.strerror}") from error


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


# ---- reading -----------------------------------------------------------------------------------


def open_archive(path: Path, max_bytes: int) -> OpenedArchive:
    """Look through an archive, of which nothing is believed, and read its manifest.

    Raises BlobError if it is no zip file, is damaged where this can be seen without unpacking, if
    anything in it would be unpacked elsewhere, is a link or there twice, and if its files come to
    more than `max_bytes`.
    """
    try:
        with path.open("rb") as file:
            digest = _sha256(file)
            with zipfile.ZipFile(file) as packed:
                infos = packed.infolist()
                _check(str(path), infos, max_bytes)
                manifest = _manifest(str(path), packed)
    except _BROKEN as error:
        raise BlobError(f"{path} is no zip file that can be read: {error}") from error
    found = tuple(
        PackedFile(info.filename, info.file_size, bool(info.external_attr >> 16 & 0o100))
        for info in infos
        if not _is_folder(info)
    )
    return OpenedArchive(manifest, found, digest)


def _check(archive: str, infos: Sequence[zipfile.ZipInfo], max_bytes: int) -> None:
    files: set[PurePosixPath] = set()
    folders: set[PurePosixPath] = set()
    for info in infos:
        path = PurePosixPath(info.filename)
        twice = path in files and not _is_folder(info)
        problem = _problem(info) or ("is there twice" if twice else "")
        if problem:
            raise BlobError(f"{archive}: {info.orig_filename!r:.200} {problem}")
        folders.update(path.parents)
        (folders if _is_folder(info) else files).add(path)
    for path in sorted(files & folders):
        raise BlobError(f"{archive}: {str(path)!r:.200} is a file and a folder")
    size = sum(info.file_size for info in infos)
    if size > max_bytes:
        raise BlobError(
            f"{archive} holds {size_words(size)} unpacked; the limit is {size_words(max_bytes)}"
        )


def _problem(info: zipfile.ZipInfo) -> str:
    """Why this may not be unpacked; empty if it may be."""
    whole = "\0" not in info.orig_filename  # where `zipfile` ends a name
    if not (whole and _is_inside(info.filename) and PurePosixPath(info.filename).parts):
        return "is no name below the folder that it would be unpacked to"
    kind = stat.S_IFMT(info.external_attr >> 16) if info.create_system == _UNIX else 0
    if kind not in (0, stat.S_IFDIR if _is_folder(info) else stat.S_IFREG):
        return "is no plain file"
    return "is encrypted" if info.flag_bits & 1 else ""


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith("/")  # its is_dir() fails for a name that is empty


def _is_inside(name: str) -> bool:
    """Whether a relative path leads to where it starts, or below that."""
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _manifest(archive: str, packed: zipfile.ZipFile) -> Manifest | None:
    if MANIFEST not in packed.namelist():
        return None
    with packed.open(MANIFEST) as file:
        return Manifest.from_bytes(file.read(_MANIFEST_MAX_BYTES), archive)
