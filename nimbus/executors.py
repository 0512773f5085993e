"""Tasks, executors and groups: the pieces of a topology that the scheduler deals out.

Tasks are numbered once, at submission, and never change. Executors are contiguous ranges of the
tasks of one component; a rebalance cuts the same tasks into other ranges. A group is what runs in
one process: one executor, or a fused chain of them with the executor that it begins with at its
head. The groups of a topology are what `storm_py.nimbus.scheduler` gives places to.

Pure. Which components are fused is `storm_py.core.fusion`'s to say and comes in as an argument. The
plan of a running topology, `storm_py.core.plan`, numbers the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from storm_py.constants import RESERVED_PREFIX

#: No component runs in the processes of another one.
NOT_FUSED: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, order=True)
class ExecutorDetails:
    """One executor: the tasks from `start_task` to `end_task`, both included, of one component."""

    start_task: int
    end_task: int
    component_id: str

    @property
    def tasks(self) -> range:
        """Its tasks."""
        return range(self.start_task, self.end_task + 1)

    def __str__(self) -> str:
        return f"{self.component_id} [{self.start_task}-{self.end_task}]"


Group: TypeAlias = tuple[ExecutorDetails, ...]
"""The executors of one process, the head first."""


def number_tasks(num_tasks: Mapping[str, int]) -> dict[str, range]:
    """The tasks of each component: from 1 on, contiguous, components in the order of their names.

    The system's own components come last, so that they change nobody's task ids.
    """
    tasks: dict[str, range] = {}
    next_task = 1
    for component_id in sorted(num_tasks, key=lambda id_: (id_.startswith(RESERVED_PREFIX), id_)):
        tasks[component_id] = range(next_task, next_task + num_tasks[component_id])
        next_task += num_tasks[component_id]
    return tasks


def compute_executors(
    tasks: Mapping[str, range], num_executors: Mapping[str, int]
) -> dict[str, tuple[ExecutorDetails, ...]]:
    """Cut the tasks of each component into so many ranges, whose sizes differ by at most one.

    The larger ones come first. There are never more executors than tasks: as in Storm, a larger
    number means one executor for each task.
    """
    return {
        component_id: tuple(_cut(component_id, own, min(num_executors[component_id], len(own))))
        for component_id, own in tasks.items()
    }


def _cut(component_id: str, tasks: range, parts: int) -> list[ExecutorDetails]:
    size, larger = divmod(len(tasks), parts)
    found = []
    start = tasks.start
    for i in range(parts):
        end = start + size + (i < larger)
        found.append(ExecutorDetails(start, end - 1, component_id))
        start = end
    return found


def make_groups(
    executors: Mapping[str, Sequence[ExecutorDetails]], heads: Mapping[str, str] = NOT_FUSED
) -> tuple[Group, ...]:
    """The groups of a topology, in the order of their heads.

    `heads` names for each component that runs in the processes of another the one whose they are:
    the first of its chain. Executor by executor they share a process, so that both must have as
    many; a ValueError says if not.
    """
    for member, head in heads.items():
        if head in heads or head not in executors:
            raise ValueError(f"{member!r} cannot run with {head!r}, which has no processes")
        if len(executors[member]) != len(executors[head]):
            raise ValueError(
                f"{member!r} cannot run with {head!r}: it has {len(executors[member])} executors, "
                f"and {head!r} has {len(executors[head])}"
            )
    groups = []
    for component_id, own in executors.items():
        if component_id not in heads:
            members = [executors[m] for m, head in heads.items() if head == component_id]
            for i, executor in enumerate(own):
                groups.append((executor, *sorted(member[i] for member in members)))
    return tuple(sorted(groups))
