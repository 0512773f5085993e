"""Keys of the types that travel as extensions: equal ones agree, and none costs without bound."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from storm_py.core.keys import Keys, UnhashableKey, canonical
from tests.strategies import all_values, frozen, hashables, members, numpy_scalars
from tests.travel import travelled
from tests.value_types import Bits, Cash, Coin, Colour, Level, Money, Name, Plain, Rights, Shade

keys = st.recursive(
    hashables | members | frozen | numpy_scalars,
    lambda inner: st.lists(inner, max_size=2).map(tuple) | st.builds(Money, st.integers(), inner),
    max_leaves=4,
)
SAME: list[list[Any]] = [
    [1, np.int8(1), np.uint64(1), np.float16(1), np.longdouble(1), np.bool_(True), np.complex64(1)],
    [1, True, 1.0, Bits.LOW, np.clongdouble(1)],
    [0.1, np.float64(0.1), np.longdouble(0.1), Fraction(0.1)],
    [3, Level.HIGH, np.int64(3)],
    [2**70, Level.HUGE, np.float32(2**70), np.longdouble(2**70)],
    ["red", Colour.RED, Colour.CRIMSON, np.str_("red")],
    ["dark", Shade.DARK],
    [b"a", np.bytes_(b"a")],
    [math.inf, np.float32("inf"), np.longdouble("inf"), Decimal("inf")],
    [1 - 2j, np.complex64(1 - 2j), np.clongdouble(1 - 2j)],
    [
        *(dt.datetime(2026, 1, 2), np.datetime64("2026-01-02"), np.datetime64("2026-01-02", "ns")),
        *(np.datetime64("2026-01-02T00", "h"), np.datetime64("2026-01-02", "us").astype("M8[25s]")),
    ],
    [np.datetime64("2026"), np.datetime64("2026-01"), dt.datetime(2026, 1, 1)],
    [np.datetime64("12026"), np.datetime64("12026-01-01T00:00:00")],
    [np.datetime64(1, "ns"), np.datetime64(1000, "ps")],
    [dt.timedelta(1), np.timedelta64(1, "D"), np.timedelta64(24, "h"), np.timedelta64(86400, "s")],
    [np.timedelta64(1, "Y"), np.timedelta64(12, "M")],
    [np.timedelta64(2**62, "W"), np.timedelta64(2**62, "W")],
    [Money(1, np.int8(2)), Money(True, 2.0)],
    [Rights.READ | Rights.WRITE, Rights(3)],
    [10**5000, Decimal("1E+5000"), Fraction(10**5000), Decimal("10E+4999")],
    [10**20000 + 1, Decimal(10**20000 + 1), Fraction(10**20000 + 1)],
    [Fraction(1, 10**5000), Decimal("1E-5000"), Decimal("0.1E-4999")],
    [Fraction(-7, 10**20001), Decimal("-7E-20001"), Decimal("-7." + "0" * 50 + "E-20001")],
    [1, Decimal("1." + "0" * 30_000)],
    [0, Decimal("0E+1000000"), Decimal("0." + "0" * 30_000), np.float64(-0.0)],
    [Fraction(2**127 - 1, 3**5000), Fraction(2**127 - 1, 3**5000)],
    [Fraction(3**5000, 2**127 - 1), Fraction(3**5000, 2**127 - 1)],
]


def test_equal_values_have_one_encoding_and_different_ones_two() -> None:
    flat = [(number, canonical(value)) for number, group in enumerate(SAME) for value in group]
    for group in SAME:
        assert len({canonical(value) for value in group}) == 1, group
    # 1 and True are in two groups, and -7E-20001 and its like in one
    for (a, a_bytes), (b, b_bytes) in itertools.combinations(flat, 2):
        assert a_bytes != b_bytes or a == b or {a, b} <= {0, 1, 23}


@given(keys)
def test_a_key_that_travelled_is_the_same_key(key: object) -> None:
    assert canonical(travelled(key)) == canonical(key)


@given(keys, st.lists(keys, max_size=4))
def test_a_cache_by_value_gives_the_same_cold_and_warm(key: object, others: list[object]) -> None:
    cache: dict[object, bytes] = {}
    for value in (key, *others):
        try:
            assert cache.setdefault(value, canonical(value)) == canonical(value)
        except ValueError:  # a period of numpy that cannot be hashed because it has no unit
            assert isinstance(value, np.timedelta64)


@given(numpy_scalars)
def test_a_scalar_of_numpy_is_the_python_value_that_it_equals(value: Any) -> None:
    item = value.item()
    assume(not isinstance(item, int) or value.dtype.kind not in "mM")  # finer than microseconds
    assume(type(item) is not dt.date)
    if isinstance(value, (np.bytes_, np.str_)):
        assume(value == item)  # NULs at the end are lost in its item
    assert canonical(value) == canonical(item)


@pytest.mark.parametrize(
    "text", ["1E+1000000", "5.5E+999999999999999999", "1E-1000000", "3E-999999999999999999"]
)
def test_an_exponent_costs_nothing(text: str) -> None:
    key = Decimal(text)
    found = canonical(key)
    assert len(found) < 50
    assert found != canonical(key.copy_negate())
    assert found != canonical(Decimal("7" + text[1:]))


def test_a_long_coefficient_costs_little() -> None:
    digits = "123456789" * 100_000
    found = canonical(Decimal(digits + "E-5"))
    assert len(found) < 50
    assert found == canonical(Decimal(digits + "000E-8"))
    assert found != canonical(Decimal(digits + "E-6"))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.zeros(3), "numpy.ndarray"),
        (np.array(3), "numpy.ndarray"),
        (np.timedelta64(5), r"numpy.timedelta64 \(without a unit\)"),
        (Cash(1), "tests.value_types.Cash"),
        ([[1, np.zeros(3)]], "numpy.ndarray"),
    ],
)
def test_what_cannot_be_a_key(value: object, name: str) -> None:
    with pytest.raises(UnhashableKey, match=f"^{name}$"):
        canonical(value)


def test_too_deep() -> None:
    value: object = 1
    for _ in range(5000):
        value = [value]
    with pytest.raises(UnhashableKey, match=r"^list \(nested too deeply\)$"):
        canonical(value)


class TestRegistered:
    keys = Keys({Cash: Cash.to_bytes, Name: str.encode})

    def test_are_told_apart_by_their_dumps(self) -> None:
        assert self.keys.canonical(Cash(1)) == self.keys.canonical(Cash(1))
        assert self.keys.canonical(Cash(1)) != self.keys.canonical(Cash(2))
        assert self.keys.canonical(Cash(1)) != self.keys.canonical(Cash(1).to_bytes())
        assert self.keys.canonical([{Cash(1)}]) == self.keys.canonical((frozenset([Cash(1)]),))

    def test_exactly_the_class(self) -> None:
        with pytest.raises(UnhashableKey, match=r"^tests\.value_types\.Coin$"):
            self.keys.canonical(Coin(1))

    def test_what_equals_a_builtin_is_encoded_as_that(self) -> None:
        assert Name("a") == "a"
        assert self.keys.canonical(Name("a")) == canonical("a")

    @given(all_values)
    def test_others_are_encoded_as_ever(self, value: object) -> None:
        try:
            plain = canonical(value)
        except UnhashableKey:
            return
        assert self.keys.canonical(value) == plain


def test_members_without_an_equal() -> None:
    assert len({canonical(value) for value in (*Plain, Rights(0), *Rights, "ONE", 1)}) == 7
