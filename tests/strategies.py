"""Hypothesis strategies that several test modules need: values, rows, and damaged bytes."""

from __future__ import annotations

import datetime as dt
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import strategies as st

from tests.value_types import Colour, Level, Money, Order, Plain, Rights, Slotted

#: Any str that Python can hold, lone surrogates included.
texts = st.text(st.characters(), max_size=8)
offsets = st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23))
zones = st.one_of(
    st.none(), offsets.map(dt.timezone), st.sampled_from([ZoneInfo("Europe/Berlin"), dt.UTC])
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    texts,
    st.binary(max_size=8),
    st.datetimes(timezones=zones),
    st.dates(),
    st.times(timezones=zones),
    st.timedeltas(),
    st.decimals(allow_nan=False, places=3),
    st.sampled_from([Decimal("-0"), Decimal("Infinity"), Decimal("1E+400")]),
    st.uuids(),
    st.complex_numbers(allow_nan=False),
)

hashables = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)

#: Everything that may stand in a row and arrives as what it was.
row_values: st.SearchStrategy[object] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(hashables, max_size=3),
        st.frozensets(hashables, max_size=3),
        st.dictionaries(hashables, inner, max_size=3),
    ),
    max_leaves=6,
)

ELEMENT_TYPES = ["?", "i1", "<u2", ">i4", "<f4", ">f8", "<c16", "<M8[ns]", "<m8[3s]", "S3", "V2"]


def array_of(kind: str, shape: list[int], data: bytes) -> np.ndarray[Any, Any]:
    """An array whose elements repeat these bytes."""
    raw = np.resize(np.frombuffer(data, "u1"), (*shape, np.dtype(kind).itemsize))
    return np.ascontiguousarray(raw.view(kind)[..., 0])


arrays = st.builds(
    array_of,
    st.sampled_from(ELEMENT_TYPES),
    st.lists(st.integers(0, 3), max_size=3),
    st.binary(min_size=1, max_size=40),
)
numpy_scalars = st.one_of(
    st.integers(-128, 127).map(np.int8),
    st.integers(0, 2**64 - 1).map(np.uint64),
    st.floats(allow_nan=False).map(np.float64),
    st.floats(allow_nan=False, width=32).map(np.float32),
    st.floats(allow_nan=False, width=16).map(np.float16),
    st.booleans().map(np.bool_),
    st.integers(-(2**63) + 1, 2**63 - 1).map(lambda n: np.datetime64(n, "ns")),
    st.integers(-(2**63) + 1, 2**63 - 1).map(lambda n: np.timedelta64(n, "m")),
    st.text(max_size=5).map(np.str_),
    st.binary(max_size=5).map(np.bytes_),
)
members = st.sampled_from([*Colour, *Level, *Plain, Rights(0), Rights.READ | Rights.WRITE])
frozen = st.builds(Money, st.integers(), members) | st.builds(Slotted, texts)

#: The same, and what travels by the import path of its class or as numpy's.
all_values: st.SearchStrategy[object] = st.recursive(
    scalars | members | frozen | numpy_scalars | arrays,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.sets(hashables | frozen, max_size=3),
        st.dictionaries(hashables | members | frozen, inner, max_size=3),
        st.builds(Order, inner, st.lists(inner, max_size=2)),
    ),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """These bytes with a few of them changed, removed or inserted, or cut off."""
    found = bytearray(valid)
    for _ in range(draw(st.integers(1, 3))):
        if not found:
            break
        at = draw(st.integers(0, len(found) - 1))
        how = draw(st.integers(0, 4))
        if how <= 1:
            found[at] = draw(st.integers(0, 255))
        elif how == 2:
            found[at : at + 4] = draw(st.sampled_from([b"\xff" * 4, bytes(4), b"\x01\0\0\0"]))
        elif how == 3:
            found[at:at] = draw(st.binary(max_size=4))
        else:
            del found[at:]
    return bytes(found)


def peak_bytes(call: Callable[[], object]) -> int:
    """The most memory that was allocated at one time during the call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
