"""docs/groupings.md: every example runs as it stands there, and does what the page says.

What is emitted to whom is read from what `topology.debug` shows, as a reader would.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storm_py import BoltDeclarer, GroupingKind
from tests.integration.harness import Outcome, run_inline

PAGE = (Path(__file__).parent.parent / "docs" / "groupings.md").read_text(encoding="utf-8")
LINE = re.compile(r"words task (\d+) emits on stream '(\w+)' to (nobody|[\d, ]+): \['(\w+)'")

#: Per emit: the emitting task, the word, the tasks that it goes to.
Emits = list[tuple[int, str, tuple[int, ...]]]


def sections() -> dict[str, list[str]]:
    """The examples below each heading; those before the first are under ""."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^## ", f"\n{PAGE}", flags=re.MULTILINE):
        heading = "" if not found else part.splitlines()[0]
        found[heading] = re.findall(r"```python\n(.*?)```", part, re.DOTALL)
    return {heading: examples for heading, examples in found.items() if examples}


def run(heading: str) -> Outcome:
    """Run the file at the top of the page with the examples of one section."""
    names: dict[str, Any] = {"__name__": "groupings_page"}  # no module: classes travel by value
    for example in [*sections()[""], *sections()[heading]]:
        exec(compile(example, f"docs/groupings.md, {heading}", "exec"), names)
    outcome = run_inline(names["builder"], {"topology.debug": True})
    outcome.check_clean()
    return outcome


def emits(outcome: Outcome, stream: str = "default") -> Emits:
    found = [LINE.match(text) for _, _, text in outcome.seen.logs]
    return [
        (int(m[1]), m[4], () if m[3] == "nobody" else tuple(map(int, m[3].split(", "))))
        for m in found
        if m is not None and m[2] == stream
    ]


def tasks_by_word(found: Emits) -> dict[str, set[int]]:
    words: dict[str, set[int]] = {}
    for _, word, tasks in found:
        words.setdefault(word, set()).update(tasks)
    return words


def in_turn(found: Emits) -> bool:
    counts: dict[int, Counter[int]] = {}
    for emitter, _, tasks in found:
        counts.setdefault(emitter, Counter(dict.fromkeys((1, 2, 3, 4), 0))).update(tasks)
    return len(counts) == 2 and all(
        max(each.values()) - min(each.values()) <= 1 and each.total() == 13
        for each in counts.values()
    )


def one_task_for_each_word(found: Emits) -> bool:
    words = tasks_by_word(found)
    return all(len(tasks) == 1 for tasks in words.values()) and len(set.union(*words.values())) > 1


def two_tasks_for_each_word(found: Emits) -> bool:
    words = tasks_by_word(found)
    return all(len(tasks) <= 2 for tasks in words.values()) and len(words["the"]) == 2


def by_length(found: Emits) -> bool:
    words = tasks_by_word(found)
    long_ = set.union(*(words[word] for word in ("jumped", "over", "moon", "laughed")))
    return (
        words["the"] == set()
        and words["cow"] == words["and"] == words["dog"] == words["at"] == {1}
        and long_ == {2, 3, 4}
    )


CLAIMS: dict[str, Callable[[Emits], bool]] = {
    "Shuffle": in_turn,
    "Local or shuffle": in_turn,
    "None": in_turn,
    "Fields": one_task_for_each_word,
    "Partial key": two_tasks_for_each_word,
    "All": lambda found: all(tasks == (1, 2, 3, 4) for _, _, tasks in found),
    "Global": lambda found: all(tasks == (1,) for _, _, tasks in found),
    "Custom": by_length,
    "Any of them": one_task_for_each_word,
}


def test_every_section_with_an_example_is_checked() -> None:
    assert set(sections()) == {"", "Direct", *CLAIMS}


@pytest.mark.parametrize("heading", CLAIMS)
def test_an_example_does_what_the_page_says(heading: str) -> None:
    outcome = run(heading)
    found = emits(outcome)
    assert len(found) == 26
    assert CLAIMS[heading](found), found
    assert outcome.figures("count").executed == sum(len(tasks) for _, _, tasks in found)


def test_the_example_of_direct_grouping() -> None:
    outcome = run("Direct")
    assert {tasks for _, _, tasks in emits(outcome, "chosen")} == {(1,), (2,)}
    assert outcome.figures("show").executed == 26


def test_the_parts_of_a_partial_key_are_added_up() -> None:
    outcome = run("Partial key")
    # One part for each word and task that counted it.
    parts = sum(len(tasks) for tasks in tasks_by_word(emits(outcome)).values())
    assert outcome.figures("total").executed == parts


def test_the_line_of_the_last_section_is_what_debug_shows() -> None:
    shown = PAGE.rpartition("```\n")[0].rpartition("```\n")[2].strip()
    assert LINE.match(shown)
    texts = [text for _, _, text in run("Fields").seen.logs]
    assert shown in texts


def test_every_method_and_every_kind_is_on_the_page() -> None:
    methods = {name for name in vars(BoltDeclarer) if name.endswith("grouping")}
    methods = {name for name in methods if not name.startswith("_")}
    assert len(methods) == len(GroupingKind) + 1  # and `grouping` itself
    assert not [name for name in methods if f"`{name}`" not in PAGE]
    table = re.findall(r"^\| \[`(\w+)`\]\(#([\w-]+)\)", PAGE, re.MULTILINE)
    assert {name for name, _ in table} == methods - {"grouping"}
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert {anchor for _, anchor in table} <= anchors
