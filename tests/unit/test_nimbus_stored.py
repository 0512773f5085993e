"""A topology's life as its StormBase holds it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storm_py.cluster.records import TopologyActionOptions, TopologyStatus
from storm_py.nimbus.lifecycle import KillOptions, RebalanceOptions, TopologyState
from storm_py.nimbus.rebalance import Parallelism
from storm_py.nimbus.stored import parallelism_of, state_of, with_parallelism, with_state
from tests.cluster_records import storm_base

STATES = [
    TopologyState(TopologyStatus.ACTIVE),
    TopologyState(TopologyStatus.INACTIVE),
    TopologyState(TopologyStatus.KILLED, None, KillOptions(0)),
    TopologyState(
        TopologyStatus.REBALANCING, TopologyStatus.INACTIVE, RebalanceOptions(30, 2, {"count": 4})
    ),
    TopologyState(TopologyStatus.REBALANCING, TopologyStatus.ACTIVE, RebalanceOptions(0)),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.status)
def test_a_state_comes_back(state: TopologyState) -> None:
    for before in STATES:
        base = with_state(with_state(storm_base(), before), state)
        assert state_of(base) == state


def test_it_looks_as_storms() -> None:
    found = with_state(storm_base(), STATES[3])
    assert found == replace(
        storm_base(),
        status=TopologyStatus.REBALANCING,
        prev_status=TopologyStatus.INACTIVE,
        topology_action_options=TopologyActionOptions(30, 2, {"count": 4}),
    )
    assert with_state(found, STATES[0]) == storm_base()


def test_what_no_topology_can_be_in() -> None:
    with pytest.raises(ValueError, match="no topology can be in this state"):
        state_of(storm_base(status=TopologyStatus.KILLED))


def test_workers_and_executors() -> None:
    assert parallelism_of(storm_base()) == Parallelism(2, {"lines": 1, "count": 4})
    after = Parallelism(3, {"lines": 1, "count": 2})
    assert parallelism_of(with_parallelism(storm_base(), after)) == after
