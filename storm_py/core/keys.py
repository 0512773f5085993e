"""Fields grouping: from a key to the task that owns it, the same in every process.

A key's canonical encoding depends on its value alone - not on PYTHONHASHSEED, not on the order of
a set, not on the process. Values that Python calls equal encode equally (1, 1.0, True, Decimal(1)
and numpy's ones agree), so a cache keyed by the value gives the same answer warm or cold. The hash
chooses one of a fixed number of *key groups*, and a group belongs to a task: state can be split
anew later without touching the hash. Pure; the generated emit in `storm_py.engine.emitters` caches
what this module decides.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from typing import Final
from zlib import crc32

#: Keys remembered per stream and process; the whole cache is dropped when it is full.
CACHE_KEYS: Final = 100_000


class UnhashableKey(TypeError):
    """Raised when a value cannot be a grouping key; names its type."""


def key_hash(values: Sequence[object]) -> int:
    """A 32-bit hash of a key's canonical encoding."""
    return crc32(b"".join([canonical(value) for value in values]))


def second_hash(values: Sequence[object]) -> int:
    """A 32-bit hash of the same encoding that tells nothing about the first.

    Not a CRC begun differently: that would differ from the first by a constant per length, and so
    pair the same tasks with each other for all keys.
    """
    encoded = b"".join([canonical(value) for value in values])
    return int.from_bytes(blake2b(encoded, digest_size=4).digest(), "little")


def group_of(values: Sequence[object], key_groups: int) -> int:
    """The key group of a key, 0 .. key_groups - 1."""
    return key_hash(values) % key_groups


def task_index(group: int, tasks: int, key_groups: int) -> int:
    """Which of `tasks` tasks owns the group; contiguous ranges, as even as can be."""
    return group * tasks // key_groups


def canonical(value: object) -> bytes:
    """Bytes that are equal exactly when the values are the same key.

    Self-delimiting, so that the encodings of several fields can be joined. Raises UnhashableKey.
    """
    encode = _ENCODERS.get(type(value))
    if encode is not None:
        return encode(value)
    return _uncommon(value)


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"s%d:" % len(data) + data


def _bytes(value: bytes) -> bytes:
    return b"b%d:" % len(value) + bytes(value)


def _integer(value: int) -> bytes:
    # Hexadecimal: Python refuses to write more than 4300 decimal digits, and is slow at it.
    return b"i%x;" % int(value)


def _float(value: float) -> bytes:
    if value.is_integer():
        return _integer(int(value))
    if math.isnan(value):
        return b"nan;"
    return b"f" + float(value).hex().encode() + b";"


def _decimal(value: Decimal) -> bytes:
    if value.is_nan():
        return b"nan;"
    if value.is_infinite():
        return _float(float(value))
    if value == value.to_integral_value():
        return _integer(int(value))
    return _ratio(Fraction(value))


def _ratio(value: Fraction) -> bytes:
    # A Decimal or Fraction equals a float exactly when the float's own ratio is the same.
    if value.denominator == 1:
        return _integer(value.numerator)
    try:
        near = float(value)
    except OverflowError:
        near = math.inf
    if math.isfinite(near) and Fraction(near) == value:
        return _float(near)
    return b"r%x/%x;" % (value.numerator, value.denominator)


def _complex(value: complex) -> bytes:
    if value.imag == 0:
        return _float(value.real)
    return b"c" + _float(value.real) + _float(value.imag)


def _moment(value: dt.datetime) -> bytes:
    value = value.replace(fold=0)  # as Python's own hash does: fold makes no difference to ==
    offset = value.utcoffset()
    if offset is None:
        return b"d" + _text(value.isoformat())
    # No astimezone(): the first and last days of the calendar may lie outside of it in UTC.
    since = value.replace(tzinfo=None) - dt.datetime.min - offset
    return b"z" + _integer(since // dt.timedelta(microseconds=1))


def _time(value: dt.time) -> bytes:
    offset = value.utcoffset()
    if offset is None:
        return b"t" + _text(value.replace(fold=0).isoformat())
    since_midnight = dt.timedelta(
        hours=value.hour,
        minutes=value.minute,
        seconds=value.second,
        microseconds=value.microsecond,
    )
    return b"tz" + _integer((since_midnight - offset) // dt.timedelta(microseconds=1))


def _sequence(value: Sequence[object]) -> bytes:
    return b"l%d:" % len(value) + b"".join([canonical(item) for item in value])


def _set(value: AbstractSet[object]) -> bytes:
    return b"u%d:" % len(value) + b"".join(sorted(canonical(item) for item in value))


def _mapping(value: Mapping[object, object]) -> bytes:
    items = sorted(canonical(k) + canonical(v) for k, v in value.items())
    return b"m%d:" % len(items) + b"".join(items)


_ENCODERS: Final[dict[type, Callable[..., bytes]]] = {
    str: _text,
    bytes: _bytes,
    bytearray: _bytes,
    bool: _integer,
    int: _integer,
    float: _float,
    type(None): lambda _: b"n;",
    tuple: _sequence,
    list: _sequence,
    set: _set,
    frozenset: _set,
    dict: _mapping,
    Decimal: _decimal,
    Fraction: _ratio,
    complex: _complex,
    dt.datetime: _moment,
    dt.date: lambda v: b"D%d;" % v.toordinal(),
    dt.time: _time,
    dt.timedelta: lambda v: b"T%d;" % (v // dt.timedelta(microseconds=1)),
    uuid.UUID: lambda v: b"U" + v.bytes,
}


def _uncommon(value: object) -> bytes:
    # Subclasses of a known type first (a str Enum equals its str), in the order of the table.
    for known, encode in _ENCODERS.items():
        if isinstance(value, known):
            if known is str:
                return _text(str.__str__(value))
            return encode(value)
    kind: type = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, enum.Enum):
        return b"e" + _text(f"{name}.{value.name}")
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind) if field.compare]
        content = [getattr(value, name) for name in names]
        return b"o" + _text(name) + _sequence(content)
    item = getattr(value, "item", None)  # numpy scalars: equal to their Python value
    if callable(item) and getattr(value, "shape", None) == ():
        return canonical(item())
    raise UnhashableKey(name.removeprefix("builtins."))
