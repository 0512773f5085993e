"""Router: what each grouping means, as laws."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.api.grouping import KEYED, CustomStreamGrouping, GroupingKind
from storm_py.core.keys import PLAIN
from storm_py.core.routing import Router, Target, owner, owners
from tests.builders import ALL, LOCAL, by, key_groups, plan_of, spout
from tests.builders import bolt as a_bolt

tasks = st.lists(st.integers(1, 30), min_size=1, max_size=7, unique=True).map(sorted).map(tuple)
kinds = st.sampled_from([kind for kind in GroupingKind if kind is not GroupingKind.DIRECT])
#: Those that take turns.
shuffles = st.sampled_from([GroupingKind.SHUFFLE, GroupingKind.NONE, GroupingKind.LOCAL_OR_SHUFFLE])


class Lengths(CustomStreamGrouping):
    """As many tasks as the text of the row's last value is long."""

    def __init__(self, found: tuple[int, ...]) -> None:
        self.found = found

    def choose_tasks(self, task_id: int, values: list[object]) -> list[int]:
        return [self.found[i % len(self.found)] for i in range(len(str(values[-1])))]


@st.composite
def targets(draw: st.DrawFn) -> Target:
    kind, found = draw(kinds), draw(tasks)
    key = (1, 0) if kind in KEYED else ()
    near = found[:1] if kind is GroupingKind.LOCAL_OR_SHUFFLE and draw(st.booleans()) else ()
    custom = Lengths(found) if kind is GroupingKind.CUSTOM else None
    return Target("bolt", kind, found, key, near, custom)


def router(*found: Target, start: int = 0) -> Router:
    made = Router({"default": found}, 1024, start)
    made.check()
    return made


def one(kind: GroupingKind, *task_ids: int, key: tuple[int, ...] = ()) -> Target:
    return Target("bolt", kind, task_ids, key)


#: The tasks of "the", 1 and None among a hundred, written down.
PAIRS = [(17, 61), (80, 79), (49, 52)]

values = st.integers(0, 9) | st.text(max_size=3) | st.tuples(st.booleans(), st.floats())
rows = st.tuples(values, values)


@given(shuffles, tasks, st.integers(0, 50), st.integers(0, 60))
def test_shuffle_is_even_in_every_stretch(
    kind: GroupingKind, found: tuple[int, ...], start: int, n: int
) -> None:
    route = router(one(kind, *found), start=start).route
    chosen = [route("default", [i]) for i in range(n)]
    assert all(len(answer) == 1 for answer in chosen)
    counts = Counter(dict.fromkeys(found, 0))
    counts.update(task for (task,) in chosen)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert set(counts) == set(found)


@given(shuffles, tasks, st.integers(0, 50))
def test_shuffle_starts_where_it_is_told(
    kind: GroupingKind, found: tuple[int, ...], start: int
) -> None:
    assert router(one(kind, *found), start=start).route("default", []) == (
        found[start % len(found)],
    )


@given(tasks, st.data())
def test_local_or_shuffle_is_a_shuffle_among_the_local_tasks(
    found: tuple[int, ...], data: st.DataObject
) -> None:
    near = tuple(sorted(data.draw(st.sets(st.sampled_from(found)))))
    start, n = data.draw(st.integers(0, 50)), data.draw(st.integers(0, 20))
    target = Target("bolt", GroupingKind.LOCAL_OR_SHUFFLE, found, local=near)
    shuffled = router(one(GroupingKind.SHUFFLE, *(near or found)), start=start)
    route = router(target, start=start).route
    assert [route("default", []) for _ in range(n)] == [
        shuffled.route("default", []) for _ in range(n)
    ]


def test_local_follows_the_plan_wherever_it_places_the_tasks() -> None:
    plan = plan_of(
        spout("words", "word", tasks=4),
        a_bolt("count", {"words": LOCAL}, tasks=4),
        a_bolt("lone", {"words": LOCAL}),
        a_bolt("show", {"words": ALL}, tasks=4),
        workers=2,
    )
    moved = replace(plan, executors=tuple(replace(e, worker=1 - e.worker) for e in plan.executors))
    for each in (plan, moved):
        for task in each.tasks_of("words"):
            worker = each.worker_of(task)
            count, lone, show = each.targets("words", each.executor_of(task))["default"]
            assert count.local == tuple(
                t for t in each.tasks_of("count") if each.worker_of(t) == worker
            )
            assert len(count.local) == 2
            assert lone.candidates == each.tasks_of("lone")
            assert show.local == ()
            chosen = [Router({"default": [count]}, 1024, task).route("default", []) for _ in "ab"]
            assert all(each.worker_of(t) == worker for (t,) in chosen)
    assert plan.targets("words")["default"][0].local == ()


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
    assert owner(["a", "b"], key_01, 1024) == 1 + PLAIN.hash(["a", "b"]) % 1024
    assert owner(["a", "b"], key_01, 1024) != owner(["a", "b"], key_10, 1024)


@given(tasks, st.lists(rows, min_size=1, max_size=8), st.integers(0, 9))
def test_a_partial_key_goes_to_two_tasks_whoever_sends_it(
    found: tuple[int, ...], many: list[tuple[object, object]], start: int
) -> None:
    target = one(GroupingKind.PARTIAL_KEY, *found, key=(1,))
    route = router(target, start=start).route
    for before, key in many * 3:
        pair = owners([before, key], target, 1024)
        assert pair[0] == owner(["something else", key], target, 1024)
        assert len({*pair}) == min(2, len(found))
        (task,) = route("default", [before, key])
        assert task in pair


@given(tasks, st.lists(st.integers(0, 3), max_size=40))
def test_a_partial_key_takes_the_task_that_was_sent_less(
    found: tuple[int, ...], keys: list[int]
) -> None:
    target = one(GroupingKind.PARTIAL_KEY, *found, key=(0,))
    route = router(target).route
    sent = Counter(dict.fromkeys(found, 0))
    for key in keys:
        first, second = owners([key], target, 1024)
        (task,) = route("default", [key])
        assert sent[task] == min(sent[first], sent[second])
        assert task == first or sent[second] < sent[first]
        sent[task] += 1


def test_one_frequent_key_is_halved() -> None:
    target = one(GroupingKind.PARTIAL_KEY, *range(1, 11), key=(0,))
    route = router(target).route
    counts = Counter(task for _ in range(100) for task in route("default", ["the"]))
    assert sorted(counts.values()) == [50, 50]


def test_the_two_tasks_of_a_key_are_the_same_in_every_process() -> None:
    target = one(GroupingKind.PARTIAL_KEY, *range(1, 101), key=(0,))
    assert [owners([key], target, 1024) for key in ("the", 1, None)] == PAIRS


def test_the_second_task_of_a_key_does_not_follow_from_the_first() -> None:
    target = one(GroupingKind.PARTIAL_KEY, *range(1, 11), key=(0,))
    pairs = Counter(owners([f"word {i:04}"], target, 1024) for i in range(9000))
    assert len(pairs) == 90
    assert all(50 < count < 160 for count in pairs.values())


@given(tasks, st.lists(rows, max_size=6))
def test_custom_is_what_the_object_says(
    found: tuple[int, ...], many: list[tuple[object, object]]
) -> None:
    custom = Lengths(found)
    route = router(Target("bolt", GroupingKind.CUSTOM, found, custom=custom)).route
    for row in many:
        assert route("default", row) == tuple(custom.choose_tasks(0, list(row)))


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
        one(GroupingKind.PARTIAL_KEY, 1),
        one(GroupingKind.CUSTOM, 1),
        Target("bolt", GroupingKind.LOCAL_OR_SHUFFLE, (1, 2), local=(3,)),
        Target("bolt", GroupingKind.SHUFFLE, (1, 2), local=(1,)),
        Target("bolt", GroupingKind.SHUFFLE, (1, 2), custom=Lengths((1, 2))),
        one(GroupingKind.SHUFFLE, 1, key=(0,)),
    ],
)
def test_check_finds_targets_that_cannot_be(target: Target) -> None:
    made = Router({"default": [target]}, 1024, 0)
    with pytest.raises(AssertionError):
        made.check()
