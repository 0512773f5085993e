"""Which files of a project are packed: what stays out, what comes in, and what is refused."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.archive import FileEntry
from storm_py.errors import PackingError
from storm_py.submit.listing import _Walk, list_files
from storm_py.submit.project import Project
from storm_py.submit.sizes import largest
from tests.trees import write_tree

LIMIT = 1 << 20


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in the current folder."""
    folder = write_tree(tmp_path.resolve() / "flows", {"flow.py": "import words"})
    monkeypatch.chdir(folder)
    return folder


def names(root: Path, *include: str) -> list[str]:
    files = list_files(Project(root, "flow", ".", "flow.py"), include, LIMIT).files
    return [file.name for file in files]


def refused(root: Path, include: Sequence[str] = (), limit: int = LIMIT) -> str:
    with pytest.raises(PackingError) as caught:
        list_files(Project(root, "flow", ".", "flow.py"), include, limit)
    return str(caught.value)


class TestWhatStaysOut:
    @pytest.mark.parametrize(
        "name",
        [
            ".git/config",
            ".git",
            ".hg/store",
            ".svn/entries",
            "jobs/__pycache__/a.txt",
            "jobs/a.pyc",
            "jobs/a.pyo",
            ".mypy_cache/a",
            ".pytest_cache/a",
            ".ruff_cache/a",
            ".tox/a",
            ".nox/a",
            "page/node_modules/a/b.js",
            "flows.egg-info/PKG-INFO",
            ".venv/pyvenv.cfg",
            "tools/env/conda-meta/history",
        ],
    )
    def test_by_its_name_or_by_what_it_is(self, root: Path, name: str) -> None:
        write_tree(root, {name: ""})
        assert names(root) == ["flow.py"]

    def test_of_an_environment_all_of_it(self, root: Path) -> None:
        write_tree(root, {"env/pyvenv.cfg": "", "env/lib/python3/x.py": ""})
        (root / "env" / "bin").symlink_to("/usr/bin")
        assert names(root) == ["flow.py"]

    def test_what_git_ignores(self, root: Path) -> None:
        rules = {".gitignore": "*.csv\n!small.csv\n/build/", "jobs/.gitignore": "small.csv"}
        files = ["big.csv", "small.csv", "build/a", "jobs/build/a", "jobs/small.csv"]
        write_tree(root, {**rules, **dict.fromkeys(files, "")})
        assert names(root) == [
            ".gitignore",
            "flow.py",
            "jobs/.gitignore",
            "jobs/build/a",
            "small.csv",
        ]

    def test_folders_without_files(self, root: Path) -> None:
        write_tree(root, {"empty/within/": ""})
        assert names(root) == ["flow.py"]

    @pytest.mark.parametrize("name", ["build/a", "dist/a", ".env", "data.pycx", "pyvenv.cfg"])
    def test_nothing_else(self, root: Path, name: str) -> None:
        write_tree(root, {name: ""})
        assert names(root) == sorted([name, "flow.py"])

    def test_a_repository_around_the_project_has_its_say(self, root: Path) -> None:
        write_tree(root.parent, {".git/info/exclude": "notes", ".gitignore": "/flows/data"})
        write_tree(root, {"notes": "", "data": "", "jobs/data": ""})
        assert names(root) == ["flow.py", "jobs/data"]

    def test_a_repository_around_that_ignores_the_project_has_none(self, root: Path) -> None:
        write_tree(root.parent, {".git/": "", ".gitignore": "*"})
        assert names(root) == ["flow.py"]


class TestLinks:
    def test_to_a_file(self, root: Path) -> None:
        write_tree(root, {"jobs/a.py": "1234"})
        (root / "b.py").symlink_to("jobs/a.py")
        found = {f.name: f for f in list_files(Project(root, "flow", ".", ""), [], LIMIT).files}
        assert list(found) == ["b.py", "flow.py", "jobs/a.py"]
        assert found["b.py"] == FileEntry("b.py", root / "jobs/a.py", 4, False)

    def test_to_a_folder_holds_what_is_packed_of_that(self, root: Path) -> None:
        write_tree(root, {"jobs/a.py": "", "jobs/a.log": "", ".gitignore": "/jobs/*.log"})
        (root / "lib").mkdir()
        (root / "lib" / "again").symlink_to("../jobs")
        assert names(root) == [".gitignore", "flow.py", "jobs/a.py", "lib/again/a.py"]

    def test_to_what_is_left_out(self, root: Path) -> None:
        write_tree(root, {"data/big": "", ".gitignore": "data", ".venv/pyvenv.cfg": ""})
        (root / "big").symlink_to("data/big")
        (root / "more").symlink_to("data")
        (root / "env").symlink_to(".venv")
        assert names(root) == [".gitignore", "flow.py"]

    def test_to_nothing(self, root: Path) -> None:
        (root / "gone").symlink_to("nowhere")
        (root / "itself").symlink_to("itself")
        assert names(root) == ["flow.py"]

    def test_to_an_environment_elsewhere(self, root: Path) -> None:
        write_tree(root.parent / "env", {"pyvenv.cfg": ""})
        (root / ".venv").symlink_to("../env")
        assert names(root) == ["flow.py"]

    def test_out_of_the_project(self, root: Path) -> None:
        write_tree(root.parent, {"secret/key": ""})
        (root / "jobs").mkdir()
        (root / "jobs" / "data").symlink_to("../../secret")
        assert refused(root) == (
            f"{root} holds what cannot be packed:\n"
            f"  jobs/data is a link out of {root}, to {root.parent}/secret; --include "
            f"{root}/jobs/data packs a copy of that, a line in .gitignore leaves it out"
        )
        assert names(root, "jobs/data") == ["flow.py", "jobs/data/key"]
        write_tree(root, {".gitignore": "data"})
        assert names(root) == [".gitignore", "flow.py"]

    def test_in_a_circle(self, root: Path) -> None:
        write_tree(root, {"a/": "", "b/": ""})
        (root / "a" / "to_b").symlink_to("../b")
        (root / "b" / "to_a").symlink_to("../a")
        (root / "here").symlink_to(".")
        assert refused(root).splitlines()[1:] == [
            f"  a/to_b/to_a is a link to {root}/a, a folder around it; a line in .gitignore "
            "leaves it out",
            f"  b/to_a/to_b is a link to {root}/b, a folder around it; a line in .gitignore "
            "leaves it out",
            f"  here is a link to {root}, a folder around it; a line in .gitignore leaves it out",
        ]


class TestWhatCannotBePacked:
    def test_sockets_and_fifos(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        os.mkfifo(root / "pipe")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("door")
            assert refused(root).splitlines()[1:] == [
                "  door is a socket; a line in .gitignore leaves it out",
                "  pipe is a fifo; a line in .gitignore leaves it out",
            ]
        write_tree(root, {".gitignore": "door\npipe"})
        assert names(root) == [".gitignore", "flow.py"]

    def test_a_file_that_may_not_be_read(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_tree(root, {"jobs/key": ""})
        monkeypatch.setattr(os, "access", lambda path, mode: path.name != "key")  # root may all
        assert refused(root).splitlines()[1:] == [
            "  jobs/key may not be read by you; change its mode, or a line in .gitignore leaves "
            "it out"
        ]

    def test_a_name_that_is_no_text(self, root: Path) -> None:
        (root / os.fsdecode(b"caf\xe9.txt")).touch()
        assert refused(root).splitlines()[1:] == [
            "  caf\\xe9.txt has a name that is not UTF-8; rename it"
        ]

    def test_the_name_of_the_manifest(self, root: Path) -> None:
        write_tree(root, {"storm_py.json": "", "jobs/storm_py.json": ""})
        assert refused(root).splitlines()[1:] == [
            "  storm_py.json has the name of the archive's own manifest; rename it"
        ]

    def test_a_folder_that_may_not_be_read(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_tree(root, {"jobs/key": ""})
        scandir = os.scandir

        def refusing(path: Path) -> object:
            if path.name == "jobs":
                raise PermissionError(13, "Permission denied")
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refusing)
        assert refused(root).splitlines()[1:] == ["  jobs cannot be read: Permission denied"]

    def test_a_file_that_goes_meanwhile(self, root: Path) -> None:
        problems: list[str] = []
        _Walk(root, None, frozenset(), {}, problems).file(root / "gone.py", "gone.py")
        assert problems == ["gone.py cannot be read: No such file or directory"]

    def test_many_of_them(self, root: Path) -> None:
        for number in range(12):
            os.mkfifo(root / f"pipe{number:02}")
        lines = refused(root).splitlines()
        assert len(lines) == 12
        assert lines[10:] == [
            "  pipe09 is a fifo; a line in .gitignore leaves it out",
            "  and 2 more",
        ]

    def test_the_topology_itself_left_out(self, root: Path) -> None:
        write_tree(root, {".gitignore": "flow.py"})
        assert refused(root) == (
            f"{root}/flow.py, the file of the topology, is left out of the archive: git ignores "
            "it, or it is in a virtual environment or a cache; --include "
            f"{root}/flow.py brings it in"
        )
        assert names(root, "flow.py") == [".gitignore", "flow.py"]

    def test_a_gitignore_that_cannot_be_read(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_tree(root, {".gitignore": ""})

        def refusing(path: Path) -> bytes:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "read_bytes", refusing)
        assert refused(root) == (
            f"{root}/.gitignore cannot be read to see what git ignores: Permission denied"
        )

    def test_a_repository_that_cannot_be_read(self, root: Path) -> None:
        (root / ".git").write_bytes(b"\xff")
        assert refused(root).startswith(
            f"{root}/.git cannot be read to see what git ignores: 'utf-8' codec can't decode"
        )


class TestIncluding:
    def test_what_is_ignored(self, root: Path) -> None:
        files = {"build/model/a": "", "build/model/b.log": "", "build/other": ""}
        write_tree(root, {**files, "build/model/__pycache__/c": "", ".gitignore": "build\n*.log"})
        assert names(root, "build/model") == [
            ".gitignore",
            "build/model/a",
            "build/model/b.log",
            "flow.py",
        ]

    def test_a_folder_that_is_left_out_by_its_name(self, root: Path) -> None:
        write_tree(root, {"node_modules/a.js": "", "node_modules/node_modules/b.js": ""})
        assert names(root, "node_modules") == ["flow.py", "node_modules/a.js"]

    def test_all_of_the_project(self, root: Path) -> None:
        write_tree(root, {".gitignore": "*.log", "a.log": "", "jobs/b.log": ""})
        assert names(root, ".") == [".gitignore", "a.log", "flow.py", "jobs/b.log"]

    def test_from_elsewhere_by_its_last_part(self, root: Path) -> None:
        write_tree(root.parent, {"shared/lib/a.py": "", "shared/words.txt": ""})
        assert names(root, "../shared/lib", "../shared/words.txt", "../shared/lib/") == [
            "flow.py",
            "lib/a.py",
            "words.txt",
        ]

    def test_by_a_link_under_the_name_of_the_link(self, root: Path) -> None:
        write_tree(root.parent, {"shared/lib-2/a.py": ""})
        (root.parent / "lib").symlink_to("shared/lib-2")
        assert names(root, "../lib") == ["flow.py", "lib/a.py"]

    def test_from_the_current_folder(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_tree(root, {"jobs/a.log": "", ".gitignore": "*.log"})
        monkeypatch.chdir(root / "jobs")
        assert names(root, "a.log") == [".gitignore", "flow.py", "jobs/a.log"]

    def test_without_a_project(self, root: Path) -> None:
        own = Project(None, "storm_py.topologies.exclamation", ".", "")
        assert list_files(own, [], LIMIT).files == ()
        [file] = list_files(own, [str(root / "flow.py")], LIMIT).files
        assert file == FileEntry("flow.py", root / "flow.py", 12, False)

    def test_nothing_there(self, root: Path) -> None:
        write_tree(root, {"words.txt": ""})
        (root / "gone").symlink_to("nowhere")
        assert refused(root, ["wrods.txt"]) == (
            f"--include wrods.txt: there is no wrods.txt in {root}; did you mean 'words.txt'?"
        )
        assert refused(root, ["x/y"]) == f"--include x/y: there is no folder {root}/x"
        assert refused(root, ["gone"]) == (
            f"--include gone: {root}/gone is a link that leads nowhere"
        )

    def test_what_the_project_is_in(self, root: Path) -> None:
        assert refused(root, [".."]) == (
            f"--include ..: {root.parent} contains the project {root}, which is packed by itself; "
            "name what is needed of it"
        )
        own = Project(None, "storm_py.topologies.exclamation", ".", "")
        with pytest.raises(PackingError) as caught:
            list_files(own, ["/"], LIMIT)
        assert str(caught.value) == "--include /: / is not packed as a whole"

    def test_a_name_that_the_project_has(self, root: Path) -> None:
        write_tree(root, {"lib/a.py": ""})
        write_tree(root.parent, {"shared/lib/b.py": ""})
        assert refused(root, ["../shared/lib"]) == (
            "--include ../shared/lib: the project has a lib as well, and both would be at the top "
            "of the archive; rename one of them"
        )

    def test_one_name_twice(self, root: Path) -> None:
        write_tree(root.parent, {"one/lib/a.py": "", "two/lib/b.py": ""})
        assert refused(root, ["../one/lib", "../two/lib"]) == (
            "--include ../one/lib: --include ../two/lib has a lib as well, and both would be at "
            "the top of the archive; rename one of them"
        )

    def test_links_out_of_it(self, root: Path) -> None:
        write_tree(root.parent, {"shared/a": "", "key": ""})
        (root.parent / "shared" / "key").symlink_to("../key")
        assert refused(root, ["../shared"]).splitlines()[1:] == [
            f"  shared/key is a link out of {root.parent}/shared, to {root.parent}/key; remove it"
        ]


class TestSize:
    def test_at_the_limit(self, root: Path) -> None:
        assert len(list_files(Project(root, "flow", ".", "flow.py"), [], 12).files) == 1

    def test_above_the_limit(self, root: Path) -> None:
        write_tree(root, {"data/raw/a.csv": "x" * 4000, "data/b": "x" * 100, "c": "x" * 2000})
        assert refused(root, limit=5000) == (
            f"{root} comes to 6.0 KiB in 4 files; the limit is 4.9 KiB "
            "(storm_py.submit.max.bytes). The largest: data/raw/a.csv (3.9 KiB), c (2.0 KiB), "
            "flow.py (12 bytes). List in .gitignore what the topology does not need, or raise the "
            "limit with -c storm_py.submit.max.bytes=BYTES"
        )

    def test_a_folder_is_named_that_is_large_by_many_files(self) -> None:
        files = [FileEntry(f"data/{n}", Path(), 10, False) for n in range(10)]
        assert largest(files) == [("data/", 100)]

    @given(
        st.dictionaries(
            st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(
                lambda p: "/".join(p) + "x"
            ),
            st.integers(0, 100),
        )
    )
    def test_parts_do_not_overlap(self, sizes: dict[str, int]) -> None:
        found = largest([FileEntry(name, Path(), size, False) for name, size in sizes.items()])
        for part, size in found:
            within = [n for n in sizes if n == part or (part.endswith("/") and n.startswith(part))]
            assert sum(sizes[name] for name in within) == size
        assert [size for _, size in found] == sorted((size for _, size in found), reverse=True)
        assert sum(size for _, size in found) <= sum(sizes.values())


def test_modes(root: Path) -> None:
    write_tree(root, {"run.sh": ""})
    (root / "run.sh").chmod(0o700)
    found = list_files(Project(root, "flow", ".", "flow.py"), [], LIMIT)
    assert [(file.name, file.executable) for file in found.files] == [
        ("flow.py", False),
        ("run.sh", True),
    ]
    assert found.size_bytes == 12
