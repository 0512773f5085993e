"""Batcher: nothing lost, nothing doubled, order kept per destination, bounds heeded."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.core.batching import Batcher, OpenBatch

DESTS = (3, 5, 8)
rows = st.tuples(st.sampled_from(DESTS), st.integers(0, 2), st.binary(max_size=40))


def expanded(runs: list[tuple[int, int]], taken: list[bytes]) -> list[tuple[int, bytes]]:
    """The rows of a batch with their streams."""
    streams = [stream for stream, count in runs for _ in range(count)]
    return list(zip(streams, taken, strict=True))


class TestLaws:
    @settings(max_examples=200)
    @given(
        st.lists(rows | st.sampled_from(["flush", "limit 1", "limit 3", "limit 99"]), max_size=60)
    )
    def test_any_use(self, steps: list[tuple[int, int, bytes] | str]) -> None:
        batcher = Batcher(DESTS, rows=4, nbytes=64)
        offered: dict[int, list[tuple[int, bytes]]] = {dest: [] for dest in DESTS}
        taken: dict[int, list[tuple[int, bytes]]] = {dest: [] for dest in DESTS}

        def take(batch: OpenBatch) -> None:
            runs, content = batch.take()
            assert all(count > 0 for _, count in runs)
            assert all(a[0] != b[0] for a, b in pairwise(runs))
            # small rows fit the bytes by number; what is larger is counted, but for the last one
            assert sum(map(len, content[:-1])) < 64 + 4 * batcher.small
            taken[batch.dest] += expanded(runs, content)

        for step in steps:
            if isinstance(step, tuple):
                dest, stream, row = step
                offered[dest].append((stream, row))
                if batcher.add(dest, stream, row):
                    take(batcher.batch(dest))
                assert len(batcher.batch(dest).rows) < batcher.batch(dest).cap
            elif step == "flush":
                for batch in list(batcher.open()):
                    take(batch)
                assert list(batcher.open()) == []
            else:
                for batch in list(batcher.open()):
                    take(batch)
                for dest in (*DESTS, 77):
                    batcher.limit(dest, int(step.split()[1]))
            batcher.check()
        for batch in list(batcher.open()):
            take(batch)
        assert taken == offered


class TestOpenBatch:
    def test_runs(self) -> None:
        batcher = Batcher([5], rows=100, nbytes=1000)
        for stream, row in [(0, b"a"), (0, b"b"), (2, b"c"), (0, b"d")]:
            assert not batcher.add(5, stream, row)
        assert batcher.batch(5).take() == ([(0, 2), (2, 1), (0, 1)], [b"a", b"b", b"c", b"d"])
        assert batcher.batch(5).take() == ([], [])

    def test_the_stream_goes_on_in_the_next_batch(self) -> None:
        batcher = Batcher([5], rows=100, nbytes=1000)
        batcher.add(5, 2, b"a")
        batcher.batch(5).take()
        batcher.batch(5).rows.append(
            b"b"
        )  # as a closure does that knows the stream has not changed
        batcher.check()
        assert batcher.batch(5).take() == ([(2, 1)], [b"b"])

    def test_the_list_of_rows_stays_the_same_object(self) -> None:
        batcher = Batcher([5], rows=2, nbytes=1000)
        batch = batcher.batch(5)
        before = batch.rows
        batcher.add(5, 0, b"a")
        batch.take()
        assert batch.rows is before
        assert before == []
        assert batch.answer == (5,)


class TestBounds:
    def test_rows(self) -> None:
        batcher = Batcher([5], rows=3, nbytes=3000)
        assert [batcher.add(5, 0, b"a") for _ in range(3)] == [False, False, True]

    def test_bytes(self) -> None:
        batcher = Batcher([5], rows=10, nbytes=100)
        assert batcher.small == 10
        assert [batcher.add(5, 0, b"a" * 60) for _ in range(2)] == [False, True]
        batcher.batch(5).take()
        assert [batcher.add(5, 0, b"a" * 60) for _ in range(2)] == [False, True]

    def test_a_row_above_the_bytes_is_due_at_once(self) -> None:
        assert Batcher([5], rows=10, nbytes=100).add(5, 0, b"a" * 500)

    def test_more_rows_than_bytes(self) -> None:
        batcher = Batcher([5], rows=100, nbytes=1)
        assert (batcher.small, batcher.add(5, 0, b"ab")) == (1, True)

    @pytest.mark.parametrize(("limit", "cap"), [(-5, 1), (0, 1), (1, 1), (7, 7), (9, 8)])
    def test_a_limit_is_held_between_one_and_our_own(self, limit: int, cap: int) -> None:
        batcher = Batcher(DESTS, rows=8, nbytes=1000)
        batcher.limit(5, limit)
        assert [batcher.batch(dest).cap for dest in DESTS] == [8, cap, 8]
        batcher.limit(5, 8)
        assert batcher.batch(5).cap == 8
        batcher.check()

    def test_a_limit_below_what_has_gathered_is_met_by_the_next_row(self) -> None:
        batcher = Batcher([5], rows=8, nbytes=1000)
        for _ in range(5):
            assert not batcher.add(5, 0, b"a")
        batcher.limit(5, 2)
        assert batcher.add(5, 0, b"a")

    def test_destinations(self) -> None:
        batcher = Batcher(DESTS, rows=8, nbytes=1000)
        assert batcher.dests == DESTS
        with pytest.raises(KeyError):
            batcher.batch(4)


def test_check_finds_rows_without_a_stream() -> None:
    batcher = Batcher([5], rows=8, nbytes=1000)
    batcher.batch(5).rows.append(b"a")
    with pytest.raises(AssertionError, match="rows to 5 without a stream"):
        batcher.check()
