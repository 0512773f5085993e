"""MemoryCluster: nodes in memory, shared by any number of storages, for tests.

Everything is done when a call returns: watchers have been called too, on the thread of the caller,
in the order in which they were set up, unless a watcher is at work already: then what it does is
told after it. A storage can be suspended, its session expired, and operations made to fail as a
broken connection makes them. The real thing is `storm_py.cluster.zookeeper`; both pass the same
tests.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from storm_py.errors import (
    ClusterStateError,
    ConnectionLost,
    NodeExists,
    NoNode,
    VersionMismatch,
)

from .base import Cancel, ConnectionState, Listener, Node, Watcher

__all__ = ["MemoryCluster", "MemoryStorage"]


@dataclass(slots=True)
class _Stored:
    data: bytes = b""
    version: int = 0
    #: Session of an ephemeral node, 0 for a persistent one.
    owner: int = 0
    children: set[str] = field(default_factory=set)
    #: The number of the next child that is created with one.
    next_number: int = 0


@dataclass(slots=True, eq=False)
class _Watch:
    storage: MemoryStorage
    path: str
    of_children: bool
    watcher: Watcher
    told: bool = False


class MemoryCluster:
    """The nodes, and who watches them."""

    def __init__(self) -> None:
        self._nodes = {"/": _Stored()}
        self._watches: list[_Watch] = []
        self._sessions = 0
        self._due: deque[_Watch] = deque()
        self._telling = False
        # Guards the rest; never held while a watcher or a listener runs.
        self.lock = threading.RLock()

    def storage(self) -> MemoryStorage:
        """Another process's view of it, not started yet."""
        return MemoryStorage(self)

    # ---- for storages, under the lock ----------------------------------------------------------

    def new_session(self) -> int:
        self._sessions += 1
        return self._sessions

    def end_session(self, session: int) -> None:
        """Delete its ephemeral nodes; those who watch them are told when `tell` is called.

        0 is no session, but the owner of all nodes that stay.
        """
        if not session:
            return
        for path in [path for path, node in self._nodes.items() if node.owner == session]:
            self.delete(path)

    def create(self, path: str, data: bytes, owner: int, sequence: bool) -> str:
        parent_path, _, name = path.rpartition("/")
        parent_path = parent_path or "/"
        parent = self._nodes.get(parent_path)
        if parent is None:
            self.create(parent_path, b"", 0, False)
            parent = self._nodes[parent_path]
        if parent.owner:
            raise ClusterStateError(f"{path}: {parent_path} is ephemeral and can have no children")
        if sequence:
            name = f"{name}{parent.next_number:010}"
            path = f"{parent_path.rstrip('/')}/{name}"
        if path in self._nodes:
            raise NodeExists(f"{path} exists already")
        parent.next_number += 1
        self._nodes[path] = _Stored(data, owner=owner)
        parent.children.add(name)
        self._changed(path, of_children=False)
        self._changed(parent_path, of_children=True)
        return path

    def find(self, path: str) -> _Stored | None:
        return self._nodes.get(path)

    def write(self, path: str, data: bytes, version: int | None) -> int:
        node = self._nodes.get(path)
        if node is None:
            raise NoNode(f"{path} does not exist")
        if version is not None and version != node.version:
            raise VersionMismatch(f"{path} has changed since it was read: read it again")
        node.data = data
        node.version += 1
        self._changed(path, of_children=False)
        return node.version

    def delete(self, path: str) -> None:
        node = self._nodes.get(path)
        if node is None:
            return
        for name in sorted(node.children):
            self.delete(f"{path}/{name}")
        del self._nodes[path]
        parent_path, _, name = path.rpartition("/")
        self._nodes[parent_path or "/"].children.remove(name)
        for of_children in (False, True):
            self._changed(path, of_children)
        self._changed(parent_path or "/", of_children=True)

    def watch(self, watch: _Watch) -> Cancel:
        self._watches.append(watch)

        def cancel() -> None:
            with self.lock:
                if watch in self._watches:
                    self._watches.remove(watch)

        return cancel

    def forget(self, storage: MemoryStorage) -> None:
        self._watches = [watch for watch in self._watches if watch.storage is not storage]

    def remind(self, storage: MemoryStorage) -> None:
        """Something may have changed that a storage has not heard of."""
        self._due.extend(watch for watch in self._watches if watch.storage is storage)

    def _changed(self, path: str, of_children: bool) -> None:
        for watch in self._watches:
            if (watch.path, watch.of_children) == (path, of_children) and watch not in self._due:
                self._due.append(watch)

    # ---- without the lock ----------------------------------------------------------------------

    def tell(self) -> None:
        """Call the watchers of what has changed, unless that is being done already."""
        while True:
            with self.lock:
                if self._telling or not self._due:
                    return
                watch = self._due.popleft()
                if watch not in self._watches or watch.storage.state != ConnectionState.CONNECTED:
                    continue
                self._telling = True
            try:
                watch.watcher()
            finally:
                with self.lock:
                    self._telling = False


class MemoryStorage:
    """One session after the other of a process; a `storm_py.cluster.base.StateStorage`."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._state = ConnectionState.LOST
        self._session = 0
        self._closed = False
        self._listeners: list[Listener] = []
        self._failures: list[tuple[str, bool]] = []

    # ---- what tests do to it -------------------------------------------------------------------

    def suspend(self) -> None:
        """Break the connection; the session lives on."""
        self._become(ConnectionState.SUSPENDED)

    def resume(self) -> None:
        """Connect again, to the session if it still lives, to a new one otherwise."""
        with self._cluster.lock:
            if not self._session:
                self._session = self._cluster.new_session()
        self._become(ConnectionState.CONNECTED)
        with self._cluster.lock:
            self._cluster.remind(self)
        self._cluster.tell()

    def expire(self) -> None:
        """End the session as ZooKeeper does when it heard nothing; `resume` begins a new one."""
        if self._state == ConnectionState.CONNECTED:
            self.suspend()
        with self._cluster.lock:
            self._cluster.end_session(self._session)
            self._session = 0
        self._become(ConnectionState.LOST)
        self._cluster.tell()

    def fail_next(self, operation: str, done: bool) -> None:
        """Have the next operation of this name raise ConnectionLost, done nevertheless or not."""
        self._failures.append((operation, done))

    # ---- StateStorage --------------------------------------------------------------------------

    @property
    def state(self) -> ConnectionState:
        """The connection right now."""
        return self._state

    def start(self, timeout_secs: float | None = None) -> None:
        """Connect; that takes no time here."""
        self.resume()

    def close(self) -> None:
        """End the session, its watchers and its listeners."""
        if self._closed:
            return
        self._closed = True
        with self._cluster.lock:
            self._cluster.forget(self)
            self._cluster.end_session(self._session)
            self._session = 0
        self._become(ConnectionState.LOST)
        self._listeners.clear()
        self._cluster.tell()

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        """Create a node."""
        with self._operation("create", path):
            owner = self._session if ephemeral else 0
            return self._cluster.create(path, data, owner, sequence)

    def read(self, path: str) -> Node | None:
        """Read a node."""
        with self._operation("read", path):
            node = self._cluster.find(path)
            return None if node is None else Node(node.data, node.version)

    def write(self, path: str, data: bytes, version: int | None = None) -> int:
        """Write a node."""
        with self._operation("write", path):
            return self._cluster.write(path, data, version)

    def hold(self, path: str, data: bytes) -> None:
        """Own an ephemeral node."""
        with self._operation("hold", path):
            node = self._cluster.find(path)
            if node is not None and node.owner == self._session:
                self._cluster.write(path, data, None)
                return
            self._cluster.delete(path)
            self._cluster.create(path, data, self._session, False)

    def delete(self, path: str) -> None:
        """Delete a node and all below it."""
        with self._operation("delete", path):
            self._cluster.delete(path)

    def children(self, path: str) -> tuple[str, ...]:
        """The names of a node's children."""
        with self._operation("children", path):
            node = self._cluster.find(path)
            return () if node is None else tuple(sorted(node.children))

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        """Tell of a node's changes."""
        with self._cluster.lock:
            return self._cluster.watch(_Watch(self, path, False, watcher))

    def watch_children(self, path: str, watcher: Watcher) -> Cancel:
        """Tell of children that come and go."""
        with self._cluster.lock:
            return self._cluster.watch(_Watch(self, path, True, watcher))

    def listen(self, listener: Listener) -> Cancel:
        """Tell of the connection."""
        self._listeners.append(listener)

        def cancel() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return cancel

    # ---- inside --------------------------------------------------------------------------------
    @contextmanager
    def _operation(self, name: str, path: str) -> Iterator[None]:
        with self._cluster.lock:
            if self._state != ConnectionState.CONNECTED:
                raise ConnectionLost(f"{name} {path}: the connection is {self._state}")
            failure = next((one for one in self._failures if one[0] == name), None)
            if failure is not None:
                self._failures.remove(failure)
            lost = ConnectionLost(f"{name} {path}: the connection broke")
            if failure == (name, False):
                raise lost
            yield
        self._cluster.tell()
        if failure is not None:
            raise lost

    def _become(self, state: ConnectionState) -> None:
        if state == self._state:
            return
        self._state = state
        for listener in list(self._listeners):
            listener(state)
