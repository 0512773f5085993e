"""Hypothesis strategies that several test modules need: values, rows, and damaged bytes."""

from __future__ import annotations

import datetime as dt
import tracemalloc
from collections.abc import Callable
from decimal import Decimal

from hypothesis import strategies as st

#: Any str that Python can hold, lone surrogates included.
texts = st.text(st.characters(), max_size=8)
offsets = st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23))
zones = st.one_of(st.none(), offsets.map(dt.timezone))

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
