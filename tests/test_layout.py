"""The shape of the repository: links, package list, guards, and the files newcomers look for."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storm_py.constants import VERSION

ROOT = Path(__file__).parent.parent

LINKED = ["nimbus", "supervisor", "topologies"]
"""Folders at the top of the repository that are packages of storm_py."""


def setup_section(name: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser[name]


def packages_on_disk() -> set[str]:
    found = set()
    for folder, _, names in os.walk(ROOT / "storm_py", followlinks=True):
        if "__init__.py" in names:
            found.add(".".join(Path(folder).relative_to(ROOT).parts))
    return found


def test_links_are_exactly_the_linked_folders() -> None:
    links = {path.name for path in (ROOT / "storm_py").iterdir() if path.is_symlink()}
    assert links == set(LINKED)


@pytest.mark.parametrize("name", LINKED)
def test_link_is_relative_and_leads_to_the_folder_at_the_top(name: str) -> None:
    link = ROOT / "storm_py" / name
    assert os.readlink(link) == f"../{name}"
    assert link.resolve() == (ROOT / name).resolve()
    assert not (ROOT / name).is_symlink()
    assert (link / "__init__.py").is_file()


def test_setup_lists_every_package_once() -> None:
    listed = setup_section("options")["packages"].split()
    assert listed == sorted(set(listed))
    assert set(listed) == packages_on_disk()


def test_setup_maps_every_linked_folder() -> None:
    lines = setup_section("options")["package_dir"].strip().splitlines()
    assert set(lines) == {f"storm_py.{name} = {name}" for name in LINKED}


def test_every_module_belongs_to_a_package() -> None:
    """A folder without `__init__.py` would work in a checkout and be missing from the wheel."""
    packages = packages_on_disk()
    for folder, _, names in os.walk(ROOT / "storm_py", followlinks=True):
        if any(name.endswith(".py") for name in names):
            assert ".".join(Path(folder).relative_to(ROOT).parts) in packages


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", LINKED)
def test_bare_import_of_a_linked_folder_is_refused(name: str) -> None:
    process = run_python(f"import {name}")
    assert process.returncode == 1
    assert f"ImportError: import storm_py.{name}, not {name}" in process.stderr


@pytest.mark.parametrize("name", LINKED)
def test_linked_folder_is_imported_by_its_real_name(name: str) -> None:
    process = run_python(f"import storm_py.{name} as m; print(m.__name__)")
    assert (process.stdout, process.stderr) == (f"storm_py.{name}\n", "")


def test_type_information_is_shipped() -> None:
    assert (ROOT / "storm_py" / "py.typed").is_file()


@pytest.mark.parametrize("name", ["README.md", "LICENSE", "CONTRIBUTING.md"])
def test_file_is_present(name: str) -> None:
    assert (ROOT / name).stat().st_size > 0


def test_contributing_stays_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 60


def test_changelog_has_an_unreleased_section() -> None:
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()


def test_every_dependency_is_explained() -> None:
    explained = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    for requirement in setup_section("options")["install_requires"].split():
        name = requirement.partition(">=")[0]
        assert f"**{name}**" in explained, f"docs/dependencies.md does not say what {name} is for"


def test_the_version_is_said_twice_alike() -> None:
    assert setup_section("metadata")["version"] == VERSION
