"""User values as msgpack: what a row may hold, and how each type travels.

Rows are packed one by one, at the moment of the emit, so that an error appears at the call site and
a list that user code reuses cannot change a batch. msgpack's natives travel as they are; other
common types of the standard library travel as extension types and arrive as what they were. Pure:
bytes in, values out. Frames around the rows are `storm_py.wire.frames`.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Final

import msgpack

from storm_py.errors import ProtocolError

_TUPLE: Final = 1
_SET: Final = 2
_FROZENSET: Final = 3
_BIG_INT: Final = 4
_DATETIME: Final = 5
_DATE: Final = 6
_TIME: Final = 7
_TIMEDELTA: Final = 8
_DECIMAL: Final = 9
_UUID: Final = 10
_COMPLEX: Final = 11

_MIN_INT: Final = -(2**63)
_MAX_INT: Final = 2**64 - 1

#: Tuples and sets inside each other, at most. Each level is a call of the unpacker in the consumer
#: and takes 40 KB of its C stack: about 190 of them would crash the process. Lists and dicts alone
#: may nest as deep as msgpack allows (511).
_MAX_DEPTH: Final = 64

#: The extension types that hold other values.
_NESTING: Final[dict[type, int]] = {tuple: _TUPLE, set: _SET, frozenset: _FROZENSET}
_NESTED: Final[dict[int, type]] = {code: kind for kind, code in _NESTING.items()}


class UnserialisableValue(TypeError):
    """Raised when a value has no wire form; says where in the row it sits and what to do."""


def new_packer() -> Callable[[object], bytes]:
    """A function that packs one row; each instance makes its own, for its own thread.

    A failing pack empties the packer's buffer, which is harmless as every row is packed alone.
    """
    packer = msgpack.Packer(
        use_bin_type=True,
        strict_types=True,
        unicode_errors="surrogatepass",
        default=_to_ext,
    )
    pack: Callable[[object], bytes] = packer.pack
    return pack


def pack_slowly(row: list[object], pack: Callable[[object], bytes]) -> bytes:
    """Pack a row that the plain packer refused: integers beyond 64 bits, at any depth.

    Raises UnserialisableValue naming the place and type of the first value that cannot travel.
    """
    return pack([_widen(value, f"[{i}]", 0) for i, value in enumerate(row)])


def unpack_rows(rows: bytes | memoryview) -> list[list[object]]:
    """The rows behind a frame's header, or ProtocolError."""
    try:
        unpacked: list[list[object]] = msgpack.unpackb(
            rows, strict_map_key=False, unicode_errors="surrogatepass", ext_hook=_from_ext
        )
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise ProtocolError(f"rows do not unpack: {error}") from error
    return unpacked


def _dumps(value: object, depth: int = 0) -> bytes:
    if depth > _MAX_DEPTH:
        raise UnserialisableValue(f"value is nested deeper than {_MAX_DEPTH} levels")
    packed: bytes = msgpack.packb(
        value, strict_types=True, unicode_errors="surrogatepass", default=_DEFAULTS[depth]
    )
    return packed


def _loads(data: bytes, ext_hook: Callable[[int, bytes], object] = msgpack.ExtType) -> list[object]:
    value = msgpack.unpackb(
        data, strict_map_key=False, unicode_errors="surrogatepass", ext_hook=ext_hook
    )
    if not isinstance(value, list):
        raise ProtocolError(f"an extension value holds {type(value).__name__}, expected a list")
    return value


def _ext(code: int, value: object, depth: int = 0) -> msgpack.ExtType:
    return msgpack.ExtType(code, _dumps(value, depth))


def _datetime_parts(value: dt.datetime) -> list[object]:
    offset = value.utcoffset()
    seconds = None if offset is None else offset.total_seconds()
    return [value.replace(tzinfo=None).isoformat(), seconds, value.fold]


_TO_EXT: Final[dict[type, Callable[..., msgpack.ExtType]]] = {
    dt.datetime: lambda v: _ext(_DATETIME, _datetime_parts(v)),
    dt.date: lambda v: _ext(_DATE, [v.toordinal()]),
    dt.time: lambda v: _ext(_TIME, [v.isoformat()]),
    dt.timedelta: lambda v: _ext(_TIMEDELTA, [v.days, v.seconds, v.microseconds]),
    Decimal: lambda v: _ext(_DECIMAL, [str(v)]),
    uuid.UUID: lambda v: msgpack.ExtType(_UUID, v.bytes),
    complex: lambda v: _ext(_COMPLEX, [v.real, v.imag]),
}

#: Subclasses of msgpack's natives travel as their base, as json and Storm's Kryo defaults do.
_NATIVE_BASES: Final = (bool, int, float, str, bytes, list, dict)


def _to_ext(value: object, depth: int = 0) -> object:
    code = _NESTING.get(type(value))
    if code is not None:
        return _ext(code, list(value), depth + 1)  # type: ignore[call-overload]
    convert = _TO_EXT.get(type(value))
    if convert is not None:
        return convert(value)
    for base in _NATIVE_BASES:
        if isinstance(value, base):
            return _plain(value, base)
    for kind in _NESTING:
        if isinstance(value, kind):
            return _to_ext(kind(value), depth)
    for known, convert in _TO_EXT.items():
        if isinstance(value, known):
            return convert(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise UnserialisableValue(_refusal("", value))


def _plain(value: object, base: type) -> object:
    # str(value) would call a subclass's __str__ (an Enum's, say): take the base's own content.
    if base is str:
        return str.__str__(value)
    return base(value)


def _refusal(where: str, value: object) -> str:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return f"value{where} of type {kind.removeprefix('builtins.')} cannot be serialised"


def _widen(value: object, where: str, depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise UnserialisableValue(f"value{where[:40]}... is nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, int):
        if _MIN_INT <= value <= _MAX_INT:
            return value
        length = (value.bit_length() + 8) // 8
        return msgpack.ExtType(_BIG_INT, int(value).to_bytes(length, "little", signed=True))
    if isinstance(value, list):
        return [_widen(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    if isinstance(value, dict):
        return {
            _widen(k, where, depth + 1): _widen(v, f"{where}[{k!r:.40}]", depth + 1)
            for k, v in value.items()
        }
    if isinstance(value, (tuple, set, frozenset)):
        code = next(code for kind, code in _NESTING.items() if isinstance(value, kind))
        return _ext(code, [_widen(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)])
    try:
        _dumps(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise UnserialisableValue(_refusal(where, value)) from error
    return value


def _parse_datetime(parts: list[object]) -> dt.datetime:
    text, seconds, fold = parts
    zone = None
    if isinstance(seconds, (int, float)):
        zone = dt.timezone(dt.timedelta(seconds=seconds))
    return dt.datetime.fromisoformat(str(text)).replace(tzinfo=zone, fold=1 if fold else 0)


_FROM_EXT: Final[dict[int, Callable[[bytes], object]]] = {
    _BIG_INT: lambda d: int.from_bytes(d, "little", signed=True),
    _DATETIME: lambda d: _parse_datetime(_loads(d)),
    _DATE: lambda d: dt.date.fromordinal(int(str(_loads(d)[0]))),
    _TIME: lambda d: dt.time.fromisoformat(str(_loads(d)[0])),
    _TIMEDELTA: lambda d: dt.timedelta(*(int(str(part)) for part in _loads(d))),
    _DECIMAL: lambda d: Decimal(str(_loads(d)[0])),
    _UUID: lambda d: uuid.UUID(bytes=bytes(d)),
    _COMPLEX: lambda d: complex(*(float(str(part)) for part in _loads(d))),
}


def _from_ext(code: int, data: bytes, depth: int = 0) -> object:
    nested, convert = _NESTED.get(code), _FROM_EXT.get(code)
    try:
        if nested is not None and depth < _MAX_DEPTH:
            return nested(_loads(data, _HOOKS[depth + 1]))
        if convert is not None:
            return convert(data)
    except (ValueError, TypeError, ArithmeticError, IndexError) as error:
        raise ProtocolError(f"extension value of type {code} is malformed: {error}") from error
    if nested is not None:
        raise ProtocolError(f"tuples and sets are nested deeper than {_MAX_DEPTH} levels")
    raise ProtocolError(f"extension type {code} is unknown")


#: The same two functions for each depth, made once.
_DEFAULTS: Final = [partial(_to_ext, depth=depth) for depth in range(_MAX_DEPTH + 1)]
_HOOKS: Final = [partial(_from_ext, depth=depth) for depth in range(_MAX_DEPTH + 1)]
