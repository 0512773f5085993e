"""TopologyLifecycle: Storm's table, the waits before kill and rebalance, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.cluster.records import TopologyStatus
from storm_py.errors import InvalidTransition
from storm_py.nimbus.lifecycle import (
    FROM_USERS,
    STORY,
    TRANSITIONS,
    Action,
    DoRebalance,
    KillOptions,
    Options,
    RebalanceOptions,
    Remove,
    Schedule,
    SetStatus,
    TopologyAction,
    TopologyLifecycle,
    TopologyState,
)

ID = "words-1-1700000000"
MESSAGE_TIMEOUT_SECS = 30

ACTIVE = TopologyState(TopologyStatus.ACTIVE)
INACTIVE = TopologyState(TopologyStatus.INACTIVE)
ASKED = RebalanceOptions(None, 2, {"count": 4})
WAITING = replace(ASKED, wait_secs=30)
REBALANCING = TopologyState(TopologyStatus.REBALANCING, TopologyStatus.ACTIVE, WAITING)
WAS_INACTIVE = replace(REBALANCING, previous=TopologyStatus.INACTIVE)
KILLED = TopologyState(TopologyStatus.KILLED, None, KillOptions(30))
STATES = (ACTIVE, INACTIVE, REBALANCING, KILLED)


def of(state: TopologyState) -> TopologyLifecycle:
    return TopologyLifecycle(ID, state, MESSAGE_TIMEOUT_SECS)


def send(
    core: TopologyLifecycle, action: TopologyAction, now: float, options: Options = None
) -> list[Action]:
    """The event by its Storm name."""
    kill = options if isinstance(options, KillOptions) else KillOptions()
    rebalance = options if isinstance(options, RebalanceOptions) else ASKED
    events: dict[TopologyAction, Callable[[], list[Action]]] = {
        TopologyAction.ACTIVATE: lambda: core.activate(now),
        TopologyAction.INACTIVATE: lambda: core.inactivate(now),
        TopologyAction.REBALANCE: lambda: core.rebalance(rebalance, now),
        TopologyAction.KILL: lambda: core.kill(kill, now),
        TopologyAction.GAIN_LEADERSHIP: lambda: core.gain_leadership(now),
        TopologyAction.DO_REBALANCE: lambda: core.do_rebalance(now),
        TopologyAction.REMOVE: lambda: core.remove(now),
    }
    found = events[action]()
    core.check()
    return found


REMOVE_AT_130 = Schedule(130, TopologyAction.REMOVE)
REBALANCE_AT_130 = Schedule(130, TopologyAction.DO_REBALANCE)
KILL: list[Action] = [SetStatus(KILLED), REMOVE_AT_130]

#: What each event does at 100, in Storm's table; the others it does not have.
TABLE: dict[tuple[TopologyStatus, TopologyAction], list[Action]] = {
    (TopologyStatus.ACTIVE, TopologyAction.INACTIVATE): [SetStatus(INACTIVE)],
    (TopologyStatus.ACTIVE, TopologyAction.ACTIVATE): [],
    (TopologyStatus.ACTIVE, TopologyAction.REBALANCE): [SetStatus(REBALANCING), REBALANCE_AT_130],
    (TopologyStatus.ACTIVE, TopologyAction.KILL): KILL,
    (TopologyStatus.INACTIVE, TopologyAction.ACTIVATE): [SetStatus(ACTIVE)],
    (TopologyStatus.INACTIVE, TopologyAction.INACTIVATE): [],
    (TopologyStatus.INACTIVE, TopologyAction.REBALANCE): [
        SetStatus(WAS_INACTIVE),
        REBALANCE_AT_130,
    ],
    (TopologyStatus.INACTIVE, TopologyAction.KILL): KILL,
    (TopologyStatus.REBALANCING, TopologyAction.GAIN_LEADERSHIP): [REBALANCE_AT_130],
    (TopologyStatus.REBALANCING, TopologyAction.KILL): KILL,
    (TopologyStatus.REBALANCING, TopologyAction.DO_REBALANCE): [
        DoRebalance(WAITING),
        SetStatus(ACTIVE),
    ],
    (TopologyStatus.KILLED, TopologyAction.GAIN_LEADERSHIP): [REMOVE_AT_130],
    (TopologyStatus.KILLED, TopologyAction.KILL): KILL,
    (TopologyStatus.KILLED, TopologyAction.REMOVE): [Remove()],
}


class TestTable:
    @pytest.mark.parametrize("action", TopologyAction)
    @pytest.mark.parametrize("state", STATES, ids=lambda state: state.status)
    def test_every_status_and_event(self, state: TopologyState, action: TopologyAction) -> None:
        core = of(state)
        if (state.status, action) in TABLE:
            assert send(core, action, 100) == TABLE[state.status, action]
        elif action in FROM_USERS:
            with pytest.raises(InvalidTransition):
                send(core, action, 100)
            assert core.state == state
        else:
            assert send(core, action, 100) == []
            assert core.state == state

    def test_it_has_no_other_entries(self) -> None:
        found = {(status, action) for status, row in TRANSITIONS.items() for action in row}
        assert found == set(TABLE)

    def test_its_words_are_storms(self) -> None:
        assert {str(status) for status in TopologyStatus} == {
            *("ACTIVE", "INACTIVE", "REBALANCING", "KILLED")
        }
        assert {str(action) for action in TopologyAction} == {
            *("GAIN_LEADERSHIP", "INACTIVATE", "ACTIVATE", "REBALANCE", "KILL"),
            *("DO_REBALANCE", "REMOVE"),
        }


class TestKill:
    def test_it_waits_then_removes(self) -> None:
        core = of(ACTIVE)
        assert core.next_timeout() is None
        assert core.kill(KillOptions(10), 100) == [
            SetStatus(TopologyState(TopologyStatus.KILLED, None, KillOptions(10))),
            Schedule(110, TopologyAction.REMOVE),
        ]
        assert core.next_timeout() == 110
        assert core.tick(109.9) == []
        assert core.tick(110) == [Remove()]
        assert core.removed
        assert core.next_timeout() is None
        assert core.tick(200) == []

    def test_without_a_wait_of_its_own_it_waits_for_the_message_timeout(self) -> None:
        core = of(ACTIVE)
        core.kill(KillOptions(), 100)
        assert core.next_timeout() == 100 + MESSAGE_TIMEOUT_SECS
        assert core.state.options == KillOptions(MESSAGE_TIMEOUT_SECS)

    @pytest.mark.parametrize("wait_secs", [0, -5])
    def test_it_may_happen_at_once(self, wait_secs: int) -> None:
        core = of(ACTIVE)
        assert core.kill(KillOptions(wait_secs), 100) == [
            SetStatus(TopologyState(TopologyStatus.KILLED, None, KillOptions(0))),
            Schedule(100, TopologyAction.REMOVE),
        ]
        assert core.tick(100) == [Remove()]

    @pytest.mark.parametrize("wait_secs", [5, 600])
    def test_a_second_one_begins_the_wait_anew(self, wait_secs: int) -> None:
        core = of(ACTIVE)
        core.kill(KillOptions(60), 100)
        assert core.kill(KillOptions(wait_secs), 120) == [
            SetStatus(TopologyState(TopologyStatus.KILLED, None, KillOptions(wait_secs))),
            Schedule(120 + wait_secs, TopologyAction.REMOVE),
        ]
        assert core.tick(119 + wait_secs) == []
        assert core.tick(120 + wait_secs) == [Remove()]

    def test_it_takes_the_place_of_a_rebalance_that_waits(self) -> None:
        core = of(ACTIVE)
        core.rebalance(replace(ASKED, wait_secs=10), 100)
        core.kill(KillOptions(50), 101)
        assert core.tick(110) == []
        assert core.do_rebalance(110) == []
        assert core.tick(151) == [Remove()]

    def test_after_it_nothing_happens_any_more(self) -> None:
        core = of(KILLED)
        core.remove(100)
        for action in TopologyAction:
            if action not in FROM_USERS:
                assert send(core, action, 101) == []
                continue
            with pytest.raises(InvalidTransition) as caught:
                send(core, action, 101)
            assert str(caught.value) == (
                f"Cannot apply event {action} to {ID} because topology no longer exists: submit it "
                "again\nwhat happened to it:\n  100.000 REMOVE: KILLED -> removed"
            )


class TestRebalance:
    @pytest.mark.parametrize("before", [ACTIVE, INACTIVE])
    def test_it_waits_then_is_what_it_was(self, before: TopologyState) -> None:
        core = of(before)
        options = RebalanceOptions(5, 3, {"count": 4})
        assert core.rebalance(options, 100) == [
            SetStatus(TopologyState(TopologyStatus.REBALANCING, before.status, options)),
            Schedule(105, TopologyAction.DO_REBALANCE),
        ]
        assert core.tick(104.9) == []
        assert core.tick(105) == [DoRebalance(options), SetStatus(before)]
        assert core.next_timeout() is None

    def test_without_a_wait_of_its_own_it_waits_for_the_message_timeout(self) -> None:
        core = of(ACTIVE)
        core.rebalance(ASKED, 100)
        assert core.next_timeout() == 100 + MESSAGE_TIMEOUT_SECS
        assert core.state.options == replace(ASKED, wait_secs=MESSAGE_TIMEOUT_SECS)


class TestLeadership:
    @pytest.mark.parametrize("state", [REBALANCING, WAS_INACTIVE, KILLED])
    def test_who_does_not_lead_waits_for_nothing(self, state: TopologyState) -> None:
        core = of(state)
        assert core.next_timeout() is None
        assert core.tick(10**9) == []

    def test_a_new_leader_begins_a_wait_anew(self) -> None:
        old = of(ACTIVE)
        old.kill(KillOptions(60), 100)
        new = of(old.state)
        assert new.gain_leadership(155) == [Schedule(215, TopologyAction.REMOVE)]
        assert new.tick(215) == [Remove()]

    def test_a_rebalance_that_was_not_stored_as_done_is_done_again(self) -> None:
        old = of(INACTIVE)
        old.rebalance(ASKED, 100)
        stored = old.state
        old.tick(130)
        new = of(stored)
        new.gain_leadership(200)
        assert new.tick(230) == [DoRebalance(WAITING), SetStatus(INACTIVE)]

    @pytest.mark.parametrize("state", [ACTIVE, INACTIVE])
    def test_nothing_else_has_to_be_resumed(self, state: TopologyState) -> None:
        core = of(state)
        assert core.gain_leadership(100) == []
        assert core.next_timeout() is None


class TestRefusals:
    def test_while_it_is_being_killed(self) -> None:
        core = of(ACTIVE)
        core.inactivate(90)
        core.kill(KillOptions(30), 100.25)
        with pytest.raises(InvalidTransition) as caught:
            core.activate(118.25)
        assert str(caught.value) == (
            f"No transition for event: ACTIVATE, status: KILLED, storm-id: {ID}: it is removed in "
            "12 s; submit it again after that\n"
            "what happened to it:\n"
            "  90.000 INACTIVATE: ACTIVE -> INACTIVE\n"
            "  100.250 KILL: INACTIVE -> KILLED"
        )

    def test_while_it_is_being_rebalanced(self) -> None:
        core = of(REBALANCING)
        with pytest.raises(InvalidTransition) as caught:
            core.rebalance(ASKED, 100)
        assert str(caught.value) == (
            f"No transition for event: REBALANCE, status: REBALANCING, storm-id: {ID}: the "
            "rebalance takes place soon; try again after that, or kill it"
        )

    def test_the_story_is_as_long_as_it_may_be(self) -> None:
        core = of(ACTIVE)
        for now in range(STORY):
            core.inactivate(now)
            core.activate(now)
        core.kill(KillOptions(), 1000)
        with pytest.raises(InvalidTransition) as caught:
            core.activate(1001)
        first, *story = str(caught.value).splitlines()[1:]
        assert first == "what happened to it:"
        assert len(story) == STORY
        assert story[-1] == "  1000.000 KILL: ACTIVE -> KILLED"

    @pytest.mark.parametrize(
        "change",
        [
            lambda: replace(ACTIVE, options=KillOptions(1)),
            lambda: replace(ACTIVE, previous=TopologyStatus.ACTIVE),
            lambda: replace(KILLED, options=None),
            lambda: replace(KILLED, options=WAITING),
            lambda: replace(KILLED, previous=TopologyStatus.ACTIVE),
            lambda: replace(REBALANCING, previous=None),
            lambda: replace(REBALANCING, previous=TopologyStatus.KILLED),
            lambda: replace(REBALANCING, options=KillOptions(1)),
        ],
    )
    def test_no_topology_can_be_in_such_a_state(self, change: Callable[[], object]) -> None:
        with pytest.raises(ValueError, match=r"^no topology can be in this state: TopologyState"):
            change()


#: Seconds that pass, and what happens then: an event, a tick, or that another Nimbus leads.
steps = st.tuples(st.integers(0, 40), st.sampled_from([*TopologyAction, "tick", "other leader"]))


@dataclass
class Expected:
    """The same life, told in a few flags."""

    running: TopologyStatus
    due: float | None = None
    fate: str = ""  # or "rebalance", "kill", "removed"

    def happens(self, what: str, now: float) -> None:
        waits = self.fate in ("rebalance", "kill")
        if what == "tick" and self.due is not None and now >= self.due:
            what = "REMOVE" if self.fate == "kill" else "DO_REBALANCE"
        if what in ("ACTIVATE", "INACTIVATE") and not self.fate:
            self.running = ACTIVE.status if what == "ACTIVATE" else INACTIVE.status
        elif (what == "REBALANCE" and not self.fate) or (what == "KILL" and self.fate != "removed"):
            self.fate, self.due = what.lower(), now + MESSAGE_TIMEOUT_SECS
        elif what in ("GAIN_LEADERSHIP", "other leader") and waits:
            self.due = now + MESSAGE_TIMEOUT_SECS
        elif (what, self.fate) == ("DO_REBALANCE", "rebalance"):
            self.fate, self.due = "", None
        elif (what, self.fate) == ("REMOVE", "kill"):
            self.fate, self.due = "removed", None


@given(st.sampled_from([ACTIVE, INACTIVE]), st.lists(steps, max_size=30))
def test_whatever_happens_it_is_in_a_state_of_the_table(
    state: TopologyState, script: list[tuple[int, str]]
) -> None:
    core, stored, now = of(state), state, 0
    expected = Expected(state.status)
    for secs, what in script:
        now += secs
        actions: list[Action] = []
        if what == "other leader":
            if core.removed:
                break
            core = of(stored)
            actions = core.gain_leadership(now)
        elif what == "tick":
            actions = core.tick(now)
        else:
            try:
                actions = send(core, TopologyAction(what), now)
            except InvalidTransition:
                assert what in FROM_USERS
                assert expected.fate
        stored = next((a.state for a in actions if isinstance(a, SetStatus)), stored)
        expected.happens(what, now)
        core.check()
        assert stored == core.state
        assert core.next_timeout() == expected.due
        assert core.removed == (expected.fate == "removed")
        words = {"": expected.running, "rebalance": "REBALANCING"}
        assert core.state.status == words.get(expected.fate, "KILLED")
