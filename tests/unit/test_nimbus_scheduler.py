"""EvenScheduler, by example: worked out by hand from Storm's algorithm, and where it differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storm_py.nimbus.executors import Group
from storm_py.nimbus.scheduler import SchedulerAssignment, TopologyDetails, interleaved, schedule
from tests.builders import LOCAL, bolt, plan_of, spout
from tests.placements import after, executor, groups, placed, shown, slot, supervisors, topology


class TestSlotsTakeTurns:
    def test_the_example_in_storms_own_source(self) -> None:
        given = "s1:0 s1:1 s2:0 s2:1 s2:2 s3:0 s3:3 s3:2 s3:1"
        assert [str(one) for one in interleaved(map(slot, given.split()))] == (
            ["s3:0", "s2:0", "s1:0", "s3:1", "s2:1", "s1:1", "s3:2", "s2:2", "s3:3"]
        )

    def test_there_may_be_none(self) -> None:
        assert interleaved([]) == []


class TestWhatIsNew:
    def test_executors_go_round_the_slots_and_slots_round_the_supervisors(self) -> None:
        assert placed(topology("x1 x2 x3 y4 y5", 3), "a:1 a:2 b:1 b:2") == {
            "a:1": "x1 y4",
            "b:1": "x2 y5",
            "a:2": "x3",
        }

    def test_the_supervisor_with_the_most_free_slots_comes_first(self) -> None:
        assert placed(topology("x1 x2 x3", 3), "a:1 b:1 b:2") == {
            "b:1": "x1",
            "a:1": "x2",
            "b:2": "x3",
        }

    def test_executors_of_several_tasks_are_dealt_by_their_first_task(self) -> None:
        assert placed(topology("y9-9 x1-4 x5-8", 2), "a:1 a:2") == {"a:1": "x1-4 y9", "a:2": "x5-8"}

    def test_no_more_workers_than_groups(self) -> None:
        assert placed(topology("x1 x2", 4), "a:1 a:2 a:3 a:4") == {"a:1": "x1", "a:2": "x2"}

    def test_a_fused_chain_is_one_process_in_one_slot(self) -> None:
        one = topology("x1+y3 x2+y4 z5", 2)
        assert placed(one, "a:1 b:1") == {"a:1": "x1 y3 z5", "b:1": "x2 y4"}

    @pytest.mark.parametrize("workers", [1, 2, 3])
    @pytest.mark.parametrize("fuse", [True, False])
    def test_it_deals_as_local_mode_does(self, workers: int, fuse: bool) -> None:
        specs = (
            spout("a", tasks=3, executors=3),
            bolt("b", {"a": LOCAL}, "x", tasks=3, executors=3),
            bolt("c", "b", tasks=5, executors=2),
        )
        plan = plan_of(*specs, workers=workers, fuse=fuse)
        text = " ".join(
            "+".join(f"{e.component_id}{e.tasks[0]}-{e.tasks[-1]}" for e in members)
            for members in plan.instances.values()
        )
        one = topology(text, workers)
        found = schedule([one], supervisors("a:0 a:1 a:2"))[one.id].executor_to_slot
        assert {(e.tasks[0], e.worker) for e in plan.executors} == {
            (e.start_task, place.port) for e, place in found.items()
        }


class TestSeveralTopologies:
    def test_each_gets_slots_of_its_own(self) -> None:
        first, second = topology("x1 x2", 2, "p-1-0"), topology("x1 x2", 2, "q-2-0")
        found = schedule([first, second], supervisors("a:1 a:2 b:1 b:2"))
        assert shown(found["p-1-0"]) == {"a:1": "x1", "b:1": "x2"}
        assert shown(found["q-2-0"]) == {"a:2": "x1", "b:2": "x2"}

    def test_the_one_that_was_launched_first_is_served_first(self) -> None:
        first = replace(topology("x1 x2", 2, "q-1-5"), launch_time_secs=5)
        second = replace(topology("x1 x2", 2, "p-2-6"), launch_time_secs=6)
        found = schedule([second, first], supervisors("a:1 a:2 a:3"))
        assert shown(found["q-1-5"]) == {"a:1": "x1", "a:2": "x2"}
        assert shown(found["p-2-6"]) == {"a:3": "x1 x2"}

    def test_who_has_a_slot_keeps_it_whoever_else_wants_it(self) -> None:
        first = topology("x1 x2", 2, "p-1-0")
        second = replace(topology("x1", 1, "q-2-0", a_1="x1"), launch_time_secs=9)
        found = schedule([first, second], supervisors("a:1 a:2"))
        assert shown(found["p-1-0"]) == {"a:2": "x1 x2"}
        assert shown(found["q-2-0"]) == {"a:1": "x1"}

    def test_of_two_in_one_slot_the_first_stays(self) -> None:
        first, second = topology("x1", 1, "p-1-0", a_1="x1"), topology("x1", 1, "q-2-0", a_1="x1")
        found = schedule([first, second], supervisors("a:1 a:2"))
        assert shown(found["p-1-0"]) == {"a:1": "x1"}
        assert shown(found["q-2-0"]) == {"a:2": "x1"}

    def test_what_one_leaves_another_gets_at_once(self) -> None:
        squeezed = topology("x1 x2", 2, "p-1-0", a_1="x1 x2")
        smaller = topology("x1 x2", 1, "q-2-0", b_1="x1", b_2="x2")
        found = schedule([squeezed, smaller], supervisors("a:1 b:1 b:2"))
        assert shown(found["q-2-0"]) == {"b:1": "x1 x2"}
        assert shown(found["p-1-0"]) == {"a:1": "x1", "b:2": "x2"}


class TestLackOfSlots:
    def complaint(self, one: TopologyDetails, text: str) -> str | None:
        return self.found(one, text).complaint

    def found(self, one: TopologyDetails, text: str) -> SchedulerAssignment:
        return schedule([one], supervisors(text))[one.id]

    def test_who_has_all_it_wants_does_not_complain(self) -> None:
        assert self.complaint(topology("x1 x2", 9), "a:1 a:2") is None

    def test_it_gets_what_there_is(self) -> None:
        one = topology("x1 x2 x3", 3)
        assert placed(one, "a:1 b:1") == {"a:1": "x1 x3", "b:1": "x2"}
        assert self.complaint(one, "a:1 b:1") == (
            "t-1-0 wants 3 slots and has 2: start another supervisor, "
            "give one more supervisor.slots.ports, or kill a topology"
        )

    def test_without_slots_nothing_is_assigned(self) -> None:
        one = topology("x1+y3 x2+y4", 3)
        found = self.found(one, "")
        assert (found.executor_to_slot, found.slots) == ({}, ())
        assert found.unassigned == tuple(map(executor, ["x1", "x2", "y3", "y4"]))
        assert found.complaint == (
            "t-1-0 wants 2 slots and has 0, 4 executors have none: start another supervisor, "
            "give one more supervisor.slots.ports, or kill a topology"
        )

    def test_when_there_are_more_each_slot_gives_up_what_is_over_its_share(self) -> None:
        # Storm empties both slots and deals all six executors out anew.
        one = topology("x1 x2 x3 x4 x5 x6", 3, a_1="x1 x3 x5", b_1="x2 x4 x6")
        assert placed(one, "a:1 b:1 c:1") == {"a:1": "x1 x3", "b:1": "x2 x4", "c:1": "x5 x6"}

    def test_what_is_given_up_leaves_each_component_spread(self) -> None:
        one = topology("x1 x2 x3 x4 y5 y6 y7 y8", 2, a_1="x1 x2 x3 x4 y5 y6 y7 y8")
        assert placed(one, "a:1 a:2") == {"a:1": "x1 x2 y5 y6", "a:2": "x3 x4 y7 y8"}

    def test_the_fullest_slots_keep_the_larger_shares(self) -> None:
        one = topology("x1 x2 x3 x4", 3, a_1="x1", b_1="x2 x3 x4")
        assert placed(one, "a:1 b:1 c:1") == {"a:1": "x1", "b:1": "x2 x3", "c:1": "x4"}


class TestLosses:
    ONE = topology("x1 x2 x3 x4 x5 x6", 3, a_1="x1 x4", b_1="x2 x5", c_1="x3 x6")

    def lost(self, text: str, *dead: str) -> dict[str, str]:
        return placed(replace(self.ONE, dead=frozenset(map(executor, dead))), text)

    def test_nothing_moves_while_nothing_changes(self) -> None:
        assert self.lost("a:1 b:1 c:1 d:1 e:1 e:2") == {
            "a:1": "x1 x4",
            "b:1": "x2 x5",
            "c:1": "x3 x6",
        }

    def test_nor_however_uneven_it_is(self) -> None:
        one = topology("x1 x2 x3 x4", 2, a_1="x1 x2 x3", b_1="x4")
        assert placed(one, "a:1 b:1 c:1") == {"a:1": "x1 x2 x3", "b:1": "x4"}

    def test_another_slot_takes_all_that_was_lost(self) -> None:
        assert self.lost("a:1 a:2 b:1 b:2", "x3", "x6") == {
            "a:1": "x1 x4",
            "b:1": "x2 x5",
            "a:2": "x3 x6",
        }

    def test_the_larger_share_goes_there_too(self) -> None:
        one = topology("x1 x2 x3 y4 y5 y6 y7", 3, a_1="x1 x2 x3", b_1="y4 y5", c_1="y6 y7")
        dead = frozenset(map(executor, ["x1", "x2", "x3"]))
        assert placed(replace(one, dead=dead), "a:2 b:1 c:1") == {
            "a:2": "x1 x2 x3",
            "b:1": "y4 y5",
            "c:1": "y6 y7",
        }

    def test_without_another_slot_those_that_are_left_take_it_in(self) -> None:
        # Storm empties the others as well, and x4 and x5 change places.
        assert self.lost("a:1 b:1", "x3", "x6") == {"a:1": "x1 x3 x4", "b:1": "x2 x5 x6"}

    def test_of_equals_the_one_that_has_fewer_of_the_component(self) -> None:
        one = topology("x1 x2 y3 y4 y5", 3, a_1="y3 y4", b_1="x1 x2", c_1="y5")
        dead = replace(one, dead=frozenset({executor("y5")}))
        assert placed(dead, "a:1 b:1") == {"a:1": "y3 y4", "b:1": "x1 x2 y5"}

    def test_what_was_dealt_out_before_counts(self) -> None:
        one = topology("y1 y2 z5 z6 z7", 3, a_1="z5", b_1="z6 z7", c_1="y1 y2")
        dead = replace(one, dead=frozenset(map(executor, ["y1", "y2"])))
        assert placed(dead, "a:1 b:1") == {"a:1": "y1 z5", "b:1": "y2 z6 z7"}

    def test_one_dead_executor_is_a_dead_worker_and_its_slot_is_not_used_in_this_round(
        self,
    ) -> None:
        assert self.lost("a:1 b:1 c:1 c:2", "x3") == {
            "a:1": "x1 x4",
            "b:1": "x2 x5",
            "c:2": "x3 x6",
        }

    def test_nor_is_it_by_others(self) -> None:
        other = topology("x1", 1, "u-2-0")
        one = replace(self.ONE, dead=frozenset({executor("x3")}))
        found = schedule([one, other], supervisors("a:1 b:1 c:1"))
        assert shown(found["t-1-0"]) == {"a:1": "x1 x3 x4", "b:1": "x2 x5 x6"}
        assert found["u-2-0"].unassigned == (executor("x1"),)

    def test_in_the_next_round_it_is(self) -> None:
        one = topology("x1", 1, a_1="x1")
        dead = replace(one, dead=frozenset({executor("x1")}))
        found = schedule([dead], supervisors("a:1"))
        assert found["t-1-0"].unassigned == (executor("x1"),)
        assert placed(after(one, found), "a:1") == {"a:1": "x1"}

    def test_workers_whose_supervisor_is_gone_run_on(self) -> None:
        assert self.lost("a:1 b:1") == {"a:1": "x1 x4", "b:1": "x2 x5", "c:1": "x3 x6"}
        assert self.lost("d:1 d:2") == {"a:1": "x1 x4", "b:1": "x2 x5", "c:1": "x3 x6"}

    def test_but_they_get_nothing_new(self) -> None:
        assert self.lost("a:1 c:1", "x1") == {"b:1": "x2 x5", "c:1": "x1 x3 x4 x6"}

    def test_a_blacklisted_host_keeps_what_it_has_and_gets_nothing_new(self) -> None:
        one = replace(self.ONE, dead=frozenset({executor("x3")}))
        found = schedule([one], supervisors("a:1 a:2 b:1 b:2 c:1"), frozenset({"host-a"}))
        assert shown(found["t-1-0"]) == {"a:1": "x1 x4", "b:1": "x2 x5", "b:2": "x3 x6"}

    def test_with_nowhere_to_put_what_is_new_a_worker_without_supervisor_is_left(self) -> None:
        one = topology("x1 x2 y3 y4", 1, a_1="x1 x2 y3-4")
        assert placed(one, "b:1") == {"b:1": "x1 x2 y3 y4"}

    def test_of_several_the_one_that_runs_the_least(self) -> None:
        one = topology("x1 x2 x3 y4 y5", 2, a_1="x1 x2", b_1="x3 y4-5")
        assert placed(one, "c:1") == {"a:1": "x1 x2", "c:1": "x3 y4 y5"}

    def test_and_all_that_are_too_many(self) -> None:
        one = topology("x1 x2 x3 y4 y5", 1, a_1="x1 x2", b_1="x3 y4-5")
        assert placed(one, "c:1 c:2") == {"c:1": "x1 x2 x3 y4 y5"}

    def test_but_not_as_long_as_there_is_no_other_slot(self) -> None:
        one = topology("x1 x2 y3 y4", 1, a_1="x1 x2 y3-4")
        found = schedule([one], [])[one.id]
        assert shown(found) == {"a:1": "x1 x2"}
        assert found.unassigned == (executor("y3"), executor("y4"))


class TestFewerWorkers:
    def test_the_fullest_slots_stay(self) -> None:
        one = topology("x1 x2 x3 x4", 2, a_1="x1", b_1="x2", c_1="x3 x4")
        assert placed(one, "a:1 b:1 c:1") == {"a:1": "x1 x2", "c:1": "x3 x4"}

    def test_of_equals_those_stay_that_are_spread_over_the_supervisors(self) -> None:
        one = topology("x1 x2 x3", 2, a_1="x1", a_2="x2", b_1="x3")
        assert placed(one, "a:1 a:2 b:1") == {"a:1": "x1 x2", "b:1": "x3"}

    def test_what_is_uneven_is_made_even(self) -> None:
        one = topology("x1 x2 x3 x4 x5 x6", 2, a_1="x1 x2 x3 x4", b_1="x5", c_1="x6")
        assert placed(one, "a:1 b:1 c:1") == {"a:1": "x1 x2 x3", "b:1": "x4 x5 x6"}

    def test_a_worker_without_supervisor_is_left_first(self) -> None:
        one = topology("x1 x2 x3", 1, a_1="x1", b_1="x2 x3")
        assert placed(one, "a:1") == {"a:1": "x1 x2 x3"}
        one = topology("x1 x2 x3 x4 x5", 2, a_1="x1", b_1="x2 x3", c_1="x4 x5")
        assert placed(one, "a:1") == {"a:1": "x1 x4 x5", "b:1": "x2 x3"}

    def test_but_not_for_nothing(self) -> None:
        one = topology("x1 x2 x3", 1, a_1="x1 x2", b_1="x3")
        assert placed(one, "") == {"a:1": "x1 x2", "b:1": "x3"}
        assert placed(one, "c:1 c:2") == {"a:1": "x1 x2", "b:1": "x3"}


class TestOtherExecutors:
    """After a rebalance the present assignment speaks of executors that no longer exist."""

    def test_only_what_is_cut_differently_moves(self) -> None:
        one = topology("x1 x2 y3 y4 y5 y6", 2, a_1="x1 y3-4", b_1="x2 y5-6")
        assert placed(one, "a:1 b:1") == {"a:1": "x1 y3 y5", "b:1": "x2 y4 y6"}

    def test_a_worker_of_which_nothing_is_left_is_used_for_what_is_new(self) -> None:
        one = topology("x1 y3-4", 2, a_1="x1", c_1="y3 y4")
        assert placed(one, "a:1 b:1 b:2 c:1") == {"a:1": "x1", "c:1": "y3-4"}
        one = topology("x1 y3-4 z5", 3, a_1="x1", c_1="y3 y4")
        assert placed(one, "a:1 b:1 b:2 c:1") == {"a:1": "x1", "b:1": "z5", "c:1": "y3-4"}

    def test_but_not_without_its_supervisor(self) -> None:
        one = topology("x1 y3-4", 2, a_1="x1", c_1="y3 y4")
        assert placed(one, "a:1 b:1") == {"a:1": "x1", "b:1": "y3-4"}

    def test_with_more_workers_what_did_not_change_makes_it_even(self) -> None:
        one = topology("x1 x2 x3 x4 y5 y6", 2, a_1="x1 x2 x3 x4 y5-6")
        assert placed(one, "a:1 a:2") == {"a:1": "x1 x2 x3", "a:2": "x4 y5 y6"}

    def test_without_any_there_is_nothing_to_place(self) -> None:
        assert placed(topology("", 1, a_1="x1"), "a:1") == {}

    def test_a_slot_of_which_nothing_is_needed_is_left(self) -> None:
        one = topology("x1 y3-4", 4, a_1="x1", b_1="y3", c_1="y4")
        assert placed(one, "a:1 b:1 c:1") == {"a:1": "x1", "b:1": "y3-4"}

    def test_what_did_not_change_moves_only_to_a_worker_that_would_have_nothing_to_run(
        self,
    ) -> None:
        one = topology("x1 x2 y3-5", 4, a_1="x1 x2", b_1="y3", c_1="y4", d_1="y5")
        assert placed(one, "a:1 b:1 c:1 d:1") == {"a:1": "x1", "b:1": "x2", "c:1": "y3-5"}

    def test_those_who_are_fused_now_are_where_the_head_was(self) -> None:
        one = topology("x1+y3 x2+y4", 2, a_1="x1 y4", b_1="x2 y3")
        assert placed(one, "a:1 b:1") == {"a:1": "x1 y3", "b:1": "x2 y4"}

    def test_but_no_worker_is_left_with_nothing_to_run(self) -> None:
        one = topology("x1+y3 x2+y4", 2, a_1="x1 x2", b_1="y3 y4")
        assert placed(one, "a:1 b:1") == {"a:1": "x1 y3", "b:1": "x2 y4"}


class TestWhatIsNoTopology:
    def test_without_workers(self) -> None:
        with pytest.raises(ValueError, match=r"^t-1-0 asks for 0 workers; 1 is the least$"):
            topology("x1", 0)

    @pytest.mark.parametrize("text", ["x1+x1", "x1 x1", "x1+y2 y2"])
    def test_with_an_executor_in_two_groups(self, text: str) -> None:
        with pytest.raises(ValueError, match=r"^t-1-0 has executors in two groups: [xy] \["):
            topology(text, 1)

    def test_groups_are_read_as_they_are_written(self) -> None:
        expected: tuple[Group, ...] = ((executor("x1-2"), executor("y3")), (executor("z4"),))
        assert groups("x1-2+y3 z4") == expected
