"""Elections over every storage: who leads, who is told, and who comes next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storm_py.cluster.base import StateStorage
from storm_py.cluster.latch import LeaderLatch
from storm_py.cluster.memory import MemoryCluster, MemoryStorage
from tests.contract.conftest import GENEROUS_SECS, Cluster, started
from tests.helpers import wait_until

LOCK = "/leader-lock"


class Participant:
    """A latch on a storage of its own, and all that it was told."""

    def __init__(self, storage: StateStorage, name: str, start: bool = True) -> None:
        self.storage = storage
        self.told: list[bool] = []
        self.latch = LeaderLatch(storage, LOCK, name, self.told.append)
        if start:
            self.latch.start()

    def wait_told(self, *told: bool) -> None:
        wait_until(lambda: self.told == list(told), GENEROUS_SECS, f"{told}, not {self.told}")


Join = Callable[[str], Participant]


@pytest.fixture
def join(cluster: Cluster) -> Join:
    """Have one more participant."""
    return lambda name: Participant(started(cluster), name)


def test_the_first_one_leads(join: Join) -> None:
    one, two = join("one:1"), join("two:1")
    assert (one.told, one.latch.is_leader) == ([True], True)
    assert (two.told, two.latch.is_leader) == ([], False)
    for participant in (one, two):
        assert participant.latch.participants() == ("one:1", "two:1")
        assert participant.latch.leader() == "one:1"


def test_nobody_leads_before_anybody_takes_part(storage: StateStorage) -> None:
    latch = Participant(storage, "one:1", start=False).latch
    assert latch.leader() is None
    assert latch.participants() == ()
    assert not latch.is_leader


def test_who_withdraws_hands_over(join: Join) -> None:
    one, two, three = join("one:1"), join("two:1"), join("three:1")
    one.latch.withdraw()
    assert (one.told, one.latch.is_leader) == ([True, False], False)
    two.wait_told(True)
    assert two.latch.participants() == ("two:1", "three:1")
    assert three.told == []


def test_who_withdraws_without_leading(join: Join) -> None:
    one, two = join("one:1"), join("two:1")
    two.latch.withdraw()
    assert one.latch.participants() == ("one:1",)
    assert (one.told, two.told) == ([True], [])


def test_who_closes_hands_over(join: Join) -> None:
    one, two = join("one:1"), join("two:1")
    one.storage.close()
    two.wait_told(True)
    one.wait_told(True, False)


def test_whose_session_expires_comes_last(cluster: Cluster, join: Join) -> None:
    one, two = join("one:1"), join("two:1")
    cluster.expire(one.storage)
    two.wait_told(True)
    wait_until(lambda: two.latch.participants() == ("two:1", "one:1"), GENEROUS_SECS)
    one.wait_told(True, False)
    two.latch.withdraw()
    one.wait_told(True, False, True)


def test_who_is_alone_leads_again_after_its_session_expired(cluster: Cluster, join: Join) -> None:
    one = join("one:1")
    cluster.expire(one.storage)
    one.wait_told(True, False, True)
    assert one.latch.participants() == ("one:1",)


def test_a_broken_connection_is_no_election(cluster: Cluster, join: Join) -> None:
    one, two = join("one:1"), join("two:1")
    cluster.suspend(one.storage)
    assert not one.latch.is_leader
    assert two.latch.leader() == "one:1"
    cluster.resume(one.storage)
    assert one.latch.is_leader
    assert (one.told, two.told) == ([True], [])


def test_who_starts_without_a_connection(cluster: Cluster, storage: StateStorage) -> None:
    cluster.suspend(storage)
    one = Participant(storage, "one:1")
    assert one.told == []
    cluster.resume(storage)
    one.wait_told(True)


def test_a_node_that_somebody_deletes_is_made_again(join: Join) -> None:
    one, two = join("one:1"), join("two:1")
    [first, _] = two.storage.children(LOCK)
    names = sorted(two.storage.children(LOCK), key=lambda name: name[-10:])
    assert first in names
    two.storage.delete(f"{LOCK}/{names[0]}")
    two.wait_told(True)
    wait_until(lambda: two.latch.participants() == ("two:1", "one:1"), GENEROUS_SECS)
    one.wait_told(True, False)


# ---- in memory only: what breaks at a certain moment ---------------------------------------------


@pytest.fixture
def memory() -> MemoryStorage:
    storage = MemoryCluster().storage()
    storage.start()
    return storage


@pytest.mark.parametrize("done", [True, False])
def test_a_node_whose_creation_was_lost_on_the_way(memory: MemoryStorage, done: bool) -> None:
    """One node, whether it was created or not."""
    memory.fail_next("create", done)
    one = Participant(memory, "one:1")
    memory.suspend()
    memory.resume()
    assert one.told == [True]
    assert len(memory.children(LOCK)) == 1


def test_a_look_that_ends_in_another_session_leaves_nothing(memory: MemoryStorage) -> None:
    """Its node is in nobody's way, and what it saw is not told."""

    class Slow(MemoryStorage):
        expires = True

        def children(self, path: str) -> tuple[str, ...]:
            found = super().children(path)
            if self.expires:
                self.expires = False
                self.expire()
                self.resume()
            return found

    cluster = MemoryCluster()
    slow = Slow(cluster)
    slow.start()
    one = Participant(slow, "one:1")
    other = cluster.storage()
    other.start()
    two = Participant(other, "two:1")
    assert one.latch.participants() == ("one:1", "two:1")
    assert (one.told, two.told) == ([True], [])
