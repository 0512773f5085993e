"""ThriftClient over real sockets: what it says of servers that are not as they should be."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from storm_py.errors import (
    ProtocolError,
    RemoteError,
    RpcError,
    StormPyError,
    UnansweredError,
    UnreachableError,
)
from storm_py.rpc.client import Patience, ThriftClient
from storm_py.rpc.limits import Limits
from storm_py.rpc.server import ThriftServer
from tests.helpers import wait_until
from tests.rpc import TIMEOUT_SECS, Handler

ONCE = Patience(attempts=1)
NAME = "isTopologyNameAllowed"


@contextmanager
def serving(*serves: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """A server that does this with its first connection, that with its second, and so on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            for serve in serves:
                connection, _ = listener.accept()
                with connection:
                    serve(connection)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listener.getsockname()
        finally:
            thread.join(TIMEOUT_SECS)


def saying(answer: bytes) -> Callable[[socket.socket], None]:
    """Take something, answer this, and wait for the client to go."""

    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(answer)
        connection.recv(1)

    return serve


def error_from(address: tuple[str, int], patience: Patience = ONCE) -> StormPyError:
    """What a call to a server there raises."""
    client = ThriftClient(*address, patience)
    with pytest.raises(StormPyError) as caught:
        client.nimbus.isTopologyNameAllowed("wc")
    client.close()
    return caught.value


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def framed(text: str) -> bytes:
    data = bytes.fromhex(text)
    return struct.pack(">i", len(data)) + data


def answer(begin: str, name: str, number: int, rest: str) -> bytes:
    return framed(
        begin
        + struct.pack(">i", len(name)).hex()
        + name.encode().hex()
        + struct.pack(">i", number).hex()
        + rest
    )


def test_nothing_listens() -> None:
    port = unused_port()
    error = error_from(("127.0.0.1", port))
    assert type(error) is UnreachableError
    assert str(error) == (
        f"nothing listens at 127.0.0.1:{port}; start the server there, or name the host and port "
        "where it runs"
    )


@pytest.mark.parametrize("name", ["no such host", "x" * 64])
def test_an_unknown_host(name: str) -> None:
    error = error_from((name, 6627), Patience(attempts=9))
    assert type(error) is UnreachableError
    assert str(error).startswith(f"the host name of {name}:6627 is not known: ")


def test_connecting_is_tried_again_with_pauses_that_grow() -> None:
    pauses: list[float] = []
    patience = Patience(attempts=6, pause_secs=0.5, longest_pause_secs=3.0)
    client = ThriftClient("127.0.0.1", unused_port(), patience, sleep=pauses.append)
    with pytest.raises(UnreachableError, match=r"nothing listens at 127.0.0.1:\d+ \(6 attempts\)"):
        client.connect()
    assert pauses == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_server_that_comes_up_in_time_is_reached() -> None:
    port = unused_port()
    servers: list[ThriftServer] = []

    def start(_: float) -> None:
        servers.append(ThriftServer(Handler(getNimbusConf=lambda: "{}"), port=port).start())

    with ThriftClient("127.0.0.1", port, Patience(attempts=2), sleep=start) as client:
        assert client.nimbus.getNimbusConf() == "{}"
    assert [server.stop() for server in servers] == [True]


def test_a_host_that_does_not_answer_at_all() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:  # fill the queue of connections that nobody accepts
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        error = error_from(full.getsockname(), Patience(attempts=1, connect_secs=0.1))
        for one in waiting:
            one.close()
    assert type(error) is UnreachableError
    assert "does not answer within 0.1 s; is the host up, and does a firewall" in str(error)


def test_a_server_that_takes_calls_and_does_not_answer() -> None:
    with serving(saying(b"")) as address:
        error = error_from(address, Patience(answer_secs=0.1))
    assert type(error) is UnansweredError
    assert str(error) == (
        f"127.0.0.1:{address[1]} did not answer within 0.1 s; whether {NAME} was carried out is "
        "not known: look before you do it again"
    )


def test_a_server_that_answers_in_part() -> None:
    with serving(saying(b"\0\0\0")) as address:
        error = error_from(address, Patience(answer_secs=0.1))
    assert type(error) is UnansweredError
    assert "answered only in part within 0.1 s" in str(error)


@pytest.mark.parametrize("part", [b"", b"\0\0\0\x09\x80"])
def test_a_server_that_hangs_up(part: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(part)

    with serving(serve) as address:
        error = error_from(address)
    assert type(error) is UnansweredError
    assert "did not answer: it closed the connection; whether" in str(error)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "what arrives is text, not Thrift: it begins with"),
        (b"\x80\x01\x00\x02" + bytes(20), "a message without a frame"),
        (b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes; the limit is 16777216"),
        (framed("82 41 01 00 00"), "the message begins with 82 41 01 00, and not with 80 01"),
        (framed("80 02 00 02 00"), "the message begins with 80 02 00 02, and not with 80 01"),
        (answer("80010001", NAME, 1, "00"), "a message of the type CALL; expected an answer"),
        (answer("80010002", "getLeader", 1, "00"), "the answer to call 1, 'getLeader'; expected"),
        (answer("80010002", NAME, 2, "00"), f"the answer to call 2, '{NAME}'; expected the one to"),
        (answer("80010002", NAME, 1, "0c 0001"), "1 bytes announced where 0 are left"),
        (answer("80010002", NAME, 1, "020000 01 00 00"), "1 bytes behind the end of the message"),
        (2 * answer("80010002", NAME, 1, "020000 01 00"), "more than one answer to one call"),
    ],
)
def test_a_server_of_something_else(reply: bytes, reason: str) -> None:
    with serving(saying(reply)) as address:
        error = error_from(address)
    assert type(error) is ProtocolError
    assert str(error).startswith(
        f"127.0.0.1:{address[1]} does not answer as a server of Storm's Thrift interface (framed, "
        f"binary protocol) does: {reason}"
    )
    assert str(error).endswith("; is this its host and port?")


@pytest.mark.parametrize(
    ("rest", "kind", "text"),
    [
        ("0b 0001 00000002 6e6f 08 0002 00000006 00", "INTERNAL_ERROR", "no"),
        ("08 0002 00000001 00", "UNKNOWN_METHOD", "it does not say why"),
        ("0b 0001 00000002 6e6f 08 0002 00000063 00", "UNKNOWN", "no"),
    ],
)
def test_a_failure_by_hand(rest: str, kind: str, text: str) -> None:
    with serving(saying(answer("80010003", NAME, 0, rest))) as address:
        error = error_from(address)
    assert isinstance(error, RemoteError)
    assert error.kind == kind
    assert str(error) == f"127.0.0.1:{address[1]} could not answer {NAME}: {text}"


def test_an_answer_without_a_result() -> None:
    with serving(saying(answer("80010002", NAME, 1, "00"))) as address:
        error = error_from(address)
    assert isinstance(error, RemoteError)
    assert error.kind == "MISSING_RESULT"


def test_a_call_by_hand() -> None:
    """The other half of the calls by hand that servers get."""
    received: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        received.append(connection.recv(65536))
        connection.sendall(answer("80010002", NAME, 1, "02 0000 01 00"))

    with serving(serve) as address, ThriftClient(*address) as client:
        assert client.nimbus.isTopologyNameAllowed("wc") is True
    assert received == [answer("80010001", NAME, 1, "0b 0001 00000002 7763 00")]


def test_an_unknown_method_and_an_error_of_the_handler_say_what_they_are() -> None:
    def fail() -> str:
        raise ValueError("disk full")

    with (
        ThriftServer(Handler(getNimbusConf=fail)) as server,
        ThriftClient(*server.address) as client,
    ):
        with pytest.raises(RemoteError) as caught:
            client.nimbus.getLeader()
        assert caught.value.kind == "UNKNOWN_METHOD"
        assert "getLeader is a call that this server does not answer" in str(caught.value)
        with pytest.raises(RemoteError, match="getNimbusConf failed: ValueError: disk full"):
            client.nimbus.getNimbusConf()


def test_a_connection_that_the_server_closed_is_made_anew() -> None:
    handler = Handler(getNimbusConf=lambda: "{}")
    with (
        ThriftServer(handler, limits=Limits(idle_secs=0.05)) as server,
        ThriftClient(*server.address, ONCE) as client,
    ):
        for _ in range(3):
            assert client.nimbus.getNimbusConf() == "{}"
            wait_until(lambda: server.statistics().connections == 0)


def test_a_connection_that_failed_is_made_anew() -> None:
    good = answer("80010002", NAME, 2, "02 0000 01 00")
    with serving(saying(b"nonsense"), saying(good)) as address, ThriftClient(*address) as client:
        with pytest.raises(ProtocolError):
            client.nimbus.isTopologyNameAllowed("wc")
        assert client.nimbus.isTopologyNameAllowed("wc")


def test_a_client_that_was_closed_connects_anew() -> None:
    with ThriftServer(Handler(getNimbusConf=lambda: "{}")) as server:
        client = ThriftClient(*server.address)
        for _ in range(2):
            assert client.nimbus.getNimbusConf() == "{}"
            client.close()


def test_arguments_that_do_not_fit_are_not_sent() -> None:
    client: Any = ThriftClient("127.0.0.1", unused_port(), ONCE).nimbus
    with pytest.raises(TypeError, match="killTopology takes 1 arguments, 2 were given"):
        client.killTopology("a", "b")
    with pytest.raises(TypeError, match=r"killTopology\(name\) is 7, an int; expected string"):
        client.killTopology(7)
    with pytest.raises(ValueError, match=r"killTopology\(name\) \(field 1\) is required"):
        client.killTopology()
    with pytest.raises(AttributeError, match=r"storm.thrift has no call 'killAll'"):
        client.killAll()


def test_a_call_above_the_limit_is_not_sent() -> None:
    with ThriftServer(Handler(uploadChunk=lambda location, chunk: None)) as server:
        patience = Patience(frame_bytes=1000)
        with ThriftClient(*server.address, patience) as client:
            client.nimbus.uploadChunk("there", bytes(900))
            with pytest.raises(RpcError) as caught:
                client.nimbus.uploadChunk("there", bytes(1000))
    assert str(caught.value) == (
        "uploadChunk is a call of 1043 bytes; the limit is 1000, nimbus.thrift.max_buffer_size: "
        "raise it at both ends, or send less"
    )


def test_threads_may_share_a_client() -> None:
    with (
        ThriftServer(Handler(downloadChunk=str.encode)) as server,
        ThriftClient(*server.address) as client,
    ):
        found: list[bool] = []

        def ask(me: str) -> None:
            found.extend(client.nimbus.downloadChunk(me) == me.encode() for _ in range(50))

        threads = [threading.Thread(target=ask, args=(str(n),)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT_SECS)
    assert found == [True] * 200
