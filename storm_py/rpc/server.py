"""ThriftServer: serves the calls of one handler over TCP, framed and in Thrift's binary protocol.

Theory of operation. One thread, the loop (`storm_py.rpc.loop`), owns the listening socket and every
connection: it accepts, collects frames, watches deadlines, sends answers, and waits for nobody. A
complete call goes to one of a bounded number of threads (`storm_py.rpc.workers`), which runs the
handler and gives the answer back to the loop. So what a client does, or does not do, costs its own
connection and no more: idle ones hold no thread, slow ones none until their call is complete;
garbage, too long a frame, or a deadline that passes close the one connection.

Too much is refused in words: a call for which no thread is left and no place to wait is answered
with a failure, and so is the first call on a connection beyond the limit.

thriftpy2's own servers are not used: they give each client a thread for as long as it stays, drop
it after 3 idle seconds, believe the length of any frame, and log a traceback for each that hangs
up.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from dataclasses import dataclass
from typing import Final, Self

from storm_py.errors import RpcError

from .connection import place
from .dispatch import Dispatcher
from .limits import Limits
from .loop import Loop

#: Connections that the kernel may hold until they are accepted.
_BACKLOG: Final = 1024


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a server is doing."""

    connections: int
    #: Calls that run or wait for a thread...
    calls: int
    #: ...and those of them that wait.
    waiting: int
    #: Threads that have been begun for calls.
    threads: int


class ThriftServer:
    """Serves a handler at an address from `start` to `stop`; `port` 0 takes any that is free.

    ``handler`` has a method for each call that it answers (`storm_py.rpc.interface`); they run in
    several threads at once. ``name`` is for logs and threads. A server can be started once.
    """

    def __init__(
        self,
        handler: object,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        limits: Limits | None = None,
        name: str = "thrift",
    ) -> None:
        self._host = host
        self._port = port
        self._limits = limits or Limits()
        self._name = name
        self._dispatcher = Dispatcher(handler)
        self._address = (host, port)
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port; once it has started, the real ones."""
        return self._address

    def start(self) -> Self:
        """Listen and serve. Raises RpcError if this address cannot be listened at."""
        if self._thread is not None:
            raise RuntimeError(f"{self._name} has been started before; make another server")
        listener = _listen(self._host, self._port, self._name)
        host, port = listener.getsockname()[:2]
        self._address = (str(host), int(port))
        self._loop = Loop(listener, self._dispatcher, self._limits, self._name)
        self._thread = threading.Thread(
            target=self._loop.run, name=f"{self._name}-loop", daemon=True
        )
        self._thread.start()
        return self

    def stop(self, timeout: float = 10.0) -> bool:
        """Stop serving, once the calls that run are answered; those that wait are refused.

        Listener and idle connections are closed at once. False if some calls were not answered in
        so many seconds: they are cut off, and the log says whose. Not to be called by a handler.
        """
        if self._loop is None or self._thread is None:
            return True
        self._loop.stop(time.monotonic() + timeout)
        self._thread.join()
        return not self._loop.cut

    def join(self, timeout: float | None = None) -> bool:
        """Wait until it has stopped; False if it has not in so many seconds."""
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def statistics(self) -> Statistics:
        """What it is doing now."""
        if self._loop is None:
            return Statistics(0, 0, 0, 0)
        connections = list(self._loop.connections)
        return Statistics(
            connections=len(connections),
            calls=sum(connection.call is not None for connection in connections),
            waiting=self._loop.workers.waiting,
            threads=self._loop.workers.threads,
        )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _listen(host: str, port: int, name: str) -> socket.socket:
    """A listening socket that does not block; RpcError, which says what to do, if there is none."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except BaseException:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:  # the second for a name that can be none
        why = getattr(error, "strerror", error)
        text = f"{name} cannot listen at {place(host, port)}: {why}; {_advice(error)}"
        raise RpcError(text) from error
    return listener


def _advice(error: OSError | UnicodeError) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return "stop what listens there, or choose another port"
    if number == errno.EACCES:
        return "ports below 1024 are the superuser's: choose a higher one"
    return "name an address of this machine"
