"""Rebalance: what a request to change workers and executors makes of a topology, and what stays.

A rebalance cuts the tasks of components into other ranges and asks for another number of slots.
Tasks never change, so that every key stays on its task. This module says which executors there are
afterwards; `storm_py.nimbus.scheduler`, given them together with the present assignment, gives a
place to what is new and leaves the rest where it is:

- An executor that is cut as before stays in its slot, whatever becomes of other components, unless
  a worker would otherwise have nothing to run.
- More or fewer workers move the fewest executors that make the slots even.
- A request that asks for what is there already changes nothing. (Storm deals out everything anew.)

Pure. When a request is carried out is up to `storm_py.nimbus.lifecycle`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from storm_py.errors import InvalidTopologyException, did_you_mean

from .executors import NOT_FUSED, ExecutorDetails, Group, compute_executors, make_groups
from .lifecycle import RebalanceOptions
from .scheduler import WorkerSlot

Heads: TypeAlias = Callable[[Mapping[str, int]], Mapping[str, str]]
"""From the number of executors of each component: which run in the processes of which other."""


@dataclass(frozen=True, slots=True)
class Parallelism:
    """What of a topology a rebalance may change."""

    num_workers: int
    #: by component
    num_executors: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RebalancePlan:
    """What a request comes to."""

    before: Parallelism
    after: Parallelism
    #: All of the topology's groups afterwards.
    groups: tuple[Group, ...]
    #: Components that were asked to have more executors than tasks, and how many were asked for;
    #: they get one executor for each task.
    capped: Mapping[str, int]

    @property
    def empty(self) -> bool:
        """Whether everything is as asked for already."""
        return self.before == self.after

    @property
    def changed(self) -> tuple[str, ...]:
        """The components whose executors change, sorted."""
        after = self.after.num_executors
        return tuple(sorted(c for c, n in self.before.num_executors.items() if after[c] != n))


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between two assignments of one topology; executors are sorted."""

    #: cut as before, and in the same slot
    stayed: tuple[ExecutorDetails, ...]
    #: cut as before, and in another slot
    moved: tuple[ExecutorDetails, ...]
    started: tuple[ExecutorDetails, ...]
    stopped: tuple[ExecutorDetails, ...]


def check_request(
    topology_id: str, num_executors: Mapping[str, int], request: RebalanceOptions
) -> None:
    """Refuse what no topology could be rebalanced to with an InvalidTopologyException.

    `num_executors` names the components that there are. More executors than tasks are no mistake,
    as in Storm: see `RebalancePlan.capped`.
    """
    if request.num_workers is not None and request.num_workers < 1:
        raise InvalidTopologyException(
            f"Number of workers must be greater than 0: {topology_id} cannot be rebalanced to "
            f"{request.num_workers}; deactivate it to pause it, or kill it"
        )
    for component_id, asked in sorted(request.num_executors.items()):
        if component_id not in num_executors:
            known = ", ".join(sorted(num_executors))
            raise InvalidTopologyException(
                f"{topology_id} has no component {component_id!r} to rebalance, only: {known}"
                f"{did_you_mean(component_id, num_executors)}"
            )
        if asked < 1:
            raise InvalidTopologyException(
                f"Number of executors must be greater than 0: {component_id!r} of {topology_id} "
                f"cannot be rebalanced to {asked}; it has {num_executors[component_id]}"
            )


def plan_rebalance(
    topology_id: str,
    tasks: Mapping[str, range],
    before: Parallelism,
    request: RebalanceOptions,
    heads: Heads = lambda num_executors: NOT_FUSED,
) -> RebalancePlan:
    """What a request makes of a topology; an InvalidTopologyException if `check_request` refuses.

    `tasks` are those of each component, for good.
    """
    check_request(topology_id, before.num_executors, request)
    asked = request.num_executors
    num_executors = {
        component_id: min(asked.get(component_id, number), len(tasks[component_id]))
        for component_id, number in before.num_executors.items()
    }
    num_workers = before.num_workers if request.num_workers is None else request.num_workers
    return RebalancePlan(
        before=before,
        after=Parallelism(num_workers, num_executors),
        groups=make_groups(compute_executors(tasks, num_executors), heads(num_executors)),
        capped={c: asked[c] for c in sorted(asked) if asked[c] > len(tasks[c])},
    )


def changes(
    before: Mapping[ExecutorDetails, WorkerSlot], after: Mapping[ExecutorDetails, WorkerSlot]
) -> Changes:
    """What differs between two assignments."""
    both = sorted(before.keys() & after.keys())
    return Changes(
        stayed=tuple(executor for executor in both if before[executor] == after[executor]),
        moved=tuple(executor for executor in both if before[executor] != after[executor]),
        started=tuple(sorted(after.keys() - before.keys())),
        stopped=tuple(sorted(before.keys() - after.keys())),
    )
