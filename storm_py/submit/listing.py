"""Which files of a project go into its archive.

Theory of operation. A walk from the root takes what is not left out, and what is left out with all
that is in it: version control, virtual environments, caches, and what git ignores. Paths that were
asked for come in whatever rules say, with all that is in them but version control, environments
and caches. Whatever cannot go into an archive - a socket, a link out of the project - is gathered,
so that one message names all of it.

Links are not kept but followed: a link stands for what the archive holds of where it leads, under
the link's name. So a link to something that is left out is left out as well, and so is one that
leads nowhere, which is as good as no file here and on a node. A link out of the project is refused,
as nobody meant to send what is there, unless its path is asked for.

Nothing is read here but the rules: `storm_py.archive` reads the files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storm_py.archive import MANIFEST, FileEntry
from storm_py.errors import PackingError, did_you_mean

from .ignored import GitRules
from .project import Project
from .sizes import check_size

__all__ = ["Listing", "list_files"]

#: Files and folders that are left out by name, wherever they are.
_LEFT_OUT: Final = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".tox",
        ".nox",
        "node_modules",
    }
)
_LEFT_OUT_ENDINGS: Final = (".egg-info", ".pyc", ".pyo")
#: A folder with one of these in it is a virtual environment.
_ENVIRONMENT_MARKS: Final = ("pyvenv.cfg", "conda-meta")
_SHOWN_PROBLEMS: Final = 10
_KINDS: Final = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a fifo",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@dataclass(frozen=True, slots=True)
class Listing:
    """What goes into an archive."""

    #: By name.
    files: tuple[FileEntry, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(file.size_bytes for file in self.files)


def list_files(project: Project, include: Sequence[str], max_bytes: int) -> Listing:
    """List what the archive of a project holds: its own files, and each path in `include`.

    Such a path is taken from the current folder. Inside the project it comes in under its name
    there, though it is ignored; from elsewhere under its last part, at the top. Raises PackingError
    for what cannot be packed, for more than `max_bytes`, and if the topology's own file is left
    out.
    """
    files: dict[str, FileEntry] = {}
    asked = [_asked(text, project.root) for text in include]
    problems: list[str] = []
    if project.root is not None:
        own = _Walk(project.root, GitRules.of(project.root), _names_inside(asked), files, problems)
        own.folder("", "")
    for one in asked:
        _check_clash(one, files, asked)
    for one in asked:
        _include(one, files, problems)
    _refuse(project, problems)
    if project.root is not None and project.file and project.file not in files:
        file = project.root / project.file
        raise PackingError(
            f"{file}, the file of the topology, is left out of the archive: git ignores it, or it "
            f"is in a virtual environment or a cache; --include {file} brings it in"
        )
    found = tuple(files[name] for name in sorted(files, key=str.encode))
    check_size(str(project.root or "what is included"), found, max_bytes)
    return Listing(found)


def _refuse(project: Project, problems: Sequence[str]) -> None:
    if not problems:
        return
    shown = [f"  {problem}" for problem in problems[:_SHOWN_PROBLEMS]]
    if len(problems) > _SHOWN_PROBLEMS:
        shown.append(f"  and {len(problems) - _SHOWN_PROBLEMS} more")
    where = project.root or "what is included"
    raise PackingError("\n".join([f"{where} holds what cannot be packed:", *shown]))


# ---- paths that were asked for -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """A path to include."""

    #: As it was given.
    text: str
    #: Where its content is, resolved.
    target: Path
    #: Its name in the archive; empty for the whole project.
    name: str
    #: Whether it is part of the project.
    inside: bool


def _asked(text: str, root: Path | None) -> _Asked:
    given = Path(os.path.abspath(text))
    path = given.parent.resolve() / given.name  # the last part may be a link, which names it
    if not path.exists():
        raise PackingError(f"--include {text}: {_missing(path)}")
    target = path.resolve()
    if root is not None:
        if path.is_relative_to(root):
            name = path.relative_to(root).as_posix()
            return _Asked(text, target, "" if name == "." else name, True)
        if root.is_relative_to(target):
            raise PackingError(
                f"--include {text}: {target} contains the project {root}, which is packed by "
                "itself; name what is needed of it"
            )
    if not path.name:
        raise PackingError(f"--include {text}: {path} is not packed as a whole")
    return _Asked(text, target, path.name, False)


def _missing(path: Path) -> str:
    if path.is_symlink():
        return f"{path} is a link that leads nowhere"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    names = [entry.name for entry in path.parent.iterdir()]
    return f"there is no {path.name} in {path.parent}{did_you_mean(path.name, names)}"


def _names_inside(asked: Iterable[_Asked]) -> frozenset[str]:
    return frozenset(one.name for one in asked if one.inside)


def _check_clash(one: _Asked, files: Iterable[str], asked: Sequence[_Asked]) -> None:
    """Refuse what comes from elsewhere under a name that is taken."""
    if one.inside:
        return
    taken = any(name.partition("/")[0] == one.name for name in files)
    others = [o for o in asked if o.name.partition("/")[0] == one.name and o.target != one.target]
    if taken or others:
        other = f"--include {others[0].text}" if others else "the project"
        raise PackingError(
            f"--include {one.text}: {other} has a {one.name} as well, and both would be at the top "
            "of the archive; rename one of them"
        )


def _include(one: _Asked, files: dict[str, FileEntry], problems: list[str]) -> None:
    if one.target.is_dir():
        _Walk(one.target, None, frozenset(), files, problems).folder("", one.name)
    else:
        _Walk(one.target.parent, None, frozenset(), files, problems).file(one.target, one.name)


# ---- walking -----------------------------------------------------------------------------------


class _Walk:
    """Gathers the files below one folder, the root, and what stands in the way."""

    def __init__(
        self,
        root: Path,
        rules: GitRules | None,
        asked: frozenset[str],
        files: dict[str, FileEntry],
        problems: list[str],
    ) -> None:
        """`asked` are paths below the root that are seen to elsewhere."""
        self._root = root
        self._rules = rules
        self._asked = asked
        self._files = files
        self._problems = problems

    def folder(self, path: str, name: str, around: tuple[str, ...] = ()) -> None:
        """Gather a folder: `path` is below the root, `name` in the archive.

        `around` are the paths of the folders that this one was reached through.
        """
        try:
            with os.scandir(self._root / path) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._problems.append(f"{name or '.'} cannot be read: {error.strerror}")
            return
        for entry in entries:
            inner = f"{path}/{entry.name}" if path else entry.name
            if inner not in self._asked:
                inner_name = f"{name}/{entry.name}" if name else entry.name
                self._entry(entry, inner, inner_name, (*around, path))

    def _entry(
        self, entry: os.DirEntry[str], path: str, name: str, around: tuple[str, ...]
    ) -> None:
        is_folder = entry.is_dir(follow_symlinks=False)
        if not self._kept(path, is_folder):
            return
        if entry.is_symlink():
            self._link(path, name, around)
        elif is_folder:
            self.folder(path, name, around)
        else:
            self.file(self._root / path, name)

    def _link(self, path: str, name: str, around: tuple[str, ...]) -> None:
        target = Path(os.path.realpath(self._root / path))
        if not target.exists() or _is_environment(target):
            return
        if not target.is_relative_to(self._root):
            copy = f"--include {self._root / path} packs a copy of that, "
            self._problems.append(
                f"{name} is a link out of {self._root}, to {target}; "
                f"{'' if self._rules is None else copy}{self._way_out}"
            )
            return
        inner = target.relative_to(self._root).as_posix()
        inner = "" if inner == "." else inner
        if inner in around:
            self._problems.append(
                f"{name} is a link to {target}, a folder around it; {self._way_out}"
            )
        elif all(self._kept(each, True) for each in _folders_to(inner)):
            if not target.is_dir():
                if self._kept(inner, False):
                    self.file(target, name)
            elif not inner or self._kept(inner, True):
                self.folder(inner, name, around)

    def file(self, path: Path, name: str) -> None:
        """Take one file, or note why it cannot be."""
        problem = ""
        try:
            info = path.stat()
        except OSError as error:
            self._problems.append(f"{name} cannot be read: {error.strerror}")
            return
        if not stat.S_ISREG(info.st_mode):
            kind = _KINDS.get(stat.S_IFMT(info.st_mode), "no file")
            problem = f"is {kind}; {self._way_out}"
        elif not os.access(path, os.R_OK):
            problem = f"may not be read by you; change its mode, or {self._way_out}"
        elif name == MANIFEST:
            problem = "has the name of the archive's own manifest; rename it"
        elif not _is_utf8(name):
            problem = "has a name that is not UTF-8; rename it"
        if problem:
            self._problems.append(
                f"{os.fsencode(name).decode(errors='backslashreplace')} {problem}"
            )
            return
        self._files[name] = FileEntry(name, path, info.st_size, bool(info.st_mode & stat.S_IXUSR))

    @property
    def _way_out(self) -> str:
        return "remove it" if self._rules is None else "a line in .gitignore leaves it out"

    def _kept(self, path: str, is_folder: bool) -> bool:
        """Whether a file or folder itself is not left out; folders around it are not asked."""
        name = path.rpartition("/")[2]
        if name in _LEFT_OUT or name.endswith(_LEFT_OUT_ENDINGS):
            return False
        if is_folder and _is_environment(self._root / path):
            return False
        return self._rules is None or not self._rules.ignores(path, is_folder)


def _is_environment(folder: Path) -> bool:
    return any((folder / mark).exists() for mark in _ENVIRONMENT_MARKS)


def _folders_to(path: str) -> Iterator[str]:
    parts = path.split("/")
    for end in range(1, len(parts)):
        yield "/".join(parts[:end])


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
