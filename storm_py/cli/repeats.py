"""Repeats: what is said again and again is said in full only once.

A mistake that stays raises the same at each restart, in each task of its component.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from storm_py.wire.control import ErrorReport

_NUMBERS: Final = re.compile(r"\bprocess \d+|\brows? \d+(\.\.\d+)?")
_SUFFIXES: Final = {1: "st", 2: "nd", 3: "rd"}


class Repeats:
    """The errors of one run."""

    def __init__(self) -> None:
        # Hashes only: a run may go on for weeks.
        self._seen: Counter[int] = Counter()

    def count(self, error: ErrorReport) -> int:
        """How often this error has come, this time included; whichever task of the component."""
        same = hash((error.component, error.where, error.message, error.traceback))
        self._seen[same] += 1
        return self._seen[same]


def grouped(sentences: Iterable[str]) -> list[str]:
    """One sentence for all that differ in numbers of processes and of rows only: the first."""
    found: dict[str, list[str]] = {}
    for sentence in sentences:
        found.setdefault(_NUMBERS.sub("", sentence), []).append(sentence)
    return [
        same[0] if len(same) == 1 else f"{same[0]} ({len(same):,} times like this)"
        for same in found.values()
    ]


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`, `23rd`."""
    teens = number % 100 in (11, 12, 13)
    return f"{number:,}{'th' if teens else _SUFFIXES.get(number % 10, 'th')}"
