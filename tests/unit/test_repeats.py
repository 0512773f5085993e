"""Repeats: the same error, from any task of a component, is counted as it comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storm_py.cli.repeats import Repeats, grouped, ordinal
from storm_py.wire.control import ErrorReport

ERROR = ErrorReport("split", 3, "execute", "ValueError: bad", "a traceback", True)


def test_the_same_from_any_task_counts_on() -> None:
    repeats = Repeats()
    assert [repeats.count(replace(ERROR, task=task)) for task in (3, 3, 4)] == [1, 2, 3]


@pytest.mark.parametrize(
    "other",
    [
        replace(ERROR, component="count"),
        replace(ERROR, where="prepare"),
        replace(ERROR, message="ValueError: worse"),
        replace(ERROR, traceback="another one"),
    ],
)
def test_what_differs_is_another_error(other: ErrorReport) -> None:
    repeats = Repeats()
    repeats.count(ERROR)
    assert repeats.count(other) == 1


def restarted(task: int, process: int, rows: str) -> str:
    return f"split (task {task}) was restarted (process {process} died in execute, {rows}); lost"


def test_sentences_that_differ_in_processes_and_rows_only_are_one() -> None:
    sentences = [
        restarted(3, 100, "row 5"),
        "the run was stopped",
        restarted(4, 101, "row 5"),
        restarted(3, 102, "rows 5..7"),
        restarted(3, 203, "row 8"),
    ]
    assert grouped(sentences) == [
        f"{restarted(3, 100, 'row 5')} (3 times like this)",
        "the run was stopped",
        restarted(4, 101, "row 5"),
    ]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "1st 2nd 3rd 4th"),
        (10, "10th 11th 12th 13th 14th"),
        (20, "20th 21st 22nd 23rd 24th"),
        (110, "110th 111th 112th 113th 114th"),
        (1020, "1,020th 1,021st 1,022nd 1,023rd"),
    ],
)
def test_how_often(number: int, words: str) -> None:
    assert [ordinal(number + n) for n in range(len(words.split()))] == words.split()
