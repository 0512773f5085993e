"""Names user code that does not come back, in a run of one thread.

There the loop itself stands still, so a thread of its own looks on. It is `storm_py.engine.stuck`
that judges; with processes a worker asks it (`storm_py.runtime.worker`). A debugger's prompt is no
user code: the time there does not count.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final

from storm_py.engine.port import Watch
from storm_py.engine.stuck import Activity, StuckWatch

__all__ = ["InlineWatch", "at_a_prompt"]

_LONGEST_PAUSE_SECS: Final = 1.0
_DEBUGGERS: Final = frozenset({"bdb", "pdb", "pydevd", "_pydevd_bundle", "debugpy"})


class InlineWatch(Watch):
    """Notes what the cores enter; `woken` ends the sleep of their loop.

    `warn` is called with what there is to say, on the thread that looks on.
    """

    def __init__(
        self,
        woken: threading.Event,
        limit_secs: float,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.wake = woken.set  # type: ignore[method-assign]
        self._limit_secs = limit_secs
        self._warn = warn
        self._clock = clock
        self._entry: tuple[float, str, int, int, str, int, int] | None = None

    def entered(
        self, what: str, task: int, source: int = 0, stream: str = "", first: int = 0, last: int = 0
    ) -> None:
        """User code begins to run, as `Activity` says."""
        self._entry = (self._clock(), what, task, source, stream, first, last)

    def left(self) -> None:
        """It has come back."""
        self._entry = None

    @property
    def activity(self) -> Activity | None:
        """What user code runs, None for none."""
        entry = self._entry
        return None if entry is None else Activity(*entry)

    def look(self, stuck: StuckWatch, prompt: bool) -> str | None:
        """What there is to say now; with `prompt` user code waits for somebody at a debugger."""
        entry = self._entry
        if prompt and entry is not None:
            self._entry = (self._clock(), *entry[1:])
        return stuck.look(0, self.activity, self._clock())

    @contextmanager
    def watching(self, components: Mapping[int, str]) -> Iterator[None]:
        """Look on from another thread at what the calling one does in here."""
        over = threading.Event()
        stuck = StuckWatch(components, self._limit_secs)
        watched = threading.get_ident()
        pause_secs = min(_LONGEST_PAUSE_SECS, self._limit_secs / 4)

        def look_on() -> None:
            # Two signals at once are not both the main thread's, and what the system gives to this
            # one does not end a wait of user code.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while not over.wait(pause_secs):
                text = self.look(stuck, at_a_prompt(sys._current_frames().get(watched)))
                if text is not None:
                    self._warn(text)

        thread = threading.Thread(target=look_on, name="storm-py stuck", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def at_a_prompt(frame: FrameType | None) -> bool:
    """Whether what runs is a debugger, called from user code; not one around the whole run."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in _DEBUGGERS:
            return True
        if package == "storm_py":
            return False
        frame = frame.f_back
    return False
