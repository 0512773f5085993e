"""What tests of Storm's Thrift service share: made-up structs, a handler, bare bytes."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from storm_py.rpc import codec
from storm_py.rpc.framing import FrameReader
from storm_py.rpc.service import IDL, Method

STRUCTS: dict[str, Any] = {
    cls.__name__: cls for kind in ("structs", "unions") for cls in IDL.__thrift_meta__[kind]
}
"""Every struct and union of the IDL, by name."""

TIMEOUT_SECS = 30.0
"""How long a test waits for what has to come; a passing one never does."""


def values_of(kind: codec.Kind, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a type of the IDL; fewer and smaller within many structs."""
    size = 2 if depth < 3 else 1
    match kind:
        case codec.Bool():
            return st.booleans()
        case codec.Integer():
            if kind.names is not None:
                return st.sampled_from(sorted(kind.names))
            return st.integers(-kind.limit, kind.limit - 1)
        case codec.Double():
            return st.floats(allow_nan=False)
        case codec.Text():
            return st.text(max_size=8)
        case codec.Binary():
            return st.binary(max_size=8)
        case codec.Sequence():
            elements = values_of(kind.element, depth + 1)
            if kind.code == codec.SET:
                return st.sets(elements, max_size=size)
            return st.lists(elements, max_size=size)
        case codec.Map():
            keys, entries = values_of(kind.key, depth + 1), values_of(kind.value, depth + 1)
            return st.dictionaries(keys, entries, max_size=size)
        case codec.Struct():
            return _structs(kind, depth)
    raise AssertionError(f"no values of {kind}")


def _structs(kind: codec.Struct, depth: int) -> st.SearchStrategy[Any]:
    """Structs with all that is required and some of the rest; of a union one field."""
    fields = {field.name: values_of(field.kind, depth + 1) for field in kind.fields.values()}
    if kind.union:
        alternatives = [st.fixed_dictionaries({name: value}) for name, value in fields.items()]
        return st.one_of(alternatives).map(lambda chosen: kind.cls(**chosen))
    required = {field.name for field in kind.fields.values() if field.required}
    return st.fixed_dictionaries(
        {name: value for name, value in fields.items() if name in required},
        optional={
            name: value for name, value in fields.items() if name not in required and depth < 5
        },
    ).map(lambda chosen: kind.cls(**chosen))


def arguments_of(method: Method) -> st.SearchStrategy[list[Any]]:
    """Arguments of a call, in order."""
    return st.tuples(*(values_of(field.kind) for field in method.arguments.fields.values())).map(
        list
    )


class Handler:
    """Answers every call with what `does` says for it, or else with an error."""

    def __init__(self, **does: Callable[..., object]) -> None:
        self.does = does

    def __getattr__(self, name: str) -> Callable[..., object]:
        try:
            return self.does[name]
        except KeyError:
            raise AttributeError(name) from None


class RawClient:
    """A connection that sends and takes bytes as they are."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_SECS)
        self._reader = FrameReader(1 << 30)
        self._messages: list[bytes] = []

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(data)

    def send_message(self, message: bytes) -> None:
        """Send bytes with their length in front."""
        self.send(struct.pack(">i", len(message)) + message)

    def message(self) -> bytes:
        """The next message that arrives."""
        while not self._messages:
            data = self.socket.recv(65536)
            assert data, "the connection was closed"
            self._messages += self._reader.receive(data)
        return self._messages.pop(0)

    def is_closed(self) -> bool:
        """Wait until the other side closes, and see that it said nothing before."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def call_bytes(name: str, number: int, arguments: bytes) -> bytes:
    """A call as bytes, put together without the code that is tested."""
    encoded = name.encode()
    head = bytes.fromhex("80010001") + struct.pack(">i", len(encoded)) + encoded
    return head + struct.pack(">i", number) + arguments


def text_bytes(field: int, text: str) -> bytes:
    """A field of the type string as bytes."""
    data = text.encode()
    return struct.pack(">bhi", 11, field, len(data)) + data
