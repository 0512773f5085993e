"""AckTracker: one result for each tree, never while a tuple of it is open."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.core.acker import AckStatistics, AckTracker
from storm_py.core.roots import ID_BITS

R, S = 11, 12


@dataclass
class Tree:
    """What is said of one root, and the oracle: the tuples that are open, by their edges."""

    init: int
    edges: frozenset[int]
    #: value of the record, edges it makes, edges it ends; None: the tuple is failed
    acks: list[tuple[int, frozenset[int], frozenset[int]] | None] = field(default_factory=list)


@st.composite
def forests(draw: st.DrawFn) -> dict[int, Tree]:
    """Trees of several roots grown as a topology grows them: some tuples belong to many."""
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    trees: dict[int, Tree] = {}
    todo: list[dict[int, int]] = []  # tuples: root -> edge, as Storm's message ids
    for root in range(1, draw(st.integers(1, 4)) + 1):
        edges = [rng.getrandbits(ID_BITS) for _ in range(draw(st.integers(0, 3)))]
        value = 0
        for edge in edges:
            value ^= edge
            todo.append({root: edge})
        trees[root] = Tree(value, frozenset(edges))
    grown = 0
    while todo:
        taken = [todo.pop(rng.randrange(len(todo)))]
        joins: bool = draw(st.booleans())
        if todo and joins:
            taken.append(todo.pop(rng.randrange(len(todo))))
        privates = [0] * len(taken)
        made: list[dict[int, int]] = []
        for _ in range(draw(st.integers(0, 2)) if grown < 12 else 0):
            child: dict[int, int] = {}
            for i, anchor in enumerate(taken):
                edge = rng.getrandbits(ID_BITS)
                privates[i] ^= edge
                for root in anchor:
                    child[root] = child.get(root, 0) ^ edge
            made.append(child)
            grown += 1
        failing = draw(st.integers(0, 11)) == 0
        for i, anchor in enumerate(taken):
            for root, edge in anchor.items():
                if failing:
                    trees[root].acks.append(None)
                    continue
                # The oracle's edges of a child, one for each anchor that it has in this tree, are
                # told apart by the anchor that acks them into being.
                new = frozenset(child[root] for child in made if i == _first(taken, root))
                trees[root].acks.append((edge ^ privates[i], new, frozenset({edge})))
        todo += made
    return trees


def _first(taken: Sequence[dict[int, int]], root: int) -> int:
    return next(i for i, anchor in enumerate(taken) if root in anchor)


def deliver(tracker: AckTracker, what: str, root: int, value: int = 0) -> tuple[list[int], ...]:
    """Complete and failed roots after one record."""
    match what:
        case "init":
            found: tuple[list[int], ...] = tracker.inits([root], [value])
        case "ack":
            found = (tracker.acks([root], [value]), [])
        case "fail":
            found = ([], tracker.fails([root]))
        case _:
            tracker.resets([root])
            found = ([], [])
    tracker.check()
    return found


@given(forests(), st.data())
def test_exactly_one_result_for_each_tree_whatever_the_order(
    trees: dict[int, Tree], data: st.DataObject
) -> None:
    events: list[tuple[str, int, int]] = []
    for root, tree in trees.items():
        events.append(("init", root, tree.init))
        for ack in tree.acks:
            events.append(("fail", root, 0) if ack is None else ("ack", root, ack[0]))
        events += [("reset", root, 0)] * data.draw(st.integers(0, 1))
    events = data.draw(st.permutations(events))
    tracker = AckTracker()
    results: dict[int, list[str]] = {root: [] for root in trees}
    seen: dict[int, list[tuple[str, int]]] = {root: [] for root in trees}
    for what, root, value in events:
        complete, failed = deliver(tracker, what, root, value)
        seen[root].append((what, value))
        for each in complete:
            results[each].append("complete")
            assert each == root
            assert _nothing_open(trees[root], seen[root])
        for each in failed:
            results[each].append("failed")
            assert each == root
            assert ("fail", 0) in seen[root]
    for root, tree in trees.items():
        assert len(results[root]) == 1
        if None not in tree.acks:
            assert results[root] == ["complete"]
    stats = tracker.statistics()
    assert stats.open == 0
    assert stats.completed + stats.failed == len(trees)


def _nothing_open(tree: Tree, seen: list[tuple[str, int]]) -> bool:
    """By sets of edges, without XOR: the init was seen, every edge that was made has ended."""
    if not any(what == "init" for what, _ in seen):
        return False
    values = [value for what, value in seen if what == "ack"]
    made, ended = set(tree.edges), set[int]()
    for ack in tree.acks:
        if ack is not None and ack[0] in values:
            made |= ack[1]
            ended |= ack[2]
    return made == ended


@given(forests(), st.data())
def test_records_merged_per_flush_mean_the_same(
    trees: dict[int, Tree], data: st.DataObject
) -> None:
    tracker = AckTracker()
    roots = list(trees)
    merged = dict.fromkeys(roots, 0)
    order = data.draw(st.permutations([(r, a) for r, t in trees.items() for a in t.acks if a]))
    cut = data.draw(st.integers(0, len(order)))
    early = [r for r, _ in order[:cut]]
    assert tracker.acks(early, [a[0] for _, a in order[:cut]]) == []
    for root, ack in order[cut:]:
        merged[root] ^= ack[0]
    complete, failed = tracker.inits(roots, [trees[root].init for root in roots])
    tracker.check()
    late = [root for root in roots if root not in complete]
    complete += tracker.acks(late, [merged[root] for root in late])
    tracker.check()
    assert failed == []
    assert sorted(complete) == [root for root in roots if None not in trees[root].acks]


@given(st.permutations(["init", "init", "init", "ack1", "ack2"]))
def test_a_repeated_init_gives_no_second_result(order: list[str]) -> None:
    values = {"init": 5 ^ 6, "ack1": 5, "ack2": 6}
    tracker = AckTracker()
    results: list[int] = []
    for step in order:
        complete, failed = deliver(tracker, step[:4].rstrip("12"), R, values[step])
        results += complete
        assert failed == []
    # An init that comes behind the result opens a tree that nobody finishes: no second result.
    assert results == [R]


class TestFailures:
    def test_a_failure_that_overtook_the_init_waits_for_it(self) -> None:
        tracker = AckTracker()
        assert tracker.fails([R]) == []
        assert tracker.acks([R], [5]) == []
        assert tracker.inits([R], [5 ^ 6]) == ([], [R])
        tracker.check()
        assert tracker.statistics() == AckStatistics(0, 0, 1, 0)

    def test_zero_wins_over_a_failure_that_overtook_the_init(self) -> None:
        tracker = AckTracker()
        assert tracker.fails([R]) == []
        assert tracker.acks([R], [5]) == []
        assert tracker.inits([R], [5]) == ([R], [])
        assert tracker.statistics() == AckStatistics(0, 1, 0, 0)

    def test_a_second_failure_and_late_acks_are_nobodys_news(self) -> None:
        tracker = AckTracker()
        tracker.inits([R], [5])
        assert tracker.fails([R]) == [R]
        assert tracker.fails([R]) == []
        assert tracker.acks([R], [5]) == []
        assert tracker.statistics().open == 0
        for _ in range(3):
            tracker.rotate()
        assert tracker.statistics().expired == 1

    def test_fail_all_fails_open_trees_and_forgets_the_rest(self) -> None:
        tracker = AckTracker()
        tracker.inits([1, 2], [5, 6])
        tracker.rotate()
        tracker.inits([3], [7])
        tracker.acks([4], [8])
        tracker.fails([5])
        tracker.fail_all()
        tracker.check()
        assert (tracker.statistics().open, tracker.statistics().failed) == (0, 3)
        tracker.fail_all()
        assert tracker.statistics().failed == 3
        assert tracker.inits([4], [8]) == ([], [])  # its early ack was forgotten: not complete
        assert tracker.inits([5], [9]) == ([], [])

    def test_a_tree_without_edges_is_complete_at_its_init(self) -> None:
        assert AckTracker().inits([R, S], [0, 1]) == ([R], [])


class TestExpiry:
    """Entries are forgotten silently at the third rotation, so after more than two periods."""

    def rotated(self, tracker: AckTracker, times: int) -> int:
        for _ in range(times):
            tracker.rotate()
            tracker.check()
        return tracker.statistics().expired

    @pytest.mark.parametrize("what", ["init", "ack", "fail", "reset"])
    def test_never_before_two_rotations(self, what: str) -> None:
        tracker = AckTracker()
        assert deliver(tracker, what, R, 5) == ([], [])
        assert self.rotated(tracker, 2) == 0
        assert self.rotated(tracker, 1) == 1
        assert tracker.statistics().open == 0

    @pytest.mark.parametrize(("what", "renews"), [("reset", True), ("init", True), ("ack", False)])
    @pytest.mark.parametrize("age", [1, 2])
    def test_what_renews_a_tree(self, what: str, renews: bool, age: int) -> None:
        tracker = AckTracker()
        tracker.inits([R], [5 ^ 6])
        self.rotated(tracker, age)
        assert deliver(tracker, what, R, 6) == ([], [])
        assert self.rotated(tracker, 3 - age) == (0 if renews else 1)
        if renews:
            # The init that renewed is the second one: its value counted for nothing.
            assert tracker.acks([R], [5 ^ 6]) == [R]

    def test_a_failure_before_the_init_renews(self) -> None:
        tracker = AckTracker()
        tracker.acks([R], [5])
        self.rotated(tracker, 2)
        tracker.fails([R])
        assert self.rotated(tracker, 2) == 0
        assert tracker.inits([R], [9]) == ([], [R])

    def test_resets_tell_which_trees_are_open_here(self) -> None:
        tracker = AckTracker()
        tracker.inits([1], [5])
        tracker.acks([2], [6])
        assert tracker.resets([1, 2, 3]) == [1]
        tracker.check()

    @given(st.lists(st.sampled_from(["reset", "rotate", "ack"]), max_size=12))
    def test_by_age_in_rotations(self, steps: list[str]) -> None:
        tracker = AckTracker()
        tracker.inits([R], [1 << 40])
        age = 0
        for n, step in enumerate(steps):
            if step == "rotate":
                tracker.rotate()
                age += 1
            elif age < 3:
                deliver(tracker, step, R, 1 << n)
                age = 0 if step == "reset" else age
            tracker.check()
            assert tracker.statistics().open == (1 if age < 3 else 0)
            if age >= 3:
                return
