"""Router: what each grouping means, as laws."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.api.grouping import GroupingKind
from storm_py.core.keys import key_hash
from storm_py.core.routing import Router, Target, owner
from tests.builders import ALL, by, key_groups, plan_of, spout
from tests.builders import bolt as a_bolt

tasks = st.lists(st.integers(1, 30), min_size=1, max_size=7, unique=True).map(sorted).map(tuple)
kinds = st.sampled_from(
    [GroupingKind.SHUFFLE, GroupingKind.FIELDS, GroupingKind.ALL, GroupingKind.GLOBAL]
)


@st.composite
def targets(draw: st.DrawFn) -> Target:
    kind = draw(kinds)
    key = (1, 0) if kind is GroupingKind.FIELDS else ()
    return Target("bolt", kind, draw(tasks), key)


def router(*found: Target, start: int = 0) -> Router:
    made = Router({"default": found}, 1024, start)
    made.check()
    return made


def one(kind: GroupingKind, *task_ids: int, key: tuple[int, ...] = ()) -> Target:
    return Target("bolt", kind, task_ids, key)


values = st.integers(0, 9) | st.text(max_size=3) | st.tuples(st.booleans(), st.floats())
rows = st.tuples(values, values)


@given(tasks, st.integers(0, 50), st.integers(0, 60))
def test_shuffle_is_even_in_every_stretch(found: tuple[int, ...], start: int, n: int) -> None:
    route = router(one(GroupingKind.SHUFFLE, *found), start=start).route
    chosen = [route("default", [i]) for i in range(n)]
    assert all(len(answer) == 1 for answer in chosen)
    counts = Counter(dict.fromkeys(found, 0))
    counts.update(task for (task,) in chosen)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert set(counts) == set(found)


@given(tasks, st.integers(0, 50))
def test_shuffle_starts_where_it_is_told(found: tuple[int, ...], start: int) -> None:
    assert router(one(GroupingKind.SHUFFLE, *found), start=start).route("default", []) == (
        found[start % len(found)],
    )


@given(tasks, st.lists(rows, min_size=1, max_size=8))
def test_equal_keys_go_to_one_task_whoever_sends_them(
    found: tuple[int, ...], many: list[tuple[object, object]]
) -> None:
    target = one(GroupingKind.FIELDS, *found, key=(1,))
    first, second = router(target, start=0), router(target, start=3)
    for before, key in many:
        (task,) = first.route("default", [before, key])
        assert task in found
        assert second.route("default", ["something else", key, "more"]) == (task,)
        assert owner([0, key], target, 1024) == task


def test_every_task_owns_an_equal_share_of_keys() -> None:
    target = one(GroupingKind.FIELDS, 4, 5, 6, key=(0,))
    counts = Counter(owner([f"word {i}"], target, 1024) for i in range(3000))
    assert set(counts) == {4, 5, 6}
    assert all(900 < count < 1100 for count in counts.values())


def test_the_key_is_its_fields_in_the_order_of_the_grouping() -> None:
    found = tuple(range(1, 1025))
    key_01 = one(GroupingKind.FIELDS, *found, key=(0, 1))
    key_10 = one(GroupingKind.FIELDS, *found, key=(1, 0))
    assert owner(["a", "b"], key_01, 1024) == owner(["b", "a"], key_10, 1024)
    assert owner(["a", "b"], key_01, 1024) == 1 + key_hash(["a", "b"]) % 1024
    assert owner(["a", "b"], key_01, 1024) != owner(["a", "b"], key_10, 1024)


@given(tasks)
def test_all_and_global(found: tuple[int, ...]) -> None:
    both = router(one(GroupingKind.ALL, *found), one(GroupingKind.GLOBAL, *found))
    for _ in range(3):
        assert both.route("default", [1]) == (*found, min(found))


@given(st.lists(targets(), max_size=4), st.lists(rows, max_size=6))
def test_subscriptions_do_not_disturb_each_other(
    found: list[Target], many: list[tuple[object, object]]
) -> None:
    together = router(*found)
    alone = [router(target) for target in found]
    for row in many:
        parts = [each.route("default", row) for each in alone]
        assert together.route("default", row) == tuple(task for part in parts for task in part)


def test_streams_have_cursors_of_their_own() -> None:
    target = one(GroupingKind.SHUFFLE, 1, 2, 3)
    both = Router({"a": [target], "b": [target], "c": []}, 1024, 0)
    assert [both.route(stream, [0]) for stream in "aabcab"] == [(1,), (2,), (1,), (), (3,), (2,)]


def test_direct_streams_are_not_routed() -> None:
    assert router(one(GroupingKind.DIRECT, 1, 2)).route("default", [1]) == ()


def test_targets_of_a_plan() -> None:
    plan = plan_of(
        spout("words", "word n", tasks=2),
        a_bolt("count", {"words": by("n", "word")}, tasks=3),
        a_bolt("show", {"words": ALL}, tasks=2),
    )
    found = plan.targets("words")
    assert found == {
        "default": (
            Target("count", GroupingKind.FIELDS, (1, 2, 3), (1, 0)),
            Target("show", GroupingKind.ALL, (4, 5), ()),
        )
    }
    made = Router(found, key_groups(plan), 0)
    made.check()
    assert made.route("default", ["storm", 1])[1:] == (4, 5)


@pytest.mark.parametrize(
    "target",
    [
        one(GroupingKind.ALL),
        one(GroupingKind.ALL, 2, 1),
        one(GroupingKind.FIELDS, 1),
        one(GroupingKind.SHUFFLE, 1, key=(0,)),
    ],
)
def test_check_finds_targets_that_cannot_be(target: Target) -> None:
    made = Router({"default": [target]}, 1024, 0)
    with pytest.raises(AssertionError):
        made.check()
