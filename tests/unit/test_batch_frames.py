"""Batch emits: frames are bounded as those of single emits, and tracked only if they must be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import EmitError, Values
from storm_py.api.grouping import GroupingKind
from storm_py.core.batching import Batcher, OpenBatch
from storm_py.engine.batch_acking import Columns
from storm_py.engine.batch_filling import Filling
from tests.batches import ONE, BatchProducer, batch_of
from tests.tracked import target


@given(
    st.integers(1, 40),
    st.lists(st.integers(0, 40), max_size=6),
    st.sampled_from(["one", "two", "three"]),
    st.sampled_from([GroupingKind.GLOBAL, GroupingKind.SHUFFLE, GroupingKind.FIELDS]),
)
def test_frames_are_bounded_by_rows(
    cap: int, calls: list[int], component: str, kind: GroupingKind
) -> None:
    producer = BatchProducer({"default": [target(component, kind)]}, rows=cap)
    sizes: list[int] = []

    def flush(batch: OpenBatch) -> None:
        sizes.append(len(batch.rows))
        producer._flush(batch)

    producer.output._flush = flush
    number = 0
    for count in calls:
        producer.emit_batch([[number + n, 0] for n in range(count)])
        number += count
        assert all(len(batch.rows) < cap for batch in producer.batcher.open())
    assert all(0 < size <= cap for size in sizes)
    found = {row[0] for rows in producer.flush().values() for _, row, _ in rows}
    assert found == set(range(number))
    assert sum(map(len, producer.received.values())) == number


def test_frames_are_bounded_by_bytes() -> None:
    producer = BatchProducer(ONE, rows=100)
    producer.emit_batch([["x" * 500, n] for n in range(20)])
    rest = [sum(map(len, batch.rows)) for batch in producer.batcher.open()]
    assert all(size < 3000 + 100 * producer.batcher.small for size in rest)
    assert len(producer.flush()[10]) == 20


def test_tracked_rows_follow_untracked_ones() -> None:
    producer = BatchProducer(ONE, rows=10)
    producer.emit_batch([[1, 2], [3, 4]])
    producer.executes(batch_of({7: 1}, {}))
    producer.emit_batch([[5, 6], [7, 8]], [0, 1])
    producer.executes(None)
    producer.emit_batch([[9, 0]])
    assert [sorted(ids) for _, _, ids in producer.flush()[10]] == [[], [], [7], [], []]


@pytest.mark.parametrize("apiece", [False, True])
def test_so_do_those_that_are_handed_over(apiece: bool) -> None:
    batcher = Batcher([10], 10, 3000, local=[10])
    (batch,) = batcher.handed_over()
    filling = Filling(batcher, lambda _: None)
    tracked: Columns = ([7, ((8, 1), (9, 2))], [3, 0])
    for rows, columns in (([["a"], ["b"]], None), ([["c"], ["d"]], tracked), ([["e"]], None)):
        filling.lists(0, [batch] * len(rows) if apiece else batch, rows, columns)
    assert batch.take_tracking() == ([0, 0, 7, ((8, 1), (9, 2)), 0], [0, 0, 3, 0, 0])
    assert batch.take() == ([(0, 5)], [["a"], ["b"], ["c"], ["d"], ["e"]])


def test_what_is_not_tracked_has_no_columns() -> None:
    producer = BatchProducer(ONE)
    producer.executes(batch_of({}, {}))
    producer.emit_batch([[1, 2]])
    producer.emit_batch([[1, 2]], [1])
    producer.emit([1, 2], [0, 1])
    producer.flush()
    assert (producer.plain_frames, producer.multi_frames) == (1, 0)


def test_what_nobody_hears_is_checked_and_counted() -> None:
    producer = BatchProducer({})
    producer.emit_batch([(1, object()), [1, 2]])
    assert producer.output.emissions.emitted == 2
    with pytest.raises(EmitError, match=r"row 1 of the batch: .* got 1 value\(s\), expected 2"):
        producer.emit_batch([[1, 2], [1]])


def test_a_tuple_is_a_row_and_any_iterable_of_them_are_rows() -> None:
    producer = BatchProducer(ONE)
    producer.emit_batch({"a": 1, "b": 2}.items())
    producer.emit_batch((n, n) for n in range(2))
    assert [row for _, row, _ in producer.flush()[10]] == [["a", 1], ["b", 2], [0, 0], [1, 1]]


def test_rows_that_user_code_changes_afterwards() -> None:
    producer = BatchProducer(ONE)
    rows = [[1, 2], Values(3, 4)]
    producer.emit_batch(rows)
    assert rows == [[1, 2], [3, 4]]
    rows[0][0] = 5
    rows.clear()
    assert [row for _, row, _ in producer.flush()[10]] == [[1, 2], [3, 4]]
