"""User values on the wire: they arrive as what they were, or an error says which one cannot."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from collections import Counter, OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from functools import partial
from zoneinfo import ZoneInfo

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storm_py import Values
from storm_py.errors import ProtocolError
from storm_py.wire.values import PLAIN, UnserialisableValue
from tests.strategies import all_values, damaged, peak_bytes, row_values
from tests.travel import packed, same, travelled, unpacked

pack = PLAIN.packer()
Wrap = Callable[[object], object]


class Name(str):
    pass


class Bag(set[object]):
    pass


class Box(frozenset[object]):
    pass


Point = namedtuple("Point", "x y")


class Cash:
    def __init__(self, cents: int) -> None:
        self.cents = cents


class TestRoundTrip:
    @settings(max_examples=150)
    @given(all_values)
    def test_any_supported_value(self, value: object) -> None:
        assert same(travelled(value), value)

    @settings(max_examples=50)
    @given(all_values)
    def test_the_slow_way_gives_the_same(self, value: object) -> None:
        ((result,),) = unpacked(PLAIN.pack_slowly([value]))
        assert same(result, value)

    @settings(max_examples=50)
    @given(st.lists(st.lists(all_values, max_size=2), max_size=3))
    def test_rows_stay_in_order_and_apart(self, rows: list[list[object]]) -> None:
        assert same(unpacked(*map(packed, rows)), rows)

    @pytest.mark.parametrize(
        "value",
        [
            *(2**63, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**1000, -(10**1000)),
            *("\ud800", "a\udfffb", "", b"", [], {}, (), set(), frozenset(), None, True, False),
            *(0.0, math.inf, -math.inf, 5e-324, 1.7e308),
            *(dt.datetime.min, dt.datetime.max, dt.date.min, dt.date.max),
            *(dt.time.max, dt.timedelta.min, dt.timedelta.max),
            dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.timezone(dt.timedelta(hours=3, seconds=-1))),
            dt.time(1, 2, 3, 4, dt.timezone(dt.timedelta(hours=-3))),
            *(Decimal("1.10"), Decimal("-Infinity"), Decimal("1E+999")),
            *(uuid.UUID(int=5), complex(0.5, -math.inf)),
            {1: "int", "1": "str", (1, (2,)): "tuple", None: "none", frozenset({1}): "set"},
            [{"a": (2**70, {2**80}, frozenset({2**90}), {2**100: [2**110]})}],
        ],
    )
    def test_edges(self, value: object) -> None:
        assert same(travelled(value), value)

    def test_an_int_too_long_to_print(self) -> None:
        assert travelled(-(10**5000)) == -(10**5000)

    def test_signs_of_zero(self) -> None:
        assert str(travelled(-0.0)) == "-0.0"
        assert str(travelled(complex(-0.0, -0.0))) == str(complex(-0.0, -0.0))
        assert str(travelled(Decimal("-0.00"))) == "-0.00"

    def test_nan(self) -> None:
        for value in (math.nan, Decimal("NaN"), Decimal("sNaN123"), complex(math.nan, 1)):
            assert repr(travelled(value)) == repr(value)

    def test_the_second_of_two_equal_hours_stays_the_second(self) -> None:
        berlin = ZoneInfo("Europe/Berlin")
        for fold in (0, 1):
            value = dt.datetime(2024, 10, 27, 2, 30, tzinfo=berlin, fold=fold)
            result = travelled(value)
            assert isinstance(result, dt.datetime)
            assert (result.utcoffset(), result.fold) == (value.utcoffset(), fold)
            assert result.timestamp() == value.timestamp()

    def test_a_row_that_the_user_changes_afterwards(self) -> None:
        row: list[object] = [[1]]
        before = pack(row)
        row[0] = 2
        assert unpacked(before) == [[[1]]]


class TestSubclasses:
    """They travel as the plain type that they are one of."""

    @pytest.mark.parametrize("deep", [False, True])
    @pytest.mark.parametrize(
        ("value", "plain"),
        [
            (Name("ann"), "ann"),
            (Point(1, 2), (1, 2)),
            (Point(2**70, Point(1, 2)), (2**70, (1, 2))),
            (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
            (defaultdict(list, {"a": [2**70]}), {"a": [2**70]}),
            (Counter("aab"), {"a": 2, "b": 1}),
            (Values("a", 1), ["a", 1]),
            (Bag({1, 2}), {1, 2}),
            (Bag({1, 2**70}), {1, 2**70}),
            (Box({1, 2**70}), frozenset({1, 2**70})),
            (bytearray(b"ab"), b"ab"),
            (memoryview(b"ab"), b"ab"),
        ],
    )
    def test_arrive_as_their_base(self, value: object, plain: object, deep: bool) -> None:
        if deep:  # the big int beside it makes the row go the slow way
            value, plain = [2**70, {"k": (value,)}], [2**70, {"k": (plain,)}]
        assert same(travelled(value), plain)

    def test_bool_stays_bool(self) -> None:
        assert travelled([True, 1, False, 0]) == [True, 1, False, 0]
        assert list(map(type, travelled([True, 1]))) == [bool, int]  # type: ignore[call-overload]


class TestRefusals:
    @pytest.mark.parametrize(
        ("row", "text"),
        [
            ([Cash(5)], "value[0] of type tests.unit.test_values.Cash cannot be serialised"),
            ([1, Fraction(1, 3)], "value[1] of type fractions.Fraction cannot be serialised"),
            (["a", [1, {"key": object()}]], "value[1][1]['key'] of type object cannot be"),
            ([({1, (2, range(3))},)], "[1] of type range cannot be serialised"),
            ([{(1, 2): {3: len}}], "value[0][(1, 2)][3] of type builtin_function_or_method"),
            ([{"k" * 99: object()}], "value[0]['" + "k" * 39 + "] of type object"),
            ([2**70, {"a": iter([])}], "value[1]['a'] of type list_iterator cannot be serialised"),
        ],
    )
    def test_name_the_place_and_the_type(self, row: list[object], text: str) -> None:
        with pytest.raises(UnserialisableValue) as caught:
            packed(row)
        assert text in str(caught.value)

    def test_a_value_that_holds_itself(self) -> None:
        value: list[object] = []
        value.append(value)
        with pytest.raises(UnserialisableValue, match=r"value\[0\].* is nested deeper than"):
            packed([value])

    def test_the_packer_works_on_after_a_refusal(self) -> None:
        with pytest.raises(UnserialisableValue):
            packed(["a" * 100, object()])
        assert unpacked(packed(["b"])) == [["b"]]

    @pytest.mark.parametrize("wrap", [lambda v: (v,), lambda v: frozenset([v]), lambda v: [(v,)]])
    def test_what_an_emit_accepts_can_be_received(self, wrap: Wrap) -> None:
        """Nested extensions recurse in C on the receiving side: no depth may end the process."""
        value: object = 1
        accepted = 0
        for depth in range(1, 300):
            value = wrap(value)
            try:
                row = packed([value])
            except UnserialisableValue as error:
                refusal = str(error)
                break
            accepted = depth
            assert len(unpacked(row)) == 1
        assert "is nested deeper than" in refusal
        assert accepted > 30

    def test_lists_may_nest_deeper(self) -> None:
        value: object = 1
        for _ in range(400):
            value = [value]
        assert same(travelled(value), value)


def ext(code: int, data: bytes) -> bytes:
    return bytes(msgpack.packb(msgpack.ExtType(code, data)))


def decodes(data: bytes) -> None:
    with suppress(ProtocolError):
        PLAIN.unpack_rows(data)


class TestAnyBytes:
    @given(st.binary(max_size=60))
    def test_random(self, data: bytes) -> None:
        decodes(data)

    @settings(max_examples=200)
    @given(st.integers(-128, 127), st.binary(max_size=20))
    @example(-1, b"\xff" * 12)
    @example(-1, b"")
    def test_random_extensions(self, code: int, data: bytes) -> None:
        with suppress(OverflowError):  # msgpack itself refuses to make some codes
            decodes(ext(code & 127, data))
            decodes(b"\xc7" + bytes([len(data), code & 255]) + data)

    @settings(max_examples=200)
    @given(st.integers(1, 18), row_values)
    def test_extensions_with_other_content(self, code: int, value: object) -> None:
        decodes(ext(code, packed([value])))
        decodes(ext(code, packed([value, value, value])))

    @settings(max_examples=100)
    @given(st.lists(all_values, max_size=2), st.data())
    def test_damaged(self, row: list[object], data: st.DataObject) -> None:
        decodes(data.draw(damaged(packed(row))))

    def test_truncated_at_every_byte(self) -> None:
        whole = packed(["word", (2**70, {1.5, dt.date.max}), {"a": Decimal(1)}, uuid.UUID(int=1)])
        for size in range(len(whole)):
            with pytest.raises(ProtocolError, match="do not unpack"):
                PLAIN.unpack_rows(whole[:size])

    def test_trailing_bytes(self) -> None:
        with pytest.raises(ProtocolError, match="do not unpack"):
            PLAIN.unpack_rows(packed([1]) + b"\x00")

    def test_unknown_extension(self) -> None:
        with pytest.raises(ProtocolError, match="extension type 99 is unknown"):
            PLAIN.unpack_rows(ext(99, b""))

    @pytest.mark.parametrize("code", [1, 2, 3])
    def test_extensions_nested_without_end(self, code: int) -> None:
        data = b"\x91\xc0"
        for _ in range(500):
            data = b"\x91" + ext(code, data)
        with pytest.raises(ProtocolError):
            PLAIN.unpack_rows(data)

    @pytest.mark.parametrize("head", [b"\xdd", b"\xdf", b"\xc6", b"\xdb", b"\xc9"])
    def test_a_huge_count_allocates_nothing(self, head: bytes) -> None:
        data = (head + b"\xff" * 4) * 1000
        assert peak_bytes(partial(decodes, data)) < 1_000_000

    def test_memory_for_nested_counts_within_the_message_is_bounded(self) -> None:
        head = b"\xdd" + struct.pack(">I", 4000)
        assert peak_bytes(partial(decodes, head * 1000)) < 100_000_000
