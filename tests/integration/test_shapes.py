"""Topologies of many shapes end by themselves with every tuple where it belongs."""

from __future__ import annotations

import pytest

from tests.integration.harness import Outcome, run_local
from tests.integration.topologies_for_tests import shapes
from tests.integration.topologies_for_tests.shapes import TOTAL

pytestmark = pytest.mark.variants

SUM = TOTAL * (TOTAL - 1) // 2


def sinks(outcome: Outcome, tasks: int) -> list[dict[str, int]]:
    """The reports of the sink's tasks, of which each must have heard of the end once."""
    reports = outcome.reports("sink")
    assert len(reports) == len({report["task"] for report in reports}) == tasks
    return reports


def check_total(outcome: Outcome, tasks: int, spouts: int) -> None:
    """Everything that the spouts emitted has reached the sink once."""
    outcome.check_clean()
    reports = sinks(outcome, tasks)
    assert sum(report["count"] for report in reports) == spouts * TOTAL
    assert sum(report["sum"] for report in reports) == spouts * SUM


@pytest.mark.parametrize("workers", [1, 2])
def test_chain(workers: int) -> None:
    outcome = run_local(shapes.chain(6), workers)
    check_total(outcome, tasks=2, spouts=2)
    for i in range(1, 6):
        assert outcome.figures(f"bolt{i}").executed == 2 * TOTAL


@pytest.mark.parametrize("workers", [1, 2])
def test_diamond(workers: int) -> None:
    outcome = run_local(shapes.diamond(), workers)
    outcome.check_clean()
    reports = sinks(outcome, 2)
    sources = [report["sources"] for report in reports]
    assert [source["numbers"] for source in sources] == [2 * TOTAL, 2 * TOTAL]  # type: ignore[index]
    assert sum(source["short"] for source in sources) == 2 * TOTAL  # type: ignore[index]
    assert sum(source["longer"] for source in sources) == 2 * TOTAL  # type: ignore[index]


def test_two_streams_of_one_component() -> None:
    outcome = run_local(shapes.two_streams(), workers=2)
    outcome.check_clean()
    even = len(range(0, TOTAL, 3))
    odd = len(range(1, TOTAL, 3))
    assert outcome.figures("numbers").emitted == 2 * TOTAL
    assert outcome.figures("sink").executed == 2 * (even + 3 * odd)


@pytest.mark.parametrize("workers", [1, 2])
def test_more_tasks_than_executors(workers: int) -> None:
    outcome = run_local(shapes.many_tasks(), workers)
    check_total(outcome, tasks=8, spouts=5)
    opened = outcome.reports("opened")
    assert len({report["task"] for report in opened}) == len(opened) == 7 + 8
    assert len({report["pid"] for report in opened}) == 2 + 3
    assert [outcome.figures(c).executors for c in ("numbers", "relay", "sink")] == [2, 2, 3]
    assert [outcome.figures(c).tasks for c in ("numbers", "relay", "sink")] == [5, 7, 8]


def test_an_executor_with_a_hundred_tasks() -> None:
    outcome = run_local(shapes.one_executor_with_many_tasks(100))
    check_total(outcome, tasks=100, spouts=100)
    assert len({report["pid"] for report in outcome.reports("opened")}) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_no_input_at_all(workers: int) -> None:
    outcome = run_local(shapes.empty(), workers)
    outcome.check_clean()
    assert [report["count"] for report in sinks(outcome, 2)] == [0, 0]


def test_one_of_two_inputs_is_empty() -> None:
    outcome = run_local(shapes.partly_empty())
    check_total(outcome, tasks=2, spouts=1)
    assert outcome.figures("unread").emitted == TOTAL


def test_no_bolt() -> None:
    outcome = run_local(shapes.lonely_spout())
    outcome.check_clean()
    assert outcome.figures("numbers").emitted == 2 * TOTAL


@pytest.mark.parametrize(
    "names",
    [
        ("with a space", "größe\N{SNOWMAN}", "a/b", "strange stream"),
        ("..", ".", "-", "default"),
        ("a:b", "c%2Fd", "e\\f", "st/re am"),
        ("'quoted\"", "new\nline", "tab\t", "$HOME"),
        ("x" * 300, "ü" * 100, "CON", "s" * 300),
    ],
    ids=["words", "dots", "separators", "quotes", "long"],
)
def test_names_of_components_and_streams(names: tuple[str, str, str, str]) -> None:
    """A name is any str: it becomes part of the names of files, of messages and of JSON."""
    outcome = run_local(shapes.named(*names), workers=2)
    check_total(outcome, tasks=2, spouts=2)
    assert {report["component"] for report in outcome.reports("opened")} == set(names[1:3])
    sources = {source for source, line in outcome.seen.lines if '"sink"' in line}
    assert {source.rpartition(" (task ")[0] for source in sources} == {names[2]}
