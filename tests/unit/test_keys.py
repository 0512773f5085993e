"""Keys: equal values get equal bytes in every process, different ones different bytes."""

from __future__ import annotations

import datetime as dt
import enum
import itertools
import math
import os
import subprocess
import sys
import uuid
from collections import Counter, OrderedDict, namedtuple
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.core.keys import PLAIN, UnhashableKey, task_index
from tests.strategies import hashables, row_values

canonical, key_hash, group_of = PLAIN.canonical, PLAIN.hash, PLAIN.group_of


class Level(enum.IntEnum):
    LOW = 1


class Colour(str, enum.Enum):  # noqa: UP042 - its __str__ differs from the value
    RED = "red"


class Plain(enum.Enum):
    ONE = 1
    UNO = ONE
    TWO = 2


class Other(enum.Enum):
    ONE = 1


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Money:
    cents: int
    note: str = field(default="", compare=False)


@dataclass
class Cash:
    cents: int
    note: str = ""


class Scalar:
    """As numpy's scalars: equal to the Python value that item() gives."""

    shape = ()

    def __init__(self, value: object) -> None:
        self._value = value

    def item(self) -> object:
        return self._value

    def __eq__(self, other: object) -> bool:
        return bool(self._value == (other.item() if isinstance(other, Scalar) else other))

    def __hash__(self) -> int:
        return hash(self._value)


Point = namedtuple("Point", "x y")
BERLIN = ZoneInfo("Europe/Berlin")
UTC = dt.UTC


class Model:
    """What a key is, said with Python's own ==: containers by content, NaN is one key."""

    @classmethod
    def of(cls, value: object) -> object:
        if isinstance(value, (float, Decimal)) and Decimal(value).is_nan():
            return "nan", cls
        if isinstance(value, complex) and (math.isnan(value.real) or math.isnan(value.imag)):
            parts = (value.real, value.imag)
            return cls.of(value.real) if value.imag == 0 else (cls, *map(cls.of, parts))
        if isinstance(value, (list, tuple)):
            return "sequence", *map(cls.of, value)
        if isinstance(value, AbstractSet):
            return "set", frozenset(map(cls.of, value)), len(value)
        if isinstance(value, Mapping):
            return "mapping", frozenset((cls.of(k), cls.of(v)) for k, v in value.items())
        if isinstance(value, bytearray):
            return bytes(value)
        if is_dataclass(value) and not isinstance(value, type):
            compared = [getattr(value, f.name) for f in fields(value) if f.compare]
            return type(value), *map(cls.of, compared)
        return value


#: Few values in many types, so that equal pairs and near misses are common.
ONES: list[object] = [
    *(1, 1.0, True, Decimal(1), Decimal("1.00"), Fraction(1), 1 + 0j, Level.LOW, Scalar(1)),
    *(Scalar(1.0), Scalar(True), Fraction(3, 3), Decimal("100E-2")),
]
HALVES: list[object] = [0.5, Decimal("0.5"), Fraction(1, 2), 0.5 + 0j, Scalar(0.5)]
ZEROS: list[object] = [0, 0.0, -0.0, False, Decimal("-0"), Decimal("0E+9"), 0j, Fraction(0)]
HUGE: list[object] = [10**400, Decimal("1E+400"), Fraction(10**400), Scalar(10**400)]
EQUALS: list[list[object]] = [
    *(ONES, HALVES, ZEROS, HUGE),
    [2**53 + 1, Decimal(2**53 + 1), Fraction(2**53 + 1)],
    [1e300, int(1e300), Decimal(int(1e300)), Fraction(1e300), complex(1e300)],
    [Decimal("0.1"), Fraction(1, 10)],
    [0.1, Decimal.from_float(0.1), Fraction(0.1), complex(0.1)],
    [math.inf, Decimal("Infinity"), complex(math.inf, 0)],
    ["red", Colour.RED, Scalar("red")],
    [b"ab", bytearray(b"ab"), Scalar(b"ab")],
    [(1, 2), Point(1, 2), Point(True, Decimal(2))],
    [{1, 2}, frozenset({1.0, 2}), {Decimal(2), True}],
    [{"a": 2, "b": 1}, OrderedDict(b=1.0, a=Decimal(2)), Counter(a=2, b=True)],
    [Money(5, "a"), Money(5, "b"), Money(Decimal(5))],  # type: ignore[arg-type]
    [Plain.ONE, Plain.UNO],
    [
        dt.datetime(2024, 7, 1, 12, tzinfo=BERLIN),
        dt.datetime(2024, 7, 1, 10, tzinfo=UTC),
        dt.datetime(2024, 7, 1, 5, 30, tzinfo=dt.timezone(dt.timedelta(hours=-4.5))),
    ],
    [dt.datetime(2024, 10, 27, 2, 30, fold=fold, tzinfo=BERLIN) for fold in (0, 1)],
    [dt.datetime(2024, 1, 1, fold=fold) for fold in (0, 1)],
    [dt.time(12, fold=1), dt.time(12), dt.time(12, tzinfo=BERLIN)],
    [dt.time(12, tzinfo=UTC), dt.time(13, 30, tzinfo=dt.timezone(dt.timedelta(hours=1.5)))],
    [dt.timedelta(days=1), dt.timedelta(hours=24)],
]
REST: list[object] = [
    *(None, "", "1", "i1;", b"1", "None", "nan", math.nan, 2, -1, 0.25, 2j, 1 + 1j, 1e300),
    *((), [], (1,), [1], (1, ()), ((1,),), ("1",), set(), {1}, {"1"}, {}, {1: 1}, {1: "1"}),
    *(Plain.TWO, Other.ONE, Rights.READ, Rights.READ | Rights.WRITE, Cash(5), Cash(5, "a")),
    *(dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC)),
    *(dt.time(0), dt.time(0, tzinfo=UTC), dt.time(0, 30, tzinfo=UTC), dt.timedelta(0)),
    *(dt.timedelta(microseconds=1), uuid.UUID(int=1), uuid.UUID(int=2), Fraction(1, 3)),
    *(dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))), 10**5000, -(10**5000)),
    dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-5))),
    *(Decimal("1E+5000"), Decimal("1E-5000"), Fraction(1, 10**5000), Decimal("sNaN")),
]
EVERY: list[object] = [*itertools.chain.from_iterable(EQUALS), *REST]
#: Text that looks like encodings, to provoke ambiguities.
tricky = st.text("si1:;/nbu", max_size=6)
keys = st.one_of(
    st.sampled_from(EVERY), tricky, st.lists(st.sampled_from(EVERY) | tricky, max_size=3), hashables
)


class TestEqualValues:
    @pytest.mark.parametrize("values", EQUALS, ids=lambda values: type(values[0]).__name__)
    def test_encode_equally(self, values: list[object]) -> None:
        assert all(a == b for a, b in itertools.combinations(values, 2))
        assert len({canonical(value) for value in values}) == 1
        assert len({canonical([value, ("x", value)]) for value in values}) == 1

    def test_all_pairs(self) -> None:
        encoded = [(Model.of(value), canonical(value), value) for value in EVERY]
        for (a, a_bytes, a_value), (b, b_bytes, b_value) in itertools.combinations(encoded, 2):
            assert (a_bytes == b_bytes) == (a == b), f"{a_value!r:.60} and {b_value!r:.60}"

    @given(st.integers() | st.integers(-(2**80), 2**80), st.integers(1, 2**80))
    def test_numbers_of_all_types(self, numerator: int, denominator: int) -> None:
        exact = Fraction(numerator, denominator)
        same: list[object] = [exact, Scalar(exact)]
        near = numerator / denominator
        if Fraction(near) == exact:
            same += [near, complex(near), Decimal(near)]
        if exact.denominator == 1:
            same += [int(exact), Decimal(int(exact))]
        decimal = Decimal(numerator) / Decimal(denominator)
        if Fraction(decimal) == exact:
            same.append(decimal)
        assert {canonical(value) for value in same} == {canonical(exact)}

    @given(st.permutations(["a", "b", 1, None, (2, "c")]))
    def test_order_in_a_set_or_mapping_does_not_matter(self, items: list[object]) -> None:
        assert canonical(dict.fromkeys(items)) == canonical(dict.fromkeys(reversed(items)))
        assert canonical(set(items)) == canonical(frozenset(reversed(items)))


class TestDifferentValues:
    @settings(max_examples=200)
    @given(keys, keys)
    def test_encode_differently(self, a: object, b: object) -> None:
        assert (canonical(a) == canonical(b)) == (Model.of(a) == Model.of(b))

    @settings(max_examples=200)
    @given(st.lists(keys, max_size=3), st.lists(keys, max_size=3))
    def test_several_fields_cannot_be_confused(self, a: list[object], b: list[object]) -> None:
        joined = b"".join(map(canonical, a)) == b"".join(map(canonical, b))
        assert joined == (Model.of(a) == Model.of(b))

    @settings(max_examples=150)
    @given(st.sampled_from(EVERY), tricky, row_values)
    def test_no_encoding_begins_another(self, a: object, b: object, c: object) -> None:
        encoded = {canonical(value) for value in (a, b, c)}
        assert not any(x != y and y.startswith(x) for x in encoded for y in encoded)


class TestRefusals:
    @pytest.mark.parametrize(
        ("value", "name"),
        [
            (object(), "object"),
            (len, "builtin_function_or_method"),
            ([{"a": range(3)}], "range"),
            (Money, "type"),
            (memoryview(b"ab"), "memoryview"),
        ],
    )
    def test_name_the_type(self, value: object, name: str) -> None:
        with pytest.raises(UnhashableKey, match=f"^{name}$"):
            canonical(value)

    def test_an_array_is_no_scalar(self) -> None:
        array = Scalar(1)
        array.shape = (1,)  # type: ignore[assignment]
        with pytest.raises(UnhashableKey, match=r"^tests\.unit\.test_keys\.Scalar$"):
            canonical(array)


PROGRAM = """
import dataclasses, datetime, decimal, enum, fractions, uuid
from storm_py.core.keys import PLAIN

class Colour(enum.Enum):
    RED = "red"

@dataclasses.dataclass(frozen=True)
class Money:
    cents: int
    tags: frozenset

words = ["storm", "heron", "\\ud800", "", "a" * 99, *map(str, range(50))]
key_hash = PLAIN.hash
print(key_hash(words), key_hash([set(words)]), key_hash([frozenset(words), "x"]))
print(key_hash([dict.fromkeys(set(words))]), key_hash([{frozenset(words): set(map(len, words))}]))
print(key_hash([Colour.RED]), key_hash([Money(5, frozenset(words))]), key_hash([{Colour.RED}]))
print(key_hash([datetime.date.min, uuid.UUID(int=1), decimal.Decimal("0.1"), b"x", None, 1.5, 1j]))
"""


class TestEveryProcess:
    def test_the_hash_does_not_depend_on_the_hash_seed(self) -> None:
        # Real processes, alone among the unit tests: a seed can only be given to a new one.
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM],
                env={**os.environ, "PYTHONHASHSEED": seed},
                stdout=subprocess.PIPE,
            )
            for seed in ("0", "1", "4294967295")
        ]
        answers = [process.communicate()[0] for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0]
        assert len(answers[0].split()) == 9
        assert set(answers) == {answers[0]}

    def test_golden(self) -> None:
        # a change here moves every key to another task: state that exists would be lost
        assert canonical(["ann", 42, -1.5, None, (True, b"x")]) == (
            b"l5:s3:anni2a;f-0x1.8000000000000p+0;n;l2:i1;b1:x"
        )
        hashes = [key_hash([key]) for key in ("ann", 42, None)]
        assert hashes == [1560457022, 2372461993, 195870194]


class TestGroups:
    @given(st.lists(keys, min_size=1, max_size=2), st.integers(1, 2**16))
    def test_a_group_is_one_of_them(self, values: list[object], key_groups: int) -> None:
        group = group_of(values, key_groups)
        assert 0 <= group < key_groups
        assert group == key_hash(values) % key_groups

    @given(st.integers(1, 300), st.integers(0, 900))
    def test_tasks_get_contiguous_even_shares(self, tasks: int, more: int) -> None:
        key_groups = tasks + more
        owners = [task_index(group, tasks, key_groups) for group in range(key_groups)]
        assert owners == sorted(owners)
        shares = Counter(owners)
        assert set(shares) == set(range(tasks))
        assert max(shares.values()) - min(shares.values()) <= 1

    @given(st.integers(1, 64), st.integers(1, 8), st.integers(64 * 8, 1024))
    def test_more_tasks_split_shares_and_do_not_mix_them(
        self, tasks: int, factor: int, key_groups: int
    ) -> None:
        for group in range(key_groups):
            before = task_index(group, tasks, key_groups)
            assert task_index(group, tasks * factor, key_groups) // factor == before

    @given(keys, st.integers(1, 50), st.integers(1, 50))
    def test_the_group_of_a_key_outlives_a_change_of_tasks(
        self, key: object, before: int, after: int
    ) -> None:
        # A key hashes to a group once and for all; only the owner of the group changes.
        group = group_of([key], 1024)
        assert task_index(group, before, 1024) < before
        assert task_index(group, after, 1024) < after
        assert group_of([key], 1024) == group
