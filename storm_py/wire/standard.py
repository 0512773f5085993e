"""Values of the standard library that msgpack does not know, each as the bytes of an extension.

Leaves only: what holds other values is the business of `storm_py.wire.values`, which also turns
whatever a decoder below raises on damaged bytes into a `ProtocolError`. Pure.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgpack

from storm_py.errors import ProtocolError

#: Subclasses of msgpack's natives travel as their base, as json and Storm's Kryo defaults do.
NATIVES: Final = (bool, int, float, str, bytes, list, dict)


class UnserialisableValue(TypeError):
    """Raised when a value has no wire form; the text says why, and where in the row it sits."""


def dump_parts(parts: list[object]) -> bytes:
    """A list of msgpack's natives as bytes."""
    packed: bytes = msgpack.packb(parts, unicode_errors="surrogatepass")
    return packed


def load_parts(
    data: bytes, ext_hook: Callable[[int, bytes], object] | None = msgpack.ExtType
) -> list[Any]:
    """The list in these bytes; ValueError or ProtocolError if there is none."""
    parts = msgpack.unpackb(
        data, strict_map_key=False, unicode_errors="surrogatepass", ext_hook=ext_hook
    )
    if not isinstance(parts, list):
        raise ProtocolError(f"an extension value holds {type(parts).__name__}, expected a list")
    return parts


def dump_int(value: int) -> bytes:
    """An integer of any size."""
    return value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)


def _zone(zone: dt.tzinfo | None, offset: dt.timedelta | None) -> object:
    """A time zone by its name in the zone database, else by its offset at that moment."""
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    return None if offset is None else offset.total_seconds()


def _load_zone(part: object) -> dt.tzinfo | None:
    if isinstance(part, str):
        try:
            return ZoneInfo(part)
        except (LookupError, OSError) as error:  # not in this machine's database, or no name at all
            raise ProtocolError(f"the time zone {part!r:.80} is not known here") from error
    return None if part is None else dt.timezone(dt.timedelta(seconds=part))  # type: ignore[arg-type]


def _dump_datetime(value: dt.datetime) -> bytes:
    text = value.replace(tzinfo=None).isoformat()
    return dump_parts([text, _zone(value.tzinfo, value.utcoffset()), value.fold])


def _dump_time(value: dt.time) -> bytes:
    text = value.replace(tzinfo=None).isoformat()
    return dump_parts([text, _zone(value.tzinfo, value.utcoffset()), value.fold])


def _load_datetime(data: bytes) -> dt.datetime:
    text, zone, fold = load_parts(data)
    return dt.datetime.fromisoformat(text).replace(tzinfo=_load_zone(zone), fold=fold)


def _load_time(data: bytes) -> dt.time:
    text, zone, fold = load_parts(data)
    return dt.time.fromisoformat(text).replace(tzinfo=_load_zone(zone), fold=fold)


def _load_complex(data: bytes) -> complex:
    real, imaginary = load_parts(data)
    return complex(real, imaginary)


#: Type -> (code on the wire, to bytes, from bytes). A subclass travels as the first that it is one
#: of: datetime stands before date. Codes are never reused.
LEAVES: Final[dict[type, tuple[int, Callable[[Any], bytes], Callable[[bytes], object]]]] = {
    dt.datetime: (5, _dump_datetime, _load_datetime),
    dt.date: (
        6,
        lambda value: dump_parts([value.toordinal()]),
        lambda data: dt.date.fromordinal(*load_parts(data)),
    ),
    dt.time: (7, _dump_time, _load_time),
    dt.timedelta: (
        8,
        lambda value: dump_parts([value.days, value.seconds, value.microseconds]),
        lambda data: dt.timedelta(*load_parts(data)),
    ),
    Decimal: (
        9,
        lambda value: dump_parts([str(value)]),
        lambda data: Decimal(*load_parts(data)),
    ),
    uuid.UUID: (10, lambda value: value.bytes, lambda data: uuid.UUID(bytes=data)),
    complex: (11, lambda value: dump_parts([value.real, value.imag]), _load_complex),
}
