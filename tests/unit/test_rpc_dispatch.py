"""One call: bytes in, bytes out, and what handlers may do."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from storm_py import errors
from storm_py.errors import ProtocolError, StormPyError
from storm_py.rpc import codec
from storm_py.rpc.definitions import KillOptions
from storm_py.rpc.dispatch import Dispatcher
from storm_py.rpc.messages import Failure, FailureType, MessageType, read_failure, read_header
from storm_py.rpc.service import EXCEPTIONS, IDL, NIMBUS
from tests.rpc import Handler, call_bytes, text_bytes

KILL = bytes.fromhex(
    "80 01 00 01"  # version 1, a call
    "00 00 00 14 6b 69 6c 6c 54 6f 70 6f 6c 6f 67 79 57 69 74 68 4f 70 74 73"  # its name
    "00 00 00 07"  # its number
    "0b 00 01 00 00 00 02 77 63"  # field 1, a string: wc
    "0c 00 02"  # field 2, a struct...
    "08 00 01 00 00 00 1e"  # ...with a field 1, an i32: 30
    "00 00"  # the ends of both
)
"""killTopologyWithOpts("wc", KillOptions(wait_secs=30)), as Storm's own client sends it."""

ANSWER = KILL[:3] + b"\2" + KILL[4:32]
"""How an answer to it begins."""


def answer_of(handler: object, message: bytes) -> bytes:
    return Dispatcher(handler).answer(message)


def failure_of(answer: bytes) -> Failure:
    source = codec.Source(answer)
    assert read_header(source).type is MessageType.EXCEPTION
    return read_failure(source)


def test_a_call_and_its_answer_by_hand() -> None:
    calls: list[tuple[object, ...]] = []

    def kill(*arguments: object) -> None:
        calls.append(arguments)

    assert answer_of(Handler(killTopologyWithOpts=kill), KILL) == ANSWER + b"\0"
    assert calls == [("wc", KillOptions(wait_secs=30))]


def test_an_exception_of_storm_by_hand() -> None:
    def kill(name: str, options: KillOptions) -> None:
        raise errors.NotAliveException(f"no {name}")

    assert answer_of(Handler(killTopologyWithOpts=kill), KILL) == ANSWER + bytes.fromhex(
        "0c 00 01"  # field 1, a struct...
        "0b 00 01 00 00 00 05 6e 6f 20 77 63"  # ...with a field 1, a string: no wc
        "00 00"
    )


def test_a_result_by_hand() -> None:
    answer = answer_of(
        Handler(isTopologyNameAllowed=lambda name: name == "wc"),
        call_bytes("isTopologyNameAllowed", 1, text_bytes(1, "wc") + b"\0"),
    )
    assert answer.endswith(b"\0\0\0\1" + bytes.fromhex("02 0000 01 00"))


def test_a_failure_by_hand() -> None:
    answer = answer_of(Handler(), call_bytes("nope", 5, b"\0"))
    assert answer.startswith(bytes.fromhex("80010003 00000004 6e6f7065 00000005 0b 0001"))
    assert answer.endswith(bytes.fromhex("08 0002 00000001 00"))


DECLARED = [
    (name, cls)
    for name, method in sorted(NIMBUS.items())
    for cls in sorted(method.throws, key=lambda cls: cls.__name__)
]


@pytest.mark.parametrize(("name", "cls"), DECLARED)
def test_each_exception_of_each_call_arrives_in_its_field(
    name: str, cls: type[StormPyError], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise cls("as it is")

    method = NIMBUS[name]
    arguments = bytearray()
    method.arguments.write(arguments, made(method.arguments), name)
    source = codec.Source(answer_of(Handler(**{name: fail}), call_bytes(name, 3, bytes(arguments))))
    assert read_header(source).type is MessageType.REPLY
    result = method.result.read(source, name)
    field = method.throws[cls]
    assert isinstance(getattr(result, field.name), EXCEPTIONS[cls])
    assert getattr(result, field.name).msg == "as it is"
    assert [
        f.name for f in method.result.fields.values() if getattr(result, f.name) is not None
    ] == [field.name]
    assert not caplog.records


def made(kind: codec.Struct) -> Any:
    """A struct with what it requires, and nothing in it."""
    empty: dict[type, Callable[[Any], object]] = {
        codec.Text: lambda _: "",
        codec.Binary: lambda _: b"",
        codec.Bool: lambda _: False,
        codec.Double: lambda _: 0.0,
        codec.Integer: lambda k: min(k.names or [0]),
        codec.Sequence: lambda _: [],
        codec.Map: lambda _: {},
        codec.Struct: made,
    }
    return kind.cls(
        **{f.name: empty[type(f.kind)](f.kind) for f in kind.fields.values() if f.required}
    )


def test_a_child_of_an_exception_arrives_as_its_parent() -> None:
    class Gone(errors.NotAliveException):
        pass

    def kill(*_: object) -> None:
        raise Gone("gone")

    assert b"\x0c\0\1\x0b\0\1\0\0\0\4gone" in answer_of(Handler(killTopologyWithOpts=kill), KILL)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("seven"), "killTopologyWithOpts failed: ValueError: seven"),
        (KeyError("wc"), "killTopologyWithOpts failed: KeyError: 'wc'"),
        (errors.ConfigError("bad key"), "killTopologyWithOpts failed: bad key"),
        (errors.AlreadyAliveException("taken"), "killTopologyWithOpts failed: taken"),
        (SystemExit(3), "killTopologyWithOpts failed: SystemExit: 3"),
    ],
)
def test_what_the_idl_does_not_know_is_an_internal_error_and_logged_once(
    error: BaseException, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    def kill(*_: object) -> None:
        raise error

    answer = answer_of(Handler(killTopologyWithOpts=kill), KILL)
    assert failure_of(answer) == Failure(FailureType.INTERNAL_ERROR, text)
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[1] is error


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, "getLeader failed: TypeError: getLeader returned None; expected a result"),
        ("me", "getLeader failed: TypeError: getLeader_result.success is 'me', a str; expected"),
        (
            IDL.NimbusSummary(host="h"),
            "getLeader failed: ValueError: getLeader_result.success: NimbusSummary.port (field 2)",
        ),
    ],
)
def test_a_result_that_is_none_is_an_internal_error(result: object, text: str) -> None:
    answer = answer_of(Handler(getLeader=lambda: result), call_bytes("getLeader", 1, b"\0"))
    assert failure_of(answer).type is FailureType.INTERNAL_ERROR
    assert failure_of(answer).message.startswith(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "getTopologyInfos",
            "no call 'getTopologyInfos' here; did you mean 'getTopologyInfo'?",
        ),
        ("x", "no call 'x' here; storm.thrift lists them all"),
        ("y" * 1000, f"no call '{'y' * 80}...' here; storm.thrift lists them all"),
        ("killTopology", "killTopology is a call that this server does not answer"),
    ],
)
def test_an_unknown_method_is_named(name: str, text: str) -> None:
    answer = answer_of(Handler(), call_bytes(name, 1, text_bytes(9, "x") + b"\0"))
    assert failure_of(answer) == Failure(FailureType.UNKNOWN_METHOD, text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (b"\0", "killTopology: killTopology(name) (field 1) is required and not set"),
        (text_bytes(1, "wc"), "killTopology: 1 bytes announced where 0 are left"),
        (text_bytes(1, "wc") + b"\0\0", "killTopology: 1 bytes behind the end of the message"),
    ],
)
def test_arguments_that_cannot_be_read_are_a_protocol_error(arguments: bytes, text: str) -> None:
    handler = Handler(killTopology=lambda name: None)
    failure = failure_of(answer_of(handler, call_bytes("killTopology", 1, arguments)))
    assert failure.type is FailureType.PROTOCOL_ERROR
    assert text in failure.message
    assert failure.message.endswith("is storm.thrift the same at both ends?")


def test_a_supervisor_page_is_asked_for_by_id_or_by_host() -> None:
    asked: list[tuple[object, ...]] = []

    def page(*arguments: object) -> object:
        asked.append(arguments)
        return IDL.SupervisorPageInfo()

    arguments = text_bytes(2, "h1") + bytes.fromhex("02 0003 01 00")
    answer_of(
        Handler(getSupervisorPageInfo=page), call_bytes("getSupervisorPageInfo", 1, arguments)
    )
    assert asked == [(None, "h1", True)]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "4 bytes announced where 0 are left"),
        (b"\x82\x21\x01\x04name\0", "it is none of Thrift's binary protocol, version 1"),
        (b"\0\0\0\4nope\1\0\0\0\1\0", "begins with 00 00 00 04, and not with 80 01"),
        (bytes.fromhex("80010009 00000001 78 00000001 00"), "a message of the type 9"),
        (bytes.fromhex("80010002 00000001 78 00000001 00"), "of the type REPLY; expected a call"),
        (bytes.fromhex("80010001 7fffffff 78"), "2147483647 bytes announced where 1 are left"),
    ],
)
def test_what_is_no_call_is_not_answered(message: bytes, text: str) -> None:
    dispatcher = Dispatcher(Handler())
    for ask in (dispatcher.answer, lambda message: dispatcher.refuse(message, "no")):
        with pytest.raises(ProtocolError) as caught:
            ask(message)
        assert text in str(caught.value)


def test_a_call_that_wants_no_answer_gets_none() -> None:
    calls: list[str] = []
    handler = Handler(activate=calls.append)
    message = bytearray(call_bytes("activate", 1, text_bytes(1, "wc") + b"\0"))
    message[3] = MessageType.ONEWAY
    assert Dispatcher(handler).answer(bytes(message)) == b""
    assert Dispatcher(handler).refuse(bytes(message), "no") == b""
    assert calls == ["wc"]


def test_a_refusal_does_not_reach_the_handler() -> None:
    answer = Dispatcher(Handler()).refuse(KILL, "too busy")
    assert failure_of(answer) == Failure(
        FailureType.INTERNAL_ERROR, "killTopologyWithOpts: too busy"
    )
