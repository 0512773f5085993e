"""Rebalance: what a request comes to, what is refused, and who has to move for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.errors import InvalidTopologyException
from storm_py.nimbus.executors import ExecutorDetails, compute_executors, make_groups
from storm_py.nimbus.lifecycle import RebalanceOptions
from storm_py.nimbus.rebalance import (
    Changes,
    Parallelism,
    RebalancePlan,
    changes,
    check_request,
    plan_rebalance,
)
from storm_py.nimbus.scheduler import SupervisorDetails, TopologyDetails, schedule
from tests.placements import assigned, executor, groups

ID = "words-1-1700000000"
TASKS = {"count": range(1, 9), "split": range(9, 11), "words": range(11, 12)}
BEFORE = Parallelism(2, {"count": 2, "split": 2, "words": 1})
PLENTY = [SupervisorDetails(id_, id_, frozenset(range(8))) for id_ in "abc"]


def plan(workers: int | None = None, **executors: int) -> RebalancePlan:
    return plan_rebalance(ID, TASKS, BEFORE, RebalanceOptions(None, workers, executors))


def carried_out(
    tasks: Mapping[str, range], before: Parallelism, request: RebalanceOptions
) -> tuple[RebalancePlan, TopologyDetails, Changes]:
    """The plan, the topology as it was, and what changes, in a cluster with plenty of slots."""
    old = make_groups(compute_executors(tasks, before.num_executors))
    running = TopologyDetails(ID, before.num_workers, old)
    place = schedule([running], PLENTY)[ID].executor_to_slot
    found = plan_rebalance(ID, tasks, before, request)
    asked = TopologyDetails(ID, found.after.num_workers, found.groups, place)
    return found, asked, changes(place, schedule([asked], PLENTY)[ID].executor_to_slot)


class TestPlans:
    def test_more_executors_cut_the_same_tasks_anew(self) -> None:
        found = plan(count=4)
        assert found.after == Parallelism(2, {"count": 4, "split": 2, "words": 1})
        assert found.groups == groups("count1-2 count3-4 count5-6 count7-8 split9 split10 words11")
        assert (found.changed, found.empty, found.capped) == (("count",), False, {})

    def test_workers_may_be_changed_alone(self) -> None:
        found = plan(workers=3)
        assert found.after == replace(BEFORE, num_workers=3)
        assert (found.changed, found.empty) == ((), False)

    def test_all_may_be_changed_at_once(self) -> None:
        found = plan(workers=1, count=1, split=1)
        assert found.after == Parallelism(1, {"count": 1, "split": 1, "words": 1})
        assert found.groups == groups("count1-8 split9-10 words11")
        assert found.changed == ("count", "split")

    @pytest.mark.parametrize("executors", [{}, {"count": 2}, {"words": 1, "split": 2}])
    @pytest.mark.parametrize("workers", [None, 2])
    def test_to_ask_for_what_there_is_changes_nothing(
        self, workers: int | None, executors: dict[str, int]
    ) -> None:
        found = plan(workers, **executors)
        assert found.empty
        assert found.changed == ()

    def test_more_executors_than_tasks_are_as_many_as_tasks(self) -> None:
        found = plan(count=20, split=2, words=2)
        assert found.after.num_executors == {"count": 8, "split": 2, "words": 1}
        assert found.capped == {"count": 20, "words": 2}
        assert found.changed == ("count",)

    def test_who_is_fused_follows_from_the_new_numbers(self) -> None:
        def heads(num_executors: Mapping[str, int]) -> dict[str, str]:
            same = num_executors["split"] == num_executors["words"]
            return {"split": "words"} if same else {}

        request = RebalanceOptions(num_executors={"split": 1})
        found = plan_rebalance(ID, TASKS, BEFORE, request, heads)
        assert found.groups == groups("count1-4 count5-8 words11+split9-10")


class TestRefusals:
    @pytest.mark.parametrize(
        ("request_", "message"),
        [
            (
                RebalanceOptions(num_workers=0),
                f"Number of workers must be greater than 0: {ID} cannot be rebalanced to 0; "
                "deactivate it to pause it, or kill it",
            ),
            (
                RebalanceOptions(num_executors={"count": 0}),
                f"Number of executors must be greater than 0: 'count' of {ID} cannot be rebalanced "
                "to 0; it has 2",
            ),
            (
                RebalanceOptions(num_executors={"count": 4, "split": -1}),
                f"Number of executors must be greater than 0: 'split' of {ID} cannot be rebalanced "
                "to -1; it has 2",
            ),
            (
                RebalanceOptions(num_executors={"cuont": 4}),
                f"{ID} has no component 'cuont' to rebalance, only: count, split, words; "
                "did you mean 'count'?",
            ),
            (
                RebalanceOptions(num_executors={"__acker": 4}),
                f"{ID} has no component '__acker' to rebalance, only: count, split, words",
            ),
        ],
    )
    def test_a_request_is_refused(self, request_: RebalanceOptions, message: str) -> None:
        with pytest.raises(InvalidTopologyException) as caught:
            check_request(ID, BEFORE.num_executors, request_)
        assert str(caught.value) == message
        with pytest.raises(InvalidTopologyException):
            plan_rebalance(ID, TASKS, BEFORE, request_)


class TestChanges:
    def test_each_executor_is_told_once(self) -> None:
        before = assigned(a_1="x1 x2 y3-4", b_1="z5")
        found = changes(before, assigned(a_1="x1 y3", b_1="x2 y4", c_1="z5"))
        assert found == Changes(
            stayed=(executor("x1"),),
            moved=(executor("x2"), executor("z5")),
            started=(executor("y3"), executor("y4")),
            stopped=(executor("y3-4"),),
        )

    def test_from_two_to_four_executors_all_others_stay(self) -> None:
        _, _, found = carried_out(TASKS, BEFORE, RebalanceOptions(num_executors={"count": 4}))
        assert found.stayed == tuple(map(executor, ["split9", "split10", "words11"]))
        assert found.moved == ()

    def test_from_one_worker_to_two_half_of_each_component_moves(self) -> None:
        before = Parallelism(1, {"count": 4, "split": 2, "words": 1})
        _, _, found = carried_out(TASKS, before, RebalanceOptions(num_workers=2))
        assert found.moved == tuple(map(executor, ["count5-6", "count7-8", "split10"]))
        assert (found.started, found.stopped) == ((), ())


@st.composite
def requests(draw: st.DrawFn) -> tuple[dict[str, range], Parallelism, RebalanceOptions]:
    """Tasks, parallelism, and a request that is not refused."""
    tasks: dict[str, range] = {}
    start = 1
    for name in "wxyz"[: draw(st.integers(1, 4))]:
        tasks[name] = range(start, start + draw(st.integers(1, 6)))
        start = tasks[name].stop
    parallelism = {name: draw(st.integers(1, len(own))) for name, own in tasks.items()}
    asked = draw(st.dictionaries(st.sampled_from(sorted(tasks)), st.integers(1, 8)))
    workers = draw(st.none() | st.integers(1, 6))
    before = Parallelism(draw(st.integers(1, 6)), parallelism)
    return tasks, before, RebalanceOptions(None, workers, asked)


@given(requests())
def test_tasks_never_change_and_each_is_in_one_executor(
    given_: tuple[dict[str, range], Parallelism, RebalanceOptions],
) -> None:
    """So every key stays on its task: which that is depends on the tasks of a component alone."""
    tasks, before, request = given_
    found = plan_rebalance(ID, tasks, before, request)
    executors = [one for group in found.groups for one in group]
    for component_id, own in tasks.items():
        ranges = sorted(one for one in executors if one.component_id == component_id)
        assert [task for one in ranges for task in one.tasks] == list(own)
        assert len(ranges) == found.after.num_executors[component_id]


@given(requests())
def test_a_request_twice_is_a_request_once(
    given_: tuple[dict[str, range], Parallelism, RebalanceOptions],
) -> None:
    tasks, before, request = given_
    first = plan_rebalance(ID, tasks, before, request)
    assert plan_rebalance(ID, tasks, first.after, request).empty


@given(requests())
def test_an_empty_plan_moves_nothing(
    given_: tuple[dict[str, range], Parallelism, RebalanceOptions],
) -> None:
    tasks, before, request = given_
    plan_, asked, found = carried_out(tasks, before, request)
    if plan_.empty:
        assert found.stayed == tuple(sorted(asked.assigned))
        assert (found.moved, found.started, found.stopped) == ((), (), ())


@given(requests())
def test_with_as_many_workers_only_executors_that_are_cut_anew_move(
    given_: tuple[dict[str, range], Parallelism, RebalanceOptions],
) -> None:
    """Unless there are too few of them to keep each worker busy."""
    tasks, before, request = given_
    plan_, asked, found = carried_out(tasks, before, replace(request, num_workers=None))
    same = {one for group in plan_.groups for one in group} & asked.assigned.keys()
    busy = len({asked.assigned[one] for one in same})
    if busy + len(plan_.groups) - len(same) >= asked.wanted_workers:
        assert set(found.stayed) == same
    assert {one.component_id for one in (*found.started, *found.stopped)} <= set(plan_.changed)


@given(requests())
def test_the_executors_of_components_that_do_not_change_are_the_same(
    given_: tuple[dict[str, range], Parallelism, RebalanceOptions],
) -> None:
    tasks, before, request = given_
    plan_, asked, _ = carried_out(tasks, before, request)

    def unchanged(executors: set[ExecutorDetails]) -> set[ExecutorDetails]:
        return {one for one in executors if one.component_id not in plan_.changed}

    after = {one for group in plan_.groups for one in group}
    assert unchanged(after) == unchanged(set(asked.assigned))
