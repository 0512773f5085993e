"""What of a topology's life is stored in its StormBase, there and back.

Pure. `storm_py.nimbus.lifecycle` decides on states; records are `storm_py.cluster.records`.
"""

from __future__ import annotations

from dataclasses import replace

from storm_py.cluster.records import StormBase, TopologyActionOptions, TopologyStatus

from .lifecycle import KillOptions, RebalanceOptions, TopologyState
from .rebalance import Parallelism


def state_of(base: StormBase) -> TopologyState:
    """The state that a StormBase holds; ValueError if it is none that a topology can be in."""
    found = base.topology_action_options
    if base.status is TopologyStatus.KILLED and found is not None:
        return TopologyState(base.status, None, KillOptions(found.wait_secs))
    if base.status is TopologyStatus.REBALANCING and found is not None:
        options = RebalanceOptions(found.wait_secs, found.num_workers, dict(found.num_executors))
        return TopologyState(base.status, base.prev_status, options)
    return TopologyState(base.status)


def with_state(base: StormBase, state: TopologyState) -> StormBase:
    """The StormBase of a topology that is in this state."""
    options = None
    match state.options:
        case KillOptions(wait_secs):
            options = TopologyActionOptions(wait_secs or 0)
        case RebalanceOptions(wait_secs, num_workers, num_executors):
            options = TopologyActionOptions(wait_secs or 0, num_workers, dict(num_executors))
    return replace(
        base,
        status=state.status,
        prev_status=state.previous,
        topology_action_options=options,
    )


def parallelism_of(base: StormBase) -> Parallelism:
    """The workers and executors that a topology is to have."""
    return Parallelism(base.num_workers, base.component_executors)


def with_parallelism(base: StormBase, parallelism: Parallelism) -> StormBase:
    """The StormBase of a topology that is to have these."""
    return replace(
        base,
        num_workers=parallelism.num_workers,
        component_executors=dict(parallelism.num_executors),
    )
