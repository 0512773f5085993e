"""The thread of a server that owns its sockets: accepts, reads, hands over calls, sends answers.

It waits for nobody. Who is slow, silent or talks nonsense costs a connection, which is closed at
its deadline or at once, and a line at DEBUG. `storm_py.rpc.server` starts and stops it;
`storm_py.rpc.connection` says what each client's state and deadline are.

Other threads do two things with it: they append answers, and they stop it; both wake it.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import time
from collections import deque
from typing import Final, TypeAlias

from storm_py.errors import ProtocolError

from .connection import Connection, Gone, place
from .dispatch import Dispatcher
from .limits import TOLD_CONNECTIONS, Limits
from .workers import Workers

_LOG = logging.getLogger(__name__)

#: How long nobody is accepted when that failed: as a rule there are no file descriptors left.
_PAUSE_SECS: Final = 0.2

#: Who calls, and the message.
_Call: TypeAlias = tuple[Connection, bytes]


class Loop:
    """Serves a listening socket, which it takes over, until it is told to stop."""

    def __init__(
        self, listener: socket.socket, dispatcher: Dispatcher, limits: Limits, name: str
    ) -> None:
        self.connections: set[Connection] = set()
        self.workers: Workers[_Call] = Workers(name, self._work, limits.threads, limits.queue)
        #: connections whose call, or its answer, was cut off by the end
        self.cut = 0
        self._name = name
        self._limits = limits
        self._dispatcher = dispatcher
        self._listener = listener
        self._answers: deque[tuple[Connection, bytes | None]] = deque()
        self._alarm, self._bell = socket.socketpair()
        self._alarm.setblocking(False)
        self._bell.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._alarm, selectors.EVENT_READ)
        #: until when nobody is accepted
        self._accept_at: float | None = None
        #: when what still runs is given up; set from outside
        self._stop_at: float | None = None
        self._stopping = False

    def stop(self, at: float) -> None:
        """Have `run` end as soon as what runs is answered, and at this time at the latest."""
        self._stop_at = at
        self._wake()

    def run(self) -> None:
        """Serve until `stop`; then everything is closed."""
        try:
            while not self._done():
                for key, events in self._selector.select(self._patience()):
                    self._happened(key.fileobj, events)
                self._deliver()
                self._expire()
        finally:
            self._close()

    # In the threads of the workers.

    def _work(self, call: _Call) -> None:
        """Answer a call; without an answer its connection is closed."""
        connection, message = call
        answer: bytes | None = None
        try:
            answer = self._dispatcher.answer(message)
        except ProtocolError as error:
            _LOG.debug("%s: %s sent no call: %s", self._name, connection.peer, error)
        finally:
            self._answers.append((connection, answer))
            self._wake()

    def _wake(self) -> None:
        try:
            self._bell.send(b"\0")
        except BlockingIOError:
            pass  # it has been rung often enough
        except OSError:
            if not self._stopping:  # else the loop has gone, and nobody waits for this answer
                raise

    # In the thread that runs the loop.

    def _done(self) -> bool:
        """Whether to end; begins to stop once that is wanted."""
        if self._stop_at is None:
            return False
        if not self._stopping:
            self._stopping = True
            self._stop_listening()
            for connection, message in self.workers.cancel():
                self._refuse(connection, message, "the server is stopping; nothing has been done")
            self._deliver()
        for connection in [each for each in self.connections if each.settled]:
            self._drop(connection, "the server is stopping")
        return not self.connections or time.monotonic() >= self._stop_at

    def _patience(self) -> float | None:
        """Seconds until something is due."""
        due = [each.deadline for each in self.connections]
        times = [at for at in (*due, self._accept_at, self._stop_at) if at is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _happened(self, source: object, events: int) -> None:
        if source is self._listener:
            self._accept()
        elif source is self._alarm:
            self._alarm.recv(4096)
        elif isinstance(source, Connection) and source in self.connections:
            try:
                if events & selectors.EVENT_WRITE:
                    source.write(time.monotonic())
                else:
                    source.read(time.monotonic())
                self._proceed(source)
            except Gone as gone:
                self._drop(source, str(gone))

    def _accept(self) -> None:
        """Accept all who wait; some of them, if there are very many."""
        for _ in range(TOLD_CONNECTIONS):
            try:
                sock, peer = self._listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                _LOG.warning("%s: nobody can connect for now: %s", self._name, error.strerror)
                self._selector.unregister(self._listener)
                self._accept_at = time.monotonic() + _PAUSE_SECS
                return
            self._add(sock, peer)

    def _add(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        """Serve an accepted connection, or tell it that it is one too many, or not even that."""
        sock.setblocking(False)
        with contextlib.suppress(OSError):  # it may be gone already; reading will tell
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # finds hosts that died
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(sock, place(*peer[:2]), self._limits, time.monotonic())
        beyond = len(self.connections) - self._limits.connections
        self.connections.add(connection)
        if beyond >= TOLD_CONNECTIONS:
            self._drop(connection, "far too many connections")
        else:
            connection.told = beyond >= 0
            self._watch(connection)

    def _proceed(self, connection: Connection) -> None:
        """Take the next call, if one is there, and watch for what comes after it."""
        message = None if self._stopping else connection.next_call()
        if message is not None:
            limits = self._limits
            if connection.told:
                text = f"too many connections, the limit is {limits.connections}; try again later"
                self._refuse(connection, message, text)
            elif not self.workers.submit((connection, message)):
                text = f"too busy: {limits.threads} calls run, {limits.queue} wait; try again later"
                self._refuse(connection, message, text)
        elif connection.told and connection.answered and connection.settled:
            raise Gone("too many connections")
        self._watch(connection)

    def _refuse(self, connection: Connection, message: bytes, reason: str) -> None:
        try:
            self._answers.append((connection, self._dispatcher.refuse(message, reason)))
        except ProtocolError as error:
            _LOG.debug("%s: %s sent no call: %s", self._name, connection.peer, error)
            self._answers.append((connection, None))

    def _deliver(self) -> None:
        """Send what has been answered."""
        while self._answers:
            connection, answer = self._answers.popleft()
            if connection not in self.connections:
                continue
            try:
                if answer is None:
                    raise Gone("what it sent was no call")
                connection.answer(answer, time.monotonic())
                self._proceed(connection)
            except Gone as gone:
                self._drop(connection, str(gone))

    def _expire(self) -> None:
        """Close what is overdue, and accept again if that was put off."""
        now = time.monotonic()
        for connection in list(self.connections):
            if connection.deadline is not None and now >= connection.deadline:
                self._drop(connection, connection.overdue)
        if self._accept_at is not None and now >= self._accept_at:
            self._accept_at = None
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _watch(self, connection: Connection) -> None:
        """Have the selector wait for what the connection waits for."""
        interest = connection.interest if connection in self.connections else 0
        if interest == connection.watched:
            return
        if not connection.watched:
            self._selector.register(connection, interest)
        elif not interest:
            self._selector.unregister(connection)
        else:
            self._selector.modify(connection, interest)
        connection.watched = interest

    def _drop(self, connection: Connection, reason: str) -> None:
        _LOG.debug("%s: closed %s: %s", self._name, connection.peer, reason)
        self.connections.discard(connection)
        self._watch(connection)
        connection.close()

    def _stop_listening(self) -> None:
        if self._accept_at is None and self._listener.fileno() != -1:
            self._selector.unregister(self._listener)
        self._accept_at = None
        self._listener.close()

    def _close(self) -> None:
        """Give back everything."""
        self._stopping = True
        self._stop_listening()
        for connection in list(self.connections):
            if not connection.settled:
                self.cut += 1
                what = "an answer was sent to"
                if connection.call is not None:
                    what = f"the call {self._dispatcher.name_of(connection.call)} ran for"
                _LOG.warning("%s: stopped while %s %s", self._name, what, connection.peer)
            self._drop(connection, "the server has stopped")
        self.workers.close(0.0 if self.cut else 1.0)
        self._selector.close()
        self._alarm.close()
        self._bell.close()
