"""What a nimbus may do, given its connection and what the election said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.cluster.leader import Action, Lead, LeaderPolicy, Pause, StepDown

EVENTS = ["connected", "suspended", "lost", "elected", "deposed"]


def dialogue(*events: str) -> list[Action]:
    """All that a policy wants done, in order."""
    policy = LeaderPolicy()
    return [action for event in events for action in getattr(policy, event)()]


@pytest.mark.parametrize(
    ("events", "actions"),
    [
        (["connected"], []),
        (["connected", "elected"], [Lead()]),
        (["connected", "elected", "elected"], [Lead()]),
        (["connected", "elected", "deposed"], [Lead(), StepDown()]),
        (["connected", "deposed"], []),
        # the connection breaks, and the session survives that
        (["connected", "elected", "suspended"], [Lead(), Pause()]),
        (["connected", "elected", "suspended", "connected"], [Lead(), Pause(), Lead()]),
        (["connected", "elected", "suspended", "deposed"], [Lead(), Pause(), StepDown()]),
        (
            ["connected", "elected", "suspended", "deposed", "connected"],
            [Lead(), Pause(), StepDown()],
        ),
        (["connected", "suspended", "connected", "elected"], [Lead()]),
        # it does not
        (["connected", "elected", "lost"], [Lead(), StepDown()]),
        (["connected", "elected", "suspended", "lost"], [Lead(), Pause(), StepDown()]),
        (
            ["connected", "elected", "suspended", "lost", "connected"],
            [Lead(), Pause(), StepDown()],
        ),
        (
            ["connected", "elected", "suspended", "lost", "connected", "elected"],
            [Lead(), Pause(), StepDown(), Lead()],
        ),
        # elections that are told late
        (["connected", "suspended", "elected"], []),
        (["connected", "suspended", "elected", "connected"], [Lead()]),
        (["connected", "suspended", "elected", "deposed", "connected"], []),
        (["connected", "suspended", "elected", "lost", "connected"], []),
        (["connected", "lost", "elected", "connected"], []),
        (["elected"], []),
    ],
)
def test_what_follows(events: list[str], actions: list[Action]) -> None:
    assert dialogue(*events) == actions


def test_statistics() -> None:
    policy = LeaderPolicy()
    for event in ("connected", "elected", "suspended", "connected"):
        getattr(policy, event)()
    statistics = policy.statistics()
    assert statistics.leads
    assert statistics.terms == 1
    assert statistics.story == (
        "connected -> FOLLOWING",
        "elected -> LEADING",
        "suspended -> PAUSED",
        "connected -> LEADING",
    )


def test_the_story_is_bounded() -> None:
    policy = LeaderPolicy()
    for _ in range(1000):
        policy.connected()
    assert len(policy.statistics().story) == 50


@given(st.lists(st.sampled_from(EVENTS)))
def test_law_of_the_leader(events: list[str]) -> None:
    """Whoever leads is connected, and was elected since its last session ended."""
    policy = LeaderPolicy()
    connected, elected = False, False
    for event in events:
        getattr(policy, event)()
        policy.check()
        if event in ("connected", "suspended", "lost"):
            connected = event == "connected"
        if event == "elected":
            elected = True
        if event in ("lost", "deposed"):
            elected = False
        if policy.leads:
            assert connected
            assert elected


@given(st.lists(st.sampled_from(EVENTS)))
def test_law_of_the_actions(events: list[str]) -> None:
    """They alternate: whoever only follows them leads exactly when the policy says so."""
    policy = LeaderPolicy()
    last: Action = StepDown()
    follows = {Lead: (Pause, StepDown), Pause: (Lead, StepDown), StepDown: (Lead,)}
    for event in events:
        for action in getattr(policy, event)():
            assert type(action) in follows[type(last)]
            last = action
        assert policy.leads == (last == Lead())


@given(st.lists(st.sampled_from(EVENTS)))
def test_law_of_the_chance(events: list[str]) -> None:
    """Nothing that happened keeps a nimbus from leading later on."""
    policy = LeaderPolicy()
    for event in events:
        getattr(policy, event)()
    policy.connected()
    policy.elected()
    assert policy.leads
