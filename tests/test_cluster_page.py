"""docs/cluster.md and the files in deploy/ say what is so: commands, keys, links, units."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest

from storm_py.cli import main
from storm_py.config import KEYS, Config
from storm_py.storm_yaml import load

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "cluster.md").read_text("utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """The blocks in a language, without the indentation of a list."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


@pytest.mark.parametrize("text", blocks("yaml"))
def test_each_storm_yaml_is_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text(text)
    found = load(path)
    assert found.warnings == ()
    assert set(found.values) <= set(KEYS)
    assert Config.STORM_LOCAL_HOSTNAME in found.values


def command_lines() -> list[list[str]]:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    units = [unit(name)["Service"]["ExecStart"] for name in UNITS]
    return [shlex.split(line) for line in (*lines, *units) if "storm-py " in line]


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names have capitals
    parser.read(ROOT / "deploy" / name)
    return parser


UNITS = ["storm-py-nimbus.service", "storm-py-supervisor.service"]


@pytest.mark.parametrize("line", command_lines(), ids=" ".join)
def test_each_command_is_one(line: list[str]) -> None:
    """Options and all: they are parsed, and nothing is run."""
    program, name, *arguments = line
    assert Path(program).name == "storm-py"
    command = main.commands[name]
    context = command.make_context(name, arguments)
    assert context.params


@pytest.mark.parametrize("anchor", sorted(set(re.findall(r"configuration\.md#(\w+)", PAGE))))
def test_each_key_that_is_linked_is_there(anchor: str) -> None:
    headings = re.findall(r"^#+ `?([\w.-]+)`?$", CONFIGURATION, re.MULTILINE)
    assert anchor in {heading.replace(".", "").lower() for heading in headings}


def test_every_link_within_the_page_leads_somewhere() -> None:
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= anchors


def test_every_file_that_is_linked_is_there() -> None:
    for link in re.findall(r"\]\(((?!http|#)[^)#]+)", PAGE):
        assert (ROOT / "docs" / link).is_file(), link


@pytest.mark.parametrize("name", UNITS)
def test_units_start_their_daemon_again(name: str) -> None:
    service = unit(name)["Service"]
    assert service["Restart"] == "always"
    assert service["SuccessExitStatus"] == "130"
    assert service["User"] == "storm"


def test_only_the_supervisor_itself_is_stopped() -> None:
    service = unit("storm-py-supervisor.service")["Service"]
    assert service["KillMode"] == "process"
    assert service["RuntimeDirectoryPreserve"] == "yes"
