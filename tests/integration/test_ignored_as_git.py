"""What git says is what is packed: the same trees, listed by both."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from storm_py.submit.ignored import GitRules
from storm_py.submit.listing import list_files
from storm_py.submit.project import Project
from tests.trees import write_tree

SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
"""Nobody's own excludes."""

FILES = ["a", "b", "ab", "a.txt", "c d", "[a]", "#x", "!x", "x ", "b\\c"]
FOLDERS = ["a", "b", "ab", "d.txt"]

#: Nobody writes ranges that run backwards and brackets around a slash, and pathspec reads them
#: otherwise than git does: they are left out here.
segments = st.sampled_from(
    [
        *("a", "b", "ab", "c d", "d.txt", "*", "**", "a*", "*b", "**b", "*.txt", "?", "?b", ""),
        *("[ab]", "[!a]", "[^b]", "[a-b]", "[[]a]", "[]a]", "[[:alpha:]]"),
        *("\\[a]", "\\#x", "\\!x", "#x", "!x", "c\\ d", "x\\ ", "b\\\\c", "a\\", "\\a"),
    ]
)
patterns = st.builds(
    lambda bang, slash, parts, end: f"{bang}{slash}{'/'.join(parts)}{end}",
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(segments, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " ", "  ", "\r", "/ "]),
)
rule_files = st.lists(patterns, min_size=1, max_size=4).map("\n".join)
paths = st.builds(
    lambda folders, file: "/".join([*folders, file]),
    st.lists(st.sampled_from(FOLDERS), max_size=3),
    st.sampled_from(FILES),
)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, str]:
    """Files by name: none of them has the name of a folder."""
    tree: dict[str, str] = {}
    for path in draw(st.lists(paths, min_size=1, max_size=10)):
        above = {str(folder) for folder in Path(path).parents}
        if not above & set(tree) and not any(other.startswith(f"{path}/") for other in tree):
            tree[path] = ""
    folders = sorted({str(folder) for path in tree for folder in Path(path).parents})
    for folder in draw(st.lists(st.sampled_from(folders), min_size=1, max_size=3, unique=True)):
        tree[f"{folder}/.gitignore".removeprefix("./")] = draw(rule_files)
    return tree


def _outside_of_a_hook() -> dict[str, str]:
    """The environment, without what git tells the programs that it calls of its repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def git(folder: Path, *args: str) -> list[str]:
    """What git prints, NUL between two lines."""
    done = subprocess.run(
        ["git", *args],
        cwd=folder,
        env={**_outside_of_a_hook(), **SETTINGS, "XDG_CONFIG_HOME": os.devnull},
        check=True,
        capture_output=True,
    )
    return sorted(os.fsdecode(name) for name in done.stdout.split(b"\0") if name)


def by_git(folder: Path) -> list[str]:
    return git(folder, "ls-files", "--others", "--exclude-standard", "-z")


def by_us(folder: Path) -> list[str]:
    """What is packed; it asks for no file of a topology, as these trees hold none."""
    files = list_files(Project(folder, "flow", ".", ""), [], 1 << 30).files
    return [file.name for file in files]


def repository(folder: Path, tree: Mapping[str, str], exclude: str = "") -> Path:
    write_tree(folder, tree)
    git(folder, "init", "--quiet")
    return write_tree(folder, {".git/info/exclude": exclude})


@settings(max_examples=200)
@given(trees(), st.just("") | rule_files)
@example({".gitignore": "build\n!keep.log", "build/keep.log": "", "keep.log": ""}, "")
@example({".gitignore": "d/**\n!d/keep.txt", "d/keep.txt": "", "d/other": ""}, "")
@example({".gitignore": "**/v/", "a/.gitignore": "!v", "a/v/f": "", "v/f": ""}, "")
@example({".gitignore": "*.txt", "a/.gitignore": "!v", "a/v/f.txt": "", "a/v/f": ""}, "")
@example({".gitignore": "/*\n!/a\n", "a/b": "", "b": ""}, "")
@example({".gitignore": "\ufeffa\r\n", "a": "", "b": ""}, "b")
@example({".gitignore": "[a\nb\n", "a": "", "[a": "", "b": ""}, "")
@example({".gitignore": "a\\/b\nc\\/\n", "a/b": "", "c/d": ""}, "")
@example({".gitignore": "a[!b]c/d", "a/c/d": "", "axc/d": ""}, "")
@example({".gitignore": "a\t", "a": "", "a\t": ""}, "")
@example({".gitignore": "a/**/**/b/**", "a/b/c": "", "a/x/y/b/c": "", "b/c": ""}, "")
def test_a_repository_is_listed_as_git_lists_it(tree: dict[str, str], exclude: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = repository(Path(temporary).resolve() / "repository", tree, exclude)
        assert by_us(folder) == by_git(folder)


@settings(max_examples=50)
@given(trees(), st.just("") | rule_files, st.sampled_from(FOLDERS))
def test_a_project_within_a_repository(tree: dict[str, str], exclude: str, part: str) -> None:
    assume(any(name.startswith(f"{part}/") for name in tree))
    with tempfile.TemporaryDirectory() as temporary:
        folder = repository(Path(temporary).resolve() / "repository", tree, exclude)
        ignored = GitRules.of(folder).ignores(part, True)
        if ignored:  # a repository of its own, for all that it concerns the one around it
            git(folder / part, "init", "--quiet")
        assert by_us(folder / part) == by_git(folder / part)


def test_a_worktree_reads_the_excludes_of_its_repository(tmp_path: Path) -> None:
    tmp_path = tmp_path.resolve()
    main = repository(tmp_path / "main", {}, "notes\n")
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
    git(main, *who, "commit", "--quiet", "--allow-empty", "--message", "first")
    git(main, "worktree", "add", "--quiet", str(tmp_path / "other"))
    write_tree(tmp_path / "other", {"notes": "", "code": ""})
    assert by_us(tmp_path / "other") == by_git(tmp_path / "other") == ["code"]


def test_a_file_that_looks_like_a_repository_has_no_excludes(tmp_path: Path) -> None:
    tree = {".git": "", "info/exclude": "code", "code": "", "commondir": "info"}
    assert by_us(write_tree(tmp_path.resolve(), tree)) == ["code", "commondir", "info/exclude"]


def test_a_link_is_ignored_as_the_file_that_it_is(tmp_path: Path) -> None:
    tree = {".gitignore": "data/\nother", "real/x": "", "data/x": ""}
    folder = repository(tmp_path.resolve() / "repository", tree)
    (folder / "inner").mkdir()
    (folder / "inner" / "data").symlink_to("../real")
    (folder / "inner" / "other").symlink_to("../real")
    assert by_git(folder) == [".gitignore", "inner/data", "real/x"]
    assert by_us(folder) == [".gitignore", "inner/data/x", "real/x"]


def test_a_gitignore_that_is_a_link_counts_for_nothing(tmp_path: Path) -> None:
    folder = repository(tmp_path.resolve() / "repository", {"rules": "a", "a": ""})
    (folder / ".gitignore").symlink_to("rules")
    git(folder, "add", ".gitignore")
    assert by_git(folder) == ["a", "rules"]
    assert by_us(folder) == [".gitignore", "a", "rules"]


def test_what_is_tracked_is_ignored_all_the_same(tmp_path: Path) -> None:
    """The one known difference: the rules are read, and not the index."""
    folder = repository(tmp_path.resolve() / "repository", {".gitignore": "a", "a": ""})
    git(folder, "add", "--force", "a")
    assert git(folder, "ls-files", "-z") == ["a"]
    assert by_us(folder) == [".gitignore"]
