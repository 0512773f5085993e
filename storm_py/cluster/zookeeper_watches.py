"""The watchers of a ZooKeeperStorage, and the thread that calls them.

ZooKeeper tells of one change and forgets who watched, and forgets all of them when a connection
breaks. So each watcher is armed anew before it is called: after a change, and whenever there is a
connection again. What a connection is, and everything else, is in `storm_py.cluster.zookeeper`.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import WatchedEvent

from .base import Cancel, Watcher

__all__ = ["Watches"]

_LOG = logging.getLogger("storm_py.cluster")


class _Watch:
    """One watcher, and the function that ZooKeeper's events go to."""

    __slots__ = ("_due", "cancelled", "of_children", "path", "watcher")

    def __init__(
        self, path: str, of_children: bool, watcher: Watcher, due: Callable[[_Watch], None]
    ) -> None:
        self.path = path
        self.of_children = of_children
        self.watcher = watcher
        self.cancelled = False
        self._due = due

    def happened(self, event: WatchedEvent) -> None:
        # also when the connection breaks: it then cannot be armed, and waits for the next one
        self._due(self)


class Watches:
    """All watchers of one storage, called one at a time on a thread of their own.

    `wait` makes one attempt of an asynchronous operation of `client`, and raises one of `lost` if
    the connection does not carry it.
    """

    def __init__(
        self, client: KazooClient, wait: Callable[..., Any], lost: tuple[type[Exception], ...]
    ) -> None:
        self._client = client
        self._wait = wait
        self._lost = lost
        self._watches: list[_Watch] = []
        self._lock = threading.Lock()  # of that list
        self._due: queue.SimpleQueue[_Watch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._call_watchers, name="zookeeper-watchers", daemon=True
        )

    def start(self) -> None:
        """Begin to call them."""
        self._thread.start()

    def stop(self) -> None:
        """Forget them all; none is called once this has returned, unless it is a watcher's call."""
        with self._lock:
            watches, self._watches = self._watches, []
        for watch in watches:
            watch.cancelled = True
        self._due.put(None)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def add(self, path: str, of_children: bool, watcher: Watcher) -> Cancel:
        """Watch a node or its children."""
        watch = _Watch(path, of_children, watcher, self._due.put)
        with self._lock:
            self._watches.append(watch)
        try:
            self._arm(watch)
        except self._lost:
            pass  # it is armed, and called, once there is a connection

        def cancel() -> None:
            watch.cancelled = True
            with self._lock:
                if watch in self._watches:
                    self._watches.remove(watch)

        return cancel

    def connected(self) -> None:
        """There is a connection again: anything may have changed meanwhile."""
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            self._due.put(watch)

    def _call_watchers(self) -> None:
        for watch in iter(self._due.get, None):
            if watch.cancelled:
                continue
            try:
                self._arm(watch)
            except self._lost:
                if self._client.connected:  # then this is about another connection, or about time
                    self._due.put(watch)
                continue
            try:
                watch.watcher()
            except Exception:  # noqa: BLE001 - whatever it is, others have to be called
                _LOG.exception("the watcher of %s failed; it goes on watching", watch.path)

    def _arm(self, watch: _Watch) -> None:
        """Have ZooKeeper tell of the next change."""
        while True:
            if watch.of_children:
                try:
                    self._wait(self._client.get_children_async, watch.path, watch=watch.happened)
                    return
                except NoNodeError:
                    pass  # the next change is that it is created
            there = self._wait(self._client.exists_async, watch.path, watch=watch.happened)
            if not (there and watch.of_children):
                return
