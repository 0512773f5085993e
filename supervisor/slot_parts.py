"""What a slot's machine is made of: where it is, its deadlines, and its code.

Pure. The machine is `storm_py.supervisor.slot`, its worker `storm_py.supervisor.slot_worker`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum
from typing import Final

from storm_py.errors import InvalidTransition

from .assignment import Code
from .slot_actions import Localize, Release
from .slot_states import TRANSITIONS, KillReason, MachineState, Step

#: Seconds until a code that could not be localised is tried again, the first, second, ... time in
#: a row; the last repeats. The first is Storm's. What is damaged may be large, and stays damaged.
RETRY_SECS: Final = (3.0, 3.0, 3.0, 5.0, 10.0, 20.0, 30.0)
#: Events and steps that InvalidTransition tells of.
STORY: Final = 30


class Course:
    """The state of a machine, and what led to it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._state = MachineState.EMPTY
        self._story: deque[str] = deque(maxlen=STORY)

    @property
    def state(self) -> MachineState:
        """Where it is."""
        return self._state

    def event(self, text: str, now: float) -> None:
        """Remember what happened."""
        self._story.append(f"{now:.3f} {self._state.name}: {text}")

    def go(self, step: Step | KillReason) -> None:
        """Go on, if there is such a way; InvalidTransition if there is not."""
        state = TRANSITIONS[self._state].get(step)
        if state is None:
            raise self.refusal(f"no transition for {step.name} in state {self._state.name}")
        if state is not self._state:
            self._story.append(f"  {step.name}: {self._state.name} -> {state.name}")
            self._state = state

    def refusal(self, text: str) -> InvalidTransition:
        """What to raise where this must not be; it tells what came before."""
        story = "\n".join(self._story)
        return InvalidTransition(f"{self._name}: {text}; what came before:\n{story}")


class Timer(Enum):
    """What may become due, besides a code that is to be asked for again."""

    #: A worker that was launched has not come up.
    START = "START"
    #: A worker that was up is silent.
    HEARTBEAT = "HEARTBEAT"
    #: A worker does not follow the version that it was told of.
    ACKNOWLEDGE = "ACKNOWLEDGE"
    #: It is to be told again.
    TELL = "TELL"
    #: A worker is well.
    HEALTHY = "HEALTHY"
    #: What is being ended is still there: KILL.
    FORCE = "FORCE"
    #: It is still there after many of them.
    HOPELESS = "HOPELESS"
    #: A worker that keeps dying may be launched again.
    RELAUNCH = "RELAUNCH"


class Deadlines:
    """When what becomes due. When the clock goes back they go with it."""

    def __init__(self) -> None:
        self._at: dict[Timer | Code, float] = {}
        self._now: float | None = None

    def time(self, now: float) -> None:
        """It is now `now`: if that is before what it was, what is left of each stays the same."""
        if self._now is not None and now < self._now:
            back_secs = self._now - now
            self._at = {name: at - back_secs for name, at in self._at.items()}
        self._now = now

    def start(self, name: Timer | Code, at: float) -> None:
        """Begin, or begin anew."""
        self._at[name] = at

    def stop(self, *names: Timer | Code) -> bool:
        """Forget these, if they run: whether any of them did."""
        stopped = [self._at.pop(name) for name in names if name in self._at]
        return bool(stopped)

    def __contains__(self, name: Timer | Code) -> bool:
        return name in self._at

    def __iter__(self) -> Iterator[Timer | Code]:
        return iter(self._at)

    def pop_due(self, now: float) -> Iterator[Timer | Code]:
        """Each that is due, and stop it; one that the caller stops meanwhile does not come."""
        due = sorted((at, str(name), name) for name, at in self._at.items() if at <= now)
        for at, _, name in due:
            if self._at.get(name) == at:
                del self._at[name]
                yield name

    def next(self) -> float | None:
        """When the next is due."""
        return min(self._at.values(), default=None)

    def only(self, name: Timer) -> bool:
        """Whether none runs but this one, and those of code."""
        return all(isinstance(each, Code) or each is name for each in self._at)


class HeldCode:
    """The code that a slot wants or uses: each is asked for once, and given back once."""

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        #: whether each is on the disk
        self._ready: dict[Code, bool] = {}
        #: how often in a row each could not be had
        self._failures: dict[Code, int] = {}

    def need(self, needed: set[Code], wanted: Code | None) -> list[Localize | Release]:
        """Give back what is not needed; ask for what is wanted, one of the needed ones."""
        actions: list[Localize | Release] = []
        for code in [code for code in self._ready if code not in needed]:
            del self._ready[code]
            self._failures.pop(code, None)
            if not self._deadlines.stop(code):
                actions.append(Release(code))
        if wanted is not None and wanted not in self._ready:
            self._ready[wanted] = False
            actions.append(Localize(wanted))
        return actions

    def awaits(self, code: Code) -> bool:
        """Whether this was asked for, and there was no answer."""
        return self._ready.get(code) is False and code not in self._deadlines

    def arrived(self, code: Code) -> None:
        """It is on the disk."""
        self._ready[code] = True
        self._failures.pop(code, None)

    def failed(self, code: Code, now: float) -> None:
        """It is not, and nothing is held: `storm_py.supervisor.slot` asks when the time is over."""
        failures = self._failures.get(code, 0)
        self._failures[code] = failures + 1
        self._deadlines.start(code, now + RETRY_SECS[min(failures, len(RETRY_SECS) - 1)])

    def is_ready(self, code: Code) -> bool:
        """Whether a worker can run it."""
        return self._ready.get(code, False)

    def check(self, needed: set[Code], wanted: Code | None) -> None:
        """Assert that it holds what it should and tries only for what is missing."""
        assert self._ready.keys() <= needed
        assert wanted is None or wanted in self._ready
        for name in self._deadlines:
            assert not isinstance(name, Code) or self._ready[name] is False
