"""TopologyLifecycle: what may happen to a topology, and what follows from it.

Theory of operation. A topology is ACTIVE or INACTIVE. To kill or rebalance it, Nimbus first lets it
finish what is under way: it becomes KILLED or REBALANCING, in which spouts emit nothing, and only
after a wait it is removed, or rebalanced and then what it was before. `TRANSITIONS` says which
event leads where, and is Storm's table. Two kinds of events: a user's, which is refused if the
table does not have it, and the system's own, which then does nothing.

All that has to outlive Nimbus is a `TopologyState`, stored as part of the topology's StormBase
before anything else is done. What is not stored is the time at which the wait ends: a new leader
begins the wait anew, as Storm's does, on GAIN_LEADERSHIP. A second kill begins the wait anew as
well. (Storm keeps the timer of the first one too, so that there the shorter wait wins.)

Waits are in seconds: `wait_secs` of the options, or else topology.message.timeout.secs; a negative
one counts as none, as in Storm. Pure: time is an argument; storing and timers are the driver's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias

from storm_py.cluster.records import TopologyStatus
from storm_py.errors import InvalidTransition

#: How many events of a topology are remembered for messages.
STORY: Final = 20


class TopologyAction(StrEnum):
    """Storm's words for the events of a topology."""

    GAIN_LEADERSHIP = "GAIN_LEADERSHIP"
    INACTIVATE = "INACTIVATE"
    ACTIVATE = "ACTIVATE"
    REBALANCE = "REBALANCE"
    KILL = "KILL"
    DO_REBALANCE = "DO_REBALANCE"
    REMOVE = "REMOVE"


FROM_USERS: Final = frozenset(
    {
        TopologyAction.ACTIVATE,
        TopologyAction.INACTIVATE,
        TopologyAction.REBALANCE,
        TopologyAction.KILL,
    }
)


@dataclass(frozen=True, slots=True)
class KillOptions:
    """How to kill a topology; None for the default."""

    wait_secs: int | None = None


@dataclass(frozen=True, slots=True)
class RebalanceOptions:
    """What to change about a topology; None for what stays, `num_executors` by component."""

    wait_secs: int | None = None
    num_workers: int | None = None
    num_executors: Mapping[str, int] = field(default_factory=dict)


Options: TypeAlias = KillOptions | RebalanceOptions | None


@dataclass(frozen=True, slots=True)
class TopologyState:
    """What is stored of a topology's life.

    While REBALANCING there is the status that it had before, and what was asked for; while KILLED
    how it was asked for. `wait_secs` of stored options is the wait that was begun.
    """

    status: TopologyStatus
    previous: TopologyStatus | None = None
    options: Options = None

    def __post_init__(self) -> None:
        kind = _OPTIONS.get(self.status, type(None))
        previous = _RUNNING if self.status is TopologyStatus.REBALANCING else (None,)
        if not isinstance(self.options, kind) or self.previous not in previous:
            raise ValueError(f"no topology can be in this state: {self}")


_RUNNING: Final = (TopologyStatus.ACTIVE, TopologyStatus.INACTIVE)
_OPTIONS: Final[Mapping[TopologyStatus, type]] = MappingProxyType(
    {TopologyStatus.REBALANCING: RebalanceOptions, TopologyStatus.KILLED: KillOptions}
)


@dataclass(frozen=True, slots=True)
class SetStatus:
    """Store this as the state of the topology, then tell its workers."""

    state: TopologyState


@dataclass(frozen=True, slots=True)
class Schedule:
    """A wait has begun, at the end of which `action` happens; any wait before it has ended.

    `next_timeout` says the same; this is for the log and for those who asked.
    """

    at: float
    action: TopologyAction


@dataclass(frozen=True, slots=True)
class DoRebalance:
    """Give the topology its new executors and workers."""

    options: RebalanceOptions


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the topology: its assignment, its state and its blobs."""


Action: TypeAlias = SetStatus | Schedule | DoRebalance | Remove


class TopologyLifecycle:
    """The life of one topology, as of the state that is stored of it.

    A leader makes one for each topology and begins with `gain_leadership`; the one that submits a
    topology makes it ACTIVE or INACTIVE. Whoever ceases to lead drops it.
    """

    __slots__ = ("_due", "_id", "_message_timeout_secs", "_now", "_removed", "_state", "_story")

    def __init__(self, topology_id: str, state: TopologyState, message_timeout_secs: int) -> None:
        self._id = topology_id
        self._state = state
        self._message_timeout_secs = message_timeout_secs
        self._due: Schedule | None = None
        self._removed = False
        self._now = 0.0
        self._story: deque[str] = deque(maxlen=STORY)

    @property
    def state(self) -> TopologyState:
        """What is, or should be, stored."""
        return self._state

    @property
    def removed(self) -> bool:
        """Whether the topology is no more."""
        return self._removed

    # ---- a user's events -----------------------------------------------------------------------

    def activate(self, now: float) -> list[Action]:
        """Let the spouts emit."""
        return self._event(TopologyAction.ACTIVATE, None, now)

    def inactivate(self, now: float) -> list[Action]:
        """Let the spouts emit nothing."""
        return self._event(TopologyAction.INACTIVATE, None, now)

    def rebalance(self, options: RebalanceOptions, now: float) -> list[Action]:
        """Change workers and executors after a wait; the options have been checked."""
        return self._event(TopologyAction.REBALANCE, options, now)

    def kill(self, options: KillOptions, now: float) -> list[Action]:
        """Remove the topology after a wait."""
        return self._event(TopologyAction.KILL, options, now)

    # ---- the system's events -------------------------------------------------------------------

    def gain_leadership(self, now: float) -> list[Action]:
        """This Nimbus leads from now on."""
        return self._event(TopologyAction.GAIN_LEADERSHIP, None, now)

    def do_rebalance(self, now: float) -> list[Action]:
        """The wait before a rebalance is over, whatever the time."""
        return self._event(TopologyAction.DO_REBALANCE, None, now)

    def remove(self, now: float) -> list[Action]:
        """The wait before the removal is over, whatever the time."""
        return self._event(TopologyAction.REMOVE, None, now)

    def tick(self, now: float) -> list[Action]:
        """Do what is due."""
        if self._due is None or now < self._due.at:
            return []
        return self._event(self._due.action, None, now)

    def next_timeout(self) -> float | None:
        """When `tick` should be called, None for never."""
        return None if self._due is None else self._due.at

    # ---- how -----------------------------------------------------------------------------------

    def _event(self, action: TopologyAction, options: Options, now: float) -> list[Action]:
        self._now = now
        status = self._state.status
        transition = None if self._removed else TRANSITIONS[status].get(action)
        if transition is None:
            if action in FROM_USERS:
                raise InvalidTransition(self._refusal(action))
            return []
        actions = transition(self, options)
        became = "removed" if self._removed else self._state.status
        self._story.append(f"{now:.3f} {action}: {status} -> {became}")
        return actions

    def _stay(self, options: Options) -> list[Action]:
        return []

    def _become_active(self, options: Options) -> list[Action]:
        return self._become(TopologyState(TopologyStatus.ACTIVE))

    def _become_inactive(self, options: Options) -> list[Action]:
        return self._become(TopologyState(TopologyStatus.INACTIVE))

    def _become(self, state: TopologyState) -> list[Action]:
        self._state = state
        return [SetStatus(state)]

    def _begin_rebalance(self, options: Options) -> list[Action]:
        assert isinstance(options, RebalanceOptions)
        options = replace(options, wait_secs=self._wait_secs(options))
        state = TopologyState(TopologyStatus.REBALANCING, self._state.status, options)
        return self._become(state) + self._wait(options)

    def _begin_kill(self, options: Options) -> list[Action]:
        assert isinstance(options, KillOptions)
        options = KillOptions(self._wait_secs(options))
        return self._become(TopologyState(TopologyStatus.KILLED, None, options)) + self._wait(
            options
        )

    def _wait_again(self, options: Options) -> list[Action]:
        stored = self._state.options
        assert stored is not None
        return self._wait(stored)

    def _wait(self, options: KillOptions | RebalanceOptions) -> list[Action]:
        killing = isinstance(options, KillOptions)
        action = TopologyAction.REMOVE if killing else TopologyAction.DO_REBALANCE
        self._due = Schedule(self._now + self._wait_secs(options), action)
        return [self._due]

    def _wait_secs(self, options: KillOptions | RebalanceOptions) -> int:
        asked = options.wait_secs
        return max(0, self._message_timeout_secs if asked is None else asked)

    def _carry_out_rebalance(self, options: Options) -> list[Action]:
        """Should Nimbus die before the status is stored, the next leader does it once more."""
        stored, previous = self._state.options, self._state.previous
        assert isinstance(stored, RebalanceOptions)
        assert previous is not None
        self._due = None
        return [DoRebalance(stored), *self._become(TopologyState(previous))]

    def _carry_out_kill(self, options: Options) -> list[Action]:
        self._due = None
        self._removed = True
        return [Remove()]

    def _refusal(self, action: TopologyAction) -> str:
        status = self._state.status
        if self._removed:
            reason = f"Cannot apply event {action} to {self._id} because topology no longer exists"
            advice = "submit it again"
        else:
            reason = f"No transition for event: {action}, status: {status}, storm-id: {self._id}"
            waiting = "soon" if self._due is None else f"in {self._due.at - self._now:.0f} s"
            if status is TopologyStatus.KILLED:
                advice = f"it is removed {waiting}; submit it again after that"
            else:
                advice = f"the rebalance takes place {waiting}; try again after that, or kill it"
        story = "".join(f"\n  {line}" for line in self._story)
        return f"{reason}: {advice}" + (f"\nwhat happened to it:{story}" if story else "")

    def check(self) -> None:
        """Assert what holds between any two events."""
        assert len(self._story) <= STORY
        if self._removed:
            assert self._state.status is TopologyStatus.KILLED
        if self._due is not None:
            assert not self._removed
            assert self._due.action in TRANSITIONS[self._state.status]


_Transition: TypeAlias = Callable[[TopologyLifecycle, Options], list[Action]]

TRANSITIONS: Final[Mapping[TopologyStatus, Mapping[TopologyAction, _Transition]]] = {
    TopologyStatus.ACTIVE: {
        TopologyAction.INACTIVATE: TopologyLifecycle._become_inactive,
        TopologyAction.ACTIVATE: TopologyLifecycle._stay,
        TopologyAction.REBALANCE: TopologyLifecycle._begin_rebalance,
        TopologyAction.KILL: TopologyLifecycle._begin_kill,
    },
    TopologyStatus.INACTIVE: {
        TopologyAction.ACTIVATE: TopologyLifecycle._become_active,
        TopologyAction.INACTIVATE: TopologyLifecycle._stay,
        TopologyAction.REBALANCE: TopologyLifecycle._begin_rebalance,
        TopologyAction.KILL: TopologyLifecycle._begin_kill,
    },
    TopologyStatus.REBALANCING: {
        TopologyAction.GAIN_LEADERSHIP: TopologyLifecycle._wait_again,
        TopologyAction.KILL: TopologyLifecycle._begin_kill,
        TopologyAction.DO_REBALANCE: TopologyLifecycle._carry_out_rebalance,
    },
    TopologyStatus.KILLED: {
        TopologyAction.GAIN_LEADERSHIP: TopologyLifecycle._wait_again,
        TopologyAction.KILL: TopologyLifecycle._begin_kill,
        TopologyAction.REMOVE: TopologyLifecycle._carry_out_kill,
    },
}
