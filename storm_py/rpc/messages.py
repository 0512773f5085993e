"""Calls and answers as bytes: what one frame holds.

A message is its version and type, the name of the call, a number that the answer repeats, and a
struct: the arguments, the result, or a failure (Thrift's TApplicationException). Pure; frames are
put together and taken apart by `storm_py.rpc.framing`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from thriftpy2.thrift import TApplicationException

from storm_py.errors import ProtocolError

from . import codec
from .service import FAILURE, Method

_VERSION: Final = 0x8001
_BEGIN: Final = struct.Struct(">HBB")
_I32: Final = struct.Struct(">i")

#: Where problems of the header are.
_HEADER: Final = "the header"
#: Longest name of a call that is quoted.
_QUOTED_CHARS: Final = 80


class MessageType(IntEnum):
    """What a message is."""

    CALL = 1
    REPLY = 2
    EXCEPTION = 3
    ONEWAY = 4


class FailureType(IntEnum):
    """Why a call failed without an exception of the IDL; Thrift's numbers."""

    UNKNOWN = 0
    UNKNOWN_METHOD = 1
    INVALID_MESSAGE_TYPE = 2
    WRONG_METHOD_NAME = 3
    BAD_SEQUENCE_ID = 4
    MISSING_RESULT = 5
    INTERNAL_ERROR = 6
    PROTOCOL_ERROR = 7


@dataclass(frozen=True, slots=True)
class Header:
    """What a message begins with."""

    type: MessageType
    name: str
    number: int

    @property
    def quoted(self) -> str:
        """The name for a sentence: strangers may send long ones."""
        name = self.name
        return repr(name if len(name) <= _QUOTED_CHARS else f"{name[:_QUOTED_CHARS]}...")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call failed, as the other side says."""

    type: FailureType
    message: str


def write(header: Header, kind: codec.Struct, value: object) -> bytes:
    """A message. TypeError or ValueError if the value is none of this kind."""
    out = bytearray(_BEGIN.pack(_VERSION, 0, header.type))
    codec.TEXT.write(out, header.name, _HEADER)
    out += _I32.pack(header.number)
    kind.write(out, value, header.name)
    return bytes(out)


def failure(header: Header, type_: FailureType, message: str) -> bytes:
    """The message that answers a call with a failure."""
    answer = Header(MessageType.EXCEPTION, header.name, header.number)
    return write(answer, FAILURE, TApplicationException(int(type_), message))


def read_header(source: codec.Source) -> Header:
    """The header of a message; ProtocolError if these bytes are not one of the binary protocol."""
    begin = source.take(_BEGIN.size)
    version, _, code = _BEGIN.unpack(begin)
    if version != _VERSION:
        raise ProtocolError(
            f"the message begins with {begin.hex(' ')}, and not with 80 01: it is none of Thrift's "
            "binary protocol, version 1 (TBinaryProtocol, strict), which Storm speaks"
        )
    try:
        type_ = MessageType(code)
    except ValueError:
        raise ProtocolError(f"a message of the type {code}, which Thrift does not have") from None
    name = codec.TEXT.read(source, _HEADER, 0)
    return Header(type_, name, source.integer(_I32))


def read_arguments(source: codec.Source, method: Method) -> object:
    """The struct of a call's arguments, up to the end of the message."""
    arguments = method.arguments.read(source, method.name)
    _expect_end(source)
    return arguments


def read_answer(source: codec.Source, method: Method) -> object:
    """What follows the header of an answer: the method's result struct."""
    result = method.result.read(source, method.name)
    _expect_end(source)
    return result


def read_failure(source: codec.Source) -> Failure:
    """What follows the header of an answer of the type EXCEPTION."""
    found = FAILURE.read(source, "the failure")
    if not isinstance(found, TApplicationException):
        raise TypeError(f"a failure was read as {found!r}")
    _expect_end(source)
    known = found.type if found.type in list(FailureType) else FailureType.UNKNOWN
    return Failure(FailureType(known), found.message or "it does not say why")


def _expect_end(source: codec.Source) -> None:
    if source.left:
        raise ProtocolError(f"{source.left} bytes behind the end of the message")
