"""What every storage of nodes does, in memory and in ZooKeeper."""

from __future__ import annotations

import threading

import pytest

from storm_py.cluster.base import Node, StateStorage
from storm_py.errors import (
    ClusterStateError,
    NodeExists,
    NoNode,
    VersionMismatch,
)
from tests.contract.conftest import GENEROUS_SECS, Calls
from tests.helpers import wait_until

# ---- nodes ---------------------------------------------------------------------------------------


def test_a_node_is_read_as_it_was_created(storage: StateStorage, other: StateStorage) -> None:
    assert storage.create("/a/b/c", b"data") == "/a/b/c"
    for one in (storage, other):
        assert one.read("/a/b/c") == Node(b"data", 0)
        assert one.read("/a") == Node(b"", 0)
        assert one.children("/a") == ("b",)


def test_what_is_not_there(storage: StateStorage) -> None:
    assert storage.read("/a") is None
    assert storage.children("/a") == ()
    storage.delete("/a")
    with pytest.raises(NoNode, match=r"^/a does not exist$"):
        storage.write("/a", b"")


def test_a_node_is_created_once(storage: StateStorage, other: StateStorage) -> None:
    storage.create("/a", b"first")
    for one in (storage, other):
        with pytest.raises(NodeExists, match=r"^/a exists already$"):
            one.create("/a", b"second")
        with pytest.raises(NodeExists):
            one.create("/a", b"first")
    assert storage.read("/a") == Node(b"first", 0)


def test_children_are_sorted(storage: StateStorage) -> None:
    for name in "bca":
        storage.create(f"/p/{name}")
    assert storage.children("/p") == ("a", "b", "c")


def test_a_sequence_grows(storage: StateStorage, other: StateStorage) -> None:
    paths = [one.create("/p/e", b"x", sequence=True) for one in (storage, other, storage)]
    assert all(path[:-10] == "/p/e" and path[-10:].isdecimal() for path in paths)
    assert paths == sorted(set(paths))
    storage.delete(paths[-1])
    assert storage.create("/p/e", sequence=True) > paths[-1]
    assert storage.read(paths[0]) == Node(b"x", 0)


def test_a_write_replaces_data_and_counts(storage: StateStorage, other: StateStorage) -> None:
    storage.create("/a", b"0")
    assert storage.write("/a", b"1") == 1
    assert other.write("/a", b"2", version=1) == 2
    assert storage.read("/a") == Node(b"2", 2)


def test_a_write_upon_another_ones_write_is_refused(
    storage: StateStorage, other: StateStorage
) -> None:
    storage.create("/a", b"0")
    other.write("/a", b"1")
    with pytest.raises(VersionMismatch, match=r"^/a has changed since it was read: read it again$"):
        storage.write("/a", b"2", version=0)
    assert storage.read("/a") == Node(b"1", 1)


def test_a_node_that_is_created_anew_counts_anew(storage: StateStorage) -> None:
    storage.create("/a")
    storage.write("/a", b"1")
    storage.delete("/a")
    storage.create("/a")
    assert storage.read("/a") == Node(b"", 0)


def test_delete_takes_all_that_is_below(storage: StateStorage) -> None:
    for path in ("/a/b/c", "/a/b/d", "/a/e", "/ab"):
        storage.create(path)
    storage.delete("/a")
    assert storage.read("/a") is None
    assert storage.read("/a/b/c") is None
    assert storage.read("/ab") is not None


# ---- ephemeral nodes -----------------------------------------------------------------------------


def test_an_ephemeral_node_goes_with_its_session(
    storage: StateStorage, other: StateStorage
) -> None:
    other.create("/p/mine", b"x", ephemeral=True)
    other.create("/p/e", ephemeral=True, sequence=True)
    other.create("/p/stays")
    assert storage.read("/p/mine") == Node(b"x", 0)
    other.close()
    assert storage.children("/p") == ("stays",)


def test_an_ephemeral_node_has_no_children(storage: StateStorage) -> None:
    storage.create("/a", ephemeral=True)
    with pytest.raises(ClusterStateError, match=r"^(create )?/a/b: .*[eE]phemeral"):
        storage.create("/a/b")


def test_hold_creates_and_then_writes(storage: StateStorage, other: StateStorage) -> None:
    storage.hold("/p/a", b"0")
    storage.hold("/p/a", b"1")
    assert other.read("/p/a") == Node(b"1", 1)
    storage.close()
    assert other.read("/p/a") is None


def test_hold_takes_over_what_another_session_holds(
    storage: StateStorage, other: StateStorage
) -> None:
    other.hold("/a", b"theirs")
    storage.hold("/a", b"mine")
    other.close()
    node = storage.read("/a")
    assert node is not None
    assert node.data == b"mine"


def test_hold_takes_over_a_persistent_node(storage: StateStorage, other: StateStorage) -> None:
    storage.create("/a", b"old")
    storage.hold("/a", b"new")
    storage.close()
    assert other.read("/a") is None


# ---- watchers ------------------------------------------------------------------------------------


def test_a_watcher_is_told_of_creation_write_and_deletion(
    storage: StateStorage, other: StateStorage
) -> None:
    calls = Calls()
    storage.watch("/a", calls)
    other.create("/a")
    calls.wait_for(1)
    other.write("/a", b"1")
    calls.wait_for(2)
    other.delete("/a")
    calls.wait_for(3)
    storage.create("/a")
    calls.wait_for(4)


def test_a_watcher_of_children_is_told_of_each_that_comes_or_goes(
    storage: StateStorage, other: StateStorage
) -> None:
    other.create("/p/a")
    calls = Calls()
    storage.watch_children("/p", calls)
    other.create("/p/b")
    calls.wait_for(1)
    other.delete("/p/a")
    calls.wait_for(2)


def test_children_of_a_parent_that_is_not_there_yet(
    storage: StateStorage, other: StateStorage
) -> None:
    seen: list[tuple[str, ...]] = []
    storage.watch_children("/p", lambda: seen.append(storage.children("/p")))
    other.create("/p/a")
    wait_until(lambda: ("a",) in seen, GENEROUS_SECS)
    other.delete("/p")
    wait_until(lambda: seen[-1] == (), GENEROUS_SECS)
    other.create("/p/b")
    wait_until(lambda: seen[-1] == ("b",), GENEROUS_SECS)


def test_a_watcher_that_reads_misses_no_change(storage: StateStorage, other: StateStorage) -> None:
    other.create("/a", b"0")
    seen = []

    def look() -> None:
        node = storage.read("/a")
        assert node is not None
        seen.append(node.version)

    storage.watch("/a", look)
    for i in range(1, 201):
        other.write("/a", str(i).encode())
    wait_until(lambda: seen and seen[-1] == 200, GENEROUS_SECS, "the last version seen")
    assert seen == sorted(seen)


def test_watchers_may_change_what_they_watch(storage: StateStorage) -> None:
    """They are called again after that, not within."""
    storage.create("/a", b"")
    at_work: list[int] = []
    overlaps: list[int] = []

    def count_on() -> None:
        overlaps.extend(at_work)
        at_work.append(1)
        node = storage.read("/a")
        assert node is not None
        if node.version < 5:
            storage.write("/a", b"", node.version)
        at_work.clear()

    storage.watch("/a", count_on)
    storage.write("/a", b"")
    wait_until(lambda: storage.read("/a") == Node(b"", 5), GENEROUS_SECS)
    assert not overlaps


def test_watchers_are_called_one_at_a_time(storage: StateStorage, other: StateStorage) -> None:
    at_work = threading.Lock()
    overlaps = []
    calls = Calls()

    def work() -> None:
        if not at_work.acquire(blocking=False):
            overlaps.append(1)
            return
        storage.children("/p")
        calls()
        at_work.release()

    for i in range(10):
        storage.watch(f"/p/{i}", work)
    for i in range(10):
        other.create(f"/p/{i}")
    calls.wait_for(10)
    assert not overlaps


def test_a_cancelled_watcher_is_called_no_more(storage: StateStorage, other: StateStorage) -> None:
    cancelled, kept = Calls(), Calls()
    cancels = [storage.watch("/a", cancelled), storage.watch_children("/a", cancelled)]
    storage.watch("/b", kept)
    for _ in range(2):
        for cancel in cancels:
            cancel()
    other.create("/a/c")
    other.create("/b")
    kept.wait_for(1)
    assert cancelled.count == 0
