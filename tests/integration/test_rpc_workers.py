"""The threads of a server: how many there are, and what becomes of what waits for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from storm_py.rpc.workers import Workers
from tests.helpers import wait_until
from tests.rpc import TIMEOUT_SECS


class Pool:
    """Workers that hold each piece until they are let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.done: list[str] = []
        self.go = threading.Event()
        self.workers: Workers[str] = Workers("pool", self._do, threads=2, queue=2)

    def _do(self, piece: str) -> None:
        self.begun.append(piece)
        assert self.go.wait(TIMEOUT_SECS)
        self.done.append(piece)


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.go.set()
    assert made.workers.close(TIMEOUT_SECS)


def test_a_thread_is_begun_for_each_piece_up_to_the_limit(pool: Pool) -> None:
    assert pool.workers.threads == 0
    for number, threads in enumerate((1, 2, 2, 2)):
        assert pool.workers.submit(str(number))
        assert pool.workers.threads == threads
    wait_until(lambda: pool.workers.waiting == 2)
    assert sorted(pool.begun) == ["0", "1"]


def test_a_thread_that_is_free_is_used_again(pool: Pool) -> None:
    pool.go.set()
    for name in "abc":
        assert pool.workers.submit(name)
        wait_until(lambda: pool.workers.open == 0)
    assert pool.done == ["a", "b", "c"]
    assert pool.workers.threads == 1


def test_a_piece_too_many_is_not_taken_until_there_is_room(pool: Pool) -> None:
    assert [pool.workers.submit(name) for name in "abcde"] == [True, True, True, True, False]
    pool.go.set()
    wait_until(lambda: sorted(pool.done) == ["a", "b", "c", "d"])
    wait_until(lambda: pool.workers.submit("f"))
    wait_until(lambda: pool.done[-1] == "f")


def test_what_waits_can_be_taken_back_and_makes_room(pool: Pool) -> None:
    for name in "abcd":
        pool.workers.submit(name)
    wait_until(lambda: len(pool.begun) == 2)
    assert pool.workers.cancel() == ["c", "d"]
    assert [pool.workers.submit(name) for name in "efg"] == [True, True, False]
    pool.go.set()
    wait_until(lambda: sorted(pool.done) == ["a", "b", "e", "f"])


def test_close_waits_for_what_runs_and_takes_nothing_more(pool: Pool) -> None:
    pool.workers.submit("a")
    wait_until(lambda: pool.begun == ["a"])
    assert not pool.workers.close(0.0)
    assert not pool.workers.submit("b")
    pool.go.set()
    assert pool.workers.close(TIMEOUT_SECS)
    assert pool.done == ["a"]
