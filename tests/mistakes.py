"""What users get wrong, as rows: a topology file, a command line, and what the command says.

Used by the tests `test_mistakes*.py`, each with a table of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

import storm_py
from storm_py.cli import main

BASE = """\
from storm_py import *

class Numbers(BaseRichSpout):
    def declare_output_fields(self, declarer):
        declarer.declare("number", "parity")

    def open(self, conf, context, collector):
        self.collector = collector

    def next_tuple(self):
        self.collector.emit([1, "odd"])
        self.collector.end_of_input()

class Echo(BaseBasicBolt):
    def execute(self, tup, collector):
        pass

"""


def building(*lines: str) -> str:
    """A topology file whose function builds with these lines on `builder`."""
    body = [
        "def topology(args):",
        "    builder = TopologyBuilder()",
        *(f"    {line}" for line in lines),
        "    return builder",
    ]
    return BASE + "\n".join(body) + "\n"


def emitting(*lines: str) -> str:
    """A topology file whose spout does this in `next_tuple`."""
    spout = [
        "class Guilty(Numbers):",
        "    def next_tuple(self):",
        *(f"        {x}" for x in lines),
    ]
    return building(
        "builder.set_spout('numbers', Guilty())",
        "builder.set_bolt('echo', Echo()).shuffle_grouping('numbers')",
    ).replace("def topology", "\n".join(spout) + "\n\ndef topology")


NUMBERS = "builder.set_spout('numbers', Numbers())"
GOOD = building(NUMBERS, "builder.set_bolt('echo', Echo(), 2).shuffle_grouping('numbers')")
FILE = "flow.py"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One row: a file, a command line behind `storm-py local`, and what comes of it."""

    id: str
    fragments: tuple[str, ...]
    text: str = GOOD
    args: tuple[str, ...] = (FILE, "--inline")
    code: int = 2
    #: Whether the user's own code raised, so that its traceback helps.
    traceback: bool = False


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in a folder of its own, and let no row see the modules of another."""
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(str(tmp_path)):
            del sys.modules[name]


def check_mistake(mistake: Mistake) -> None:
    """Make it in the current folder; the message must be all that is asked of it."""
    Path(FILE).write_text(mistake.text, encoding="utf-8")
    Path("csv.py").write_text(GOOD, encoding="utf-8")
    result = CliRunner().invoke(main, ["local", *mistake.args])
    assert result.exit_code == mistake.code, result.output
    for fragment in mistake.fragments:
        assert fragment in result.stderr
    assert ("Traceback" in result.stderr) is mistake.traceback, result.stderr
    for frame in (str(Path(storm_py.__file__).parent), "<storm-py", "msgpack"):
        assert frame not in result.stderr  # nobody looks for a mistake in there
    assert result.stdout == ""
