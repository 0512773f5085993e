"""The plan of an assignment: the same in every process, with ids that outlive the assignment."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.core.assigned import Range, assigned_plan
from storm_py.core.plan import PhysicalPlan, dump_plan, load_plan, split_evenly
from tests.builders import LOCAL, TOPOLOGY_ID, bolt, by, conf, plan_of, spout
from tests.unit.test_plan import plans


def ranges(plan: PhysicalPlan) -> dict[Range, int]:
    return {(e.tasks[0], e.tasks[-1]): e.worker for e in plan.executors}


def assigned(plan: PhysicalPlan, workers: dict[Range, int], version: int = 1) -> PhysicalPlan:
    return assigned_plan(TOPOLOGY_ID, version, plan.topology, plan.conf, workers)


def shape(plan: PhysicalPlan) -> list[object]:
    """Everything but the ids: what is where, and with what it shares a process."""
    return [
        [(e.component_id, e.tasks, e.worker) for e in members]
        for members in sorted(plan.instances.values(), key=lambda found: found[0].tasks)
    ]


@settings(max_examples=100)
@given(plans())
def test_it_is_the_plan_that_was_assigned(plan: PhysicalPlan) -> None:
    found = assigned(plan, ranges(plan))
    assert shape(found) == shape(plan)
    assert found.task_to_component == plan.task_to_component
    assert found.topology == plan.topology
    assert len({e.id for e in found.executors}) == len(found.executors)
    assert load_plan(dump_plan(found)) == found


@settings(max_examples=100)
@given(plans(), st.data())
def test_executors_that_are_not_cut_anew_keep_their_ids(
    plan: PhysicalPlan, data: st.DataObject
) -> None:
    before = assigned(plan, ranges(plan))
    component = data.draw(st.sampled_from(sorted(plan.topology.components)))
    tasks = plan.tasks_of(component)
    # A chain is fused only where all have as many executors, so those that it has stay together.
    workers = dict.fromkeys(ranges(plan), 0)
    for own in [own for own in workers if own[0] in tasks]:
        del workers[own]
    for part in split_evenly(tasks, data.draw(st.integers(1, len(tasks)))):
        workers[part[0], part[-1]] = 0
    after = assigned(plan, workers, 2)
    assert after.version == 2
    ids = {(e.component_id, e.tasks): e.id for e in (*before.executors, *after.executors)}
    assert len(set(ids.values())) == len(ids)
    for executor in before.executors:
        if executor.component_id != component:
            assert after.executor(executor.id).tasks == executor.tasks


#: a-b-c, where b may be fused with a: tasks 1 and 2, 3 and 4, 5 to 8
CHAIN = plan_of(
    spout("a", "v", 2), bolt("b", {"a": LOCAL}, "v", 2), bolt("c", {"b": by("v")}, "", 4, 2)
)
FUSED = {**conf(), "storm_py.fuse": True}


def test_a_chain_is_fused_as_long_as_it_is_cut_alike() -> None:
    alike = {(1, 1): 0, (2, 2): 1, (3, 3): 0, (4, 4): 1, (5, 8): 0}
    found = assigned_plan(TOPOLOGY_ID, 1, CHAIN.topology, FUSED, alike)
    assert [[e.tasks for e in members] for members in found.instances.values()] == [
        [(1,), (3,)],
        [(2,), (4,)],
        [(5, 6, 7, 8)],
    ]
    apart = {(1, 1): 0, (2, 2): 1, (3, 4): 0, (5, 8): 0}
    found = assigned_plan(TOPOLOGY_ID, 2, CHAIN.topology, FUSED, apart)
    assert all(len(members) == 1 for members in found.instances.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {(3, 3): 1},
            "executor [3-3] of b is on worker 1, apart from [1-1] on worker 0, with which it is "
            "fused",
        ),
        (
            {(5, 6): 0},
            "no executor has the tasks of c from 7 on; expected ranges of 5 to 8, the next one is "
            "[5-8]",
        ),
        (
            {(9, 9): 0},
            "executor [9-9] has tasks that are no component's",
        ),
    ],
)
def test_refusals(change: dict[Range, int], message: str) -> None:
    workers = {(1, 1): 0, (2, 2): 1, (3, 3): 0, (4, 4): 1, (5, 8): 0} | change
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        assigned_plan(TOPOLOGY_ID, 1, CHAIN.topology, FUSED, workers)


@pytest.mark.parametrize("missing", [(1, 1), (4, 4), (5, 8)])
def test_a_task_that_nobody_has(missing: Range) -> None:
    workers = {(1, 1): 0, (2, 2): 0, (3, 3): 0, (4, 4): 0, (5, 8): 0}
    del workers[missing]
    with pytest.raises(ValueError, match=f"no executor has the tasks of . from {missing[0]} on"):
        assigned_plan(TOPOLOGY_ID, 1, CHAIN.topology, FUSED, workers)


def test_an_executor_of_two_components() -> None:
    with pytest.raises(ValueError, match=r"ranges of 1 to 2, the next one is \[2-3\]"):
        assigned(CHAIN, {(1, 1): 0, (2, 3): 0, (4, 4): 0, (5, 8): 0})


def test_processes_that_stay_run_alike_under_both() -> None:
    """Ids are what tells a worker which of its processes it keeps."""
    before = {(1, 1): 0, (2, 2): 1, (3, 3): 0, (4, 4): 1, (5, 6): 0, (7, 8): 1}
    now, then = assigned(CHAIN, before), assigned(CHAIN, {**before, (7, 8): 0}, 2)
    kept = [now.label(instance) for instance in now.instances if now.runs_alike(instance, then)]
    assert kept == [name for name in map(now.label, now.instances) if name != "c (task 7)"]
