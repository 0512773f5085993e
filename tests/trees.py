"""Folders for tests: written from a dict, and what a topology in one of them was loaded as."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from storm_py import BaseRichSpout, OutputFieldsDeclarer, StormTopology, TopologyBuilder
from storm_py.loader import LoadedTopology


class Lines(BaseRichSpout):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line")

    def next_tuple(self) -> None:
        pass


def a_topology() -> StormTopology:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    return builder.create_topology()


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write files by their names below `root`; a name that ends in a slash makes a folder."""
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return root


def as_loaded(
    monkeypatch: pytest.MonkeyPatch, file: Path, module: str, sys_path: Path | None = None
) -> LoadedTopology:
    """What loading `file` gives, without running it."""
    found = ModuleType(module)
    found.__file__ = str(file)
    monkeypatch.setitem(sys.modules, module, found)
    return LoadedTopology(a_topology(), module, module, str(sys_path or file.parent), {})
