"""Every Python example in the documentation runs.

A block that begins with ```` ```python run ```` is run, after the marked blocks before it on its
page, as if all of them were one file; its own functions named `test_...` are then called.
Unmarked blocks are for reading. README.md and every page in docs/ are looked at.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent

_BLOCK = re.compile(r"^```python run\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """One marked block; `line` is the line of its first statement."""

    page: Path
    line: int
    code: str

    def run(self, names: dict[str, Any]) -> None:
        """Execute the block; tracebacks name the line on the page."""
        # A statement's line is counted from the top of the page.
        exec(compile("\n" * (self.line - 1) + self.code, str(self.page), "exec"), names)


def examples_of(page: Path) -> list[Example]:
    """The marked blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Example(page, text.count("\n", 0, match.start(1)) + 1, match[1])
        for match in _BLOCK.finditer(text)
    ]


def pages() -> list[Path]:
    """README.md and docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def run_example(example: Example) -> int:
    """Run an example behind those before it; the number of tests it held."""
    names: dict[str, Any] = {"__name__": "an_example"}
    for earlier in examples_of(example.page):
        if earlier.line < example.line:
            earlier.run(names)
    known = {id(value) for value in names.values()}
    example.run(names)
    tests = [
        value
        for name, value in names.items()
        if name.startswith("test_") and callable(value) and id(value) not in known
    ]
    for test in tests:
        test()
    return len(tests)


EXAMPLES = [example for page in pages() for example in examples_of(page)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{each.page.name}:{each.line}")
def test_example_runs(example: Example) -> None:
    run_example(example)


def test_the_tests_that_users_are_shown_are_short() -> None:
    """A bolt, a spout and a whole topology are tested in less than ten lines each."""
    code = "\n".join(each.code for each in examples_of(ROOT / "docs" / "testing.md"))
    lines = {
        node.name: (node.end_lineno or 0) - node.lineno + 1
        for node in ast.parse(code).body
        if isinstance(node, ast.FunctionDef)
    }
    for name in ("test_split", "test_lines_are_replayed", "test_word_count"):
        assert lines[name] < 10


def page_of(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_an_example_that_fails_is_noticed_with_its_line(tmp_path: Path) -> None:
    page = page_of(tmp_path, "# Page\n\n```python run\nx = 1\n\ndef test_x():\n    1 / 0\n```\n")
    [example] = examples_of(page)
    with pytest.raises(ZeroDivisionError) as raised:
        run_example(example)
    assert (raised.traceback[-1].path, raised.traceback[-1].lineno + 1) == (page, 7)


def test_examples_build_on_those_before_and_call_only_their_own_tests(tmp_path: Path) -> None:
    block = "```python run\n{}\n```\n"
    first = "calls = []\ndef test_one(): calls.append(1)"
    second = "def test_two():\n    calls.append(2)\n    assert calls == [2]"
    page = page_of(tmp_path, block.format(first) + block.format(second))
    assert [run_example(example) for example in examples_of(page)] == [1, 1]


def test_unmarked_blocks_are_for_reading(tmp_path: Path) -> None:
    assert examples_of(page_of(tmp_path, "```python\n1 / 0\n```\n```sh\nexit 1\n```\n")) == []
