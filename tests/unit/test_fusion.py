"""Fusion: which components share the processes of the one they read from, and where those are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.api.grouping import GroupingKind
from storm_py.api.spec import ComponentSpec, StormTopology
from storm_py.config import Config, defaults, merge
from storm_py.core.fusion import fused
from storm_py.core.plan import PhysicalPlan, dump_plan, load_plan, make_plan
from storm_py.engine.system import system_topology
from storm_py.testing.random_components import NoConsumer
from tests.builders import ALL, GLOBAL, LOCAL, NONE, SHUFFLE, bolt, by, by_two, plan_of, spout

CONF = defaults()


def heads(*specs: ComponentSpec, **conf: object) -> dict[str, str]:
    return fused(StormTopology({spec.id: spec for spec in specs}), {**CONF, **conf})


def own(spec: ComponentSpec, **conf: object) -> ComponentSpec:
    return replace(spec, config={"storm_py.fuse": conf["fuse"]})


def fused_plan(*specs: ComponentSpec, workers: int = 1) -> PhysicalPlan:
    return plan_of(*specs, workers=workers, fuse=True)


def layout(plan: PhysicalPlan) -> list[tuple[int, list[tuple[str, tuple[int, ...]]]]]:
    """Worker, and what runs there in one process."""
    return [
        (members[0].worker, [(member.component_id, member.tasks) for member in members])
        for members in plan.instances.values()
    ]


class TestRules:
    def test_a_bolt_that_reads_one_component_by_local_or_shuffle_joins_it(self) -> None:
        assert heads(spout("a"), bolt("b", {"a": LOCAL})) == {"b": "a"}

    def test_a_chain_joins_its_first(self) -> None:
        specs = spout("a"), bolt("b", {"a": LOCAL}, "x"), bolt("c", {"b": LOCAL})
        assert heads(*specs) == {"b": "a", "c": "a"}

    def test_several_bolts_join_one_source(self) -> None:
        specs = spout("a"), bolt("b", {"a": LOCAL}), bolt("c", {"a": LOCAL})
        assert heads(*specs) == {"b": "a", "c": "a"}

    def test_a_chain_may_begin_with_a_bolt(self) -> None:
        specs = spout("a"), bolt("b", "a", "x"), bolt("c", {"b": LOCAL})
        assert heads(*specs) == {"c": "b"}

    def test_several_streams_of_one_component_are_one_source(self) -> None:
        specs = spout("a", "x; side: y"), bolt("b", {"a": LOCAL, "a:side": LOCAL})
        assert heads(*specs) == {"b": "a"}

    @pytest.mark.parametrize("other", [SHUFFLE, ALL, GLOBAL, NONE, by("value"), by_two("value")])
    def test_no_other_grouping_will_do(self, other: Any) -> None:
        assert heads(spout("a"), bolt("b", {"a": other})) == {}

    def test_each_stream_has_to_come_by_local_or_shuffle(self) -> None:
        specs = spout("a", "x; side: y"), bolt("b", {"a": LOCAL, "a:side": SHUFFLE})
        assert heads(*specs) == {}

    def test_a_second_source_forbids_it(self) -> None:
        assert heads(spout("a"), spout("b"), bolt("c", {"a": LOCAL, "b": LOCAL})) == {}

    def test_tasks_have_to_be_as_many(self) -> None:
        assert heads(spout("a", tasks=2), bolt("b", {"a": LOCAL}, tasks=3)) == {}

    def test_executors_have_to_be_as_many(self) -> None:
        specs = spout("a", tasks=4, executors=2), bolt("b", {"a": LOCAL}, tasks=4, executors=4)
        assert heads(*specs) == {}

    def test_other_consumers_of_the_source_do_not_matter(self) -> None:
        specs = spout("a"), bolt("b", {"a": LOCAL}), bolt("c", {"a": SHUFFLE}, tasks=3)
        assert heads(*specs) == {"b": "a"}

    def test_the_topology_may_forbid_it(self) -> None:
        assert heads(spout("a"), bolt("b", {"a": LOCAL}), **{"storm_py.fuse": False}) == {}

    def test_a_component_may_forbid_it_for_itself(self) -> None:
        specs = spout("a"), own(bolt("b", {"a": LOCAL}, "x"), fuse=False), bolt("c", {"b": LOCAL})
        assert heads(*specs) == {"c": "b"}

    def test_a_component_may_ask_for_it_where_the_topology_forbids_it(self) -> None:
        specs = spout("a"), own(bolt("b", {"a": LOCAL}, "x"), fuse=True), bolt("c", {"b": LOCAL})
        assert heads(*specs, **{"storm_py.fuse": False}) == {"b": "a"}

    def test_a_cycle_has_no_beginning(self) -> None:
        specs = spout("a"), bolt("b", {"c": LOCAL}, "x"), bolt("c", {"b": LOCAL}, "x")
        assert heads(*specs, bolt("d", {"d": LOCAL}, "x"), bolt("e", {"d": LOCAL})) == {}

    def test_metrics_consumers_keep_their_own_processes(self) -> None:
        conf = Config()
        conf.register_metrics_consumer(NoConsumer)
        merged = merge(defaults(), dict(conf))
        topology = StormTopology({"a": spout("a"), "b": bolt("b", {"a": LOCAL})})
        whole = system_topology(topology, merged)
        assert len(whole.components) == 3
        assert fused(whole, merged) == {"b": "a"}


class TestLayout:
    def test_executor_by_executor_they_share_an_instance(self) -> None:
        plan = fused_plan(
            spout("a", tasks=4, executors=2),
            bolt("b", {"a": LOCAL}, "x", tasks=4, executors=2),
            bolt("c", {"b": by("x")}, tasks=3),
            workers=2,
        )
        assert layout(plan) == [
            (0, [("a", (1, 2)), ("b", (5, 6))]),
            (1, [("a", (3, 4)), ("b", (7, 8))]),
            *((0, [("c", (9,))]), (1, [("c", (10,))]), (0, [("c", (11,))])),
        ]
        assert [(e.id, e.instance) for e in plan.executors] == [
            *((1, 1), (2, 2), (3, 1), (4, 2)),
            *((5, 5), (6, 6), (7, 7)),
        ]

    def test_the_order_of_names_is_not_that_of_the_chain(self) -> None:
        plan = fused_plan(spout("c"), bolt("b", {"c": LOCAL}, "x"), bolt("a", {"b": LOCAL}))
        assert layout(plan) == [(0, [("c", (3,)), ("b", (2,)), ("a", (1,))])]
        assert plan.tasks_in(3) == (3, 2, 1)

    def test_each_is_behind_the_one_that_it_reads_from(self) -> None:
        plan = fused_plan(
            spout("m"),
            bolt("z", {"m": LOCAL}, "x"),
            bolt("y", {"m": LOCAL}, "x"),
            bolt("a", {"z": LOCAL}),
            bolt("b", {"y": LOCAL}),
        )
        (members,) = plan.instances.values()
        names = [member.component_id for member in members]
        assert names[0] == "m"
        assert names.index("z") < names.index("a")
        assert names.index("y") < names.index("b")

    def test_an_instance_is_called_after_all_of_its_components(self) -> None:
        plan = fused_plan(spout("a", tasks=2), bolt("b", {"a": LOCAL}, tasks=2), bolt("c", "a"))
        labels = [plan.label(instance) for instance in plan.instances]
        assert labels == ["a + b (tasks 1, 3)", "a + b (tasks 2, 4)", "c (task 5)"]

    def test_the_file_of_the_plan_keeps_it(self) -> None:
        plan = fused_plan(spout("a", tasks=2), bolt("b", {"a": LOCAL}, tasks=2), workers=2)
        assert layout(load_plan(dump_plan(plan))) == layout(plan)

    def test_rows_go_to_the_tasks_of_the_same_instance(self) -> None:
        plan = fused_plan(
            spout("a", tasks=4, executors=2),
            bolt("b", {"a": LOCAL}, tasks=4, executors=2),
            bolt("c", {"a": SHUFFLE}),
        )
        first, second, *_ = plan.executors
        assert (plan.handed(first), plan.handed(second)) == ((5, 6), (7, 8))
        assert plan.receivers(first) == plan.receivers(second) == {9}
        near, far = plan.targets("a", second)["default"]
        assert (near.candidates, far.candidates) == ((7, 8), (9,))

    def test_what_goes_back_to_the_head_is_sent(self) -> None:
        """A row of `b` may go to any task of `a`, and only one of them is here."""
        plan = fused_plan(
            spout("s"),
            bolt("a", {"s": SHUFFLE, "b": LOCAL}, "x", tasks=2),
            bolt("b", {"a": LOCAL}, "x", tasks=2),
        )
        (a, _, b, _, _) = plan.executors
        assert layout(plan)[0] == (0, [("a", (1,)), ("b", (3,))])
        assert (plan.handed(a), plan.handed(b)) == ((3,), ())
        assert plan.receivers(b) == {1, 2}

    @settings(max_examples=100)
    @given(st.data())
    def test_laws(self, data: st.DataObject) -> None:
        """Executors and tasks are what they are unfused; an instance is a chain on one worker."""
        specs = [spout("s", tasks=data.draw(st.integers(1, 3)))]
        for i in range(data.draw(st.integers(1, 5))):
            name = data.draw(st.sampled_from("abz")) + str(i)
            heard = data.draw(st.lists(st.sampled_from(specs), min_size=1, max_size=2))
            inputs = {
                spec.id: data.draw(st.sampled_from([LOCAL, LOCAL, SHUFFLE])) for spec in heard
            }
            specs.append(bolt(name, inputs, "value", tasks=data.draw(st.integers(1, 3))))
        workers = data.draw(st.integers(1, 3))
        plan, plain = fused_plan(*specs, workers=workers), plan_of(*specs, workers=workers)
        assert [(e.id, e.component_id, e.tasks) for e in plan.executors] == [
            (e.id, e.component_id, e.tasks) for e in plain.executors
        ]
        assert sorted(e.id for members in plan.instances.values() for e in members) == [
            e.id for e in plan.executors
        ]
        for instance, (head, *rest) in plan.instances.items():
            assert head.id == instance
            seen = {head.component_id}
            for member in rest:
                assert (member.worker, member.instance) == (head.worker, instance)
                (before,) = plan.upstream(member.component_id)
                assert before in seen
                seen.add(member.component_id)
                (source,) = (e for e in (head, *rest) if e.component_id == before)
                (target,) = (
                    target
                    for target in plan.targets(before, source)["default"]
                    if target.component_id == member.component_id
                )
                assert target.kind is GroupingKind.LOCAL_OR_SHUFFLE
                assert target.candidates == member.tasks
        sizes = [len(plan.instances_on(worker)) for worker in plan.workers]
        assert max(sizes) - min(sizes) <= 1


def test_a_default_run_is_fused() -> None:
    topology = StormTopology({"a": spout("a"), "b": bolt("b", {"a": LOCAL})})
    assert list(make_plan("t-1", topology, defaults(), 1).instances) == [1]
