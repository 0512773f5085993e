"""Blobs from the nimbus that leads, over Thrift; and who that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from storm_py.cluster.memory import MemoryCluster, MemoryStorage
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.errors import BlobError, UnreachableError
from storm_py.rpc.definitions import ReadableBlobMeta, SettableBlobMeta
from storm_py.supervisor.blobs import LeaderBlobs
from storm_py.supervisor.leader import Leader
from tests.cluster_records import nimbus_summary
from tests.integration.supervising import FakeNimbus, sha256

KEY = "words-1-1-stormjar.jar"
DATA = bytes(range(256))


@pytest.fixture
def nimbus() -> Iterator[Callable[[], FakeNimbus]]:
    """Makes nimbuses that have the blob."""
    made: list[FakeNimbus] = []

    def make() -> FakeNimbus:
        made.append(FakeNimbus())
        made[-1].blobs[KEY] = DATA
        return made[-1]

    yield make
    for each in made:
        each.server.stop()


class Leaders:
    """Leaders, one after the other; the last one stays."""

    def __init__(self, *nimbuses: FakeNimbus) -> None:
        self._addresses = [nimbus.server.address for nimbus in nimbuses]

    def address(self) -> tuple[str, int]:
        return self._addresses.pop(0) if len(self._addresses) > 1 else self._addresses[0]


def test_a_blob_and_its_checksum(nimbus: Callable[[], FakeNimbus]) -> None:
    blobs = LeaderBlobs(Leaders(nimbus()))
    assert blobs.checksum(KEY) == sha256(DATA)
    assert [len(chunk) for chunk in blobs.read(KEY)] == [50, 50, 50, 50, 50, 6]
    assert b"".join(blobs.read(KEY)) == DATA


def test_a_blob_of_a_topology_that_is_gone(nimbus: Callable[[], FakeNimbus]) -> None:
    blobs = LeaderBlobs(Leaders(nimbus()))
    with pytest.raises(BlobError, match="nimbus has no blob gone: its topology is gone"):
        blobs.checksum("gone")
    with pytest.raises(BlobError, match="nimbus has no blob gone: its topology is gone"):
        list(blobs.read("gone"))


def test_a_nimbus_that_is_away(nimbus: Callable[[], FakeNimbus]) -> None:
    away = nimbus()
    away.server.stop()
    with pytest.raises(BlobError, match=f"blob {KEY} cannot be had: nothing listens at 127.0.0.1:"):
        list(LeaderBlobs(Leaders(away)).read(KEY))


def test_a_nimbus_that_knows_no_checksums(
    nimbus: Callable[[], FakeNimbus], monkeypatch: pytest.MonkeyPatch
) -> None:
    meta = ReadableBlobMeta(settable=SettableBlobMeta(acl=[]), version=1)
    monkeypatch.setattr(FakeNimbus, "getBlobMeta", lambda self, key: meta)
    with pytest.raises(BlobError, match="does not say the sha256 of blob words"):
        LeaderBlobs(Leaders(nimbus())).checksum(KEY)


def test_another_leader_is_asked_when_the_last_one_fails(
    nimbus: Callable[[], FakeNimbus],
) -> None:
    away, behind, leads = nimbus(), nimbus(), nimbus()
    away.server.stop()
    behind.blobs.clear()
    assert LeaderBlobs(Leaders(away, behind, leads)).checksum(KEY) == sha256(DATA)
    assert b"".join(LeaderBlobs(Leaders(away, behind, leads)).read(KEY)) == DATA


def test_another_leader_goes_on_where_the_last_one_ended(
    nimbus: Callable[[], FakeNimbus],
) -> None:
    first, second = nimbus(), nimbus()
    second.blobs[KEY] = DATA
    chunks = LeaderBlobs(Leaders(first, second)).read(KEY)
    begun = next(chunks)
    first.server.stop()
    assert begun + b"".join(chunks) == DATA


# ---- who leads -----------------------------------------------------------------------------------


@pytest.fixture
def storage() -> Iterator[MemoryStorage]:
    storage = MemoryCluster().storage()
    storage.start()
    yield storage
    storage.close()


def test_the_leader_is_the_one_that_says_so(storage: MemoryStorage) -> None:
    leader = Leader()
    with pytest.raises(UnreachableError, match="no connection to ZooKeeper"):
        leader.address()
    state = ClusterState(storage)
    leader.use(state)
    with pytest.raises(UnreachableError, match="no nimbus leads"):
        leader.address()
    for host in ("one", "two"):
        state.set_leader_info(nimbus_summary(host))
        assert leader.address() == (host, 6627)


def test_the_last_leader_counts_while_there_is_no_connection(storage: MemoryStorage) -> None:
    state = ClusterState(storage)
    state.set_leader_info(nimbus_summary("one"))
    leader = Leader()
    leader.use(state)
    leader.address()
    storage.fail_next("read", done=True)
    assert leader.address() == ("one", 6627)
    storage.expire()
    assert leader.address() == ("one", 6627)
    storage.resume()
    with pytest.raises(UnreachableError, match="no nimbus leads"):
        leader.address()
    storage.expire()
    with pytest.raises(UnreachableError, match="no connection to ZooKeeper"):
        leader.address()
