"""One value there and back: packed as the emit functions do it, unpacked as an instance does."""

from __future__ import annotations

import struct
from dataclasses import fields, is_dataclass

import msgpack
import numpy as np

from storm_py.wire.values import PLAIN, Codec


def packed(row: list[object], codec: Codec = PLAIN) -> bytes:
    """A row as the emit functions pack it."""
    pack = codec.packer()
    try:
        return pack(row)
    except Exception:  # noqa: BLE001 - whatever the fast packer dislikes goes the slow way
        return codec.pack_slowly(row)


def unpacked(*packed_rows: bytes, codec: Codec = PLAIN) -> list[list[object]]:
    """Rows as an instance unpacks them."""
    head = struct.pack(">BI", 0xDD, len(packed_rows))
    return codec.unpack_rows(head + b"".join(packed_rows))


def travelled(value: object, codec: Codec = PLAIN) -> object:
    """A value after its journey."""
    ((result,),) = unpacked(packed([value], codec), codec=codec)
    return result


def same(a: object, b: object) -> bool:
    """Equal, and of the same types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, (set, frozenset)):
        return a == b and sorted(map(repr, map(type, a))) == sorted(map(repr, map(type, b)))
    if is_dataclass(a) and is_dataclass(b):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, (np.ndarray, np.generic)) and isinstance(b, (np.ndarray, np.generic)):
        kinds = (a.dtype.str, a.shape) == (b.dtype.str, b.shape)
        return kinds and a.tobytes() == b.tobytes()
    return a == b


def ext(code: int, *parts: object) -> bytes:
    """A row of one extension value, which holds a list."""
    return b"\x91" + bytes(msgpack.packb(msgpack.ExtType(code, msgpack.packb(parts))))
