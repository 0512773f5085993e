"""Connections that break and come back, sessions that end, for every storage of nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storm_py.cluster.base import ConnectionState, Node, StateStorage
from storm_py.errors import ConnectionLost
from tests.contract.conftest import GENEROUS_SECS, Calls, Cluster, started
from tests.helpers import wait_until

CONNECTED, SUSPENDED, LOST = ConnectionState


def test_a_storage_starts_and_ends_without_a_connection(cluster: Cluster) -> None:
    storage = cluster.new()
    states: list[ConnectionState] = []
    storage.listen(states.append)
    assert storage.state == LOST
    storage.start()
    assert storage.state == CONNECTED
    storage.close()
    storage.close()
    assert storage.state == LOST
    assert (states[0], states[-1]) == (CONNECTED, LOST)
    with pytest.raises(ConnectionLost, match=r"read /a: .*LOST"):
        storage.read("/a")


def test_what_is_suspended_can_do_nothing(cluster: Cluster, storage: StateStorage) -> None:
    storage.create("/a")
    cluster.suspend(storage)
    attempts: list[Callable[[], object]] = [
        lambda: storage.create("/b"),
        lambda: storage.create("/b", sequence=True),
        lambda: storage.read("/a"),
        lambda: storage.write("/a", b""),
        lambda: storage.hold("/b", b""),
        lambda: storage.delete("/a"),
        lambda: storage.children("/a"),
    ]
    for attempt in attempts:
        with pytest.raises(ConnectionLost, match=r"connection .*SUSPENDED"):
            attempt()
    cluster.resume(storage)
    assert storage.read("/a") == Node(b"", 0)
    assert storage.read("/b") is None


def test_a_session_survives_a_broken_connection(
    cluster: Cluster, storage: StateStorage, other: StateStorage
) -> None:
    states: list[ConnectionState] = []
    storage.listen(states.append)
    storage.create("/mine", ephemeral=True)
    cluster.suspend(storage)
    assert other.read("/mine") is not None
    cluster.resume(storage)
    wait_until(lambda: states == [SUSPENDED, CONNECTED], GENEROUS_SECS, f"{states}")
    assert other.read("/mine") is not None
    storage.close()
    assert other.read("/mine") is None


def test_an_expired_session_takes_its_nodes_along(
    cluster: Cluster, storage: StateStorage, other: StateStorage
) -> None:
    states: list[ConnectionState] = []
    storage.listen(states.append)
    storage.create("/mine", ephemeral=True)
    storage.create("/stays")
    cluster.expire(storage)
    wait_until(lambda: states[-2:] == [LOST, CONNECTED], GENEROUS_SECS, f"{states}")
    assert CONNECTED not in states[:-1]
    assert other.read("/mine") is None
    assert storage.read("/stays") is not None
    storage.create("/mine", ephemeral=True)
    assert other.read("/mine") is not None


@pytest.mark.parametrize("what", ["broken", "expired"])
def test_watchers_outlive_a_connection(
    what: str, cluster: Cluster, storage: StateStorage, other: StateStorage
) -> None:
    """They are told of what happened meanwhile, and of what happens from then on."""
    seen: list[tuple[str, ...]] = []
    versions: list[int] = []

    def look() -> None:
        node = storage.read("/p/a")
        versions.append(-1 if node is None else node.version)

    other.create("/p/a")
    storage.watch_children("/p", lambda: seen.append(storage.children("/p")))
    storage.watch("/p/a", look)
    if what == "broken":
        cluster.suspend(storage)
        other.create("/p/b")
        other.write("/p/a", b"1")
        cluster.resume(storage)
    else:
        cluster.expire(storage)
        other.create("/p/b")
        other.write("/p/a", b"1")
    wait_until(lambda: seen and seen[-1] == ("a", "b"), GENEROUS_SECS, "the new child")
    wait_until(lambda: versions and versions[-1] == 1, GENEROUS_SECS, "the new version")
    other.create("/p/c")
    other.write("/p/a", b"2")
    wait_until(lambda: seen[-1] == ("a", "b", "c"), GENEROUS_SECS, "the next child")
    wait_until(lambda: versions[-1] == 2, GENEROUS_SECS, "the next version")


def test_a_watch_that_begins_without_a_connection(
    cluster: Cluster, storage: StateStorage, other: StateStorage
) -> None:
    calls = Calls()
    cluster.suspend(storage)
    storage.watch("/a", calls)
    other.create("/a")
    assert calls.count == 0
    cluster.resume(storage)
    calls.wait_for(1)
    told = calls.count
    other.write("/a", b"1")
    calls.wait_for(told + 1)


def test_a_cancelled_listener_is_told_no_more(cluster: Cluster, storage: StateStorage) -> None:
    states: list[ConnectionState] = []
    kept: list[ConnectionState] = []
    cancel = storage.listen(states.append)
    storage.listen(kept.append)
    cancel()
    cancel()
    cluster.suspend(storage)
    wait_until(lambda: kept == [SUSPENDED], GENEROUS_SECS)
    assert states == []


def test_two_storages_have_nothing_to_do_with_each_other(cluster: Cluster) -> None:
    one, two = started(cluster), started(cluster)
    cluster.suspend(one)
    two.create("/a")
    assert two.state == CONNECTED
    cluster.resume(one)
    assert one.read("/a") is not None
