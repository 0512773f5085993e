"""What git ignores: the rules of .gitignore files and of .git/info/exclude, read from the files.

git itself is not needed. `pathspec` translates a pattern; which of them decides is worked out here,
as git does it and not as `pathspec` would: each file and folder is judged by itself, by the last
pattern that fits it, and the file nearest to it decides. Whoever walks a tree leaves out what is
ignored with all that is in it, and never asks about that. Two things differ from git: what is
tracked although it is ignored counts as ignored, as the index is not read; and the user's own
excludes, which belong to no project, do not count.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from storm_py.errors import PackingError

__all__ = ["GitRules"]

_ANY: Final = "**"
#: A backslash before a slash means nothing, unless it is escaped itself.
_ESCAPED_SLASH: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\/")
#: Classes of POSIX inside brackets, which `pathspec` takes for plain characters.
_POSIX: Final = {
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:alnum:]": "a-zA-Z0-9",
    "[:lower:]": "a-z",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9a-fA-F",
    "[:space:]": r" \t\n\r\f\v",
}


@dataclass(frozen=True, slots=True)
class _Rule:
    """One pattern."""

    #: It began with an exclamation mark: what fits is not ignored.
    negated: bool
    folders_only: bool
    #: It is about the path from its .gitignore, not about the name alone.
    whole_path: bool
    #: Slashes in a path that fits; None for any number.
    slashes: int | None
    regex: re.Pattern[str]

    def fits(self, path: str, is_folder: bool) -> bool:
        """Whether it is about this very file or folder, not about one around it."""
        if self.folders_only and not is_folder:
            return False
        if not self.whole_path:
            path = path.rpartition("/")[2]
        elif self.slashes is not None and path.count("/") != self.slashes:
            return False  # in a regex a class as [!a] would match a slash
        return self.regex.fullmatch(path) is not None


class GitRules:
    """The rules that are in force below a folder, those of the repository around it included."""

    def __init__(self, top: Path, prefix: str, exclude: tuple[_Rule, ...]) -> None:
        """`top` is where rules begin, `prefix` leads from there to the folder; see `of`."""
        self._top = top
        self._prefix = prefix
        self._exclude = exclude
        self._rules: dict[str, tuple[_Rule, ...]] = {}

    @classmethod
    def of(cls, root: Path) -> GitRules:
        """The rules below `root`, which is resolved.

        A repository around it counts, unless that ignores `root`: then it is not its concern.
        """
        repository = next((f for f in (root, *root.parents) if (f / ".git").exists()), None)
        if repository is None:
            return cls(root, "", ())
        exclude = _read(_common_folder(repository / ".git") / "info" / "exclude")
        rules = cls(repository, "", exclude)
        prefix = root.relative_to(repository).as_posix() if root != repository else ""
        if prefix and any(rules.ignores(folder, True) for folder in (prefix, *_parents(prefix))):
            return cls(root, "", ())
        return cls(repository, prefix, exclude)

    def ignores(self, name: str, is_folder: bool) -> bool:
        """Whether `name`, relative to the folder, is ignored; its own folder must not be."""
        path = f"{self._prefix}/{name}" if self._prefix else name
        for folder in (*_parents(path), ""):
            inside = path[len(folder) + 1 :] if folder else path
            verdict = _verdict(self._of(folder), inside, is_folder)
            if verdict is not None:
                return verdict
        return bool(_verdict(self._exclude, path, is_folder))

    def _of(self, folder: str) -> tuple[_Rule, ...]:
        if folder not in self._rules:
            self._rules[folder] = _read(self._top / folder / ".gitignore")
        return self._rules[folder]


def _parents(path: str) -> Iterator[str]:
    """The folders around a relative path, the nearest first, without the top."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _verdict(rules: tuple[_Rule, ...], path: str, is_folder: bool) -> bool | None:
    """What the last rule says that fits; None if none does."""
    for rule in reversed(rules):
        if rule.fits(path, is_folder):
            return not rule.negated
    return None


def _common_folder(git: Path) -> Path:
    """The folder with the repository's settings, which a worktree or a submodule has elsewhere."""
    try:
        own = git
        if not git.is_dir():
            mark, place = git.read_text(encoding="utf-8").strip().partition("gitdir:")[1:]
            if not mark:
                return git  # marks a project all the same
            own = git.parent / place.strip()
        common = own / "commondir"
        return own / common.read_text(encoding="utf-8").strip() if common.is_file() else own
    except (OSError, UnicodeDecodeError) as error:
        raise PackingError(f"{git} cannot be read to see what git ignores: {error}") from error


# --- a file of rules ----------------------------------------------------------------------------


def _read(path: Path) -> tuple[_Rule, ...]:
    """The rules in a file; none if there is none, or a link, which git does not follow either."""
    try:
        if path.is_symlink() or not path.is_file():
            return ()
        text = os.fsdecode(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise PackingError(
            f"{path} cannot be read to see what git ignores: {error.strerror}"
        ) from error
    found = (_rule(line.removesuffix("\r")) for line in text.split("\n"))
    return tuple(rule for rule in found if rule is not None)


def _rule(line: str) -> _Rule | None:
    """The rule that a line is; None for one that can fit nothing."""
    text = _without_trailing_spaces(line)
    if text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    whole_path = "/" in text
    segments = _segments(_ESCAPED_SLASH.sub(r"\1/", text.removeprefix("/")))
    if segments[0] == _ANY and len(segments) == 2:
        whole_path = False  # at any depth: the name decides
        del segments[0]
    regex = _regex("/".join(segments))
    if regex is None:
        return None
    slashes = None if _ANY in segments else len(segments) - 1
    return _Rule(negated, folders_only, whole_path, slashes, regex)


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return f"{kept} " if backslashes % 2 and kept != line else kept


def _segments(text: str) -> list[str]:
    """The pattern between its slashes; what ends in ** ends in ``**/*``, which means the same."""
    segments: list[str] = []
    for segment in text.split("/"):
        if segment != _ANY or segments[-1:] != [_ANY]:
            segments.append(segment)
    if segments[-1] == _ANY:
        segments.append("*")
    return segments


def _regex(pattern: str) -> re.Pattern[str] | None:
    if not pattern:
        return None
    for name, characters in _POSIX.items():
        pattern = pattern.replace(name, characters)
    if pattern[-1].isspace() and not pattern.endswith("\\ "):
        pattern = f"{pattern[:-1]}[{pattern[-1]}]"  # pathspec would strip it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of re, for brackets in brackets
            return GitIgnoreSpecPattern(f"/{pattern}").regex
    except (ValueError, re.error):
        return None  # git takes it for a pattern that fits nothing
