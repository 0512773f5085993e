"""Tracked emits: what the generated functions do is what Storm says, row by row, root by root."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.api.grouping import GroupingKind
from storm_py.api.tuples import Fields, TrackedTuple, Tuple, TupleContext
from storm_py.core.roots import ID_BITS, spout_task
from storm_py.errors import EmitError
from tests.tracked import (
    CONTEXT,
    DESTS,
    STREAMS,
    TASK,
    Plain,
    PlainTuple,
    Producer,
    Row,
    Targets,
    target,
    topologies,
    tracked,
)

# ---- random topologies and random user code ----------------------------------------------------

rows_of: dict[str, st.SearchStrategy[list[object]]] = {
    "default": st.lists(st.integers(0, 5), min_size=2, max_size=2),
    "side": st.lists(st.sampled_from(["x", "y" * 200]), min_size=1, max_size=1),
    "picked": st.lists(st.booleans(), min_size=1, max_size=1),
}
edges = st.integers(1, (1 << ID_BITS) - 1)
ids_of_inputs = st.dictionaries(st.integers(1, 5), edges, max_size=3)


@given(topologies(), st.lists(ids_of_inputs, min_size=1, max_size=4), st.data())
def test_a_bolt_follows_storms_rules(
    targets: Targets, inputs: list[dict[int, int]], data: st.DataObject
) -> None:
    producer, plain = Producer("bolt", targets), Plain(targets, seed=1)
    tuples = [tracked(ids) for ids in inputs]
    twins = [PlainTuple(ids) for ids in inputs]
    numbers = st.integers(0, len(inputs) - 1)
    failed = False
    for _ in range(data.draw(st.integers(1, 12))):
        what = data.draw(st.sampled_from(["emit", "emit", "emit", "ack", "fail"]))
        if what != "emit":
            i = data.draw(numbers)
            answer = producer.acks.ack if what == "ack" else producer.acks.fail
            if twins[i].answered:
                with pytest.raises(EmitError, match="acked or failed before"):
                    answer(tuples[i])
                continue
            answer(tuples[i])
            (plain.ack if what == "ack" else plain.fail)(twins[i])
            twins[i].answered = True
            failed |= what == "fail"
            continue
        stream = data.draw(st.sampled_from(list(STREAMS)))
        row = data.draw(rows_of[stream])
        chosen = data.draw(st.lists(numbers, max_size=3))
        single = len(chosen) == 1 and data.draw(st.booleans())
        anchors: Any = tuples[chosen[0]] if single else [tuples[i] for i in chosen]
        anchors = None if not chosen and data.draw(st.booleans()) else anchors
        direct = data.draw(st.sampled_from(DESTS)) if stream == "picked" else None
        emit = producer.emit if direct is None else _direct(producer, direct)
        if any(twins[i].answered for i in chosen):
            with pytest.raises(EmitError, match="used as an anchor"):
                emit(row, anchors, stream=stream)
            continue
        sent = emit(row, anchors, stream=stream)
        # The quick way for one untracked anchor draws no edge; which is all that differs.
        quick = single and direct is None and tuples[chosen[0]].root == 0
        expected = plain.emit(stream, row, [] if quick else [twins[i] for i in chosen], direct)
        assert direct is not None or sent == expected
    assert producer.flush() == plain.received
    assert producer.acks.acks == plain.acks
    assert producer.acks.fails == plain.fails
    if not failed:
        for tup, twin in zip(tuples, twins, strict=True):
            if not twin.answered:
                producer.acks.ack(tup)
        assert_everything_cancels(producer, inputs)


def _direct(producer: Producer, dest: int) -> Callable[..., Any]:
    def emit(row: object, second: object, stream: str) -> None:
        producer.emit_direct(dest, row, second, stream=stream)

    return emit


def assert_everything_cancels(producer: Producer, inputs: Sequence[Mapping[int, int]]) -> None:
    """What came in, what went out and what was acked is zero for each root."""
    total = dict(producer.acks.acks)
    sent = [ids for rows in producer.received.values() for _, _, ids in rows]
    for ids in [*inputs, *sent]:
        for root, edge in ids.items():
            total[root] = total.get(root, 0) ^ edge
    assert not any(total.values())


@given(topologies(), st.data())
def test_a_spout_follows_storms_rules(targets: Targets, data: st.DataObject) -> None:
    producer, plain = Producer("spout", targets), Plain(targets, seed=1, roots=True)
    emitted = data.draw(st.integers(1, 12))
    for n in range(emitted):
        stream = data.draw(st.sampled_from(list(STREAMS)))
        row = data.draw(rows_of[stream])
        msg_id = data.draw(st.sampled_from([None, n, f"id{n}"]))
        direct = data.draw(st.sampled_from(DESTS)) if stream == "picked" else None
        emit = producer.emit if direct is None else _direct(producer, direct)
        sent = emit(row, msg_id, stream=stream)
        expected = plain.emit_from_spout(stream, row, msg_id, direct)
        assert direct is not None or sent == expected
    assert producer.flush() == plain.received
    inits = list(zip(producer.acks.init_roots, producer.acks.init_values, strict=True))
    assert inits == plain.inits
    assert producer.output.acked == plain.acked
    assert list(producer.pending.newer) == [root for root, _ in inits]
    assert all(spout_task(root) == TASK for root, _ in inits)
    for root, value in inits:
        found = [
            ids[root] for rows in producer.received.values() for *_, ids in rows if root in ids
        ]
        for edge in found:
            value ^= edge
        assert value == 0
        assert len(set(found)) == len(found)


@given(topologies(), st.lists(ids_of_inputs, min_size=1, max_size=5), st.data())
def test_a_basic_bolt_anchors_to_the_tuple_it_executes(
    targets: Targets, inputs: list[dict[int, int]], data: st.DataObject
) -> None:
    producer, plain = Producer("basic", targets), Plain(targets, seed=1)
    for ids in inputs:
        tup, twin = tracked(ids), PlainTuple(ids)
        producer.output.current.tuple = tup
        for _ in range(data.draw(st.integers(0, 3))):
            stream = data.draw(st.sampled_from(["default", "side"]))
            row = data.draw(rows_of[stream])
            assert producer.emit(row, stream) == plain.emit(stream, row, [twin] if ids else [])
        producer.acks.ack(tup)
        plain.ack(twin)
    producer.output.current.tuple = None
    producer.emit([1, 2])
    plain.emit("default", [1, 2], [])
    assert producer.flush() == plain.received
    assert producer.acks.acks == plain.acks
    assert_everything_cancels(producer, inputs)


# ---- examples ----------------------------------------------------------------------------------

EVERYONE = {"default": [target("three", GroupingKind.ALL)]}
ONE = {"default": [target("one", GroupingKind.GLOBAL)]}


def only(rows: list[Row]) -> dict[int, int]:
    ((_, _, ids),) = rows
    return ids


def test_all_grouping_gives_each_copy_its_own_edge() -> None:
    producer = Producer("bolt", EVERYONE)
    tup = tracked({7: 1})
    assert producer.emit([1, 2], tup) == (13, 14, 15)
    copies = [only(rows)[7] for rows in producer.flush().values() if rows]
    assert len(set(copies)) == 3
    assert tup.xor == 1 ^ copies[0] ^ copies[1] ^ copies[2]


def test_untracked_rows_beside_tracked_ones() -> None:
    producer = Producer("bolt", ONE, rows=10)
    tup = tracked({7: 1})
    for anchor in (None, None, tup, None, tracked({}), tup, None):
        producer.emit([1, 2], anchor)
    found = [ids for _, _, ids in producer.flush()[10]]
    assert [bool(ids) for ids in found] == [False, False, True, False, False, True, False]
    assert (producer.plain_frames, producer.multi_frames) == (0, 0)


def test_what_is_not_tracked_has_no_columns() -> None:
    producer = Producer("bolt", ONE)
    for anchors in (None, [], tracked({}), [tracked({})], Tuple([1], CONTEXT)):
        producer.emit([1, 2], anchors)
    producer.flush()
    assert producer.plain_frames == 2


def test_only_a_frame_with_several_roots_in_a_row_counts_them() -> None:
    producer = Producer("bolt", ONE, rows=2)
    one, other, both = tracked({7: 1}), tracked({8: 2}), tracked({7: 4, 8: 8})
    for anchors in ([one, one], one, [one, other], one, None, both):
        producer.emit([1, 2], anchors)
    roots = [sorted(ids) for _, _, ids in producer.flush()[10]]
    assert roots == [[7], [7], [7, 8], [7], [], [7, 8]]
    assert producer.multi_frames == 2


def test_held_tuples_are_acked_late_and_out_of_order() -> None:
    producer = Producer("bolt", ONE)
    inputs = [{7: 1 << n} for n in range(4)]
    held = [tracked(ids) for ids in inputs]
    for tup in held:
        producer.emit([1, 2], tup)
    producer.emit([1, 2], held)
    producer.flush()
    for i in (2, 0, 3, 1):
        assert producer.acks.acks.get(7) != 0
        producer.acks.ack(held[i])
    assert_everything_cancels(producer, inputs)


@pytest.mark.parametrize("style", ["bolt", "direct"])
def test_anchors_of_a_wrong_type_are_named_and_emit_nothing(style: str) -> None:
    producer = Producer("bolt", {**ONE, "picked": [target("one", GroupingKind.DIRECT)]})
    for wrong in ("side", "", 0, 7):
        arguments: Any = ([1, 2], wrong) if style == "bolt" else (10, [1], wrong, "picked")
        emit = producer.emit if style == "bolt" else producer.emit_direct
        with pytest.raises(EmitError, match=r"\(a stream id goes into stream=\.\.\.\)"):
            emit(*arguments)
    assert producer.flush()[10] == []


def test_a_signal_without_values_is_an_anchor_of_a_direct_emit_too() -> None:
    producer = Producer("bolt", {"picked": [target("one", GroupingKind.DIRECT)]})
    signal = TrackedTuple([], TupleContext("words", "signal", 1, Fields()), 7, 1)
    producer.emit_direct(10, [1], signal, "picked")
    assert list(only(producer.flush()[10])) == [7]


def test_a_basic_bolt_emits_directly_at_the_end_of_its_input() -> None:
    producer = Producer("basic", {"picked": [target("one", GroupingKind.DIRECT)]})
    producer.output.emit_direct(10, [1], "picked")
    producer.output.current.tuple = tracked({7: 1})
    producer.output.emit_direct(10, [1], stream="picked")
    assert [list(ids) for _, _, ids in producer.flush()[10]] == [[], [7]]


@pytest.mark.parametrize("several", [False, True])
def test_a_refused_row_leaves_its_anchors_as_they_were(several: bool) -> None:
    producer = Producer("bolt", {"default": [*EVERYONE["default"], *ONE["default"]]})
    tup = tracked({7: 1})
    anchors = [tup, tup] if several else tup
    for wrong in (["x" * 6000, 1], [1], [object(), 1]):
        with pytest.raises(EmitError):
            producer.emit(wrong, anchors)
    assert tup.xor == 1
    assert not any(producer.flush().values())
    assert not producer.acks.init_roots


@pytest.mark.parametrize("acking", [True, False])
def test_a_refused_row_of_a_spout_begins_no_tree(acking: bool) -> None:
    targets = {"default": [*EVERYONE["default"], *ONE["default"]]}
    producer = Producer("spout", targets, acking=acking)
    with pytest.raises(EmitError, match="above the limit"):
        producer.emit(["x" * 6000, 1], "id")
    assert not any(producer.flush().values())
    assert not producer.acks.init_roots
    assert len(producer.pending) == 0
    assert producer.output.acked == []
    assert producer.output.emissions.emitted == 0


def test_without_acking_a_message_id_is_acked_and_no_column_made() -> None:
    producer = Producer("spout", ONE, acking=False)
    producer.emit([1, 2], "id")
    assert only(producer.flush()[10]) == {}
    assert producer.plain_frames == 1
    assert producer.output.acked == ["id"]
    assert producer.output.emissions.emitted == 1


@pytest.mark.parametrize("n", [1, 255, 66000])
def test_a_row_may_belong_to_many_trees(n: int) -> None:
    producer = Producer("bolt", ONE, max_row_bytes=2_000_000)
    inputs = [{root: root} for root in range(1, n + 1)]
    held = [tracked(ids) for ids in inputs]
    producer.emit([1, 2], held)
    assert list(only(producer.flush()[10])) == list(range(1, n + 1))
    for tup in held:
        producer.acks.ack(tup)
    assert_everything_cancels(producer, inputs)
