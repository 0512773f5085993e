"""The files of a user: a folder to write them in, and the text of the error that loading gives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from storm_py import TopologyLoadError
from storm_py.loader import load

COMPONENTS = """
from storm_py import BaseRichSpout, StormTopology, TopologyBuilder

class Lines(BaseRichSpout):
    def next_tuple(self):
        pass

def built(parallelism=1):
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(), parallelism)
    return builder
"""


class Project:
    """A folder of the user's files, which is also the current folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, source: str, components: bool = True) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((COMPONENTS if components else "") + dedent(source), encoding="utf-8")
        return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    folder = (tmp_path / "project").resolve()
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = dict(sys.modules)
    yield Project(folder)
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


def refused(spec: str, *args: str) -> str:
    """Return the text of the error that loading ``spec`` gives."""
    with pytest.raises(TopologyLoadError) as caught:
        load(spec, list(args))
    return str(caught.value)
