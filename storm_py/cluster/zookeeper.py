"""ZooKeeperStorage: nodes in ZooKeeper, by kazoo.

Theory of operation. kazoo keeps the connection, on a thread of its own, and comes back by itself:
to its session, or to a new one once that has expired. Operations are sent when there is a
connection only, so that none is done long after its caller gave up; one that broke with the
connection is repeated, see ``storm.zookeeper.retry.*``, and at once when there is a connection
again, but never in another session: whoever began it may have lost an election with the old one.
Watchers are called by a thread of their own, see `storm_py.cluster.zookeeper_watches`, so that they
may use the storage.

Whoever learns that a leader is none any more must learn it at once: listeners are called on kazoo's
thread, before anything else is done with the new state.

The other half is the contract in `storm_py.cluster.base`; nothing else in storm-py uses kazoo.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from storm_py.config import Config
from storm_py.errors import (
    ClusterStateError,
    ConnectionLost,
    NodeExists,
    NoNode,
    VersionMismatch,
)

from .base import Cancel, ConnectionState, Listener, Node, Watcher
from .zookeeper_watches import Watches

__all__ = ["ZooKeeperSettings", "ZooKeeperStorage"]

_LOG = logging.getLogger("storm_py.cluster")

T = TypeVar("T")

#: What a broken or missing connection raises.
_LOST: Final = (
    ConnectionClosedError,
    ConnectionLoss,
    KazooTimeoutError,
    OperationTimeoutError,
    SessionExpiredError,
)
#: What is worth another attempt.
_BROKEN: Final = (ConnectionLoss, OperationTimeoutError)
#: How much waits between attempts differ: not all clients shall come at once.
_JITTER: Final = 0.4
#: Longest wait between two attempts to connect, in seconds: as short as Storm's client has it, so
#: that a ZooKeeper that was restarted is found again soon.
_RECONNECT_SECS: Final = 1.0

_STATES: Final = {
    KazooState.CONNECTED: ConnectionState.CONNECTED,
    KazooState.SUSPENDED: ConnectionState.SUSPENDED,
    KazooState.LOST: ConnectionState.LOST,
}


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """Where ZooKeeper is and how patient to be; the keys are ``storm.zookeeper.*``."""

    servers: tuple[str, ...]
    port: int
    root: str
    session_timeout_secs: float
    connection_timeout_secs: float
    retry_times: int
    retry_interval_secs: float
    retry_ceiling_secs: float

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any]) -> ZooKeeperSettings:
        """What a checked configuration says."""
        return cls(
            servers=tuple(conf[Config.STORM_ZOOKEEPER_SERVERS]),
            port=conf[Config.STORM_ZOOKEEPER_PORT],
            root=conf[Config.STORM_ZOOKEEPER_ROOT],
            session_timeout_secs=conf[Config.STORM_ZOOKEEPER_SESSION_TIMEOUT] / 1000,
            connection_timeout_secs=conf[Config.STORM_ZOOKEEPER_CONNECTION_TIMEOUT] / 1000,
            retry_times=conf[Config.STORM_ZOOKEEPER_RETRY_TIMES],
            retry_interval_secs=conf[Config.STORM_ZOOKEEPER_RETRY_INTERVAL] / 1000,
            retry_ceiling_secs=conf[Config.STORM_ZOOKEEPER_RETRY_INTERVALCEILING_MILLIS] / 1000,
        )

    @property
    def hosts(self) -> str:
        """The servers as kazoo takes them, and as messages name them."""
        return ",".join(f"{server}:{self.port}" for server in self.servers)


class ZooKeeperStorage:
    """One session after the other of this process; implements `storm_py.cluster.base.StateStorage`.

    Not to be started again after its close.
    """

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self._settings = settings
        self._root = settings.root.rstrip("/")
        self._state = ConnectionState.LOST
        #: How many sessions have ended.
        self._sessions = 0
        self._closed = threading.Event()
        #: How often there has been a connection; changes under `_connected`.
        self._connections = 0
        self._connected = threading.Condition()
        self._listeners: list[Listener] = []
        self._client = KazooClient(
            hosts=settings.hosts,
            timeout=settings.session_timeout_secs,
            connection_retry=KazooRetry(max_tries=-1, max_delay=_RECONNECT_SECS),
        )
        self._client.add_listener(self._changed)
        self._watches = Watches(self._client, self._wait, _LOST)

    # ---- connection ----------------------------------------------------------------------------

    @property
    def state(self) -> ConnectionState:
        """The connection right now."""
        return self._state

    def start(self, timeout_secs: float | None = None) -> None:
        """Connect."""
        if timeout_secs is None:
            timeout_secs = self._settings.connection_timeout_secs
        self._watches.start()
        try:
            self._client.start(timeout_secs)
        except KazooTimeoutError:
            self.close()
            raise ConnectionLost(
                f"no ZooKeeper answers at {self._settings.hosts} within {timeout_secs:g} s: start "
                "it, or set storm.zookeeper.servers and storm.zookeeper.port"
            ) from None

    def close(self) -> None:
        """End the session, its watchers and its listeners."""
        if self._closed.is_set():
            return
        with self._connected:
            self._closed.set()
            self._connected.notify_all()
        self._watches.stop()
        self._client.stop()
        self._client.close()
        self._listeners.clear()

    def listen(self, listener: Listener) -> Cancel:
        """Tell of the connection."""
        self._listeners.append(listener)

        def cancel() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return cancel

    def _changed(self, state: str) -> None:
        """Called by kazoo's thread, which can do nothing else meanwhile."""
        self._state = _STATES[state]
        self._sessions += self._state == ConnectionState.LOST
        for listener in list(self._listeners):
            try:
                listener(self._state)
            except Exception:  # noqa: BLE001 - whatever it is, others have to be told
                _LOG.exception("a listener failed to take the state %s", self._state)
        if self._state == ConnectionState.CONNECTED:
            self._watches.connected()
            with self._connected:
                self._connections += 1
                self._connected.notify_all()

    # ---- operations ----------------------------------------------------------------------------

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        """Create a node."""
        attempts = 0

        def attempt() -> str:
            nonlocal attempts
            attempts += 1
            try:
                made: str = self._wait(
                    self._client.create_async,
                    self._rooted(path),
                    data,
                    ephemeral=ephemeral,
                    sequence=sequence,
                    makepath=True,
                )
                return made.removeprefix(self._root)
            except NodeExistsError:
                if attempts > 1 and self._is_mine(path, data, ephemeral):
                    return path
                raise

        # A second attempt might make a second node where each gets a name of its own.
        return self._do("create", path, attempt, retry=not sequence)

    def read(self, path: str) -> Node | None:
        """Read a node."""

        def attempt() -> Node | None:
            try:
                data, stat = self._wait(self._client.get_async, self._rooted(path))
            except NoNodeError:
                return None
            return Node(data, stat.version)

        return self._do("read", path, attempt)

    def write(self, path: str, data: bytes, version: int | None = None) -> int:
        """Write a node."""

        def attempt() -> int:
            expected = -1 if version is None else version
            stat = self._wait(self._client.set_async, self._rooted(path), data, expected)
            return int(stat.version)

        return self._do("write", path, attempt)

    def hold(self, path: str, data: bytes) -> None:
        """Own an ephemeral node."""

        def attempt() -> None:
            rooted = self._rooted(path)
            while True:
                try:
                    stat = self._wait(self._client.set_async, rooted, data)
                    if stat.ephemeralOwner == self._session:
                        return
                    self._delete(rooted)
                except NoNodeError:
                    pass
                try:
                    self._wait(
                        self._client.create_async, rooted, data, ephemeral=True, makepath=True
                    )
                    return
                except NodeExistsError:
                    continue

        self._do("hold", path, attempt)

    def delete(self, path: str) -> None:
        """Delete a node and all below it."""
        self._do("delete", path, lambda: self._delete(self._rooted(path)))

    def children(self, path: str) -> tuple[str, ...]:
        """The names of a node's children."""

        def attempt() -> tuple[str, ...]:
            try:
                names = self._wait(self._client.get_children_async, self._rooted(path))
            except NoNodeError:
                return ()
            return tuple(sorted(names))

        return self._do("children", path, attempt)

    def _delete(self, rooted: str) -> None:
        while True:
            try:
                for name in self._wait(self._client.get_children_async, rooted):
                    self._delete(f"{rooted}/{name}")
                self._wait(self._client.delete_async, rooted)
            except NoNodeError:
                return
            except NotEmptyError:  # somebody created another child meanwhile
                continue
            return

    def _is_mine(self, path: str, data: bytes, ephemeral: bool) -> bool:
        """Whether a node is what a lost attempt to create it made."""
        try:
            found, stat = self._wait(self._client.get_async, self._rooted(path))
        except NoNodeError:
            return False
        owner = self._session if ephemeral else 0
        return (found, stat.version, stat.ephemeralOwner) == (data, 0, owner)

    @property
    def _session(self) -> int:
        client_id = self._client.client_id
        if client_id is None:
            raise ConnectionLoss
        return int(client_id[0])

    def _do(self, what: str, path: str, attempt: Callable[[], T], retry: bool = True) -> T:
        """Make attempts within this session, and errors of storm-py of kazoo's."""
        sessions = self._sessions

        def once() -> T:
            if self._sessions != sessions:
                raise SessionExpiredError
            return attempt()

        try:
            return self._repeated(once) if retry else once()
        except _LOST as error:
            raise ConnectionLost(
                f"{what} {path}: the connection to ZooKeeper at {self._settings.hosts} is "
                f"{self._state} ({type(error).__name__})"
            ) from error
        except KazooException as error:
            raise _translated(error, what, path) from error

    def _repeated(self, once: Callable[[], T]) -> T:
        """Attempt it until it does not lose the connection, or that happened often enough."""
        settings = self._settings
        secs = settings.retry_interval_secs
        for _ in range(settings.retry_times):
            connections = self._connections
            try:
                return once()
            except _BROKEN:
                self._wait_connected(connections, secs)
                if self._closed.is_set():
                    raise
                secs = min(2 * secs, settings.retry_ceiling_secs)
        return once()

    def _wait_connected(self, connections: int, secs: float) -> None:
        """Wait for so long, but no longer than until there has been another connection.

        Waits become long while ZooKeeper is away; once it is back nothing shall have to wait.
        """
        with self._connected:
            self._connected.wait_for(
                lambda: self._closed.is_set() or self._connections > connections,
                secs * random.uniform(1 - _JITTER, 1 + _JITTER),
            )

    def _wait(self, operation: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """One attempt, only if there is a connection now: kazoo would keep it for the next one."""
        if not self._client.connected:
            raise ConnectionLoss
        return operation(*args, **options).get(timeout=self._settings.session_timeout_secs)

    def _rooted(self, path: str) -> str:
        return f"{self._root}{path}"

    # ---- watchers ------------------------------------------------------------------------------

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        """Tell of a node's changes."""
        return self._watches.add(self._rooted(path), False, watcher)

    def watch_children(self, path: str, watcher: Watcher) -> Cancel:
        """Tell of children that come and go."""
        return self._watches.add(self._rooted(path), True, watcher)


def _translated(error: KazooException, what: str, path: str) -> ClusterStateError:
    match error:
        case NodeExistsError():
            return NodeExists(f"{path} exists already")
        case NoNodeError():
            return NoNode(f"{path} does not exist")
        case BadVersionError():
            return VersionMismatch(f"{path} has changed since it was read: read it again")
    answer = f"{type(error).__name__} {error}".rstrip()
    return ClusterStateError(f"{what} {path}: ZooKeeper answers {answer}")
