"""What only a real ZooKeeper can do to a storage: lose replies, time sessions out, be another's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss

from storm_py.cluster.base import ConnectionState, Node
from storm_py.cluster.zookeeper import ZooKeeperSettings, ZooKeeperStorage
from storm_py.config import defaults
from storm_py.dev_zookeeper import DevZooKeeper
from storm_py.errors import ConnectionLost, NodeExists
from tests.contract.conftest import GENEROUS_SECS, end_session
from tests.helpers import wait_until
from tests.zookeepers import Proxy, settings

CONNECTED, SUSPENDED, LOST = ConnectionState


class Interfered(ZooKeeperStorage):
    """One with whose operations something can happen."""

    def __init__(self, settings: ZooKeeperSettings) -> None:
        super().__init__(settings)
        self.before: dict[str, Callable[[], object]] = {}
        self.lost: list[str] = []

    def _wait(self, operation: Callable[..., Any], *args: Any, **options: Any) -> Any:
        name = operation.__name__.removesuffix("_async")
        self.before.pop(name, lambda: None)()
        result = super()._wait(operation, *args, **options)
        if name in self.lost:
            self.lost.remove(name)
            raise ConnectionLoss
        return result


@pytest.fixture
def storage(zookeeper: DevZooKeeper) -> Iterator[Interfered]:
    made = Interfered(settings(zookeeper.port))
    made.start()
    yield made
    made.close()


def test_the_settings_of_a_configuration() -> None:
    made = ZooKeeperSettings.from_conf(
        {**defaults(), "storm.zookeeper.servers": ["a", "b"], "storm.zookeeper.retry.times": 3}
    )
    assert made == ZooKeeperSettings(("a", "b"), 2181, "/storm", 20, 15, 3, 1, 30)
    assert made.hosts == "a:2181,b:2181"


def test_a_root_keeps_clusters_apart(storage: Interfered, zookeeper: DevZooKeeper) -> None:
    other = ZooKeeperStorage(settings(zookeeper.port))
    other.start()
    storage.create("/a")
    assert other.read("/a") is None
    other.close()


# ---- replies that are lost -----------------------------------------------------------------------


@pytest.mark.parametrize("ephemeral", [True, False])
def test_a_node_whose_creation_was_not_heard_of(storage: Interfered, ephemeral: bool) -> None:
    storage.lost = ["create"]
    assert storage.create("/a", b"mine", ephemeral=ephemeral) == "/a"
    assert storage.lost == []
    assert storage.read("/a") == Node(b"mine", 0)


def test_a_node_that_somebody_else_created_meanwhile(storage: Interfered) -> None:
    storage.lost = ["create"]
    storage.before["create"] = lambda: storage.before.update(
        create=lambda: storage.write("/a", b"theirs")
    )
    with pytest.raises(NodeExists):
        storage.create("/a", b"mine")


def test_a_sequence_is_tried_once(storage: Interfered) -> None:
    """A second attempt might make a second node."""
    storage.lost = ["create"]
    with pytest.raises(ConnectionLost, match=r"^create /p/e: the connection .*\(ConnectionLoss\)$"):
        storage.create("/p/e", sequence=True)
    assert len(storage.children("/p")) == 1


@pytest.mark.parametrize(
    ("operation", "attempt"),
    [
        ("get", lambda storage: storage.read("/a")),
        ("set", lambda storage: storage.write("/a", b"")),
        ("set", lambda storage: storage.hold("/a", b"")),
        ("delete", lambda storage: storage.delete("/a")),
        ("get_children", lambda storage: storage.children("/a")),
    ],
)
def test_operations_are_tried_again(
    storage: Interfered, operation: str, attempt: Callable[[Interfered], object]
) -> None:
    storage.create("/a")
    storage.lost = [operation]
    attempt(storage)
    assert storage.lost == []


def test_operations_are_tried_again_as_often_as_configured(storage: Interfered) -> None:
    storage.create("/a")
    storage.lost = ["get", "get", "get"]
    with pytest.raises(ConnectionLost, match=r"^read /a: the connection to ZooKeeper at "):
        storage.read("/a")
    assert storage.lost == ["get"]


def test_operations_are_tried_again_as_soon_as_there_is_a_connection(
    zookeeper: DevZooKeeper,
) -> None:
    """Whatever the wait, which has become long when ZooKeeper was away for long."""
    proxy = Proxy(zookeeper.port)
    patient = replace(settings(proxy.port), retry_interval_secs=3600, retry_ceiling_secs=3600)
    storage = Interfered(patient)
    storage.start()
    storage.create("/a", b"it")
    storage.listen(lambda state: proxy.mend() if state is SUSPENDED else None)
    storage.before["get"] = proxy.cut
    found: list[Node | None] = []
    reader = threading.Thread(target=lambda: found.append(storage.read("/a")))
    reader.start()
    reader.join(GENEROUS_SECS)
    storage.close()
    reader.join()
    proxy.close()
    assert found == [Node(b"it", 0)]


def test_operations_are_not_tried_again_in_another_session(
    storage: Interfered, zookeeper: DevZooKeeper
) -> None:
    """Who lost an election with its session writes nothing in the next one."""
    storage.create("/a")
    storage.before["set"] = lambda: end_session(storage, zookeeper)
    storage.lost = ["set", "set"]
    with pytest.raises(ConnectionLost, match=r"^write /a: .*SessionExpiredError"):
        storage.write("/a", b"")
    assert storage.lost == ["set"]


# ---- others who are faster -----------------------------------------------------------------------


def test_a_child_that_comes_while_its_parent_is_deleted(storage: Interfered) -> None:
    storage.create("/a/b")
    storage.before["delete"] = lambda: storage.before.update(delete=lambda: storage.create("/a/c"))
    storage.delete("/a")
    assert storage.read("/a") is None


def test_a_node_that_comes_while_it_is_held(storage: Interfered) -> None:
    storage.before["create"] = lambda: storage.create("/a", b"theirs")
    storage.hold("/a", b"mine")
    node = storage.read("/a")
    assert node is not None
    assert node.data == b"mine"


def test_children_whose_parent_comes_while_a_watch_begins(storage: Interfered) -> None:
    seen: list[tuple[str, ...]] = []
    storage.before["exists"] = lambda: storage.create("/p")
    storage.watch_children("/p", lambda: seen.append(storage.children("/p")))
    storage.create("/p/a")
    wait_until(lambda: seen and seen[-1] == ("a",), GENEROUS_SECS)


# ---- sessions ------------------------------------------------------------------------------------


def test_a_session_that_times_out(storage: Interfered, zookeeper: DevZooKeeper) -> None:
    proxy = Proxy(zookeeper.port)
    root = settings(zookeeper.port).root
    away = ZooKeeperStorage(settings(proxy.port, root, session_secs=1))
    near = ZooKeeperStorage(settings(zookeeper.port, root))
    states: list[ConnectionState] = []
    away.listen(states.append)
    away.start()
    near.start()
    away.create("/mine", ephemeral=True)
    proxy.cut()
    wait_until(lambda: near.read("/mine") is None, GENEROUS_SECS, "the end of the session")
    assert states == [CONNECTED, SUSPENDED]
    proxy.mend()
    wait_until(
        lambda: states == [CONNECTED, SUSPENDED, LOST, CONNECTED], GENEROUS_SECS, "a session"
    )
    near.close()
    away.close()
    proxy.close()


def test_a_storage_is_closed_without_a_connection(zookeeper: DevZooKeeper) -> None:
    proxy = Proxy(zookeeper.port)
    storage = ZooKeeperStorage(settings(proxy.port))
    storage.start()
    proxy.cut()
    wait_until(lambda: storage.state == SUSPENDED, GENEROUS_SECS)
    storage.close()
    assert storage.state == LOST
    proxy.close()


def test_a_storage_is_closed_by_its_own_watcher(storage: Interfered) -> None:
    storage.watch("/a", storage.close)
    storage.create("/a")
    wait_until(lambda: storage.state == LOST, GENEROUS_SECS)


# ---- mistakes of those who are called ------------------------------------------------------------


def broken(*_: object) -> None:
    raise ZeroDivisionError("a mistake")


def test_a_watcher_that_fails_stops_no_other(
    storage: Interfered, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []
    storage.watch("/a", broken)
    storage.watch("/a", lambda: calls.append(1))
    storage.create("/a")
    wait_until(lambda: len(calls) == 1, GENEROUS_SECS)
    storage.write("/a", b"")
    wait_until(lambda: len(calls) == 2, GENEROUS_SECS)
    wait_until(lambda: caplog.text.count("ZeroDivisionError: a mistake") == 2, GENEROUS_SECS)
    assert "/a failed; it goes on watching" in caplog.text


def test_a_listener_that_fails_stops_no_other(
    zookeeper: DevZooKeeper, caplog: pytest.LogCaptureFixture
) -> None:
    storage = ZooKeeperStorage(settings(zookeeper.port))
    states: list[ConnectionState] = []
    storage.listen(broken)
    storage.listen(states.append)
    storage.start()
    wait_until(lambda: states == [CONNECTED], GENEROUS_SECS)
    storage.close()
    assert "a listener failed to take the state CONNECTED" in caplog.text
