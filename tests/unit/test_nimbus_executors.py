"""Tasks are numbered once; executors are ranges of them; groups are what runs in one process."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.nimbus.executors import (
    ExecutorDetails,
    compute_executors,
    make_groups,
    number_tasks,
)
from tests.builders import bolt, plan_of, spout
from tests.placements import executor, groups


def cut(num_tasks: int, parts: int) -> list[list[int]]:
    found = compute_executors({"x": range(1, num_tasks + 1)}, {"x": parts})
    return [list(one.tasks) for one in found["x"]]


class TestTasks:
    def test_they_are_numbered_from_one_in_the_order_of_names(self) -> None:
        assert number_tasks({"words": 2, "count": 3}) == {
            "count": range(1, 4),
            "words": range(4, 6),
        }

    def test_the_systems_own_change_nobodys_numbers(self) -> None:
        found = number_tasks({"__metrics": 1, "words": 2, "Upper": 1})
        assert found == {"Upper": range(1, 2), "words": range(2, 4), "__metrics": range(4, 5)}

    @settings(max_examples=30)
    @given(
        st.dictionaries(st.sampled_from("abcde"), st.tuples(st.integers(1, 5), st.integers(1, 5)))
    )
    def test_they_are_those_of_the_plan_that_runs(self, sizes: dict[str, tuple[int, int]]) -> None:
        num_tasks = {"s": 1, **{name: max(pair) for name, pair in sizes.items()}}
        parallelism = {"s": 1, **{name: min(pair) for name, pair in sizes.items()}}
        bolts = [bolt(n, "s", tasks=num_tasks[n], executors=parallelism[n]) for n in sizes]
        plan = plan_of(spout("s"), *bolts)
        found = compute_executors(number_tasks(num_tasks), parallelism)
        assert sorted(one for own in found.values() for one in own) == [
            ExecutorDetails(e.tasks[0], e.tasks[-1], e.component_id) for e in plan.executors
        ]


class TestExecutors:
    """The examples are those of Storm's Utils.partitionFixed, as its code does it."""

    def test_nine_tasks_in_five(self) -> None:
        assert cut(9, 5) == [[1, 2], [3, 4], [5, 6], [7, 8], [9]]

    def test_ten_tasks_in_three(self) -> None:
        assert cut(10, 3) == [[1, 2, 3, 4], [5, 6, 7], [8, 9, 10]]

    def test_three_tasks_in_five(self) -> None:
        assert cut(3, 5) == [[1], [2], [3]]

    @given(st.integers(1, 40), st.integers(1, 50))
    def test_each_task_is_in_one_and_sizes_differ_by_one_at_most(
        self, num_tasks: int, parts: int
    ) -> None:
        ranges = cut(num_tasks, parts)
        assert [task for one in ranges for task in one] == list(range(1, num_tasks + 1))
        assert len(ranges) == min(num_tasks, parts)
        assert len(ranges[0]) - len(ranges[-1]) <= 1

    def test_they_say_what_they_are(self) -> None:
        assert str(executor("count5-8")) == "count [5-8]"


class TestGroups:
    EXECUTORS = compute_executors(
        {"a": range(1, 5), "b": range(5, 7), "c": range(7, 9)}, {"a": 2, "b": 2, "c": 1}
    )

    def test_as_a_rule_an_executor_is_a_group(self) -> None:
        expected = groups("a1-2 a3-4 b5 b6 c7-8")
        assert make_groups(self.EXECUTORS) == expected
        assert make_groups(dict(reversed(self.EXECUTORS.items()))) == expected

    def test_a_chain_is_a_group_executor_by_executor(self) -> None:
        assert make_groups(self.EXECUTORS, {"b": "a"}) == groups("a1-2+b5 a3-4+b6 c7-8")

    def test_the_head_comes_first_whatever_its_tasks(self) -> None:
        assert make_groups(self.EXECUTORS, {"a": "b"}) == groups("b5+a1-2 b6+a3-4 c7-8")

    def test_who_has_more_executors_than_the_head_cannot_run_with_it(self) -> None:
        text = "'b' cannot run with 'c': it has 2 executors, and 'c' has 1"
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            make_groups(self.EXECUTORS, {"b": "c"})

    @pytest.mark.parametrize("heads", [{"b": "z"}, {"b": "a", "a": "c"}, {"a": "b", "b": "a"}])
    def test_nor_with_what_has_no_processes(self, heads: dict[str, str]) -> None:
        with pytest.raises(ValueError, match=r"cannot run with '\w', which has no processes$"):
            make_groups(self.EXECUTORS, heads)
