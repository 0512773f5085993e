"""Which folder is the project of a topology, and what is none."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from storm_py.errors import PackingError
from storm_py.loader import load
from storm_py.submit.project import Project, find_project, never_roots
from tests.projects import Project as UserFolder
from tests.trees import as_loaded, write_tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return (tmp_path / "root").resolve()


@pytest.mark.parametrize("marker", ["pyproject.toml", "setup.cfg", ".git/", ".git"])
def test_the_nearest_folder_with_a_marker(
    root: Path, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(root, {".git/": "", f"one/{marker}": "", "one/jobs/deep/flow.py": ""})
    loaded = as_loaded(monkeypatch, root / "one/jobs/deep/flow.py", "flow_of_root")
    assert find_project(loaded, {}) == Project(
        root / "one", "flow_of_root", "jobs/deep", "jobs/deep/flow.py"
    )
    assert find_project(loaded, {}).name == "one"


def test_without_a_marker_it_is_the_folder_of_the_file(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(root, {"pyproject.toml": "", "home/scripts/flow.py": ""})
    loaded = as_loaded(monkeypatch, root / "home/scripts/flow.py", "flow")
    expected = Project(root / "home/scripts", "flow", ".", "flow.py")
    assert find_project(loaded, {root / "home": "your home folder"}) == expected


def test_of_a_module_in_a_package_it_begins_where_python_found_the_package(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker within the package would make a root that the package cannot be imported from."""
    write_tree(root, {"setup.cfg": "", "src/jobs/setup.cfg": "", "src/jobs/daily/flow.py": ""})
    loaded = as_loaded(monkeypatch, root / "src/jobs/daily/flow.py", "jobs.daily.flow", root)
    assert find_project(loaded, {}) == Project(
        root, "jobs.daily.flow", "src", "src/jobs/daily/flow.py"
    )


def test_a_package_itself(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(root, {"setup.cfg": "", "jobs/__init__.py": ""})
    loaded = as_loaded(monkeypatch, root / "jobs/__init__.py", "jobs", root)
    assert find_project(loaded, {}) == Project(root, "jobs", ".", "jobs/__init__.py")


def test_a_package_that_is_a_link(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(root, {"setup.cfg": "", "flows/daily.py": "", "lib/": ""})
    (root / "lib" / "jobs").symlink_to("../flows")
    loaded = as_loaded(monkeypatch, root / "lib/jobs/daily.py", "jobs.daily", root)
    assert find_project(loaded, {}) == Project(root, "jobs.daily", "lib", "lib/jobs/daily.py")


def test_what_is_really_loaded(project: UserFolder) -> None:
    project.write("pyproject.toml", "", components=False)
    project.write("src/flows/__init__.py", "", components=False)
    project.write("src/words.py", "topology = built()")
    loaded = load("src/words.py", [])
    assert find_project(loaded) == Project(project.folder, "words", "src", "src/words.py")


def test_an_example_of_storm_py_needs_no_project(project: UserFolder) -> None:
    loaded = load("storm_py.topologies.exclamation", [])
    found = find_project(loaded)
    assert found == Project(None, "storm_py.topologies.exclamation", ".", "")
    assert found.name == "storm_py"


def test_a_folder_that_is_never_packed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(root, {".git/": "", "flow.py": ""})
    loaded = as_loaded(monkeypatch, root / "flow.py", "flow")
    with pytest.raises(PackingError) as caught:
        find_project(loaded, {root: "your home folder"})
    assert str(caught.value) == (
        f"{root}/flow.py belongs to the folder {root}, your home folder, which is not packed as a "
        "whole; move the project into a folder of its own"
    )


def test_the_folders_that_are_never_packed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(write_tree(root, {})))
    assert never_roots() == {
        Path(os.sep): "the root of the file system",
        Path("/tmp").resolve(): "a folder for temporary files",
        Path("/var/tmp").resolve(): "a folder for temporary files",
        Path(tempfile.gettempdir()).resolve(): "a folder for temporary files",
        root: "your home folder",
    }


@pytest.mark.parametrize("name", ["site-packages", "dist-packages"])
def test_an_installed_module(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(root, {"setup.cfg": "", f".venv/lib/{name}/jobs/flow.py": ""})
    folder = root / ".venv" / "lib" / name
    with pytest.raises(PackingError) as caught:
        find_project(as_loaded(monkeypatch, folder / "jobs/flow.py", "jobs.flow"), {})
    assert str(caught.value) == (
        f"the module jobs.flow is installed, in {folder}, and belongs to no project that could be "
        "packed; submit it from its source"
    )


def test_a_module_in_a_zip_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_tree(root, {"jobs.zip": ""}) / "jobs.zip" / "flow.py"
    with pytest.raises(PackingError) as caught:
        find_project(as_loaded(monkeypatch, file, "flow"), {})
    assert str(caught.value) == (
        f"the module flow is in no file of its own, but in {file}; submit it from a folder"
    )
