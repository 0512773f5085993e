"""PhysicalPlan: how tasks are numbered, dealt out to workers and connected; and its file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.api.grouping import GroupingKind
from storm_py.api.spec import ComponentSpec
from storm_py.core.plan import ExecutorPlan, PhysicalPlan, dump_plan, load_plan, make_plan
from storm_py.core.plan import split_evenly as split
from storm_py.core.routing import Target
from tests.builders import (
    ALL,
    CUSTOM,
    DIRECT,
    GLOBAL,
    LOCAL,
    NONE,
    SHUFFLE,
    TOPOLOGY_ID,
    bolt,
    by,
    by_two,
    plan_of,
    spout,
)

groupings = st.sampled_from([SHUFFLE, ALL, GLOBAL, LOCAL, NONE, CUSTOM, by("a"), by_two("b", "a")])


@st.composite
def plans(draw: st.DrawFn) -> PhysicalPlan:
    """Spouts and bolts in any order of names; bolts hear anybody, themselves included."""
    names = draw(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5, unique=True))
    specs: list[ComponentSpec] = []
    for i, name in enumerate(names):
        tasks = draw(st.integers(1, 5))
        executors = draw(st.integers(1, tasks))
        streams = draw(st.sampled_from(["a b", "a b; s: b a", "a b; s: b a; d!: b"]))
        if i == 0 or draw(st.booleans()):
            specs.append(spout(name, streams, tasks, executors))
        else:
            heard = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
            specs.append(bolt(name, {h: draw(groupings) for h in heard}, streams, tasks, executors))
    return plan_of(*specs, workers=draw(st.integers(1, 4)))


class TestLaws:
    @settings(max_examples=50)
    @given(plans())
    def test_every_task_runs_in_one_executor_of_one_worker(self, plan: PhysicalPlan) -> None:
        tasks = [task for executor in plan.executors for task in executor.tasks]
        assert tasks == list(range(1, len(tasks) + 1)) == list(plan.task_to_component)
        assert [executor.id for executor in plan.executors] == list(
            range(1, len(plan.executors) + 1)
        )
        for executor in plan.executors:
            assert plan.executor(executor.id) is executor
            assert executor in plan.on_worker(executor.worker)
            for task in executor.tasks:
                assert plan.task_to_component[task] == executor.component_id
                assert plan.worker_of(task) == executor.worker

    @settings(max_examples=50)
    @given(plans())
    def test_components_get_what_they_asked_for_in_the_order_of_their_names(
        self, plan: PhysicalPlan
    ) -> None:
        ids = sorted(plan.topology.components)
        assert list(dict.fromkeys(plan.task_to_component.values())) == ids
        for spec in plan.topology.components.values():
            executors = [e for e in plan.executors if e.component_id == spec.id]
            assert len(executors) == spec.parallelism
            assert len(plan.tasks_of(spec.id)) == spec.num_tasks
            sizes = [len(executor.tasks) for executor in executors]
            assert max(sizes) - min(sizes) <= 1
            assert sizes == sorted(sizes, reverse=True)
            workers = Counter(dict.fromkeys(plan.workers, 0))
            workers.update(executor.worker for executor in executors)
            assert max(workers.values()) - min(workers.values()) <= 1

    @settings(max_examples=50)
    @given(plans())
    def test_who_sends_to_whom_from_both_sides(self, plan: PhysicalPlan) -> None:
        for one in plan.topology.components:
            for other in plan.topology.components:
                assert (other in plan.downstream(one)) == (one in plan.upstream(other))
            sent_to = {
                task
                for targets in plan.targets(one).values()
                for target in targets
                for task in target.tasks
            }
            assert plan.downstream_tasks(one) == tuple(sorted(sent_to))
            assert plan.upstream_tasks(one) == tuple(
                task for up in sorted(plan.upstream(one)) for task in plan.tasks_of(up)
            )

    @settings(max_examples=50)
    @given(plans())
    def test_cycles(self, plan: PhysicalPlan) -> None:
        def reachable(start: str) -> set[str]:
            found: set[str] = set()
            todo = list(plan.downstream(start))
            while todo:
                component = todo.pop()
                if component not in found:
                    found.add(component)
                    todo += plan.downstream(component)
            return found

        ids = plan.topology.components
        assert plan.cyclic_components() == tuple(sorted(c for c in ids if c in reachable(c)))
        for up in ids:
            for down in plan.downstream(up):
                assert plan.in_cycle(up, down) == (up == down or up in reachable(down))

    @settings(max_examples=50)
    @given(plans())
    def test_the_file_holds_all_of_it(self, plan: PhysicalPlan) -> None:
        loaded = load_plan(dump_plan(plan))
        assert loaded == plan
        for id, spec in plan.topology.components.items():
            assert loaded.topology.components[id] == spec
            assert loaded.targets(id) == plan.targets(id)
        assert dump_plan(loaded) == dump_plan(plan)


WORDS = plan_of(
    spout("words", "word n; side: a; picked!: b", tasks=2),
    bolt("count", {"words": by("n", "word"), "words:side": ALL}, "word", tasks=3, executors=2),
    bolt("show", {"count": GLOBAL, "words:picked": DIRECT}),
    workers=2,
)


class TestExample:
    def test_executors(self) -> None:
        assert WORDS.executors == (
            ExecutorPlan(1, "count", (1, 2), 0, 1),
            ExecutorPlan(2, "count", (3,), 1, 2),
            ExecutorPlan(3, "show", (4,), 0, 3),
            ExecutorPlan(4, "words", (5,), 1, 4),
            ExecutorPlan(5, "words", (6,), 0, 5),
        )
        assert WORDS.workers == (0, 1)
        assert [executor.id for executor in WORDS.on_worker(1)] == [2, 4]
        assert (WORDS.topology_id, WORDS.version) == (TOPOLOGY_ID, 1)

    def test_targets(self) -> None:
        assert WORDS.targets("words") == {
            "default": (Target("count", GroupingKind.FIELDS, (1, 2, 3), (1, 0)),),
            "side": (Target("count", GroupingKind.ALL, (1, 2, 3)),),
            "picked": (Target("show", GroupingKind.DIRECT, (4,)),),
        }
        assert WORDS.targets("show") == {}

    def test_channels(self) -> None:
        assert WORDS.upstream("show") == ("count", "words")
        assert WORDS.upstream_tasks("show") == (1, 2, 3, 5, 6)
        assert WORDS.downstream("words") == ("count", "show")
        assert WORDS.downstream_tasks("words") == (1, 2, 3, 4)
        assert WORDS.cyclic_components() == ()

    def test_receivers(self) -> None:
        """Where the grouping is local and a consumer is near, that one only."""
        words = [e for e in WORDS.executors if e.component_id == "words"]
        assert [WORDS.receivers(e) for e in words] == [{1, 2, 3, 4}] * 2
        near = plan_of(
            spout("words", "word", tasks=3), bolt("count", {"words": LOCAL}, tasks=2), workers=3
        )
        words = [e for e in near.executors if e.component_id == "words"]
        assert [near.receivers(e) for e in words] == [{1, 2}, {1}, {2}]
        assert near.receivers(near.executors[0]) == frozenset()

    def test_components_hold_no_object(self) -> None:
        topology = WORDS.topology
        with_objects = {
            id: ComponentSpec(id, s.kind, object(), 1, 1, s.streams, s.inputs, s.config)
            for id, s in topology.components.items()
        }
        plan = make_plan("x-1", type(topology)(with_objects), {}, 1)
        assert [spec.component for spec in plan.topology.components.values()] == [None] * 3

    def test_more_workers_than_executors(self) -> None:
        plan = plan_of(spout("a"), workers=5)
        assert (plan.workers, plan.on_worker(3)) == ((0,), ())

    def test_the_file_is_for_humans_too(self) -> None:
        plain = json.loads(dump_plan(WORDS))
        assert plain["format"] == 1
        assert plain["executors"][0] == [1, "count", [1, 2], 0, 1]

    def test_ids_may_have_gaps(self) -> None:
        kept = [e for e in WORDS.executors if e.component_id != "count"]
        moved = ExecutorPlan(17, "count", WORDS.tasks_of("count"), 1, 17)
        plan = replace(WORDS, executors=(*kept, moved), version=2)
        assert (plan.executor(17), plan.executor_of(1), plan.worker_of(1)) == (moved, moved, 1)
        assert plan.instances[17] == (moved,)
        assert load_plan(dump_plan(plan)) == plan

    @pytest.mark.parametrize("executor", [0, -1, 6])
    def test_there_is_no_such_executor(self, executor: int) -> None:
        with pytest.raises(IndexError):
            WORDS.executor(executor)


class TestRunsAlike:
    """Which processes may go on under another version."""

    PLAN = plan_of(spout("a", "v", 2), bolt("b", {"a": LOCAL}, "v", 2), bolt("c", "b"), workers=2)

    def moved(self, id_: int, worker: int) -> PhysicalPlan:
        executors = [replace(e, worker=worker) if e.id == id_ else e for e in self.PLAN.executors]
        return replace(self.PLAN, version=2, executors=tuple(executors))

    def kept(self, then: PhysicalPlan) -> list[int]:
        return [id_ for id_ in self.PLAN.instances if self.PLAN.runs_alike(id_, then)]

    def test_all_if_nothing_moves(self) -> None:
        assert self.kept(replace(self.PLAN, version=2)) == list(self.PLAN.instances)

    def test_who_moves_does_not_and_nobody_else_minds(self) -> None:
        [c] = [e for e in self.PLAN.executors if e.component_id == "c"]
        then = self.moved(c.id, 1 - c.worker)
        assert self.kept(then) == [id_ for id_ in self.PLAN.instances if id_ != c.id]

    def test_who_has_other_tasks_does_not(self) -> None:
        c = self.PLAN.executors[-1]
        then = replace(self.PLAN, executors=(*self.PLAN.executors[:-1], replace(c, tasks=(9,))))
        assert c.id not in self.kept(then)

    def test_one_that_is_gone_or_new_does_not(self) -> None:
        c = self.PLAN.executors[-1]
        then = replace(
            self.PLAN, executors=(*self.PLAN.executors[:-1], replace(c, id=9, instance=9))
        )
        assert (self.PLAN.runs_alike(c.id, then), self.PLAN.runs_alike(9, then)) == (False, False)

    def test_who_prefers_tasks_nearby_does_not_if_others_are_near(self) -> None:
        a, b = (self.PLAN.tasks_of(component)[0] for component in "ab")
        source, near = self.PLAN.executor_of(a), self.PLAN.executor_of(b)
        assert source.worker == near.worker
        assert source.id not in self.kept(self.moved(near.id, 1 - near.worker))


@given(st.lists(st.integers(), max_size=20), st.integers(1, 8))
def test_split_evenly(items: list[int], parts: int) -> None:
    ranges = split(items, parts)
    assert len(ranges) == parts
    assert [item for part in ranges for item in part] == items
    sizes = [len(part) for part in ranges]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1
