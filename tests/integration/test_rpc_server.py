"""ThriftServer over real sockets: every call, clients that misbehave, and the end."""

from __future__ import annotations

import logging
import resource
import selectors
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storm_py.errors import RemoteError, RpcError, StormPyError
from storm_py.rpc.client import ThriftClient
from storm_py.rpc.connection import Connection
from storm_py.rpc.limits import Limits
from storm_py.rpc.server import Statistics, ThriftServer
from storm_py.rpc.service import NIMBUS
from tests.helpers import wait_until
from tests.rpc import (
    TIMEOUT_SECS,
    Handler,
    RawClient,
    arguments_of,
    call_bytes,
    text_bytes,
    values_of,
)

ALLOWED = call_bytes("isTopologyNameAllowed", 1, text_bytes(1, "wc") + b"\0")
"""A call that `answering` answers with..."""
YES = (
    bytes.fromhex("80010002 00000015")
    + b"isTopologyNameAllowed"
    + bytes.fromhex("00000001 02 0000 01 00")
)
"""...this."""


def answering() -> Handler:
    return Handler(isTopologyNameAllowed=lambda name: True)


class Held:
    """A call that goes on until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()

    def __call__(self, name: str) -> bool:
        self.begun.release()
        assert self.go.wait(TIMEOUT_SECS)
        return True


@pytest.fixture
def held() -> Iterator[Held]:
    call = Held()
    yield call
    call.go.set()


@pytest.fixture(scope="module")
def echo() -> Iterator[tuple[Handler, ThriftClient]]:
    """Begins its one thread at once, as each test is watched for threads that are left."""
    handler = Handler(getNimbusConf=lambda: "{}")
    limits = Limits(threads=1)
    with ThriftServer(handler, limits=limits) as server, ThriftClient(*server.address) as client:
        client.nimbus.getNimbusConf()
        yield handler, client


@pytest.mark.parametrize("name", NIMBUS)
@settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_arguments_and_results_of_every_call_arrive_as_they_are(
    echo: tuple[Handler, ThriftClient], name: str, data: st.DataObject
) -> None:
    handler, client = echo
    method = NIMBUS[name]
    arguments = data.draw(arguments_of(method))
    result = data.draw(values_of(method.result.fields[0].kind)) if method.returns else None
    asked: list[tuple[object, ...]] = []

    def answer(*given: object) -> object:
        asked.append(given)
        return result

    handler.does = {name: answer}
    assert client.call(name, *arguments) == result
    assert asked == [tuple(arguments)]


DECLARED = [(name, cls) for name, method in NIMBUS.items() for cls in method.throws]


@pytest.mark.parametrize(("name", "cls"), DECLARED)
@settings(max_examples=1)
@given(data=st.data())
def test_exceptions_of_every_call_arrive_as_themselves(
    echo: tuple[Handler, ThriftClient],
    name: str,
    cls: type[StormPyError],
    data: st.DataObject,
) -> None:
    handler, client = echo

    def fail(*_: object) -> None:
        raise cls("the reason")

    handler.does = {name: fail}
    with pytest.raises(StormPyError) as caught:
        client.call(name, *data.draw(arguments_of(NIMBUS[name])))
    assert type(caught.value) is cls
    assert str(caught.value) == "the reason"


def test_a_call_of_bare_bytes_is_answered_in_bare_bytes() -> None:
    with ThriftServer(answering()) as server, RawClient(server.address) as client:
        client.send_message(ALLOWED)
        assert client.message() == YES


def test_a_call_may_arrive_byte_by_byte() -> None:
    with ThriftServer(answering()) as server, RawClient(server.address) as client:
        for byte in struct.pack(">i", len(ALLOWED)) + ALLOWED:
            client.send(bytes([byte]))
        assert client.message() == YES


def test_calls_that_are_sent_ahead_are_answered_in_order() -> None:
    with (
        ThriftServer(Handler(downloadChunk=str.encode)) as server,
        RawClient(server.address) as client,
    ):
        for number in range(100):
            call = call_bytes("downloadChunk", number, text_bytes(1, str(number)) + b"\0")
            client.send_message(call)
        answers = [client.message() for _ in range(100)]
    assert [answer.endswith(str(n).encode() + b"\0") for n, answer in enumerate(answers)] == (
        [True] * 100
    )


def test_a_large_call_and_a_large_answer_pass() -> None:
    content = bytes(range(256)) * (4 * 1024 * 16 - 1)
    uploads: dict[str, bytes] = {}
    handler = Handler(uploadChunk=uploads.__setitem__, downloadChunk=uploads.__getitem__)
    with ThriftServer(handler) as server, ThriftClient(*server.address) as client:
        client.nimbus.uploadChunk("there", content)
        assert client.nimbus.downloadChunk("there") == content


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        struct.pack(">i", 1001) + b"x" * 100,
        ALLOWED,
        b"\0\0\0\4nope",
        struct.pack(">i", len(YES)) + YES,
        b"\0\0\0\5\x82\x21\1\4n",
    ],
)
def test_garbage_closes_its_connection_only_and_is_a_line_at_debug(
    garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "storm_py.rpc")
    with (
        ThriftServer(answering(), limits=Limits(frame_bytes=1000)) as server,
        RawClient(server.address) as good,
        RawClient(server.address) as bad,
    ):
        bad.send(garbage)
        assert bad.is_closed()
        levels = {record.levelno for record in caplog.records}
        closed = [record for record in caplog.records if ": closed " in record.getMessage()]
        good.send_message(ALLOWED)
        assert good.message() == YES
    assert levels == {logging.DEBUG}
    assert len(closed) == 1
    assert not any(record.exc_info for record in caplog.records)


def test_clients_that_hang_up_anywhere_are_a_line_at_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "storm_py.rpc")
    call = struct.pack(">i", len(ALLOWED)) + ALLOWED
    with ThriftServer(answering()) as server:
        for cut in range(0, len(call) + 1, 5):
            with RawClient(server.address) as client:
                client.send(call[:cut])
        wait_until(lambda: len(caplog.records) == len(range(0, len(call) + 1, 5)))
        assert server.statistics().connections == 0
    assert {record.levelno for record in caplog.records} == {logging.DEBUG}


def test_half_a_frame_is_waited_for_and_not_for_ever() -> None:
    with (
        ThriftServer(answering(), limits=Limits(frame_secs=0.1)) as server,
        RawClient(server.address) as slow,
    ):
        slow.send(b"\0\0\0")
        assert slow.is_closed()


def test_half_a_frame_holds_no_thread() -> None:
    with (
        ThriftServer(answering(), limits=Limits(threads=1)) as server,
        RawClient(server.address) as slow,
        RawClient(server.address) as other,
    ):
        slow.send(struct.pack(">i", len(ALLOWED)) + ALLOWED[:-1])
        other.send_message(ALLOWED)
        assert other.message() == YES
        slow.send(ALLOWED[-1:])
        assert slow.message() == YES


def test_an_answer_that_is_not_taken_is_given_up() -> None:
    handler = Handler(downloadChunk=lambda id: bytes(16 * 1024 * 1024))
    with (
        ThriftServer(handler, limits=Limits(frame_secs=0.1)) as server,
        RawClient(server.address) as client,
    ):
        client.send_message(call_bytes("downloadChunk", 1, text_bytes(1, "x") + b"\0"))
        wait_until(lambda: server.statistics().threads == 1)
        wait_until(lambda: server.statistics().connections == 0)


def test_idle_clients_are_dropped_after_the_time_that_is_configured_and_not_before() -> None:
    with (
        ThriftServer(answering(), limits=Limits(idle_secs=0.1)) as server,
        RawClient(server.address) as client,
    ):
        client.send_message(ALLOWED)
        assert client.message() == YES
        assert client.is_closed()


def test_what_a_connection_waits_for_and_for_how_long() -> None:
    """By default ten minutes for an idle one, where thriftpy2's servers have three seconds."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        connection = Connection(ours, "them", Limits(), now=100.0)
        assert connection.interest == selectors.EVENT_READ
        assert (connection.deadline, connection.overdue) == (700.0, "no call for 600.0 s")
        theirs.sendall(b"\0")
        connection.read(now=110.0)
        assert connection.deadline == 170.0
        theirs.sendall(b"\0")
        connection.read(now=120.0)
        assert connection.deadline == 170.0, "a byte now and then gains no time"
        assert connection.overdue == "a frame did not arrive in 60.0 s"
        theirs.sendall(b"\0\1x\0")
        connection.read(now=130.0)
        assert connection.next_call() == b"x"
        assert connection.deadline is None, "a call takes as long as it takes"
        assert connection.interest == 0, "what is sent ahead is not read"
        connection.answer(bytes(16 * 1024 * 1024), now=500.0)
        assert connection.interest == selectors.EVENT_WRITE
        assert connection.deadline == 560.0
        assert connection.overdue == "its answer was not taken in 60.0 s"


def test_many_clients_share_few_threads() -> None:
    with ThriftServer(answering(), limits=Limits(threads=4)) as server:
        clients = [RawClient(server.address) for _ in range(200)]
        for client in clients:
            client.send_message(ALLOWED)
        assert [client.message() for client in clients] == [YES] * 200
        statistics = server.statistics()
        for client in clients:
            client.close()
    assert statistics.connections == 200
    assert statistics.threads <= 4


def test_calls_run_at_the_same_time(held: Held) -> None:
    with ThriftServer(Handler(isTopologyNameAllowed=held)) as server:
        clients = [RawClient(server.address) for _ in range(8)]
        for client in clients:
            client.send_message(ALLOWED)
        for _ in clients:
            assert held.begun.acquire(timeout=TIMEOUT_SECS)
        assert server.statistics() == Statistics(connections=8, calls=8, waiting=0, threads=8)
        held.go.set()
        assert [client.message() for client in clients] == [YES] * 8
        for client in clients:
            client.close()


def test_a_call_too_many_is_refused_in_words(held: Held) -> None:
    limits = Limits(threads=1, queue=1)
    with (
        ThriftServer(Handler(isTopologyNameAllowed=held), limits=limits) as server,
        RawClient(server.address) as first,
        RawClient(server.address) as second,
    ):
        first.send_message(ALLOWED)
        assert held.begun.acquire(timeout=TIMEOUT_SECS)
        second.send_message(ALLOWED)
        wait_until(lambda: server.statistics().waiting == 1)
        with ThriftClient(*server.address) as third:
            with pytest.raises(RemoteError) as caught:
                third.nimbus.isTopologyNameAllowed("wc")
            text = "isTopologyNameAllowed: too busy: 1 calls run, 1 wait; try again later"
            assert text in str(caught.value)
            assert caught.value.kind == "INTERNAL_ERROR"
            held.go.set()
            assert (first.message(), second.message()) == (YES, YES)
            assert third.nimbus.isTopologyNameAllowed("wc")


def test_a_connection_too_many_is_told_so_with_its_first_call_and_closed() -> None:
    with (
        ThriftServer(answering(), limits=Limits(connections=1)) as server,
        RawClient(server.address) as first,
    ):
        wait_until(lambda: server.statistics().connections == 1)
        with RawClient(server.address) as second:
            second.send_message(ALLOWED)
            assert b"too many connections, the limit is 1; try again later" in second.message()
            assert second.is_closed()
        with ThriftClient(*server.address) as third, pytest.raises(RemoteError) as caught:
            third.nimbus.isTopologyNameAllowed("wc")
        assert caught.value.kind == "INTERNAL_ERROR"
        first.send_message(ALLOWED)
        assert first.message() == YES


def test_far_too_many_connections_are_closed() -> None:
    with ThriftServer(answering(), limits=Limits(connections=1)) as server:
        clients = [RawClient(server.address) for _ in range(65)]
        wait_until(lambda: server.statistics().connections == 65)
        with RawClient(server.address) as another:
            assert another.is_closed()
        for client in clients:
            client.close()


def test_nobody_can_connect_while_there_are_no_descriptors_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ThriftServer(answering()) as server, RawClient(server.address) as before:
        wait_until(lambda: server.statistics().connections == 1)
        with socket.socket() as late:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                late.connect(server.address)
                wait_until(
                    lambda: "thrift: nobody can connect for now: Too many open" in caplog.text
                )
                before.send_message(ALLOWED)
                assert before.message() == YES
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            wait_until(lambda: server.statistics().connections == 2)


def test_stop_lets_what_runs_be_answered_and_refuses_what_waits(held: Held) -> None:
    server = ThriftServer(
        Handler(isTopologyNameAllowed=held), limits=Limits(threads=1, queue=9)
    ).start()
    with (
        RawClient(server.address) as running,
        RawClient(server.address) as waiting,
        RawClient(server.address) as idle,
        ThreadPoolExecutor(1) as pool,
    ):
        running.send(2 * (struct.pack(">i", len(ALLOWED)) + ALLOWED))  # the second one waits
        assert held.begun.acquire(timeout=TIMEOUT_SECS)
        waiting.send_message(ALLOWED)
        wait_until(lambda: server.statistics() == Statistics(3, 2, 1, 1))
        stopped = pool.submit(server.stop, TIMEOUT_SECS)
        assert idle.is_closed()
        assert b"the server is stopping; nothing has been done" in waiting.message()
        assert waiting.is_closed()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(server.address, TIMEOUT_SECS)
        assert not server.join(0)
        held.go.set()
        assert running.message() == YES
        assert running.is_closed()
        assert stopped.result(TIMEOUT_SECS)
    assert server.join(0)
    assert not held.begun.acquire(blocking=False)
    assert server.stop()


def test_stop_cuts_off_what_takes_too_long(held: Held, caplog: pytest.LogCaptureFixture) -> None:
    server = ThriftServer(Handler(isTopologyNameAllowed=held), name="nimbus").start()
    with RawClient(server.address) as client:
        client.send_message(ALLOWED)
        assert held.begun.acquire(timeout=TIMEOUT_SECS)
        assert not server.stop(timeout=0.0)
        assert client.is_closed()
    assert (
        "nimbus: stopped while the call 'isTopologyNameAllowed' ran for 127.0.0.1:" in caplog.text
    )


def test_a_server_that_was_not_started_is_stopped() -> None:
    server = ThriftServer(answering())
    assert server.statistics() == Statistics(0, 0, 0, 0)
    assert server.stop()
    assert server.join()


def test_a_server_starts_once() -> None:
    with ThriftServer(answering()) as server, pytest.raises(RuntimeError, match="started before"):
        server.start()


def test_nothing_is_left_open() -> None:
    """Threads are watched by tests/conftest.py."""
    process = psutil.Process()
    before = process.num_fds()
    server = ThriftServer(answering()).start()
    clients = [RawClient(server.address) for _ in range(10)]
    for client in clients[:5]:
        client.send_message(ALLOWED)
        assert client.message() == YES
    server.stop()
    for client in clients:
        assert client.is_closed()
        client.close()
    assert process.num_fds() == before


@pytest.mark.parametrize(
    ("host", "port", "reason"),
    [
        ("127.0.0.1", None, "Address already in use; stop what listens there, or choose another"),
        ("192.0.2.1", 0, "192.0.2.1:0: Cannot assign requested address; name an address of this"),
        ("no such host", 0, "name an address of this machine"),
        ("x" * 64, 0, "name an address of this machine"),
    ],
)
def test_an_address_that_cannot_be_listened_at(host: str, port: int | None, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = ThriftServer(
            answering(), host, taken.getsockname()[1] if port is None else port, name="nimbus"
        )
        with pytest.raises(RpcError) as caught:
            server.start()
    assert str(caught.value).startswith(f"nimbus cannot listen at {host}:")
    assert reason in str(caught.value)


def test_ipv6_is_an_address_too() -> None:
    with ThriftServer(answering(), "::1") as server, ThriftClient(*server.address) as client:
        assert client.nimbus.isTopologyNameAllowed("wc")
