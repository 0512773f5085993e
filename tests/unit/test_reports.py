"""Errors as they are stored of a topology: what they say, once."""

from __future__ import annotations

import pytest

from storm_py.engine.reports import error_text
from storm_py.wire.control import ErrorReport

FRAMES = 'Traceback (most recent call last):\n  File "flow.py", line 9, in execute\n    x / 0'


@pytest.mark.parametrize(
    ("message", "traceback", "text"),
    [
        ("ValueError: no", f"{FRAMES}\nValueError: no\n", f"ValueError: no\n{FRAMES}"),
        ("Mine: no", f"{FRAMES}\nflow.errors.Mine: no\n", f"Mine: no\n{FRAMES}"),
        ("Mine: a\nb", f"{FRAMES}\nMine: a\nb\n", f"Mine: a\nb\n{FRAMES}"),
        ("KeyError:", f"{FRAMES}\nKeyError\n", f"KeyError:\n{FRAMES}"),
        ("it ended", "", "it ended"),
        ("no", f"{FRAMES}\nValueError: no", f"no\n{FRAMES}\nValueError: no"),
        ("", FRAMES, f"\n{FRAMES}"),
        ("ValueError: no", "ValueError: no", "ValueError: no"),
    ],
)
def test_what_is_stored(message: str, traceback: str, text: str) -> None:
    report = ErrorReport("count", 7, "execute", message, traceback, False)
    assert error_text(report) == f"task 7, execute: {text}"
