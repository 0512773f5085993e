"""Values as bytes and back, by the rules of Thrift's binary protocol; one object for each type.

A *kind* is a type of the IDL: it writes a Python value and reads one. Kinds are made from the specs
of thriftpy2 by `storm_py.rpc.service`; nothing here knows the IDL. Pure.

Reading is strict where the readers of thriftpy2 are not, whatever the bytes are: it answers with a
value or a `ProtocolError`, never with another error, and in time and memory of the order of the
bytes. Those readers believe a length before they look whether that much is there, go round once for
each element that a list claims to have, recurse as deep as the bytes say, and take a map whose keys
are announced as strings for one with the keys of the IDL; the compiled ones crash the process. They
also leave out what is required, and hand on text that is no UTF-8 as bytes.

As everywhere in Thrift, a field with an unknown id, or a known one of another type, is skipped: so
old and new clients get on. But an integer of another size is taken, if it fits: Storm has made some
larger from one version to the next.
"""

from __future__ import annotations

import reprlib
import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from storm_py.errors import ProtocolError, a_type

#: Codes of types on the wire.
STOP, BOOL, BYTE, DOUBLE, I16, I32, I64 = 0, 2, 3, 4, 6, 8, 10
STRING, STRUCT, MAP, SET, LIST = 11, 12, 13, 14, 15

#: What a struct may hold of structs and containers within each other; as Thrift's own libraries.
MAX_DEPTH: Final = 64

_FIXED: Final = {BOOL: 1, BYTE: 1, DOUBLE: 8, I16: 2, I32: 4, I64: 8}
_I8: Final = struct.Struct(">b")
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_I64: Final = struct.Struct(">q")
_DOUBLE: Final = struct.Struct(">d")


class Source:
    """Bytes that are being read, and how far."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        """The next bytes; ProtocolError if there are not so many."""
        if not 0 <= count <= self.left:
            raise ProtocolError(f"{count} bytes announced where {self.left} are left")
        at = self._at
        self._at += count
        return self._data[at : self._at]

    def integer(self, form: struct.Struct) -> int:
        """The next integer."""
        value: int = form.unpack(self.take(form.size))[0]
        return value

    def code(self) -> int:
        """The code of a type."""
        return self.integer(_I8)

    def size(self) -> int:
        """The number of elements of a container, each of which takes a byte at least."""
        size = self.integer(_I32)
        if not 0 <= size <= self.left:
            raise ProtocolError(f"{size} elements announced where {self.left} bytes are left")
        return size


def skip(source: Source, code: int, depth: int = 0) -> None:
    """Pass over a value of which only the code of its type is known."""
    if depth > MAX_DEPTH:
        raise ProtocolError(f"more than {MAX_DEPTH} structs and containers within each other")
    if code in _FIXED:
        source.take(_FIXED[code])
    elif code == STRING:
        source.take(source.integer(_I32))
    elif code == STRUCT:
        while (inner := source.code()) != STOP:
            source.take(_I16.size)
            skip(source, inner, depth + 1)
    elif code == MAP:
        key, value = source.code(), source.code()
        for _ in range(source.size()):
            skip(source, key, depth + 1)
            skip(source, value, depth + 1)
    elif code in (SET, LIST):
        element = source.code()
        for _ in range(source.size()):
            skip(source, element, depth + 1)
    else:
        raise ProtocolError(f"a value of the type {code}, which Thrift does not have")


class Kind(ABC):
    """A type of the IDL."""

    #: How the type is called on the wire...
    code: int
    #: ...and in the IDL.
    name: str

    @abstractmethod
    def write(self, out: bytearray, value: object, where: str) -> None:
        """Append a value; TypeError or ValueError, which say where, if it is none of this kind."""

    @abstractmethod
    def read(self, source: Source, where: str, depth: int) -> object:
        """Take a value; `depth` is the number of structs and containers that it is within."""

    def _refuse(self, value: object, where: str) -> TypeError:
        return TypeError(f"{where} is {reprlib.repr(value)}, {a_type(value)}; expected {self.name}")


class Bool(Kind):
    """``bool``."""

    code = BOOL
    name = "bool"

    def write(self, out: bytearray, value: object, where: str) -> None:
        """Append it as a byte."""
        if not isinstance(value, bool):
            raise self._refuse(value, where)
        out.append(value)

    def read(self, source: Source, where: str, depth: int) -> bool:
        """Take a byte."""
        return source.take(1) != b"\0"


class Integer(Kind):
    """``byte``, ``i16``, ``i32`` and ``i64``; also an enum, if it has `names` by value."""

    def __init__(
        self, code: int, name: str, form: struct.Struct, names: Mapping[int, str] | None = None
    ) -> None:
        self.code = code
        self.name = name
        self._form = form
        self.names = names
        self.limit = 1 << (8 * form.size - 1)

    def write(self, out: bytearray, value: object, where: str) -> None:
        """Append it, big end first."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._refuse(value, where)
        if wrong := self._wrong(value, where):
            raise ValueError(wrong)
        out += self._form.pack(value)

    def read(self, source: Source, where: str, depth: int) -> int:
        """Take it; ProtocolError for a value that the enum does not have."""
        return self.fitting(source.integer(self._form), where)

    def fitting(self, value: int, where: str) -> int:
        """What was read, maybe as an integer of another size; ProtocolError if it does not fit."""
        if wrong := self._wrong(value, where):
            raise ProtocolError(wrong)
        return value

    def _wrong(self, value: int, where: str) -> str:
        if not -self.limit <= value < self.limit:
            return f"{where} is {value}, too large for {self.name}"
        if self.names is None or value in self.names:
            return ""
        known = ", ".join(f"{name} {number}" for number, name in self.names.items())
        return f"{where} is {value}; expected {self.name}: {known}"


class Double(Kind):
    """``double``; an int is taken for one."""

    code = DOUBLE
    name = "double"

    def write(self, out: bytearray, value: object, where: str) -> None:
        """Append it, big end first."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._refuse(value, where)
        out += _DOUBLE.pack(value)

    def read(self, source: Source, where: str, depth: int) -> float:
        """Take it."""
        value: float = _DOUBLE.unpack(source.take(_DOUBLE.size))[0]
        return value


class Text(Kind):
    """``string``: UTF-8 behind its length."""

    code = STRING
    name = "string"

    def write(self, out: bytearray, value: object, where: str) -> None:
        """Append it."""
        if not isinstance(value, str):
            raise self._refuse(value, where)
        try:
            data = value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{where} is {reprlib.repr(value)}, no text: {error.reason}"
            ) from error
        out += _I32.pack(len(data))
        out += data

    def read(self, source: Source, where: str, depth: int) -> str:
        """Take it; ProtocolError if it is no UTF-8."""
        data = source.take(source.integer(_I32))
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"{where} is no UTF-8: {error.reason}") from error


class Binary(Kind):
    """``binary``: bytes behind their number."""

    code = STRING
    name = "binary"

    def write(self, out: bytearray, value: object, where: str) -> None:
        """Append them."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise self._refuse(value, where)
        data = bytes(value)
        out += _I32.pack(len(data))
        out += data

    def read(self, source: Source, where: str, depth: int) -> bytes:
        """Take them."""
        return source.take(source.integer(_I32))


class Sequence(Kind):
    """``list`` and ``set``, which become a list and a set."""

    def __init__(self, code: int, element: Kind) -> None:
        self.code = code
        self.name = f"{'set' if code == SET else 'list'}<{element.name}>"
        self.element = element

    def write(self, out: bytearray, value: object, where: str) -> None:
        """Append the elements behind type and number."""
        if not isinstance(value, Collection) or isinstance(value, str | bytes | Mapping):
            raise self._refuse(value, where)
        out.append(self.element.code)
        out += _I32.pack(len(value))
        for one in value:
            self.element.write(out, one, where)

    def read(self, source: Source, where: str, depth: int) -> object:
        """Take the elements; ProtocolError if they are of another type."""
        code, size = source.code(), source.size()
        if size and code != self.element.code:
            raise ProtocolError(f"{where} has elements of type {code}; expected {self.name}")
        found = [self.element.read(source, where, depth + 1) for _ in range(size)]
        return set(found) if self.code == SET else found


class Map(Kind):
    """``map``, which becomes a dict."""

    code = MAP

    def __init__(self, key: Kind, value: Kind) -> None:
        self.name = f"map<{key.name}, {value.name}>"
        self.key = key
        self.value = value

    def write(self, out: bytearray, value: object, where: str) -> None:
        """Append keys and values by turns, behind their types and number."""
        if not isinstance(value, Mapping):
            raise self._refuse(value, where)
        out.append(self.key.code)
        out.append(self.value.code)
        out += _I32.pack(len(value))
        for key, one in value.items():
            self.key.write(out, key, where)
            self.value.write(out, one, where)

    def read(self, source: Source, where: str, depth: int) -> object:
        """Take the entries; ProtocolError if they are of other types."""
        codes, size = (source.code(), source.code()), source.size()
        if size and codes != (self.key.code, self.value.code):
            raise ProtocolError(f"{where} has entries of types {codes}; expected {self.name}")
        found: dict[object, object] = {}
        for _ in range(size):
            key = self.key.read(source, where, depth + 1)
            found[key] = self.value.read(source, where, depth + 1)
        return found


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct."""

    id: int
    name: str
    kind: Kind
    required: bool
    #: The struct's name and its own, for messages.
    label: str


class Struct(Kind):
    """A struct, a union or an exception: an object of `cls` with an attribute for each field.

    A field that is not set is None. Required ones have to be set, and one of a union's.
    """

    code = STRUCT

    def __init__(self, cls: type, fields: Collection[Field], union: bool = False) -> None:
        self.name = cls.__name__
        self.cls = cls
        self.union = union
        self.fields = {field.id: field for field in fields}

    def write(self, out: bytearray, value: object, where: str) -> None:
        """Append the fields that are set, by ascending ids, and a stop."""
        if not isinstance(value, self.cls):
            raise self._refuse(value, where)
        if wrong := self._incomplete(value, where):
            raise ValueError(wrong)
        for field in self.fields.values():
            content = getattr(value, field.name)
            if content is not None:
                out.append(field.kind.code)
                out += _I16.pack(field.id)
                field.kind.write(out, content, field.label)
        out.append(STOP)

    def read(self, source: Source, where: str, depth: int = 0) -> object:
        """Take the fields; ProtocolError if a required one is missing."""
        if depth > MAX_DEPTH:
            raise ProtocolError(f"more than {MAX_DEPTH} structs and containers within each other")
        found: object = self.cls()
        while (code := source.code()) != STOP:
            field = self.fields.get(source.integer(_I16))
            if field is None:
                skip(source, code, depth + 1)
            elif field.kind.code == code:
                setattr(found, field.name, field.kind.read(source, field.label, depth + 1))
            elif isinstance(field.kind, Integer) and code in INTEGERS:
                value = INTEGERS[code].read(source, field.label, depth + 1)
                setattr(found, field.name, field.kind.fitting(value, field.label))
            else:
                skip(source, code, depth + 1)
        if wrong := self._incomplete(found, where):
            raise ProtocolError(wrong)
        return found

    def _incomplete(self, value: object, where: str) -> str:
        """What is missing, if something is."""
        for field in self.fields.values():
            if field.required and getattr(value, field.name) is None:
                return f"{where}: {field.label} (field {field.id}) is required and not set"
        if not self.union:
            return ""
        present = [f.name for f in self.fields.values() if getattr(value, f.name) is not None]
        if len(present) == 1:
            return ""
        names = ", ".join(field.name for field in self.fields.values())
        return f"{where}: {self.name} needs one of {names}; it has {present or 'none'}"


BYTES: Final = Binary()
TEXT: Final = Text()
INTEGERS: Final = {
    BYTE: Integer(BYTE, "byte", _I8),
    I16: Integer(I16, "i16", _I16),
    I32: Integer(I32, "i32", _I32),
    I64: Integer(I64, "i64", _I64),
}


def enum(name: str, names: Mapping[int, str]) -> Integer:
    """The kind of an enum with these names by value."""
    return Integer(I32, name, _I32, names)
