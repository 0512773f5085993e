"""ThriftClient: calls one server at one address, framed and in Thrift's binary protocol.

It connects with the first call, or with `connect`, and again if the server has closed the
connection between calls, as servers do with idle ones. Connecting is tried several times; a call is
sent once, as most calls are not to be done twice: where no answer comes, the error says that nobody
knows whether it was carried out. What the server answers with instead of a result is raised:
Storm's exceptions as those of `storm_py.errors`, anything else as RemoteError.

Which server is the leader is not known here. One client may be used by several threads, which wait
for each other.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, cast

from storm_py.config import Config
from storm_py.errors import ProtocolError, RemoteError, RpcError, UnansweredError, UnreachableError

from . import codec, messages
from .connection import place
from .framing import FrameReader, frame
from .interface import Nimbus
from .limits import FRAME_BYTES
from .messages import FailureType, Header, MessageType
from .service import NIMBUS, Method

_READ_BYTES: Final = 256 * 1024
_NO_SUCH_NAME: Final = (socket.gaierror, UnicodeError)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often a client tries."""

    #: Time for one attempt to connect.
    connect_secs: float = 5.0
    #: Attempts to connect...
    attempts: int = 3
    #: ...the pause after the first, which doubles...
    pause_secs: float = 0.2
    #: ...up to this.
    longest_pause_secs: float = 2.0
    #: Time from sending a call to the end of its answer.
    answer_secs: float = 600.0
    #: Largest call that is sent, and largest answer that is believed.
    frame_bytes: int = FRAME_BYTES

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> Self:
        """The patience in a validated configuration with all defaults."""
        return cls(
            answer_secs=conf[Config.STORM_THRIFT_SOCKET_TIMEOUT_MS] / 1000,
            frame_bytes=conf[Config.NIMBUS_THRIFT_MAX_BUFFER_SIZE],
        )


class ThriftClient:
    """Calls the server at ``host`` and ``port``; ``sleep`` waits between attempts to connect."""

    def __init__(
        self,
        host: str,
        port: int,
        patience: Patience | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._host = host
        self._port = port
        self._patience = patience or Patience()
        self._sleep = sleep
        self._place = place(host, port)
        self._socket: socket.socket | None = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def nimbus(self) -> Nimbus:
        """The calls of the server, as methods."""
        return cast(Nimbus, _Calls(self))

    def connect(self) -> Self:
        """Connect now, if that has not been done. Raises UnreachableError."""
        with self._lock:
            self._connected()
        return self

    def call(self, name: str, *arguments: object, **named: object) -> object:
        """Make one call and give its result.

        Raises TypeError or ValueError for arguments that do not fit (then nothing has been sent),
        RpcError for a call above the limit (neither), UnreachableError, UnansweredError,
        ProtocolError, RemoteError, or the call's own exceptions.
        """
        method = NIMBUS[name]
        header, message = self._message(method, arguments, named)
        with self._lock:
            sock = self._connected()
            try:
                answer = self._exchange(sock, name, message)
                result = self._understand(method, header, answer)
            except BaseException:  # a Ctrl-C, too: this answer must not be taken for the next one
                self._disconnect()
                raise
        return self._result(method, result)

    def check(self, name: str, *arguments: object) -> None:
        """Raise what `call` would raise before it sends anything; send nothing."""
        self._message(NIMBUS[name], arguments, {})

    def _message(
        self, method: Method, arguments: tuple[object, ...], named: Mapping[str, object]
    ) -> tuple[Header, bytes]:
        header = Header(MessageType.CALL, method.name, next(self._numbers) & 0x7FFFFFFF)
        message = messages.write(header, method.arguments, method.bind(arguments, named))
        if len(message) > self._patience.frame_bytes:
            raise RpcError(_too_large(method.name, len(message), self._patience.frame_bytes))
        return header, message

    def close(self) -> None:
        """Close the connection; the next call makes another one."""
        with self._lock:
            self._disconnect()

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        """The connection: the old one, if it can be used, else a new one."""
        if self._socket is not None and _is_stale(self._socket):
            self._disconnect()
        if self._socket is None:
            self._socket = self._new_connection()
        return self._socket

    def _new_connection(self) -> socket.socket:
        patience, pause = self._patience, self._patience.pause_secs
        for attempt in itertools.count(1):
            try:
                sock = socket.create_connection((self._host, self._port), patience.connect_secs)
            except (OSError, UnicodeError) as error:  # the second for a name that can be none
                if attempt >= patience.attempts or isinstance(error, _NO_SUCH_NAME):
                    raise UnreachableError(self._unreachable(error, attempt)) from error
            else:
                with contextlib.suppress(OSError):  # it may have been closed already
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return sock
            self._sleep(pause)
            pause = min(2 * pause, patience.longest_pause_secs)
        raise AssertionError("count ends")

    def _unreachable(self, error: OSError | UnicodeError, attempts: int) -> str:
        often = f" ({attempts} attempts)" if attempts > 1 else ""
        if isinstance(error, ConnectionRefusedError):
            return (
                f"nothing listens at {self._place}{often}; start the server there, or name the "
                "host and port where it runs"
            )
        if isinstance(error, _NO_SUCH_NAME):
            why = getattr(error, "strerror", error)
            return f"the host name of {self._place} is not known: {why}; is it misspelt?"
        if isinstance(error, TimeoutError):
            return (
                f"{self._place} does not answer within {self._patience.connect_secs} s{often}; is "
                "the host up, and does a firewall let this port through?"
            )
        return f"{self._place} cannot be reached{often}: {error.strerror or error}"

    def _exchange(self, sock: socket.socket, name: str, message: bytes) -> bytes:
        """Send a call and wait for the frame that answers it."""
        deadline = time.monotonic() + self._patience.answer_secs
        reader = FrameReader(self._patience.frame_bytes)
        begun = False
        try:
            sock.settimeout(self._patience.answer_secs)
            sock.sendall(frame(message))
            while True:
                sock.settimeout(max(0.001, deadline - time.monotonic()))
                data = sock.recv(_READ_BYTES)
                if not data:
                    raise ConnectionError("it closed the connection")
                begun = True
                if frames := reader.receive(data):
                    if len(frames) > 1 or reader.partial:
                        raise ProtocolError("more than one answer to one call")
                    return frames[0]
                if time.monotonic() >= deadline:
                    raise TimeoutError
        except ProtocolError as error:
            raise ProtocolError(self._foreign(error)) from error
        except TimeoutError as error:
            how = "answered only in part" if begun else "did not answer"
            text = f"{self._place} {how} within {self._patience.answer_secs} s"
            raise UnansweredError(_unanswered(name, text)) from error
        except OSError as error:
            text = f"{self._place} did not answer: {error.strerror or error}"
            raise UnansweredError(_unanswered(name, text)) from error

    def _understand(self, method: Method, call: Header, answer: bytes) -> object:
        """The result struct, or the failure, of an answer."""
        source = codec.Source(answer)
        try:
            header = messages.read_header(source)
            if header.type is MessageType.EXCEPTION:
                return messages.read_failure(source)
            if header.type is not MessageType.REPLY:
                raise ProtocolError(f"a message of the type {header.type.name}; expected an answer")
            if (header.name, header.number) != (call.name, call.number):
                raise ProtocolError(
                    f"the answer to call {header.number}, {header.quoted}; expected the one to "
                    f"call {call.number}, {call.name!r}"
                )
            return messages.read_answer(source, method)
        except ProtocolError as error:
            raise ProtocolError(self._foreign(error)) from error

    def _foreign(self, error: ProtocolError) -> str:
        return (
            f"{self._place} does not answer as a server of Storm's Thrift interface (framed, "
            f"binary protocol) does: {error}; is this its host and port?"
        )

    def _result(self, method: Method, answer: object) -> object:
        """What an answer says: a result to return, or something to raise."""
        if isinstance(answer, messages.Failure):
            text = f"{self._place} could not answer {method.name}: {answer.message}"
            raise RemoteError(text, answer.type.name)
        for cls, field in method.throws.items():
            if (raised := getattr(answer, field.name)) is not None:
                raise cls(raised.msg)
        if not method.returns:
            return None
        result: object = getattr(answer, method.result.fields[0].name)
        if result is None:
            text = f"{self._place} answered {method.name} without a result"
            raise RemoteError(text, FailureType.MISSING_RESULT.name)
        return result


class _Calls:
    """The calls of a client as methods; `ThriftClient.nimbus` gives it a type."""

    def __init__(self, client: ThriftClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name not in NIMBUS:
            raise AttributeError(f"storm.thrift has no call {name!r}")
        return partial(self._client.call, name)


def _is_stale(sock: socket.socket) -> bool:
    """Whether there is something to read where nothing is due: the end, most likely."""
    sock.setblocking(False)
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _too_large(name: str, size: int, limit: int) -> str:
    return (
        f"{name} is a call of {size} bytes; the limit is {limit}, nimbus.thrift.max_buffer_size: "
        "raise it at both ends, or send less"
    )


def _unanswered(name: str, text: str) -> str:
    return f"{text}; whether {name} was carried out is not known: look before you do it again"
