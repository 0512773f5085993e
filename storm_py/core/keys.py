"""Fields grouping: from a key to the task that owns it, the same in every process.

A key's canonical encoding depends on its value alone - not on PYTHONHASHSEED, not on the order of
a set, not on the process. Values that Python calls equal encode equally (1, 1.0, True, Decimal(1)
and numpy's ones agree), so a cache keyed by the value gives the same answer warm or cold. The hash
chooses one of a fixed number of *key groups*, and a group belongs to a task: state can be split
anew later without touching the hash. Pure; `storm_py.engine.keyed` remembers for the generated emit
what this module decides.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from typing import Any, Final
from zlib import crc32

#: Keys remembered per stream and process; the whole cache is dropped when it is full.
CACHE_KEYS: Final = 100_000

#: Numbers with a numerator or denominator above this are known by a residue: a few characters, such
#: as Decimal("1E+1000000"), may stand for a number that takes minutes to write out. No float is.
_EXACT_BITS: Final = 4096
#: Digits and exponent of a Decimal up to which it is looked at as a Fraction. Beyond it, once zeros
#: at the end are cut off, numerator or denominator have more than `_EXACT_BITS` for sure.
_EXACT_DIGITS: Final = 20_000
#: A prime, so that almost every number has an inverse: equal numbers of all types have one residue.
_MODULUS: Final = 2**127 - 1

_EPOCH: Final = dt.datetime(1970, 1, 1)
#: numpy's units of fixed length.
_ATTOSECONDS: Final = {
    "W": 604_800 * 10**18,
    "D": 86_400 * 10**18,
    "h": 3_600 * 10**18,
    "m": 60 * 10**18,
    **{unit: 1000**power for power, unit in enumerate(("as", "fs", "ps", "ns", "us", "ms", "s"))},
}


class UnhashableKey(TypeError):
    """Raised when a value cannot be a grouping key; names its type."""


class Keys:
    """The canonical encoding under one topology's configuration.

    `registered` are the classes with a serializer and its `dumps`: a key of exactly such a class is
    what `dumps` makes of it. A class that has inherited its equality from a type that is known here
    keeps the encoding of that type, as their values may be equal.
    """

    def __init__(self, registered: Mapping[type, Callable[[Any], bytes]] | None = None) -> None:
        self._encoders: dict[type, Callable[..., bytes]] = {
            **_LEAVES,
            tuple: self._sequence,
            list: self._sequence,
            set: self._set,
            frozenset: self._set,
            dict: self._mapping,
        }
        self._known = tuple(self._encoders.items())
        for kind, dumps in (registered or {}).items():
            equality: object = kind.__eq__
            if not any(issubclass(kind, known) and equality is known.__eq__ for known in _EQUAL):
                self._encoders[kind] = partial(_registered, _text(_name(kind)), dumps)

    def hash(self, values: Sequence[object]) -> int:
        """A 32-bit hash of a key's canonical encoding."""
        return crc32(b"".join([self.canonical(value) for value in values]))

    def second_hash(self, values: Sequence[object]) -> int:
        """A 32-bit hash of the same encoding that tells nothing about the first.

        Not a CRC begun differently: that would differ from the first by a constant per length, and
        so pair the same tasks with each other for all keys.
        """
        encoded = b"".join([self.canonical(value) for value in values])
        return int.from_bytes(blake2b(encoded, digest_size=4).digest(), "little")

    def group_of(self, values: Sequence[object], key_groups: int) -> int:
        """The key group of a key, 0 .. key_groups - 1."""
        return self.hash(values) % key_groups

    def canonical(self, value: object) -> bytes:
        """Bytes that are equal exactly when the values are the same key.

        Self-delimiting, so that the encodings of several fields can be joined. Numbers beyond the
        range of floats, up or down, are told apart by their residue modulo 2**127 - 1 only. Raises
        UnhashableKey.
        """
        try:
            return self._encode(value)
        except RecursionError:
            name = _name(type(value)).removeprefix("builtins.")
            raise UnhashableKey(f"{name} (nested too deeply)") from None

    def _encode(self, value: object) -> bytes:
        encode = self._encoders.get(type(value))
        if encode is not None:
            return encode(value)
        return self._uncommon(value)

    def _sequence(self, value: Sequence[object]) -> bytes:
        return b"l%d:" % len(value) + b"".join([self._encode(item) for item in value])

    def _set(self, value: AbstractSet[object]) -> bytes:
        return b"u%d:" % len(value) + b"".join(sorted(self._encode(item) for item in value))

    def _mapping(self, value: Mapping[object, object]) -> bytes:
        items = sorted(self._encode(k) + self._encode(v) for k, v in value.items())
        return b"m%d:" % len(items) + b"".join(items)

    def _uncommon(self, value: object) -> bytes:
        # Subclasses of a known type first (a str Enum equals its str), in the order of the table.
        for known, encode in self._known:
            if isinstance(value, known):
                if known is str:
                    return _text(str.__str__(value))
                return encode(value)
        kind = type(value)
        if isinstance(value, enum.Enum):
            return b"e" + _text(f"{_name(kind)}.{value.name}" + _flags(value))
        if dataclasses.is_dataclass(kind):
            names = [field.name for field in dataclasses.fields(kind) if field.compare]
            content = [getattr(value, name) for name in names]
            return b"o" + _text(_name(kind)) + self._sequence(content)
        if kind.__hash__ is not None and getattr(value, "shape", None) == ():
            return self._numpy_scalar(value)
        raise UnhashableKey(_name(kind).removeprefix("builtins."))

    def _numpy_scalar(self, value: Any) -> bytes:
        """A scalar of numpy as the Python value that it equals, for those there is one."""
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if kind in ("M", "m"):
            return _numpy_time(value, kind)
        item = value.item()
        if type(item) is not type(value):
            return self._encode(item)
        # Those of more than 64 bits are their own item.
        if kind == "c":
            if value.imag == 0:
                return self._encode(value.real)
            return b"c" + self._encode(value.real) + self._encode(value.imag)
        if kind == "f" and math.isfinite(value):
            return _ratio(Fraction(*value.as_integer_ratio()))
        if kind == "f":
            return _float(float(value))
        raise UnhashableKey(_name(type(value)))


def task_index(group: int, tasks: int, key_groups: int) -> int:
    """Which of `tasks` tasks owns the group; contiguous ranges, as even as can be."""
    return group * tasks // key_groups


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _registered(name: bytes, dumps: Callable[[Any], bytes], value: object) -> bytes:
    return b"x" + name + _bytes(dumps(value))


def _flags(value: enum.Enum) -> str:
    """What tells sets of flags apart, which have no name of their own."""
    return f"={value.value}" if isinstance(value, enum.Flag) else ""


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"s%d:" % len(data) + data


def _bytes(value: bytes) -> bytes:
    return b"b%d:" % len(value) + bytes(value)


def _integer(value: int) -> bytes:
    if value.bit_length() > _EXACT_BITS:
        return b"I%x;" % (int(value) % _MODULUS)
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
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) + abs(exponent) <= _EXACT_DIGITS:
        return _ratio(Fraction(value))
    return _far_decimal(sign, digits, exponent)


def _far_decimal(sign: int, digits: tuple[int, ...], exponent: int) -> bytes:
    """A Decimal that would be of a huge number of digits if it was written out."""
    last = len(digits)
    while last and not digits[last - 1]:
        last -= 1
    if not last:
        return _integer(0)
    exponent += len(digits) - last
    if last + abs(exponent) <= _EXACT_DIGITS:
        return _ratio(Fraction(Decimal((sign, digits[:last], exponent))))
    # The coefficient is no multiple of ten now: with an exponent below 0 this is no integer.
    context = Context(prec=last + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)
    residue = int(context.remainder(Decimal((0, digits[:last], 0)), Decimal(_MODULUS)))
    residue = residue * pow(10, exponent, _MODULUS) * (-1 if sign else 1) % _MODULUS
    return b"%c%x;" % (b"R" if exponent < 0 else b"I", residue)


def _ratio(value: Fraction) -> bytes:
    # A Decimal or Fraction equals a float exactly when the float's own ratio is the same.
    numerator, denominator = value.numerator, value.denominator
    if denominator == 1:
        return _integer(numerator)
    if max(numerator.bit_length(), denominator.bit_length()) > _EXACT_BITS:
        if denominator % _MODULUS == 0:
            return b"R/;"
        return b"R%x;" % (numerator * pow(denominator, -1, _MODULUS) % _MODULUS)
    try:
        near = float(value)
    except OverflowError:
        near = math.inf
    if math.isfinite(near) and Fraction(near) == value:
        return _float(near)
    return b"r%x/%x;" % (numerator, denominator)


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


def _numpy_time(value: Any, kind: str) -> bytes:
    """numpy's dates and periods: as those of the datetime module if there is an equal one."""
    unit, count = re.fullmatch(r".[Mm]8(?:\[(\d*)(\w+)\])?", value.dtype.str).group(2, 1)  # type: ignore[union-attr]
    number = value.astype("i8").item()
    if number == -(2**63):
        return b"nat;"
    if unit is None:
        raise UnhashableKey(f"{_name(type(value))} (without a unit)")
    if unit in ("Y", "M"):
        months = number * int(count or 1) * (12 if unit == "Y" else 1)
        if kind == "m":
            return b"Tm%d;" % months
        number, unit, count = value.astype("M8[D]").astype("i8").item(), "D", 1
    attoseconds = number * int(count or 1) * _ATTOSECONDS[unit]
    micros, rest = divmod(attoseconds, _ATTOSECONDS["us"])
    if not rest:
        try:
            period = dt.timedelta(microseconds=micros)
            return _period(period) if kind == "m" else _moment(_EPOCH + period)
        except OverflowError:
            pass  # before the year 1 or after 9999, or as long a period
    return (b"Ta" if kind == "m" else b"da") + _integer(attoseconds)


def _period(value: dt.timedelta) -> bytes:
    return b"T%d;" % (value // dt.timedelta(microseconds=1))


#: How the types that hold no other values are encoded.
_LEAVES: Final[dict[type, Callable[..., bytes]]] = {
    str: _text,
    bytes: _bytes,
    bytearray: _bytes,
    bool: _integer,
    int: _integer,
    float: _float,
    type(None): lambda _: b"n;",
    Decimal: _decimal,
    Fraction: _ratio,
    complex: _complex,
    dt.datetime: _moment,
    dt.date: lambda v: b"D%d;" % v.toordinal(),
    dt.time: _time,
    dt.timedelta: _period,
    uuid.UUID: lambda v: b"U" + v.bytes,
}

#: Types that lend their equality to subclasses.
_EQUAL: Final[tuple[type, ...]] = (*_LEAVES, tuple, list, set, frozenset, dict)

#: The keys of a topology that registers nothing.
PLAIN: Final = Keys()
