"""One call to a handler: the message of a call in, the message of its answer out.

A handler is an object with a method for each call that it serves, as `storm_py.rpc.interface`
declares them; it is called by many threads at once. What it raises reaches the caller: as Storm's
exception where it is one that the IDL has for this call, else as a failure with its sentence, and
then it is logged as well. Nothing here knows sockets; `storm_py.rpc.server` does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from storm_py.errors import ProtocolError, StormPyError, a_type, did_you_mean

from . import codec
from .messages import FailureType, Header, MessageType, failure, read_arguments, read_header, write
from .service import EXCEPTIONS, NIMBUS, Method

_LOG = logging.getLogger(__name__)


class Dispatcher:
    """Answers the calls of one service with one handler."""

    def __init__(self, handler: object, methods: Mapping[str, Method] = NIMBUS) -> None:
        self._handler = handler
        self._methods = methods

    def answer(self, message: bytes) -> bytes:
        """The message to answer with, empty for a call that wants no answer.

        Raises ProtocolError if this is no call at all, so that nobody could understand an answer.
        """
        source = codec.Source(message)
        header = self._header(source)
        answer = self._answer(header, source)
        return b"" if header.type is MessageType.ONEWAY else answer

    def refuse(self, message: bytes, reason: str) -> bytes:
        """The message that answers a call without looking at it; raises as `answer` does."""
        header = self._header(codec.Source(message))
        if header.type is MessageType.ONEWAY:
            return b""
        return failure(header, FailureType.INTERNAL_ERROR, f"{header.name}: {reason}")

    def name_of(self, message: bytes) -> str:
        """The name of the call, for a log; "?" if this is none."""
        try:
            return self._header(codec.Source(message)).quoted
        except ProtocolError:
            return "?"

    def _header(self, source: codec.Source) -> Header:
        header = read_header(source)
        if header.type not in (MessageType.CALL, MessageType.ONEWAY):
            raise ProtocolError(f"a message of the type {header.type.name}; expected a call")
        return header

    def _answer(self, header: Header, source: codec.Source) -> bytes:
        method = self._methods.get(header.name)
        if method is None:
            near = did_you_mean(header.name[:100], self._methods)
            text = f"no call {header.quoted} here{near or '; storm.thrift lists them all'}"
            return failure(header, FailureType.UNKNOWN_METHOD, text)
        function = getattr(self._handler, header.name, None)
        if function is None:
            text = f"{header.name} is a call that this server does not answer"
            return failure(header, FailureType.UNKNOWN_METHOD, text)
        try:
            arguments = method.unbind(read_arguments(source, method))
        except ProtocolError as error:
            text = f"{header.name}: {error}; is storm.thrift the same at both ends?"
            return failure(header, FailureType.PROTOCOL_ERROR, text)
        return self._call(header, method, function, arguments)

    def _call(
        self,
        header: Header,
        method: Method,
        function: Callable[..., object],
        arguments: list[object],
    ) -> bytes:
        reply = Header(MessageType.REPLY, header.name, header.number)
        try:
            return write(reply, method.result, _result(method, function(*arguments)))
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever it is, the caller hears it
            answer = _declared(reply, method, error)
            if answer is None:
                _LOG.exception("%s failed: %s", header.name, error)
                text = f"{header.name} failed: {_sentence(error)}"
                answer = failure(header, FailureType.INTERNAL_ERROR, text)
            return answer


def _result(method: Method, value: object) -> object:
    """The result struct for what a handler returned."""
    result: object = method.result.cls()
    if method.returns:
        if value is None:
            raise TypeError(f"{method.name} returned None; expected a result")
        setattr(result, method.result.fields[0].name, value)
    return result


def _declared(reply: Header, method: Method, error: BaseException) -> bytes | None:
    """The answer for an exception, if the IDL has one of this class, or a parent, for the call."""
    for cls in type(error).__mro__:
        field = method.throws.get(cls)
        if field is not None:
            result: object = method.result.cls()
            setattr(result, field.name, EXCEPTIONS[cls](str(error)))
            return write(reply, method.result, result)
    return None


def _sentence(error: BaseException) -> str:
    """What an exception says, and its class where that is not one of this project's."""
    if isinstance(error, StormPyError):
        return str(error)
    return f"{a_type(error).partition(' ')[2]}: {error}"
