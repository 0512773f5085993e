"""What docstrings, comments and pages name is there: modules, their members, keys, files.

A name is one in backticks that begins with `storm_py.`; a file one in a folder of the repository.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_py.config import KEYS

ROOT = Path(__file__).parent.parent
FOLDERS = ("storm_py", "nimbus", "supervisor", "topologies", "benchmarks", "tests")

NAME = re.compile(r"`(storm_py(?:\.\w+)+)(?:\(\))?`")
FILE = re.compile(
    r"\b(?:storm_py|nimbus|supervisor|topologies|benchmarks|tests|docs)(?:/\w+)+\.(?:py|md)\b"
)
_PROSE = re.compile(r"""^[rR]?(?:\"{3}|'{3})""")


def prose_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each comment and of each string in triple quotes that stands alone."""
    at_start = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (
            at_start and token.type == tokenize.STRING and _PROSE.match(token.string)
        ):
            yield token.start[0], token.string
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            at_start = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def texts() -> Iterator[tuple[str, str]]:
    """`file:line` and text of all that is written for readers."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for line, text in prose_of(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(ROOT)}:{line}", text
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("**/*.md"))]:
        for line, text in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            yield f"{page.relative_to(ROOT)}:{line}", text


def is_there(name: str) -> bool:
    """Whether this is a configuration key, the beginning of one, a module, or something in one."""
    if name in KEYS or any(key.startswith(f"{name}.") for key in KEYS):
        return True
    module = name
    members: list[str] = []
    while not _is_module(module):
        module, _, member = module.rpartition(".")
        members.insert(0, member)
    found: object = importlib.import_module(module)
    for member in members:
        if not hasattr(found, member):
            return False
        found = getattr(found, member)
    return True


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # what stands before the last dot is no package
        return False


def missing(text: str) -> list[str]:
    """The names and files of a text that are not there."""
    names = [name for name in NAME.findall(text) if not is_there(name)]
    return names + [file for file in FILE.findall(text) if not (ROOT / file).is_file()]


def test_everything_named_is_there() -> None:
    found = [f"{place}: {name}" for place, text in texts() for name in missing(text)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see `storm_py.core.plan` and ``storm_py.config.Config.TOPOLOGY_WORKERS``", []),
        ("the key `storm_py.batch.rows` of `storm_py.batch`", []),
        ("`storm_py.core.plans`", ["storm_py.core.plans"]),
        ("``storm_py.core.plan.nobody``", ["storm_py.core.plan.nobody"]),
        ("calls `storm_py.loader.load()`, not `storm_py.loader.lode()`", ["storm_py.loader.lode"]),
        ("`storm_py.batch.row`", ["storm_py.batch.row"]),
        ("docs/values.md, [it](docs/value.md)", ["docs/value.md"]),
        ("tests/helpers.py, tests/helper.py", ["tests/helper.py"]),
    ],
)
def test_what_is_not_there_is_found(text: str, names: list[str]) -> None:
    assert missing(text) == names


def test_prose_is_docstrings_and_comments() -> None:
    source = [
        '"""One',
        'two."""',
        'x = """no prose"""  # three',
        "def f():",
        '    """Four."""',
        '    "no"',
        "",
    ]
    found = [text for _, text in prose_of("\n".join(source))]
    assert found == ['"""One\ntwo."""', "# three", '"""Four."""']
