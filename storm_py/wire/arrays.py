"""numpy's scalars and arrays on the wire, for those who have numpy.

storm_py never needs numpy and never loads it by itself: values that come from it are recognised
only where a program has imported it already, and arrive only where it can be imported. Elements
travel as their raw bytes, so types that hold Python objects or named fields are refused. Pure.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final

from storm_py.errors import ProtocolError

from .standard import UnserialisableValue, dump_parts, load_parts

#: Element types that travel: numbers, texts and bytes of fixed width, dates, raw bytes. Without the
#: check numpy would read whole record types, and Python objects, out of such a text.
_DTYPE: Final = re.compile(r"[<>|=][biufcmMSUV]\d{1,9}(\[\d{0,9}[A-Za-z]{1,2}\])?")


def is_scalar(kind: type) -> bool:
    """Whether this is a class of numpy's scalars."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, numpy.generic)


def is_array(kind: type) -> bool:
    """Whether this is numpy's array class or one derived from it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, numpy.ndarray)


def dump_scalar(value: Any) -> bytes:
    """A scalar as [element type, bytes]; texts and bytes as themselves, for they may end in 0."""
    if isinstance(value, str):
        return dump_parts(["U", str.__str__(value)])
    if isinstance(value, bytes):
        return dump_parts(["S", bytes(value)])
    return dump_parts([_element_type(value.dtype), value.tobytes()])


def load_scalar(data: bytes) -> object:
    """The scalar in these bytes."""
    import numpy as np

    kind, content = load_parts(data)
    if kind == "U" and isinstance(content, str):
        return np.str_(content)
    if kind == "S" and isinstance(content, bytes):
        return np.bytes_(content)
    scalar: object = _array(kind, [], content)[()]
    return scalar


def dump_array(value: Any) -> bytes:
    """An array as [element type, shape, bytes in C order]."""
    import numpy as np

    if type(value) is not np.ndarray:
        raise UnserialisableValue(
            "a subclass of numpy's array may hold more than its elements, which would be lost; "
            "emit numpy.asarray(value)"
        )
    return dump_parts([_element_type(value.dtype), list(value.shape), value.tobytes()])


def load_array(data: bytes) -> object:
    """The array in these bytes: in C order, writable, of the same element type and byte order."""
    return _array(*load_parts(data))


def _element_type(dtype: Any) -> str:
    text: str = dtype.str
    if dtype.hasobject:
        raise UnserialisableValue(
            "its elements are Python objects; give it a numeric type, or emit value.tolist()"
        )
    if dtype.fields is not None or not dtype.itemsize or not _DTYPE.fullmatch(text):
        raise UnserialisableValue(f"its element type {dtype} does not travel; emit value.tolist()")
    return text


def _array(text: Any, shape: Any, content: Any) -> Any:
    """The array of these parts, or ProtocolError; allocates no more than the content's size."""
    import numpy as np

    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        raise ProtocolError(f"{text!r:.80} is no element type of an array")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ProtocolError("the shape of an array is not a list of sizes")
    dtype = np.dtype(text)
    size = dtype.itemsize
    for n in shape:
        size *= n
    if not isinstance(content, bytes) or not dtype.itemsize or size != len(content):
        raise ProtocolError(f"an array of {text} with shape {shape!r:.80} has another size")
    return np.ndarray(tuple(shape), dtype, content).copy()
