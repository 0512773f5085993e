"""Assignments: what the scheduler works on, read from the stored one, and what it found, written.

Pure. Nothing new comes of a schedule that changes nothing, and nothing of one that leaves an
executor without a place: a topology runs whole or as it ran before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from storm_py.cluster.records import Assignment, Executor, NodePort

from .executors import ExecutorDetails, Group
from .scheduler import SchedulerAssignment, TopologyDetails, WorkerSlot
from .worker_numbers import WorkerNumbers


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """What an assignment says of the code that it runs."""

    owner: str
    master_code_dir: str
    checksum: str


def placed(
    assignment: Assignment | None, tasks: Mapping[str, range]
) -> dict[ExecutorDetails, WorkerSlot]:
    """Where executors are; `tasks` are those of each component."""
    if assignment is None:
        return {}
    component_of = {task: id_ for id_, own in tasks.items() for task in own}
    return {
        ExecutorDetails(start, end, component_of[start]): WorkerSlot(*slot)
        for (start, end), slot in assignment.executor_node_port.items()
        if start in component_of
    }


def frozen(
    topology_id: str, where: Mapping[ExecutorDetails, WorkerSlot], launch_time_secs: int
) -> TopologyDetails:
    """A topology whose executors stay where they are, whatever is heard of them."""
    groups: tuple[Group, ...] = tuple((executor,) for executor in sorted(where))
    workers = max(1, len(set(where.values())))
    return TopologyDetails(topology_id, workers, groups, where, launch_time_secs=launch_time_secs)


def next_assignment(
    before: Assignment | None,
    found: SchedulerAssignment,
    hosts: Mapping[str, str],
    origin: CodeOrigin,
    now_secs: int,
) -> Assignment | None:
    """The assignment that a schedule leads to; None if there is nothing to write.

    `hosts` are those of the supervisors that live, by their ids.
    """
    if found.unassigned or not found.executor_to_slot:
        return None
    where: dict[Executor, NodePort] = {
        (executor.start_task, executor.end_task): (slot.node_id, slot.port)
        for executor, slot in found.executor_to_slot.items()
    }
    was = {} if before is None else before.executor_node_port
    started = {} if before is None else before.executor_start_time_secs
    numbers = WorkerNumbers()
    if before is not None:
        numbers = WorkerNumbers(before.worker_numbers, before.next_worker_number)
    numbers = numbers.renumber(where.values())
    known = {**({} if before is None else before.node_host), **hosts}
    after = Assignment(
        version=1 if before is None else before.version,
        owner=origin.owner,
        master_code_dir=origin.master_code_dir,
        code_checksum=origin.checksum,
        node_host={node: known[node] for node in sorted({node for node, _ in where.values()})},
        executor_node_port=where,
        executor_start_time_secs={
            executor: started.get(executor, now_secs) if was.get(executor) == slot else now_secs
            for executor, slot in where.items()
        },
        worker_numbers=numbers.numbers,
        next_worker_number=numbers.next_number,
    )
    if before is None:
        return after
    if after == replace(before, master_code_dir=origin.master_code_dir):
        return None  # that the leader is another nimbus is no reason to tell the workers
    return replace(after, version=before.version + 1)
