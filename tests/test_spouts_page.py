"""docs/spouts.md is true: the arguments and fields of FileSpout, and its examples."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from storm_py import OutputFieldsDeclarer
from storm_py.spouts import FileSpout
from storm_py.testing import TopologyDriver
from tests.test_docs import examples_of

PAGE = Path(__file__).parent.parent / "docs" / "spouts.md"


def rows_below(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_argument_is_explained_with_its_default() -> None:
    parameters = inspect.signature(FileSpout).parameters.values()
    empty = inspect.Parameter.empty
    assert [(name, default) for name, default, _ in rows_below("Arguments")] == [
        (f"`{p.name}`", "" if p.default is empty else f"`{p.default!r}`") for p in parameters
    ]


def test_the_fields_are_those_it_declares(tmp_path: Path) -> None:
    declarer = OutputFieldsDeclarer("spout 'lines'")
    FileSpout(tmp_path / "text", tmp_path / "offsets").declare_output_fields(declarer)
    fields = [re.sub("`", "", name) for name, _ in rows_below("What it emits")]
    assert fields == list(declarer.streams["default"].fields)


def test_the_subclass_emits_what_it_declares(tmp_path: Path) -> None:
    names: dict[str, type[FileSpout]] = {}
    for example in examples_of(PAGE):
        example.run(names)
    (tmp_path / "text").write_text('{"user": "ann", "action": "left"}\n')
    spout = names["Events"](tmp_path / "text", tmp_path / "offsets")
    with TopologyDriver.for_spout(spout) as driver:
        driver.run()
        assert driver.outputs("spout") == [["ann", "left"]]
