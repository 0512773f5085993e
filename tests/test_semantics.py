"""docs/semantics.md: every sentence names a test, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROMISE = re.compile(r"^- (?P<text>[A-Z*`].*[.]) `(?P<test>tests/[\w/]+\.py::[\w:]+)`$")


def promises() -> list[str]:
    """The lines of the page that are promises, or should be."""
    page = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")
    return [line for line in page.splitlines() if line.startswith("- ")]


def names_in(path: Path) -> set[str]:
    """The names of the tests of a file as pytest spells them: `test_x`, `TestX::test_y`.

    A state machine of hypothesis counts by the name of its class.
    """
    found: set[str] = set()
    for node in ast.parse(path.read_bytes(), str(path)).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inner = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            found |= {f"{node.name}::{name}" for name in inner if name.startswith("test_")}
            if any(isinstance(b, ast.Name) and b.id == "RuleBasedStateMachine" for b in node.bases):
                found.add(node.name)
    return {name for name in found if not name.startswith("_")}


@pytest.mark.parametrize("line", promises(), ids=lambda line: line.rpartition("::")[2].rstrip("`"))
def test_a_promise_is_a_sentence_with_a_test_that_exists(line: str) -> None:
    found = PROMISE.match(line)
    assert found is not None, "expected: - A sentence. `tests/path.py::test_name`"
    file, _, name = found["test"].partition("::")
    assert (ROOT / file).is_file(), f"{file} does not exist"
    assert name in names_in(ROOT / file), f"{file} has no test {name}"


def test_no_promise_is_made_twice() -> None:
    sentences = [line.rpartition(" `")[0] for line in promises()]
    assert len(set(sentences)) == len(sentences) > 50
