"""streamparse as its users have it: the program `sparse`, unmodified, and a project of its kind.

It lives in an environment of its own, since what it needs excludes what this project needs. That is
made once, below `.bench/`, and found there by the next run.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import subprocess
import sys
import zipfile
from itertools import groupby
from pathlib import Path
from typing import Final

from benchmarks import environments

#: streamparse, and what it runs with; it says no bounds itself. setuptools from 81 on has no
#: pkg_resources for it.
REQUIREMENTS: Final = (
    "streamparse==5.0.1",
    "setuptools==80.9.0",
    "Fabric39==1.15.3.post2",
    "paramiko==2.12.0",
    "cryptography==50.0.2",
    "pystorm==3.1.4",
    "thriftpy2==0.7.1",
    "requests==2.34.2",
    "ruamel.yaml==0.19.1",
    "simplejson==4.3.0",
    "texttable==1.7.2",
    "jinja2==3.1.6",
)
_PATIENCE_SECS: Final = 60.0
_COLOURS: Final = re.compile(r"\x1b\[\d*m")
#: More than two of the pieces of 300 kB that `sparse` uploads.
_DATA_BYTES: Final = 700_000

_TOPOLOGY: Final = """\
from streamparse import Grouping, Topology

from flow import Count, Lines, Split


class Words(Topology):
    config = {"topology.message.timeout.secs": 7}

    lines = Lines.spec(name="lines")
    split = Split.spec(name="split", inputs=[lines], par=2)
    count = Count.spec(
        name="count",
        inputs={split: Grouping.fields("word"), split["lengths"]: Grouping.GLOBAL},
        par=2,
        config={"topology.tasks": 4},
    )
"""
_FLOW: Final = """\
from streamparse import Bolt, Spout, Stream


class Lines(Spout):
    outputs = ["line"]


class Split(Bolt):
    outputs = [Stream(fields=["word"]), Stream(fields=["length"], name="lengths")]


class Count(Bolt):
    outputs = ["word", "count"]
"""


def environment() -> Path:
    """The folder of the environment's programs; it is made if it is not there."""
    release = f"{sys.version_info.major}.{sys.version_info.minor}"
    peer = environments.Peer(f"streamparse-{release}", "streamparse 5.0.1", REQUIREMENTS)
    environments.FOLDER.mkdir(exist_ok=True)
    with (environments.FOLDER / f"{peer.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run of the tests may be making it
        return Path(environments.build(peer, print).python).parent


def make_jar(path: Path) -> bytes:
    """Write a jar as those that streamparse makes, folders included; its bytes."""
    noise = random.Random(5).randbytes(_DATA_BYTES)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        for folder in ("META-INF/", "resources/"):
            jar.mkdir(folder)
        jar.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")
        jar.writestr("resources/flow.py", _FLOW)
        jar.writestr("resources/data.bin", noise)
    return path.read_bytes()


class SparseProject:
    """A project with a topology `words`, whose one environment names the nimbus at an address."""

    def __init__(self, folder: Path, programs: Path, nimbus: str) -> None:
        self._folder, self._programs, self._nimbus = folder, programs, nimbus
        for name, text in {"topologies/words.py": _TOPOLOGY, "src/flow.py": _FLOW}.items():
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(text)
        self.jar = make_jar(folder / "words.jar")
        self.configure()

    def configure(self, **changes: object) -> None:
        """Write config.json."""
        here = {
            "nimbus": self._nimbus,
            "use_ssh_for_nimbus": False,  # else it logs in where nimbus runs
            "use_virtualenv": False,  # else it logs in on every node, to install there
            "workers": [],  # as its template has it: ask nimbus
            "log": {"path": "", "level": "info"},
            **changes,
        }
        config = {"topology_specs": "topologies/", "serializer": "json", "envs": {"test": here}}
        (self._folder / "config.json").write_text(json.dumps(config))

    def sparse(self, *arguments: str) -> str:
        """What a command of `sparse` that succeeds prints."""
        done = self._run(arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return _COLOURS.sub("", done.stdout)

    def refused(self, *arguments: str) -> str:
        """What a command of `sparse` that fails says in the end."""
        done = self._run(arguments)
        assert done.returncode != 0, done.stdout
        return done.stderr.rstrip().splitlines()[-1]

    def submit(self, *arguments: str) -> tuple[str, ...]:
        """The arguments of a submission of the jar."""
        return ("submit", "-n", "words", "-j", str(self._folder / "words.jar"), *arguments)

    def listed(self) -> dict[str, dict[str, str]]:
        """What `sparse list` says of each topology, by its name."""
        rows: list[dict[str, str]] = [{}]
        for table in self.sparse("list").split("# ")[1:]:  # one more if there are values in common
            rows = [{**common, **row} for common in rows for row in _rows(table)]
        return {row["name"]: row for row in rows}

    def _run(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "LEIN_ROOT": "1"}  # else it does nothing for the superuser
        for name in ("PYTHONPATH", "STREAMPARSE_NIMBUS"):
            variables.pop(name, None)
        return subprocess.run(
            [str(self._programs / "sparse"), *arguments],
            cwd=self._folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECS,
            check=False,
        )


def _rows(table: str) -> list[dict[str, str]]:
    """The rows of a table that streamparse has drawn, whose cells go over several lines."""
    drawn = [line for line in table.splitlines() if line.startswith(("+", "|"))]
    found = []
    for is_text, lines in groupby(drawn, lambda line: line.startswith("|")):
        if is_text:
            pieces = zip(*(line.strip("|").split("|") for line in lines), strict=True)
            found.append(["".join(piece.strip() for piece in cell) for cell in pieces])
    columns, *rows = found
    return [dict(zip(columns, row, strict=True)) for row in rows]
