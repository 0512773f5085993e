"""InlineWatch: user code is judged by the time that it takes for itself."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from storm_py.engine.stuck import StuckWatch
from storm_py.inline_watch import InlineWatch, at_a_prompt
from storm_py.testing import FakeClock

COMPONENTS = {1: "echo", 2: "numbers"}
LIMIT_SECS = 30


class Looking:
    """A watch whose thread is the test."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.woken = threading.Event()
        self.watch = InlineWatch(self.woken, LIMIT_SECS, lambda text: None, self.clock)
        self.stuck = StuckWatch(COMPONENTS, LIMIT_SECS)

    def look(self, secs: float, prompt: bool = False) -> str | None:
        self.clock.advance(secs)
        return self.watch.look(self.stuck, prompt)


def test_what_takes_long_is_named() -> None:
    looking = Looking()
    looking.watch.entered("execute", 1, 2, "default", 0, 3)
    assert looking.look(29.5) is None
    assert looking.look(0.5) == (
        "echo (task 1) has been in execute, rows 0..3 of a frame from numbers (task 2) for 30 s "
        "(storm_py.stuck.secs: 30)"
    )


def test_what_has_come_back_is_not() -> None:
    looking = Looking()
    looking.watch.entered("open", 2)
    looking.watch.left()
    assert looking.look(60) is None
    assert looking.watch.activity is None


def test_time_at_a_debuggers_prompt_does_not_count() -> None:
    looking = Looking()
    looking.watch.entered("open", 2)
    assert looking.look(60, prompt=True) is None
    assert looking.look(29) is None
    assert looking.look(1) == "numbers (task 2) has been in open for 30 s (storm_py.stuck.secs: 30)"


def test_other_threads_wake_the_loop() -> None:
    looking = Looking()
    looking.watch.wake()
    assert looking.woken.is_set()


@pytest.mark.parametrize(
    ("stack", "prompt"),
    [
        ("storm_py.engine.tasks flow bdb pdb", True),
        ("storm_py.engine.tasks flow _pydevd_bundle.pydevd_frame", True),
        ("storm_py.engine.tasks flow json.decoder", False),
        ("bdb storm_py.engine.tasks flow", False),  # python -m pdb, which goes on
    ],
)
def test_a_prompt_is_a_debugger_above_the_users_code(stack: str, prompt: bool) -> None:
    def call() -> bool:
        return at_a_prompt(sys._getframe())

    for module in reversed(stack.split()):
        namespace: dict[str, Any] = {"__name__": module, "inner": call}
        exec("def call(): return inner()", namespace)
        call = namespace["call"]
    assert call() is prompt


def test_no_frame_is_no_prompt() -> None:
    assert not at_a_prompt(None)
