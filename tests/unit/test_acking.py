"""Acks: what an instance says of its tuples, and which anchors emit takes."""

from __future__ import annotations

import functools
import operator
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.api.tuples import Fields, TrackedTuple, Tuple, TupleContext
from storm_py.core.batching import OpenBatch, Root
from storm_py.core.roots import ID_BITS, Roots
from storm_py.engine.acking import Acks, anchor_list, tracking_columns
from storm_py.errors import EmitError
from storm_py.wire.acks import AckRecords
from storm_py.wire.frames import Tracking

CONTEXT = TupleContext("words", "default", 1, Fields("word"))


class Edges:
    """Random bits that can be foreseen: 1, 2, 4, 8 ..., so that every XOR can be taken apart."""

    def __init__(self) -> None:
        self._next = 1

    def getrandbits(self, k: int, /) -> int:
        assert k == ID_BITS
        edge, self._next = self._next, self._next << 1
        return edge


def tracked(root: int | tuple[tuple[int, int], ...] | None, xor: int = 0) -> TrackedTuple:
    return TrackedTuple(["storm"], CONTEXT, root, xor)


def root_of(task: int, seed: int = 1) -> int:
    return Roots(task, random.Random(seed)).next()


def anchored(acks: Acks, *anchors: TrackedTuple) -> tuple[list[Root], list[int]] | None:
    """The columns of one row emitted with these anchors."""
    batch = OpenBatch(9, 256)
    batch.rows.append(b"row")
    acks.anchor_row(batch, anchors)
    return batch.take_tracking()


class TestAcks:
    def test_an_ack_brings_the_tuples_edge_and_those_of_its_children(self) -> None:
        acks = Acks(Edges())
        tup = tracked(77, 1 << 50)
        anchored(acks, tup)
        anchored(acks, tup)
        assert not acks
        acks.ack(tup)
        assert acks
        assert acks.acks == {77: 1 << 50 | 1 | 2}

    def test_acks_of_one_root_are_merged(self) -> None:
        acks = Acks(Edges())
        for tup in (tracked(77, 5), tracked(78, 9), tracked(77, 6)):
            acks.ack(tup)
        assert acks.acks == {77: 5 ^ 6, 78: 9}

    def test_a_tuple_of_several_roots_acks_each_with_its_edge(self) -> None:
        acks = Acks(Edges())
        tup = tracked(((77, 1 << 50), (78, 1 << 51)))
        anchored(acks, tup)
        acks.ack(tup)
        assert acks.acks == {77: 1 << 50 | 1, 78: 1 << 51 | 1}

    def test_fail_and_reset_name_every_root(self) -> None:
        acks = Acks(Edges())
        tup = tracked(((77, 1), (78, 2)))
        acks.reset_timeout(tup)
        acks.fail(tup)
        acks.fail(tracked(79, 3))
        assert (acks.fails, acks.resets, acks.acks) == ([77, 78, 79], [77, 78], {})

    @pytest.mark.parametrize("tup", [tracked(0), tracked(()), Tuple(["storm"], CONTEXT)])
    def test_of_an_untracked_tuple_there_is_nothing_to_say(self, tup: Tuple) -> None:
        acks = Acks(Edges())
        acks.reset_timeout(tup)
        acks.ack(tup)
        assert not acks
        if isinstance(tup, TrackedTuple):
            tup.root = 0
        acks.fail(tup)
        assert not acks

    @pytest.mark.parametrize("root", [0, 77, ((77, 1), (78, 2))])
    @pytest.mark.parametrize("first", ["ack", "fail"])
    @pytest.mark.parametrize(
        ("second", "verb"), [("ack", "acked"), ("fail", "failed"), ("reset_timeout", "renewed")]
    )
    def test_a_second_answer_is_an_error(
        self, root: int | tuple[tuple[int, int], ...], first: str, second: str, verb: str
    ) -> None:
        acks, tup = Acks(Edges()), tracked(root)
        getattr(acks, first)(tup)
        told = (dict(acks.acks), list(acks.fails))
        with pytest.raises(EmitError, match=f"cannot be {verb}: it was acked or failed before"):
            getattr(acks, second)(tup)
        assert (acks.acks, acks.fails, acks.resets) == (*told, [])


class TestAnchorRow:
    def test_one_anchor(self) -> None:
        tup = tracked(77)
        assert anchored(Acks(Edges()), tup) == ([77], [1])
        assert tup.xor == 1

    def test_anchors_of_one_root_give_one_edge(self) -> None:
        one, other = tracked(77), tracked(77)
        assert anchored(Acks(Edges()), one, other) == ([77], [1 | 2])
        assert (one.xor, other.xor) == (1, 2)

    def test_the_same_anchor_twice(self) -> None:
        tup = tracked(77)
        assert anchored(Acks(Edges()), tup, tup) == ([77], [1 | 2])
        assert tup.xor == 1 | 2

    def test_anchors_of_different_roots(self) -> None:
        one, other = tracked(77), tracked(78)
        assert anchored(Acks(Edges()), one, other) == ([((77, 1), (78, 2))], [0])

    def test_anchors_with_several_roots(self) -> None:
        one, other = tracked(((77, 1 << 50), (78, 1 << 51))), tracked(78)
        assert anchored(Acks(Edges()), one, other) == ([((77, 1), (78, 1 | 2))], [0])
        assert (one.xor, other.xor) == (1, 2)

    def test_untracked_anchors_track_nothing(self) -> None:
        assert anchored(Acks(Edges()), tracked(0), tracked(())) is None
        assert anchored(Acks(Edges()), tracked(0), tracked(77)) == ([77], [2])


class TestAnchorList:
    def test_a_tuple_or_tuples(self) -> None:
        one, other = tracked(77), tracked(0)
        tick = Tuple([1], CONTEXT)
        assert anchor_list(one) == [one]
        assert anchor_list([one, tick, other]) == [one, other]
        assert anchor_list((other,)) == [other]
        assert anchor_list([]) == []
        assert anchor_list(tick) == []

    @pytest.mark.parametrize("anchors", ["side", 7, {1: 2}, object(), {tracked(77)}])
    def test_another_type_is_an_error_that_shows_the_way(self, anchors: object) -> None:
        kind = type(anchors).__name__
        with pytest.raises(EmitError, match=rf"type {kind}; expected .*goes into stream=\.\.\."):
            anchor_list(anchors)

    def test_a_wrong_element_is_named(self) -> None:
        with pytest.raises(EmitError, match="an anchor of type str, expected a Tuple"):
            anchor_list([tracked(77), "side"])

    def test_an_answered_tuple_is_no_anchor(self) -> None:
        message = "Tuple(source=words:default[1], values=['storm']) cannot be used as an anchor"
        with pytest.raises(EmitError, match=re.escape(message)):
            anchor_list([tracked(77), tracked(None)])


class TestTake:
    def test_records_go_to_the_worker_of_their_spout(self) -> None:
        acks = Acks(Edges())
        mine, older, yours, lost = root_of(3), root_of(3, 2), root_of(5), root_of(9)
        acks.init_roots += [mine]
        acks.init_values += [1]
        for root in (yours, older, mine, lost):
            acks.ack(tracked(root, 7))
        acks.fail(tracked(yours, 1))
        acks.fail(tracked(lost, 1))
        acks.reset_timeout(tracked(mine, 1))
        found = dict(acks.take({3: 0, 5: 1}.get))
        assert found == {
            3: AckRecords([mine], [1 ^ 7], [older], [7], [], [mine]),
            5: AckRecords([], [], [yours], [7], [yours], []),
        }
        assert not acks
        assert list(acks.take({3: 0}.get)) == []

    def test_spouts_of_one_worker_share_a_record(self) -> None:
        acks = Acks(Edges())
        for task in (3, 4):
            acks.ack(tracked(root_of(task), 7))
        ((dest, records),) = acks.take({3: 6, 4: 6}.get)
        assert dest in (3, 4)
        assert records.ack_roots == [root_of(3), root_of(4)]

    def test_take_all_is_take_with_one_tracker(self) -> None:
        def fill(acks: Acks) -> Acks:
            for task in (3, 4):
                acks.init_roots.append(root_of(task, 2))
                acks.init_values.append(task)
                acks.ack(tracked(root_of(task), task))
                acks.fail(tracked(root_of(task, 3)))
                acks.reset_timeout(tracked(root_of(task, 4)))
            return acks

        acks = fill(Acks(Edges()))
        held = (acks.init_roots, acks.init_values, acks.acks, acks.fails, acks.resets)
        found = acks.take_all(3)
        assert [found] == list(fill(Acks(Edges())).take({3: 0, 4: 0}.get))
        assert not acks
        # Emit functions hold on to the containers: emptied, not replaced.
        now = (acks.init_roots, acks.init_values, acks.acks, acks.fails, acks.resets)
        assert all(one is other for one, other in zip(held, now, strict=True))


pair_lists = st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)), max_size=3).map(tuple)


single_roots = st.tuples(st.integers(0, 99), st.integers(0, 99))
several_roots = st.tuples(pair_lists, st.just(0))


@given(st.lists(single_roots | several_roots, max_size=8))
def test_the_columns_say_what_the_rows_said(rows: list[tuple[Root, int]]) -> None:
    columns = tracking_columns([root for root, _ in rows], [edge for _, edge in rows])
    plain = [((root, edge),) if isinstance(root, int) else root for root, edge in rows]
    counts = columns.counts
    assert (counts is None) == all(isinstance(root, int) for root, _ in rows)
    pairs = list(zip(columns.roots, columns.edges, strict=True))
    assert pairs == [pair for row in plain for pair in row]
    assert list(counts or [1] * len(rows)) == [len(row) for row in plain]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(0, 2))
def test_whatever_was_anchored_cancels_in_the_end(order: list[int], held: int) -> None:
    """Each tuple is acked once, its edge came once: over a whole tree the XOR is the init value."""
    acks = Acks(random.Random(4))
    open_ = [tracked(77, 1 << 61), tracked(77, 1 << 60)]
    for step in order:
        anchors = random.Random(step).choices(open_, k=step)
        if columns := anchored(acks, *anchors):
            open_.append(tracked(77, columns[1][0]))
        if len(open_) > held + 1:
            acks.ack(open_.pop(step % len(open_)))
    for tup in open_:
        acks.ack(tup)
    assert acks.acks == {77: functools.reduce(operator.xor, (1 << 61, 1 << 60))}


def test_plain_tracking_has_no_counts() -> None:
    assert tracking_columns([77, 0], [1, 0]) == Tracking([77, 0], [1, 0])
