"""numpy's scalars and arrays: as what they were, without objects, and never more than was sent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.errors import ProtocolError
from storm_py.wire.values import PLAIN, UnserialisableValue
from tests.strategies import arrays, numpy_scalars, peak_bytes
from tests.travel import ext, packed, same, travelled

SCALAR, ARRAY = 14, 15


class TestRoundTrip:
    @given(arrays | numpy_scalars)
    def test_any(self, value: object) -> None:
        assert same(travelled(value), value)

    @pytest.mark.parametrize(
        "value",
        [
            *(np.int64(-1), np.float64("nan"), np.longdouble(1) / 3, np.complex64(1 - 2j)),
            *(np.str_(""), np.str_("a\0"), np.bytes_(b"a\0"), np.void(b"ab"), np.bool_(True)),
            *(np.datetime64("NaT"), np.datetime64("2026-01-02"), np.timedelta64(5, "ps")),
            *(np.zeros((2, 0, 3)), np.array(5), np.array(["a", "bcd"]), np.ones(3, ">c8")),
            *(np.arange(12).reshape(3, 4)[:, ::2], np.zeros((0,)), np.arange(3)[::-1]),
            np.asfortranarray(np.arange(6).reshape(2, 3)),
        ],
    )
    def test_edges(self, value: Any) -> None:
        assert same(travelled(value), value)
        assert same(travelled([2**70, {"k": (value,)}]), [2**70, {"k": (value,)}])

    def test_an_array_may_be_changed_by_its_receiver(self) -> None:
        result: Any = travelled(np.arange(3))
        result[0] = 5
        assert result.tolist() == [5, 1, 2]

    def test_a_scalar_is_a_key(self) -> None:
        assert same(travelled({np.int8(1): {np.str_("a")}}), {np.int8(1): {np.str_("a")}})


class Sub(np.ndarray[Any, Any]):
    pass


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: np.array([object()]), "its elements are Python objects; give it a numeric type, or "),
    (lambda: np.array([1, "a"], object), "or emit value.tolist()"),
    (
        lambda: np.zeros(2, "i4,f8"),
        "its element type [('f0', '<i4'), ('f1', '<f8')] does not",
    ),
    (lambda: np.zeros(2, "i4,f8")[0], "does not travel; emit value.tolist()"),
    (lambda: np.zeros(2, [("a", "O")]), "its elements are Python objects"),
    (lambda: np.ma.masked_array([1, 2], [True, False]), "emit numpy.asarray(value)"),
    (lambda: np.zeros(2).view(Sub), "a subclass of numpy's array may hold more than its elements"),
    (lambda: np.zeros(2, np.dtypes.StringDType()), "Python objects"),
]


class TestRefusals:
    @pytest.mark.parametrize(("make", "reason"), REFUSED)
    def test_say_why(self, make: Callable[[], object], reason: str) -> None:
        with pytest.raises(UnserialisableValue) as caught:
            packed(["a", {"b": make()}])
        assert str(caught.value).startswith("value[1]['b'] of type ")
        assert reason in str(caught.value)


class TestAnyBytes:
    @pytest.mark.parametrize(
        ("parts", "problem"),
        [
            (["O", [1], bytes(8)], "'O' is no element type of an array"),
            (["|O8", [1], bytes(8)], "'|O8' is no element type of an array"),
            (["<i4,<f8", [1], bytes(12)], "is no element type of an array"),
            ([["<i4"], [1], bytes(4)], "is no element type of an array"),
            (["<i4", [2], bytes(4)], "an array of <i4 with shape [2] has another size"),
            (["<i4", [2**40, 2**40], bytes(4)], "has another size"),
            (["<i4", [-1, -1], bytes(4)], "the shape of an array is not a list of sizes"),
            (["<i4", [True], bytes(4)], "the shape of an array is not a list of sizes"),
            (["<i4", 1, bytes(4)], "the shape of an array is not a list of sizes"),
            (["<i4", [1], "abcd"], "has another size"),
            (["|V0", [5], b""], "has another size"),
            (["<i4", [1] * 100, bytes(4)], "extension value of type 15 is malformed"),
            (["<i3", [1], bytes(3)], "extension value of type 15 is malformed"),
            (["<M8[zz]", [1], bytes(8)], "extension value of type 15 is malformed"),
            (["<i4", [1]], "extension value of type 15 is malformed"),
        ],
    )
    def test_no_array(self, parts: list[object], problem: str) -> None:
        with pytest.raises(ProtocolError) as caught:
            PLAIN.unpack_rows(ext(ARRAY, *parts))
        assert problem in str(caught.value)

    @settings(max_examples=150)
    @given(
        st.sampled_from([SCALAR, ARRAY]),
        st.from_regex(r"[<>|][a-zA-Z]\d{1,3}(\[\d?[a-zA-Z]{1,2}\])?", fullmatch=True),
        st.lists(st.integers(-1, 2**64 - 1) | st.integers(0, 3), max_size=3),
        st.binary(max_size=40),
    )
    def test_any_parts(self, code: int, kind: str, shape: list[int], content: bytes) -> None:
        message = ext(code, *([kind, content] if code == SCALAR else [kind, shape, content]))

        def decode() -> None:
            with suppress(ProtocolError):
                PLAIN.unpack_rows(message)

        assert peak_bytes(decode) < 2_000_000
