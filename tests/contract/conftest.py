"""Clusters that every test of this folder runs on: in memory, and in a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest
from kazoo.client import KazooClient

from storm_py.cluster.base import ConnectionState, StateStorage
from storm_py.cluster.memory import MemoryCluster, MemoryStorage
from storm_py.cluster.zookeeper import ZooKeeperStorage
from storm_py.dev_zookeeper import DevZooKeeper
from tests.helpers import wait_until
from tests.zookeepers import Proxy, settings

GENEROUS_SECS = 60.0


class Calls:
    """A watcher that counts its calls."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1

    def wait_for(self, count: int) -> None:
        wait_until(lambda: self.count >= count, GENEROUS_SECS, f"call {count} of the watcher")


class Cluster(Protocol):
    """Storages that see the same nodes, and what can happen to them."""

    def new(self) -> StateStorage:
        """One more storage, not started; it is closed in the end."""
        ...

    def suspend(self, storage: StateStorage) -> None:
        """Break its connection, until `resume`."""
        ...

    def resume(self, storage: StateStorage) -> None:
        """Let it connect again, and wait until it has."""
        ...

    def expire(self, storage: StateStorage) -> None:
        """End its session, and wait until it has a new one."""
        ...

    def close(self) -> None:
        """Close all storages."""
        ...


class InMemory:
    """A cluster in memory."""

    def __init__(self) -> None:
        self._cluster = MemoryCluster()
        self._storages: list[MemoryStorage] = []

    def new(self) -> MemoryStorage:
        self._storages.append(self._cluster.storage())
        return self._storages[-1]

    def suspend(self, storage: StateStorage) -> None:
        assert isinstance(storage, MemoryStorage)
        storage.suspend()

    def resume(self, storage: StateStorage) -> None:
        assert isinstance(storage, MemoryStorage)
        storage.resume()

    def expire(self, storage: StateStorage) -> None:
        assert isinstance(storage, MemoryStorage)
        storage.expire()
        storage.resume()

    def close(self) -> None:
        for storage in self._storages:
            storage.close()


class Real:
    """A cluster in a real ZooKeeper; each storage reaches it through a proxy of its own."""

    def __init__(self, server: DevZooKeeper) -> None:
        self._server = server
        self._root = settings(server.port).root
        self._proxies: dict[int, Proxy] = {}
        self._storages: list[ZooKeeperStorage] = []

    def new(self) -> ZooKeeperStorage:
        proxy = Proxy(self._server.port)
        storage = ZooKeeperStorage(settings(proxy.port, self._root))
        self._proxies[id(storage)] = proxy
        self._storages.append(storage)
        return storage

    def suspend(self, storage: StateStorage) -> None:
        self._proxies[id(storage)].cut()
        _wait_for(storage, ConnectionState.SUSPENDED)

    def resume(self, storage: StateStorage) -> None:
        self._proxies[id(storage)].mend()
        _wait_for(storage, ConnectionState.CONNECTED)

    def expire(self, storage: StateStorage) -> None:
        assert isinstance(storage, ZooKeeperStorage)
        end_session(storage, self._server)

    def close(self) -> None:
        for storage in self._storages:
            storage.close()
        for proxy in self._proxies.values():
            proxy.close()


def end_session(storage: ZooKeeperStorage, server: DevZooKeeper) -> None:
    """End its session as a second owner of it, and wait until it has a new one."""
    states: list[ConnectionState] = []
    cancel = storage.listen(states.append)
    owner = KazooClient(hosts=server.address, client_id=storage._client.client_id)
    owner.start(GENEROUS_SECS)
    owner.stop()
    owner.close()
    wait_until(lambda: ConnectionState.LOST in states, GENEROUS_SECS, "the session lost")
    cancel()
    _wait_for(storage, ConnectionState.CONNECTED)


def _wait_for(storage: StateStorage, state: ConnectionState) -> None:
    wait_until(lambda: storage.state == state, GENEROUS_SECS, f"the connection {state}")


@pytest.fixture(params=["memory", "zookeeper"])
def cluster(request: pytest.FixtureRequest, zookeeper: DevZooKeeper) -> Iterator[Cluster]:
    """A cluster without a node."""
    made: Cluster
    if request.param == "memory":
        made = InMemory()
    else:
        made = Real(zookeeper)
    yield made
    made.close()


@pytest.fixture
def storage(cluster: Cluster) -> StateStorage:
    """One that is started."""
    return started(cluster)


@pytest.fixture
def other(cluster: Cluster) -> StateStorage:
    """Another one that is started."""
    return started(cluster)


def started(cluster: Cluster) -> StateStorage:
    """One more storage, connected."""
    storage = cluster.new()
    storage.start()
    return storage
