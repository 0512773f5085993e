"""Batch emits: what many rows in one call do is what each would do in a call of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py import Batch, EmitError, Values
from storm_py.core.roots import ID_BITS
from tests.batches import ONE, THREE, BatchProducer, batch_of
from tests.tracked import (
    CONTEXT,
    DESTS,
    STREAMS,
    Producer,
    Row,
    Targets,
    target,
    topologies,
    tracked,
)

# ---- the law -----------------------------------------------------------------------------------


rows_of: dict[str, st.SearchStrategy[Any]] = {
    "default": st.tuples(st.integers(0, 5), st.sampled_from([0, [1], "x" * 1500])),
    "side": st.tuples(st.sampled_from(["x", "y" * 200, ("z",)])),
    "picked": st.tuples(st.booleans()),
}
edges = st.integers(1, (1 << ID_BITS) - 1)
single_roots = st.dictionaries(st.integers(1, 5), edges, max_size=1)
any_roots = st.dictionaries(st.integers(1, 5), edges, max_size=3)
inputs = st.one_of(
    st.lists(single_roots, min_size=1, max_size=6), st.lists(any_roots, min_size=1, max_size=6)
)
SHAPES: list[Callable[[Any], Sequence[object]]] = [list, tuple, lambda row: Values(*row)]


@settings(max_examples=150)
@given(topologies(), inputs, st.integers(1, 5), st.booleans(), st.data())
def test_emit_batch_does_what_an_emit_per_row_does(
    targets: Targets, ids: list[dict[int, int]], cap: int, acking: bool, data: st.DataObject
) -> None:
    batched = BatchProducer(targets, rows=cap, acking=acking)
    single = Producer("bolt", _again(targets), rows=cap, acking=acking)
    tuples, batch = [tracked(each) for each in ids], batch_of(*ids)
    if not acking:
        batch.roots = None
    batched.executes(batch)
    places = st.integers(0, len(ids) - 1)
    for _ in range(data.draw(st.integers(1, 4))):
        stream = data.draw(st.sampled_from(list(STREAMS)))
        how = data.draw(st.sampled_from(["rows", "whole", "one"]))
        rows = data.draw(st.lists(rows_of[stream], max_size=12))
        shaped = [data.draw(st.sampled_from(SHAPES))(row) for row in rows]
        named = [data.draw(places) for _ in rows]
        if stream == "picked":
            for row, place in zip(rows, named, strict=True):
                dest = data.draw(st.sampled_from(DESTS))
                batched.emit_direct(dest, row, place, stream)
                single.emit_direct(dest, row, tuples[place], stream)
        elif how == "one":
            for row in shaped:
                several = data.draw(st.lists(places, max_size=3))
                sent = batched.emit(row, several, stream)
                assert sent == single.emit(row, [tuples[i] for i in several], stream)
        else:
            batched.emit_batch(shaped, None if how == "whole" else named, stream)
            for row, place in zip(rows, named, strict=True):
                single.emit(list(row), tuples if how == "whole" else tuples[place], stream)
        batched.batcher.check()
    acked = data.draw(st.sets(places))
    if acking:
        batched.answers.ack(batch, sorted(acked))
        for place in acked:
            single.acks.ack(tuples[place])
    one, other = batched.flush(), single.flush()
    assert _without_edges(one) == _without_edges(other)
    assert batched.output.emissions.emitted == single.output.emissions.emitted
    done = {dest: data.draw(st.sets(st.integers(0, 30))) for dest in DESTS}
    assert complete(batched, ids, done) == complete(single, ids, done)


def _again(targets: Targets) -> Targets:
    """The same with custom groupings of their own, which remember."""
    return {
        stream: [target(each.component_id, each.kind) for each in found]
        for stream, found in targets.items()
    }


def _without_edges(received: Mapping[int, Sequence[Row]]) -> object:
    return {d: [(s, row, sorted(ids)) for s, row, ids in rows] for d, rows in received.items()}


def complete(
    producer: Producer, ids: Sequence[Mapping[int, int]], done: Mapping[int, set[int]]
) -> set[int]:
    """The roots whose trees are complete, once the rows `done` of each task were acked there."""
    total = dict(producer.acks.acks)
    acked = [
        found
        for dest, rows in producer.received.items()
        for n, (_, _, found) in enumerate(rows)
        if n in done[dest]
    ]
    for each in [*ids, *acked]:
        for root, edge in each.items():
            total[root] = total.get(root, 0) ^ edge
    return {root for root, value in total.items() if not value}


@given(inputs, st.data())
def test_answers_do_what_an_answer_per_row_does(
    ids: list[dict[int, int]], data: st.DataObject
) -> None:
    batched, single = BatchProducer(ONE), Producer("bolt", ONE)
    batch, tuples = batch_of(*ids), [tracked(each) for each in ids]
    left = set(range(len(ids)))
    while left:
        rows = data.draw(st.lists(st.sampled_from(sorted(left)), min_size=1, unique=True))
        what = data.draw(st.sampled_from(["ack", "fail"]))
        rest = data.draw(st.booleans())
        getattr(batched.answers, what)(batch, None if rest else rows)
        named = sorted(left) if rest else rows
        for row in named:
            getattr(single.acks, what)(tuples[row])
        left -= set(named)
    assert {r: v for r, v in batched.acks.acks.items() if v} == {
        r: v for r, v in single.acks.acks.items() if v
    }
    assert set(batched.acks.acks) == set(single.acks.acks)
    assert set(batched.acks.fails) == set(single.acks.fails)
    assert batch.left == 0


# ---- errors ------------------------------------------------------------------------------------

WHERE = "component 'words', stream 'default'"
NOT_ROWS = f"{WHERE}: emit_batch got %s; expected rows, each a list of values"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ab",), NOT_ROWS % "a str"),
        ((7,), NOT_ROWS % "an int"),
        (([[1, 2], [3]],), f"row 1 of the batch: {WHERE}: emit got 1 value(s), expected 2: a, b"),
        (([[1, 2], 5],), f"row 1 of the batch: {WHERE}: emit got an int, expected a list of 2"),
        (([[1, 2], "ab"],), f"row 1 of the batch: {WHERE}: emit got a str, expected a list of 2"),
        (
            ([[1, 2], [1, object()]],),
            f"row 1 of the batch: {WHERE}: field 'b': value[1] of type object cannot be serialised",
        ),
        (
            ([[1, 2], [1, "x" * 6000]],),
            f"row 1 of the batch: {WHERE}: a tuple of 6005 bytes is above the limit of 5000",
        ),
        (
            ([[1, 2]], [0, 1]),
            f"{WHERE}: emit_batch got 1 row(s) and a source_index of 2; expected one position of "
            "Batch(source=words:default[1], rows=3) for each row",
        ),
        (
            ([[1, 2]], [3]),
            "emit_batch (source_index) got row 3, which Batch(source=words:default[1], rows=3) "
            "does not have; its rows are 0 to 2",
        ),
        (([[1, 2]], [-1]), "emit_batch (source_index) got row -1, which"),
        (([[1, 2]], ["x"]), "emit_batch (source_index) got 'x', a str, among its rows; expected"),
        (([[1, 2]], [1.0]), "emit_batch (source_index) got 1.0, a float, among its rows"),
        (([[1, 2]], "x"), "emit_batch (source_index) got rows of a str; expected positions in"),
        (([[1, 2]], True), "emit_batch (source_index) got rows of a bool; expected positions in"),
        (([[1, 2]], None, "sied"), "emits on stream 'sied', which it has not declared (declared: "),
        (([[1]], None, "picked"), "stream 'picked' is direct: name the receiving task with"),
        (([[1, 2]], None, "default", 5), "emit_batch got an int as batch; expected a Batch"),
    ],
)
def test_a_refused_call_is_named_and_emits_nothing(
    arguments: tuple[Any, ...], message: str
) -> None:
    producer = BatchProducer(THREE)
    batch = batch_of({7: 1}, {8: 2}, {9: 4})
    producer.executes(batch)
    with pytest.raises(EmitError) as caught:
        producer.emit_batch(*arguments)
    assert message in str(caught.value)
    assert not any(producer.flush().values())
    assert (producer.output.emissions.emitted, batch.edges) == (0, [1, 2, 4])


def test_a_value_that_cannot_be_a_key_refuses_the_call() -> None:
    producer = BatchProducer(THREE)
    with pytest.raises(EmitError, match=r"grouping field\(s\) a hold a value of type numpy"):
        producer.emit_batch([[1, 2], [np.array([1]), 2]])
    assert not any(producer.flush().values())


def test_many_roots_need_room_as_well() -> None:
    producer = BatchProducer(ONE)
    batch = batch_of(*({root: root} for root in range(1, 400)))
    producer.executes(batch)
    with pytest.raises(EmitError, match="anchored to 399 roots of 16 bytes each, is above the"):
        producer.emit_batch([[1, 2]])
    assert not any(producer.flush().values())
    assert batch.edges == list(range(1, 400))


def test_outside_of_execute_batch_nothing_is_an_anchor() -> None:
    producer = BatchProducer(ONE)
    producer.emit_batch([[1, 2]])
    assert producer.emit([3, 4]) == (10,)
    assert [ids for _, _, ids in producer.flush()[10]] == [{}, {}]
    with pytest.raises(EmitError, match="got a source_index, but no batch is being executed"):
        producer.emit_batch([[1, 2]], [0])


@pytest.mark.parametrize("sources", [range(2), (0, 1), np.array([0, 1]), np.array([0, 1], "u1")])
def test_positions_in_any_form(sources: Any) -> None:
    producer = BatchProducer(ONE)
    producer.executes(batch_of({7: 1}, {8: 2}))
    producer.emit_batch([[1, 2], [3, 4]], sources)
    producer.emit([5, 6], sources[1])
    assert [sorted(ids) for _, _, ids in producer.flush()[10]] == [[7], [8], [8]]


def test_a_kept_batch_is_an_anchor_later() -> None:
    producer = BatchProducer(ONE)
    kept = batch_of({7: 1}, {8: 2})
    producer.executes(batch_of({9: 4}))
    producer.emit([1, 2], 1, batch=kept)
    producer.emit_batch([[1, 2], [3, 4]], [0, 1], batch=kept)
    assert [sorted(ids) for _, _, ids in producer.flush()[10]] == [[8], [7], [8]]


class TestAnswers:
    def test_a_second_answer_is_an_error(self) -> None:
        answers, batch = BatchProducer(ONE).answers, batch_of({7: 1}, {8: 2}, {9: 4})
        answers.ack(batch, 1)
        answers.fail(batch, [2])
        again = r"row %d of Batch\(source=words:default\[1\], rows=3\) cannot be %s: it was acked"
        with pytest.raises(EmitError, match=again % (1, "acked")):
            answers.ack(batch, [0, 1])
        with pytest.raises(EmitError, match=again % (2, "failed")):
            answers.fail(batch, 2)
        with pytest.raises(EmitError, match=again % (0, "acked")):
            answers.ack(batch, [0, 0])
        answers.ack(batch)
        with pytest.raises(EmitError, match=r"Batch\(.*\) cannot be acked: it was acked or failed"):
            answers.ack(batch)
        with pytest.raises(EmitError, match="cannot be renewed"):
            answers.reset_timeout(batch)

    def test_an_answered_row_is_no_anchor(self) -> None:
        producer, batch = BatchProducer(ONE), batch_of({7: 1}, {8: 2})
        producer.executes(batch)
        producer.answers.ack(batch, 1)
        with pytest.raises(EmitError, match=r"row 1 of .* cannot be used as an anchor"):
            producer.emit_batch([[1, 2], [1, 2]], [0, 1])
        with pytest.raises(EmitError, match="name the rows that it is made from with source_index"):
            producer.emit_batch([[1, 2]])
        with pytest.raises(EmitError, match=r"row 1 of .* cannot be used as an anchor"):
            producer.emit([1, 2], [0, 1])
        producer.emit([1, 2], [0])
        assert [sorted(ids) for _, _, ids in producer.flush()[10]] == [[7]]

    def test_wrong_arguments(self) -> None:
        answers = BatchProducer(ONE).answers
        with pytest.raises(EmitError, match="ack got a list; expected the batch that"):
            answers.ack([[1]])
        with pytest.raises(EmitError, match=r"fail got row 1, which .* does not have"):
            answers.fail(batch_of({7: 1}), 1)

    def test_reset_timeout_renews_each_tree_once(self) -> None:
        producer, batch = BatchProducer(ONE), batch_of({7: 1}, {7: 2}, {}, {8: 1, 9: 2})
        producer.answers.ack(batch, 0)
        producer.answers.reset_timeout(batch)
        assert producer.acks.resets == [7, 8, 9]

    def test_rows_that_nobody_tracks_may_be_answered(self) -> None:
        producer, batch = BatchProducer(ONE), batch_of({}, {})
        producer.answers.ack(batch)
        producer.answers.ack(Batch([["a"]], CONTEXT), 0)
        assert not producer.acks


def test_what_the_users_iterable_raises_is_not_taken_for_a_wrong_argument() -> None:
    def rows() -> Iterator[list[object]]:
        yield [1, 2]
        raise TypeError("a mistake of its own")

    producer = BatchProducer(ONE)
    producer.executes(batch_of({7: 1}))
    with pytest.raises(TypeError, match="a mistake of its own"):
        producer.emit_batch(rows())
    assert producer.output.emissions.emitted == 0
