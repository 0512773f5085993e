"""Files that are whole or not there: how anything is written that another process, or the next one,
will read; and the names that files of logs get when they are put aside. Nothing else.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

__all__ = ["make_folder", "put_aside", "sync_file_system", "sync_folder", "write_atomically"]

#: For what Python's os does not have.
_LIBC = ctypes.CDLL(None, use_errno=True)


def make_folder(path: Path) -> Path:
    """Make a folder with all above it that are missing, each for this user alone; return it."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def write_atomically(path: Path, data: bytes, durable: bool = True) -> None:
    """Write a file that readers see as it was or as it becomes, with mode 0600.

    Durable: it is on the disk when this returns, also if the machine stops. One process writes a
    path at a time: what it writes lies beside it under a name made of the same, so that a writer
    that was killed leaves one such file at most, and the next takes its place. OSError if there is
    no room: what was there before is there still.
    """
    new = path.with_name(f".{path.name}.new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(fd)
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file_system(path: Path) -> None:
    """Have all that was written to the file system of a folder on the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _LIBC.syncfs(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(fd)


def put_aside(path: Path, limit_bytes: int, backups: int) -> None:
    """Rename a file that has reached a size, and those that were before it: NAME.1 is the newest.

    For files that nobody writes just now; without effect on one that is not there.
    """
    try:
        if path.stat().st_size < limit_bytes:
            return
    except FileNotFoundError:
        return
    names = [path, *(path.with_name(f"{path.name}.{n + 1}") for n in range(backups))]
    for older, newer in reversed(list(zip(names[1:], names, strict=False))):
        if newer.exists():
            newer.replace(older)
