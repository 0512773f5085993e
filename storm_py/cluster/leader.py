"""LeaderPolicy: what a nimbus may do, given its connection and what the election said.

Theory of operation. Between *suspended* and either *connected* or *lost* nobody knows whether
another one leads already: whoever was elected does nothing until it knows (`Pause`), and goes on if
its session has survived (`Lead`). A lost session loses the election with it (`StepDown`). Elections
are told by other threads than connections: one that is told while there is no session was that of
the session before and is worth nothing.

Pure: events in, actions out. `storm_py.cluster.latch` elects, `storm_py.cluster.base` has the
states of a connection, nimbus acts.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass
from typing import Final, TypeAlias

__all__ = ["Action", "Lead", "LeaderPolicy", "LeaderStatistics", "Pause", "StepDown"]

#: How many events are remembered.
_STORY_EVENTS: Final = 50


@dataclass(frozen=True, slots=True)
class Lead:
    """Act as the leader from now on."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Decide and write nothing until the next action; keep what is known."""


@dataclass(frozen=True, slots=True)
class StepDown:
    """Lead no more: forget what only a leader knows."""


Action: TypeAlias = Lead | Pause | StepDown


class _State(enum.Enum):
    """Connection and election, as far as they matter."""

    LOST = enum.auto()
    FOLLOWING = enum.auto()
    LEADING = enum.auto()
    #: Suspended; it led before.
    PAUSED = enum.auto()
    #: Suspended; it was elected, but has not led yet.
    ELECTED = enum.auto()
    #: Suspended, not elected.
    SUSPENDED = enum.auto()


class _Event(enum.StrEnum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"
    ELECTED = "elected"
    DEPOSED = "deposed"


_TRANSITIONS: Final[dict[_State, dict[_Event, tuple[_State, tuple[Action, ...]]]]] = {
    _State.LOST: {
        _Event.CONNECTED: (_State.FOLLOWING, ()),
        _Event.SUSPENDED: (_State.LOST, ()),
        _Event.LOST: (_State.LOST, ()),
        _Event.ELECTED: (_State.LOST, ()),
        _Event.DEPOSED: (_State.LOST, ()),
    },
    _State.FOLLOWING: {
        _Event.CONNECTED: (_State.FOLLOWING, ()),
        _Event.SUSPENDED: (_State.SUSPENDED, ()),
        _Event.LOST: (_State.LOST, ()),
        _Event.ELECTED: (_State.LEADING, (Lead(),)),
        _Event.DEPOSED: (_State.FOLLOWING, ()),
    },
    _State.LEADING: {
        _Event.CONNECTED: (_State.LEADING, ()),
        _Event.SUSPENDED: (_State.PAUSED, (Pause(),)),
        _Event.LOST: (_State.LOST, (StepDown(),)),
        _Event.ELECTED: (_State.LEADING, ()),
        _Event.DEPOSED: (_State.FOLLOWING, (StepDown(),)),
    },
    _State.PAUSED: {
        _Event.CONNECTED: (_State.LEADING, (Lead(),)),
        _Event.SUSPENDED: (_State.PAUSED, ()),
        _Event.LOST: (_State.LOST, (StepDown(),)),
        _Event.ELECTED: (_State.PAUSED, ()),
        _Event.DEPOSED: (_State.SUSPENDED, (StepDown(),)),
    },
    _State.ELECTED: {
        _Event.CONNECTED: (_State.LEADING, (Lead(),)),
        _Event.SUSPENDED: (_State.ELECTED, ()),
        _Event.LOST: (_State.LOST, ()),
        _Event.ELECTED: (_State.ELECTED, ()),
        _Event.DEPOSED: (_State.SUSPENDED, ()),
    },
    _State.SUSPENDED: {
        _Event.CONNECTED: (_State.FOLLOWING, ()),
        _Event.SUSPENDED: (_State.SUSPENDED, ()),
        _Event.LOST: (_State.LOST, ()),
        _Event.ELECTED: (_State.ELECTED, ()),
        _Event.DEPOSED: (_State.SUSPENDED, ()),
    },
}
"""For each state and event the next state and what to do: any event may come at any time."""


@dataclass(frozen=True, slots=True)
class LeaderStatistics:
    """What happened so far."""

    leads: bool
    #: How often it began to lead; going on after a pause does not count.
    terms: int
    #: The last events, oldest first, each with the state it led to.
    story: tuple[str, ...]


class LeaderPolicy:
    """One nimbus; it starts without a connection."""

    def __init__(self) -> None:
        self._state = _State.LOST
        self._terms = 0
        self._story: deque[str] = deque(maxlen=_STORY_EVENTS)

    def connected(self) -> list[Action]:
        """There is a connection: the first, or one to the same session, or to a new one."""
        return self._handle(_Event.CONNECTED)

    def suspended(self) -> list[Action]:
        """The connection broke."""
        return self._handle(_Event.SUSPENDED)

    def lost(self) -> list[Action]:
        """The session is over."""
        return self._handle(_Event.LOST)

    def elected(self) -> list[Action]:
        """The election chose this one."""
        return self._handle(_Event.ELECTED)

    def deposed(self) -> list[Action]:
        """The election does not choose this one any more."""
        return self._handle(_Event.DEPOSED)

    @property
    def leads(self) -> bool:
        """Whether this one may act as the leader."""
        return self._state == _State.LEADING

    def statistics(self) -> LeaderStatistics:
        """What happened so far."""
        return LeaderStatistics(self.leads, self._terms, tuple(self._story))

    def check(self) -> None:
        """Assert that the table is whole, and that who leads has begun to."""
        assert all(set(row) == set(_Event) for row in _TRANSITIONS.values())
        assert set(_TRANSITIONS) == set(_State)
        assert self._terms or self._state not in (_State.LEADING, _State.PAUSED)

    def _handle(self, event: _Event) -> list[Action]:
        before = self._state
        self._state, actions = _TRANSITIONS[before][event]
        if self._state == _State.LEADING and before in (_State.FOLLOWING, _State.ELECTED):
            self._terms += 1
        self._story.append(f"{event} -> {self._state.name}")
        return list(actions)
