"""Calls: each one that was taken is made, each one that is not is refused, when it closes too."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from storm_py.engine.calls import Calls
from tests.builders import FakeWatch

#: Lines that `Calls.add` comes to.
LINES = 7


def add_interrupted(
    line: int, interrupt: Callable[[], object], calls: Calls, function: Callable[..., object]
) -> bool:
    """Add a call, and do something else ahead of a line of `add`, as if threads switched there.

    Lines count from 0, as they come; nothing is done ahead of one that is not come to.
    """
    lines = itertools.count()

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code is not Calls.add.__code__:
            return None
        if event == "line" and next(lines) == line:
            interrupt()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return calls.add("count", 1, function, ("then",))
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("line", range(LINES))
def test_one_that_comes_while_it_closes_is_made_or_refused(line: int) -> None:
    calls = Calls(FakeWatch())
    made: list[str] = []
    taken = add_interrupted(line, calls.close, calls, made.append)
    assert made == (["then"] if taken else [])


def test_that_test_interrupts_every_line() -> None:
    done: list[int] = []
    for line in range(LINES + 2):
        add_interrupted(line, partial(done.append, line), Calls(FakeWatch()), done.append)
    assert done == list(range(LINES))


def test_one_that_raises_at_the_end_does_not_keep_the_others_from_being_made() -> None:
    calls = Calls(FakeWatch())
    made: list[str] = []
    for function, arg in ((made.append, "a"), (int, "storm"), (made.append, "b"), (int, "py")):
        calls.add("count", 1, function, (arg,))
    errors = [str(error.error) for error in calls.close()]
    assert made == ["a", "b"]
    assert [error.rpartition(": ")[2] for error in errors] == ["'storm'", "'py'"]
