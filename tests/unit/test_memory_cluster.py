"""What tests can do to a storage in memory, beyond what tests/contract shows of it."""

from __future__ import annotations

from functools import partial

import pytest

from storm_py.cluster.base import ConnectionState, Node
from storm_py.cluster.memory import MemoryCluster, MemoryStorage
from storm_py.errors import ConnectionLost


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryCluster().storage()
    storage.start()
    return storage


@pytest.mark.parametrize("done", [True, False])
def test_an_operation_fails_once(storage: MemoryStorage, done: bool) -> None:
    storage.create("/a", b"0")
    storage.fail_next("write", done)
    storage.read("/a")
    with pytest.raises(ConnectionLost, match=r"^write /a: the connection broke$"):
        storage.write("/a", b"1")
    assert storage.read("/a") == (Node(b"1", 1) if done else Node(b"0", 0))
    storage.write("/a", b"2")
    assert storage.state == ConnectionState.CONNECTED


def test_failures_come_in_the_order_in_which_they_were_asked_for(storage: MemoryStorage) -> None:
    storage.create("/a", b"0")
    storage.fail_next("write", False)
    storage.fail_next("write", True)
    for expected in (b"0", b"1"):
        with pytest.raises(ConnectionLost):
            storage.write("/a", b"1")
        node = storage.read("/a")
        assert node is not None
        assert node.data == expected


def test_watchers_hear_of_what_was_done_and_not_answered(storage: MemoryStorage) -> None:
    calls: list[int] = []
    storage.watch("/a", lambda: calls.append(1))
    storage.fail_next("create", True)
    with pytest.raises(ConnectionLost):
        storage.create("/a")
    assert calls == [1]


def test_watchers_are_called_in_order_and_before_the_call_returns() -> None:
    cluster = MemoryCluster()
    storages = [cluster.storage() for _ in range(3)]
    calls: list[int] = []
    for number, storage in enumerate(storages):
        storage.start()
        storage.watch("/a", partial(calls.append, number))
    storages[1].create("/a")
    assert calls == [0, 1, 2]


def test_a_watcher_that_fails_shows_where_it_was_called(storage: MemoryStorage) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    storage.watch("/a", fail)
    with pytest.raises(ZeroDivisionError):
        storage.create("/a")
    assert storage.read("/a") is not None


def test_a_session_expires_and_stays_lost_until_it_is_resumed(storage: MemoryStorage) -> None:
    states: list[ConnectionState] = []
    storage.listen(states.append)
    storage.create("/a", ephemeral=True)
    storage.expire()
    assert states == [ConnectionState.SUSPENDED, ConnectionState.LOST]
    with pytest.raises(ConnectionLost):
        storage.read("/a")
    storage.resume()
    assert storage.read("/a") is None
    assert states[2:] == [ConnectionState.CONNECTED]


def test_what_is_not_ephemeral_outlives_a_storage_whose_session_has_expired() -> None:
    cluster = MemoryCluster()
    storage, other = cluster.storage(), cluster.storage()
    storage.start()
    other.start()
    storage.create("/a", b"0")
    storage.expire()
    storage.expire()
    storage.close()
    assert other.read("/a") == Node(b"0", 0)
