"""How large a project may be, and which parts of it make one that is too large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from storm_py.archive import FileEntry, size_words
from storm_py.errors import PackingError

__all__ = ["check_size", "largest"]

_SHOWN: Final = 5
#: Part of a folder that something in it makes up, to be named in its place.
_MOST: Final = 0.8


def check_size(what: str, files: Sequence[FileEntry], max_bytes: int) -> None:
    """Raise PackingError that names the largest parts if these files have more than `max_bytes`."""
    size = sum(file.size_bytes for file in files)
    if size <= max_bytes:
        return
    parts = ", ".join(f"{name} ({size_words(size)})" for name, size in largest(files))
    raise PackingError(
        f"{what} comes to {size_words(size)} in {len(files)} files; the limit is "
        f"{size_words(max_bytes)} (storm_py.submit.max.bytes). The largest: {parts}. List in "
        ".gitignore what the topology does not need, or raise the limit with "
        "-c storm_py.submit.max.bytes=BYTES"
    )


def largest(files: Sequence[FileEntry]) -> list[tuple[str, int]]:
    """The largest parts of a project with their bytes: files, and folders, which end in a slash.

    Parts are what is at the top, and for a folder that is large by something in it, that.
    """
    sizes: dict[str, int] = {}
    inside: dict[str, set[str]] = {}
    for file in files:
        folder, parts = "", file.name.split("/")
        for depth in range(1, len(parts) + 1):
            part = "/".join(parts[:depth]) + ("/" if depth < len(parts) else "")
            sizes[part] = sizes.get(part, 0) + file.size_bytes
            inside.setdefault(folder, set()).add(part)
            folder = part
    found = [_narrowed(part, sizes, inside) for part in inside.get("", ())]
    found.sort(key=lambda part: (-sizes[part], part))
    return [(part, sizes[part]) for part in found[:_SHOWN]]


def _narrowed(part: str, sizes: dict[str, int], inside: dict[str, set[str]]) -> str:
    while part in inside:
        heaviest = max(sorted(inside[part]), key=lambda each: sizes[each])
        if sizes[heaviest] < _MOST * sizes[part]:
            break
        part = heaviest
    return part
