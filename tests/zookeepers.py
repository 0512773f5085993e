"""A real ZooKeeper for tests, and connections to it that can be cut.

One server serves the tests of a file, and is gone when others count the processes of this one;
each test takes a root of its own.
"""

from __future__ import annotations

import os
import queue
import selectors
import socket
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest

from storm_py.cluster.zookeeper import ZooKeeperSettings
from storm_py.dev_zookeeper import DevZooKeeper
from storm_py.java import find_java

#: As short as it gets without ending sessions of a machine that is merely busy.
SESSION_SECS = 10.0
HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory, run_marker: str) -> Iterator[DevZooKeeper]:
    """A ZooKeeper that runs, at a port of the kernel's choice."""
    server = DevZooKeeper(find_java(os.environ), tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()


def settings(
    port: int, root: str | None = None, session_secs: float = SESSION_SECS
) -> ZooKeeperSettings:
    """Settings that give up soon; the root is one that nobody else has unless one is given."""
    return ZooKeeperSettings(
        servers=(HOST,),
        port=port,
        root=f"/{uuid.uuid4().hex}" if root is None else root,
        session_timeout_secs=session_secs,
        connection_timeout_secs=60,
        retry_times=1,
        retry_interval_secs=0.01,
        retry_ceiling_secs=0.01,
    )


class Proxy:
    """Hands connections to `port` on to a server, until they are cut."""

    def __init__(self, target_port: int) -> None:
        self._target = (HOST, target_port)
        # Bound all the time, so that nobody else takes the port while nothing listens.
        self._reserved = _bound(0)
        self.port: int = self._reserved.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._peers: dict[socket.socket, socket.socket] = {}
        self._listener: socket.socket | None = None
        self._orders: queue.SimpleQueue[tuple[Callable[[], bool], threading.Event]] = (
            queue.SimpleQueue()
        )
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        self.mend()

    def mend(self) -> None:
        """Let connections through."""
        self._order(self._mend)

    def cut(self) -> None:
        """Break all connections, and refuse new ones."""
        self._order(self._cut)

    def close(self) -> None:
        """Break all connections for good."""
        self._order(self._close)
        self._thread.join()
        for one in (self._reserved, self._wake, self._woken):
            one.close()

    def _order(self, order: Callable[[], bool]) -> None:
        done = threading.Event()
        self._orders.put((order, done))
        self._wake.send(b"\0")
        done.wait()

    # ---- on its thread -------------------------------------------------------------------------

    def _run(self) -> None:
        goes_on = True
        while goes_on:
            for key, _ in self._selector.select():
                found = key.fileobj
                assert isinstance(found, socket.socket)
                if found is self._woken:
                    found.recv(1)
                    order, done = self._orders.get()
                    goes_on = order()
                    done.set()
                    break  # what else was selected may be closed now
                if found is self._listener:
                    self._accept(found)
                elif found in self._peers:
                    self._hand_on(found)
        self._selector.close()

    def _mend(self) -> bool:
        if self._listener is None:
            self._listener = _bound(self.port)
            self._listener.listen()
            self._selector.register(self._listener, selectors.EVENT_READ)
        return True

    def _cut(self) -> bool:
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
        for one in list(self._peers):
            self._end(one)
        return True

    def _close(self) -> bool:
        self._cut()
        return False

    def _accept(self, listener: socket.socket) -> None:
        client, _ = listener.accept()
        try:
            server = socket.create_connection(self._target)
        except OSError:  # the server is away
            client.close()
            return
        self._peers |= {client: server, server: client}
        for one in (client, server):
            self._selector.register(one, selectors.EVENT_READ)

    def _hand_on(self, source: socket.socket) -> None:
        try:
            data = source.recv(65536)
            if data:
                self._peers[source].sendall(data)
        except OSError:
            data = b""
        if not data:
            self._end(source)

    def _end(self, one: socket.socket) -> None:
        if one in self._peers:
            for end in (one, self._peers[one]):
                self._selector.unregister(end)
                del self._peers[end]
                end.close()


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((HOST, port))
    return bound
