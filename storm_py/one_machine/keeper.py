"""Keeper: which daemon of a cluster of one machine is to be started, started again or ended.

Theory of operation. ZooKeeper comes first; once it serves all others are started together, and once
they have registered there the cluster is up. Daemons are made to fail fast: one that has died is
started again after a pause, whatever it was that killed it. One that dies several times in a row,
each time soon after its start, will not live: then the cluster ends. So it does if ZooKeeper dies
before it has ever served, as there is nothing that could have changed.

The end goes by stages, in which the next one begins when the last one is gone: supervisors, which
end their workers, then nimbus, then ZooKeeper, without which none of them could say that it is
gone. A stage that takes too long is killed, and a second interrupt kills all that is left.

Pure: names of daemons and the time are arguments. `storm_py.one_machine.run` acts.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from storm_py.errors import InvalidTransition

from .plan import NIMBUS, ZOOKEEPER

__all__ = [
    "MAX_DEATHS",
    "PAUSE_SECS",
    "QUICK_SECS",
    "Action",
    "Failure",
    "Keeper",
    "Kill",
    "Phase",
    "Say",
    "Start",
    "Terminate",
]

#: Between the death of a daemon and its next start.
PAUSE_SECS: Final = 1.0
#: A daemon that has lived for less has died at once.
QUICK_SECS: Final = 10.0
#: So many times in a row, and the cluster ends.
MAX_DEATHS: Final = 3
#: How many events are remembered for messages.
STORY: Final = 30


@dataclass(frozen=True, slots=True)
class Start:
    """Start this daemon."""

    name: str


@dataclass(frozen=True, slots=True)
class Terminate:
    """Tell this daemon to end, in order."""

    name: str


@dataclass(frozen=True, slots=True)
class Kill:
    """End this daemon by force."""

    name: str


@dataclass(frozen=True, slots=True)
class Say:
    """Tell the operator."""

    text: str


Action: TypeAlias = Start | Terminate | Kill | Say


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a cluster ended that nobody stopped."""

    name: str
    #: A sentence about the daemon of that name, without its end.
    reason: str


class Phase(enum.StrEnum):
    """Where a cluster stands."""

    NEW = "new"
    #: ZooKeeper was started and does not serve yet.
    ZOOKEEPER = "waiting for ZooKeeper"
    STARTING = "starting"
    UP = "up"
    ENDING = "ending"
    ENDED = "ended"


class _Event(enum.StrEnum):
    BEGIN = "begin"
    SERVES = "ZooKeeper serves"
    REGISTERED = "all have registered"
    EXITED = "a daemon exited"
    INTERRUPT = "interrupt"
    GIVE_UP = "a daemon will not live"
    ALL_GONE = "all daemons are gone"


_TRANSITIONS: Final[dict[Phase, dict[_Event, Phase]]] = {
    Phase.NEW: {
        _Event.BEGIN: Phase.ZOOKEEPER,
    },
    Phase.ZOOKEEPER: {
        _Event.SERVES: Phase.STARTING,
        _Event.EXITED: Phase.ZOOKEEPER,
        _Event.INTERRUPT: Phase.ENDING,
        _Event.GIVE_UP: Phase.ENDING,
    },
    Phase.STARTING: {
        _Event.REGISTERED: Phase.UP,
        _Event.EXITED: Phase.STARTING,
        _Event.INTERRUPT: Phase.ENDING,
        _Event.GIVE_UP: Phase.ENDING,
    },
    Phase.UP: {
        _Event.EXITED: Phase.UP,
        _Event.INTERRUPT: Phase.ENDING,
        _Event.GIVE_UP: Phase.ENDING,
    },
    # What was under way while the end began may still be told.
    Phase.ENDING: {
        _Event.SERVES: Phase.ENDING,
        _Event.REGISTERED: Phase.ENDING,
        _Event.EXITED: Phase.ENDING,
        _Event.INTERRUPT: Phase.ENDING,
        _Event.ALL_GONE: Phase.ENDED,
    },
    Phase.ENDED: {},
}
"""For each phase the events that it has, and where they lead."""


class Keeper:
    """The daemons of one cluster, from its start to its end."""

    __slots__ = (
        "_deadline",
        "_deaths",
        "_due",
        "_failure",
        "_forced",
        "_others",
        "_phase",
        "_stages",
        "_started_at",
        "_stop_secs",
        "_story",
    )

    def __init__(self, supervisors: Sequence[str], stop_secs: float) -> None:
        """`supervisors` are their names; each stage of the end may take `stop_secs`."""
        self._others = (NIMBUS, *supervisors)
        #: Those that are still to end, the next one last.
        self._stages: list[tuple[str, ...]] = [(ZOOKEEPER,), (NIMBUS,), tuple(supervisors)]
        self._stop_secs = stop_secs
        self._phase = Phase.NEW
        #: Of each daemon that runs.
        self._started_at: dict[str, float] = {}
        #: When a daemon that has died is to be started again.
        self._due: dict[str, float] = {}
        #: How often in a row a daemon has died at once.
        self._deaths: dict[str, int] = {}
        #: When the stage that ends is killed.
        self._deadline: float | None = None
        self._forced = False
        self._failure: Failure | None = None
        self._story: deque[str] = deque(maxlen=STORY)

    @property
    def phase(self) -> Phase:
        """Where the cluster stands."""
        return self._phase

    @property
    def failure(self) -> Failure | None:
        """Why it ended, None if somebody stopped it."""
        return self._failure

    # ---- events --------------------------------------------------------------------------------

    def begin(self, now: float) -> list[Action]:
        """Start with ZooKeeper."""
        self._event(_Event.BEGIN, now)
        return self._start(ZOOKEEPER, now)

    def zookeeper_serves(self, now: float) -> list[Action]:
        """Whoever starts now finds ZooKeeper."""
        self._event(_Event.SERVES, now)
        if self._phase is Phase.ENDING:
            return []
        return [action for name in self._others for action in self._start(name, now)]

    def registered(self, now: float) -> list[Action]:
        """Nimbus leads, and all supervisors have registered."""
        self._event(_Event.REGISTERED, now)
        return []

    def exited(self, name: str, how: str, now: float) -> list[Action]:
        """A daemon has ended; `how` is said as in "exited with code 1"."""
        self._event(_Event.EXITED, now, f"{name} {how}")
        if name not in self._started_at:
            raise InvalidTransition(f"{name} does not run and {how}; {self._told()}")
        lived_secs = now - self._started_at.pop(name)
        if self._phase is Phase.ENDING:
            return self._end_next(now)
        if self._phase is Phase.ZOOKEEPER:
            return self._give_up(Failure(name, how), now)
        deaths = self._deaths.get(name, 0) + 1 if lived_secs < QUICK_SECS else 1
        self._deaths[name] = deaths
        if deaths == MAX_DEATHS:
            reason = f"died {deaths} times in a row soon after its start; it {how}"
            return self._give_up(Failure(name, reason), now)
        self._due[name] = now + PAUSE_SECS
        return [Say(f"{name} {how}; it is started again in {PAUSE_SECS:g} s")]

    def interrupt(self, now: float) -> list[Action]:
        """Somebody wants the end; the second time by force."""
        again = self._phase is Phase.ENDING
        self._event(_Event.INTERRUPT, now)
        if not again:
            return self._end("stopping: supervisors with their workers, nimbus, ZooKeeper", now)
        if self._forced:
            return []
        self._forced = True
        return [Say("killing what still runs"), *map(Kill, self._started_at)]

    def tick(self, now: float) -> list[Action]:
        """Do what is due."""
        due = [name for name, at in self._due.items() if at <= now]
        actions = [action for name in due for action in self._start(name, now)]
        if self._deadline is not None and self._deadline <= now:
            self._deadline = None
            for name in self._stage():
                actions.append(Say(f"{name} did not end in {self._stop_secs:g} s; it is killed"))
                actions.append(Kill(name))
        return actions

    def next_timeout(self) -> float | None:
        """When `tick` should be called, None for never."""
        times = [*self._due.values(), *([] if self._deadline is None else [self._deadline])]
        return min(times, default=None)

    def check(self) -> None:
        """Assert what always holds."""
        assert not self._started_at.keys() & self._due.keys()
        assert not self._due or self._phase in (Phase.STARTING, Phase.UP)
        assert self._deadline is None or self._phase is Phase.ENDING
        if self._phase in (Phase.STARTING, Phase.UP):
            known = {*self._started_at, *self._due}
            assert known == {ZOOKEEPER, *self._others}
        if self._phase is Phase.ENDED:
            assert not self._started_at
        if self._phase is Phase.ENDING:
            assert self._stage()

    # ---- the rest ------------------------------------------------------------------------------

    def _start(self, name: str, now: float) -> list[Action]:
        self._due.pop(name, None)
        self._started_at[name] = now
        return [Start(name)]

    def _give_up(self, failure: Failure, now: float) -> list[Action]:
        self._failure = failure
        self._event(_Event.GIVE_UP, now, f"{failure.name} {failure.reason}")
        return self._end(f"{failure.name} {failure.reason}: the cluster is stopped", now)

    def _end(self, text: str, now: float) -> list[Action]:
        self._due.clear()
        return [Say(text), *self._next_stage(now)]

    def _end_next(self, now: float) -> list[Action]:
        """One of a stage is gone: the next stage begins when it was the last one."""
        return [] if self._stage() else self._next_stage(now)

    def _next_stage(self, now: float) -> list[Action]:
        while self._stages and not self._stage():
            self._stages.pop()
        self._deadline = None
        if not self._stages:
            self._event(_Event.ALL_GONE, now)
            return []
        if self._forced:  # all are killed already
            return []
        self._deadline = now + self._stop_secs
        return [Terminate(name) for name in self._stage()]

    def _stage(self) -> list[str]:
        """Those of the stage that ends which still run."""
        return [name for name in self._stages[-1] if name in self._started_at]

    def _event(self, event: _Event, now: float, what: str = "") -> None:
        self._story.append(f"{now:.3f} {self._phase}: {what or event}")
        next_phase = _TRANSITIONS[self._phase].get(event)
        if next_phase is None:
            raise InvalidTransition(
                f"{str(event)!r} cannot happen to a cluster that is {self._phase}; {self._told()}"
            )
        self._phase = next_phase

    def _told(self) -> str:
        return "what happened, oldest first: " + "; ".join(self._story)
