"""Records as bytes: compact JSON with a format version, read back by the types of their fields.

A field is a str, an int, a float, a bool, a `StrEnum`, a record, a tuple or a Mapping of these, or
one of these or None. A mapping whose keys are no strings is written as a list of pairs. A reader
ignores fields that it does not know, so that a newer writer may add some: it then needs no new
format; what an older writer left out gets the field's default.

No I/O. The records themselves are in `storm_py.cluster.records`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Final, Self, TypeVar

from storm_py.errors import InvalidRecord, a_type

__all__ = ["FORMAT", "Record"]

R = TypeVar("R", bound="Record")
T = TypeVar("T")

#: Written into each record; another number means that its fields can no longer be read as here.
FORMAT: Final = 1

_FORMAT_FIELD: Final = "format"


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """What can be stored in a node: a dataclass with a form as bytes."""

    def to_bytes(self) -> bytes:
        """The record as JSON."""
        fields = {_FORMAT_FIELD: FORMAT, **_fields_to_json(self)}
        return json.dumps(fields, separators=(",", ":"), allow_nan=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Self:
        """Read a record; InvalidRecord, which begins with its path `where`, if it is none."""
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError) as error:  # a UnicodeDecodeError is a ValueError
            raise InvalidRecord(f"{where}: expected the JSON of {cls.__name__}; {error}") from error
        if not isinstance(fields, dict):
            raise InvalidRecord(
                f"{where}: is {a_type(fields)}; expected the JSON object of {cls.__name__}"
            )
        found = fields.get(_FORMAT_FIELD)
        if found != FORMAT or isinstance(found, bool):
            raise InvalidRecord(
                f"{where}: {cls.__name__} of format {found!r}; expected format {FORMAT}: another "
                "version of storm-py wrote it, install the same one on every machine"
            )
        return _record_from_json(cls, fields, f"{where}: {cls.__name__}")


def _fields_to_json(record: Record) -> dict[str, object]:
    names = (field.name for field in dataclasses.fields(record))
    return {name: _to_json(getattr(record, name)) for name in names}


def _to_json(value: object) -> object:
    if isinstance(value, Record):
        return _fields_to_json(value)
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _to_json(value[key]) for key in value}
        return [[_to_json(key), _to_json(value[key])] for key in value]
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return value


# ---- reading -------------------------------------------------------------------------------------


@functools.cache
def _types_of(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _record_from_json(cls: type[R], fields: Mapping[str, object], where: str) -> R:
    known: type = cls
    types_of = _types_of(known)
    values = {}
    for field in dataclasses.fields(cls):
        if field.name in fields:
            place = f"{where}.{field.name}"
            values[field.name] = _from_json(fields[field.name], types_of[field.name], place)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise InvalidRecord(f"{where} has no field {field.name!r}")
    return cls(**values)


def _from_json(value: object, expected: Any, where: str) -> Any:
    origin = typing.get_origin(expected)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        [inner] = [one for one in typing.get_args(expected) if one is not types.NoneType]
        return _from_json(value, inner, where)
    if origin is tuple:
        return _tuple_from_json(value, typing.get_args(expected), where)
    if origin is Mapping:
        key, item = typing.get_args(expected)
        return _mapping_from_json(value, key, item, where)
    if issubclass(expected, Record):
        return _record_from_json(expected, _checked(value, dict, "an object", where), where)
    if issubclass(expected, enum.Enum):
        words = [member.value for member in expected]
        if value not in words:
            raise InvalidRecord(f"{where} is {value!r}; expected one of {', '.join(words)}")
        return expected(value)
    if expected is float and type(value) is int:
        return float(value)
    return _checked(value, expected, a_type(expected()), where)


def _tuple_from_json(value: object, expected: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    items = _checked(value, list, "a list", where)
    if expected[-1] is Ellipsis:
        expected = (expected[0],) * len(items)
    if len(items) != len(expected):
        raise InvalidRecord(f"{where} is {value!r}; expected {len(expected)} items")
    pairs = enumerate(zip(items, expected, strict=True))
    return tuple(_from_json(item, of, f"{where}[{i}]") for i, (item, of) in pairs)


def _mapping_from_json(value: object, key: Any, item: Any, where: str) -> dict[Any, Any]:
    if key is str:
        found = _checked(value, dict, "an object", where)
        return {name: _from_json(found[name], item, f"{where}[{name!r}]") for name in found}
    pairs = [] if value == {} else value  # the writer does not know the type of no keys
    return dict(_tuple_from_json(pairs, (tuple[key, item], ...), where))


def _checked(value: object, expected: type[T], words: str, where: str) -> T:
    if type(value) is not expected:
        raise InvalidRecord(f"{where} is {value!r} ({type(value).__name__}); expected {words}")
    return value
