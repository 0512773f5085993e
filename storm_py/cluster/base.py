"""StateStorage: what a storage of nodes can do: what ZooKeeper can (Storm's IStateStorage).

A node has a path, bytes, a version that grows with each write, and children. One that is
*ephemeral* goes with the session of its maker. A connection is one of three things, and changes
between them are told, not raised: *connected*; *suspended*, when nobody knows whether the session
still lives, and nothing can be read or written; *lost*, when it is over and its ephemeral nodes are
gone. After either it comes back by itself: to the same session from suspended, to a new one from
lost.

*Listeners* hear of connection states. They are called at once on the thread that found out, so they
may neither block nor use the storage. *Watchers* hear that something changed, not what: they are
called on any thread, one at a time for each storage, and may use it. The storage has begun to watch
anew before it calls, and calls each watcher when a connection has come back: a watcher that reads
what is there whenever it is called misses no change, though it may be called for none.

Interfaces and values only. `storm_py.cluster.zookeeper` and `storm_py.cluster.memory` implement
them and pass the same tests.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

__all__ = ["Cancel", "ConnectionState", "Listener", "Node", "StateStorage", "Watcher"]


class ConnectionState(enum.StrEnum):
    """Whether there is a connection, and if not, whether its session may still live."""

    CONNECTED = "CONNECTED"
    SUSPENDED = "SUSPENDED"
    LOST = "LOST"


class Node(NamedTuple):
    """What is read of a node."""

    data: bytes
    version: int


#: Ends what the call that returned it began; a second call does nothing.
Cancel: TypeAlias = Callable[[], None]
Listener: TypeAlias = Callable[[ConnectionState], None]
Watcher: TypeAlias = Callable[[], None]


class StateStorage(Protocol):
    """The nodes of a cluster, as one process sees them.

    Paths begin with a slash and end without one. Every operation raises ConnectionLost when there
    is no connection or when it breaks; it may have been done then. None is begun in one session and
    repeated in another.
    """

    @property
    def state(self) -> ConnectionState:
        """The connection right now; LOST before the start and after the close."""
        ...

    def start(self, timeout_secs: float | None = None) -> None:
        """Connect; ConnectionLost if that does not succeed in time (None: as configured)."""
        ...

    def close(self) -> None:
        """End the session with its ephemeral nodes, its watchers and its listeners."""
        ...

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequence: bool = False
    ) -> str:
        """Create a node, with persistent parents as needed, and return its path.

        With `sequence` the path gets ten digits appended, a number that grows with each child of
        its parent. NodeExists if it is there, unless a lost attempt of this call made it.
        """
        ...

    def read(self, path: str) -> Node | None:
        """The node, None if it is not there."""
        ...

    def write(self, path: str, data: bytes, version: int | None = None) -> int:
        """Replace the data of a node and return its new version.

        NoNode if it is not there, VersionMismatch if it does not have the version that is given.
        """
        ...

    def hold(self, path: str, data: bytes) -> None:
        """Make this session the owner of an ephemeral node with this data.

        A node of another session gives way: that of an earlier life of this process goes with its
        old session only when that has timed out.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete a node and all below it; nothing happens if it is not there."""
        ...

    def children(self, path: str) -> tuple[str, ...]:
        """The names of the children of a node, sorted; none if it is not there."""
        ...

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        """From now on tell of each creation, write and deletion of a node."""
        ...

    def watch_children(self, path: str, watcher: Watcher) -> Cancel:
        """From now on tell of each child that comes or goes, also if the parent comes or goes."""
        ...

    def listen(self, listener: Listener) -> Cancel:
        """From now on tell of each change of the connection."""
        ...
