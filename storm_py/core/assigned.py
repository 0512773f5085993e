"""The plan of an assignment: what `PhysicalPlan` is of a topology that nimbus has laid out.

An assignment says on which worker each executor is, an executor being a range of tasks. Everything
else follows from the topology, in every process alike and without a memory of earlier versions: how
tasks are numbered, which executors are fused, and the ids. An executor's id is made of its first
and its last task, so one that is cut in another way has another id, and one that only moves, or
stays, keeps its own. Pure; `storm_py.core.plan.make_plan` lays out a topology by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from storm_py.api.topology import StormTopology

from .fusion import fused
from .plan import ExecutorPlan, PhysicalPlan, number_tasks, without_objects

#: Executors by their first and last tasks.
Range: TypeAlias = tuple[int, int]

#: A topology has fewer tasks than this.
_TASKS: Final = 1 << 20


def assigned_plan(
    topology_id: str,
    version: int,
    topology: StormTopology,
    conf: Mapping[str, object],
    workers: Mapping[Range, int],
) -> PhysicalPlan:
    """The plan of version `version`; `workers` has the worker of each executor.

    ValueError for ranges that do not hold every task of the topology once, each within one
    component, or that put fused executors on different workers.
    """
    ranges = _by_component(topology, workers)
    specs = {
        id_: replace(without_objects(spec), parallelism=len(ranges[id_]))
        for id_, spec in topology.components.items()
    }
    topology = StormTopology(specs)
    heads = fused(topology, conf)
    executors = []
    for component_id, found in ranges.items():
        of_heads = ranges[heads.get(component_id, component_id)]
        for own, head in zip(found, of_heads, strict=True):
            worker = workers[own]
            if worker != workers[head]:
                raise ValueError(
                    f"executor {_words(own)} of {component_id} is on worker {worker}, apart from "
                    f"{_words(head)} on worker {workers[head]}, with which it is fused"
                )
            tasks = tuple(range(own[0], own[1] + 1))
            executors.append(ExecutorPlan(_id(own), component_id, tasks, worker, _id(head)))
    return PhysicalPlan(topology_id, version, topology, dict(conf), tuple(executors))


def _by_component(topology: StormTopology, workers: Mapping[Range, int]) -> dict[str, list[Range]]:
    """The executors of each component, ascending."""
    left = sorted(workers)
    found: dict[str, list[Range]] = {}
    for component_id, tasks in number_tasks(topology).items():
        own = found[component_id] = []
        next_task = tasks.start
        while next_task < tasks.stop:
            if not left or left[0][0] != next_task or not next_task <= left[0][1] < tasks.stop:
                near = _words(left[0]) if left else "none"
                raise ValueError(
                    f"no executor has the tasks of {component_id} from {next_task} on; expected "
                    f"ranges of {tasks.start} to {tasks.stop - 1}, the next one is {near}"
                )
            own.append(left.pop(0))
            next_task = own[-1][1] + 1
    if left:
        raise ValueError(f"executor {_words(left[0])} has tasks that are no component's")
    return found


def _id(tasks: Range) -> int:
    return tasks[0] * _TASKS + tasks[1]


def _words(tasks: Range) -> str:
    return f"[{tasks[0]}-{tasks[1]}]"
