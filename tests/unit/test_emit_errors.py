"""What is wrong with an emit is an EmitError at the call, for all three kinds of collector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from storm_py import EmitError, Values
from storm_py.errors import a_type
from tests.producer import STYLES, words

WHERE = "component 'source', stream 'default'"
PLAIN = (
    "; emit plain values (str, bytes, numbers, None, lists, dicts, tuples, sets, dates, Decimal, "
    "UUID), Enum members, dataclasses or numpy arrays, or register a serializer for the class with "
    "Config.register_serialization"
)
MISTAKES: list[tuple[str, object, str]] = [
    (
        "sde",
        ["x"],
        "component 'source' emits on stream 'sde', which it has not declared (declared: default, "
        "side, picked, unheard); did you mean 'side'?",
    ),
    (
        "picked",
        ["x"],
        "component 'source', stream 'picked' is direct: name the receiving task with emit_direct",
    ),
    ("default", ["storm"], f"{WHERE}: emit got 1 value(s), expected 2: word, n"),
    ("default", (), f"{WHERE}: emit got 0 value(s), expected 2: word, n"),
    ("default", Values(1, 2, 3), f"{WHERE}: emit got 3 value(s), expected 2: word, n"),
    (
        "default",
        ["storm", {"deep": [1, object()]}],
        f"{WHERE}: field 'n': value[1]['deep'][1] of type object cannot be serialised{PLAIN}",
    ),
    (
        "default",
        [2**70, range(3)],
        f"{WHERE}: field 'n': value[1] of type range cannot be serialised{PLAIN}",
    ),
    (
        "default",
        [[{1: (len,)}], 1],
        f"{WHERE}: field 'word': value[0][0][1][0] of type builtin_function_or_method cannot be "
        f"serialised{PLAIN}",
    ),
]


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


NO_LISTS: list[Any] = ["ab", b"ab", 12, None, {"word": 1, "n": 2}, {1, 2}, iter("ab")]
MISTAKES += [
    (
        "default",
        wrong,
        f"{WHERE}: emit got {a_type(wrong)}, expected a list of 2 value(s), as in emit([value])",
    )
    for wrong in NO_LISTS
]


class Moody(str):
    """A text that refuses to be looked up."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise LookupError


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("stream", "values", "text"), MISTAKES)
def test_mistakes(style: str, stream: str, values: Any, text: str) -> None:
    producer = words(style)
    producer.on("default", ["before", 1])
    with pytest.raises(EmitError) as caught:
        producer.on(stream, values)
    assert str(caught.value) == text
    producer.on("default", ["before", 2])
    producer.batcher.check()
    assert Counter(len(rows) for rows in producer.received().values()) == {2: 1}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("stream", "values", "text"),
    [
        ("pcked", ["x"], "component 'source' emits on stream 'pcked', which it has not declared"),
        ("side", ["x"], "stream 'side' is not direct: use emit, or declare it with direct=True"),
        ("picked", [], "stream 'picked': emit got 0 value(s), expected 1: value"),
        ("picked", "x", "stream 'picked': emit got a str, expected a list of 1 value(s)"),
        ("picked", [[object()]], "stream 'picked': field 'value': value[0][0] of type object"),
    ],
)
def test_direct_mistakes(style: str, stream: str, values: Any, text: str) -> None:
    producer = words(style)
    with pytest.raises(EmitError) as caught:
        producer.direct(3, stream, values)
    assert text in str(caught.value)
    assert producer.received() == {}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (memoryview(b"ab"), "memoryview"),
        (np.zeros(2), "numpy.ndarray"),
        (np.timedelta64(5), "numpy.timedelta64 (without a unit)"),
        (nested(400), "list (nested too deeply)"),
    ],
)
def test_a_key_that_cannot_be_one(style: str, key: object, kind: str) -> None:
    producer = words(style)
    with pytest.raises(EmitError) as caught:
        producer.on("default", [key, 1])
    assert str(caught.value) == (
        f"{WHERE}: grouping field(s) word hold a value of type {kind}, which cannot be a key"
    )
    assert producer.received() == {}


def test_a_key_whose_hash_fails_goes_where_its_equals_go() -> None:
    first = words().on("default", [Moody("a"), 1])
    producer = words()
    assert producer.on("default", [Moody("a"), 1]) == first == producer.on("default", ["a", 1])


@pytest.mark.parametrize("stream", ["default", "side", "picked", "unheard"])
def test_after_the_end_of_input(stream: str) -> None:
    producer = words("spout")
    producer.output.emissions.ended = True
    row = ["x"] * len(producer.streams[stream].fields)
    emit: Callable[[], object] = partial(producer.on, stream, row)
    if stream == "picked":
        emit = partial(producer.direct, 3, stream, row)
    with pytest.raises(EmitError) as caught:
        emit()
    assert str(caught.value) == (
        f"component 'source', stream '{stream}': emit after end_of_input(); a spout that has ended "
        "its input may not emit again"
    )
    assert producer.received() == {}
    assert producer.output.emissions.emitted == 0


@pytest.mark.parametrize("style", STYLES)
def test_a_tuple_that_is_too_large(style: str) -> None:
    producer = words(style, rows=8, nbytes=400, max_row_bytes=1000)
    producer.on("default", ["before", 1])
    emits: list[tuple[Callable[[], object], str, int]] = [
        (partial(producer.on, "default", ["before", "x" * 1991]), "default", 2002),
        (partial(producer.direct, 4, "picked", ["x" * 2000]), "picked", 2004),
    ]
    for emit, stream, size in emits:
        with pytest.raises(EmitError) as caught:
            emit()
        assert str(caught.value) == (
            f"component 'source', stream '{stream}': a tuple of {size} bytes is above the limit of "
            "1000; emit smaller tuples or raise storm_py.frame.max.bytes"
        )
    producer.on("default", ["before", 2])
    found = [row for rows in producer.received().values() for _, row in rows]
    assert found == [["before", 1], ["before", 2]]


@pytest.mark.parametrize(
    ("stream", "row"),
    [("default", ["x" * 2000, 1]), ("default", [memoryview(b"a"), 1]), ("picked", ["x" * 2000])],
)
def test_an_emit_that_failed_is_neither_counted_nor_acked(stream: str, row: list[object]) -> None:
    producer = words("spout", rows=8, nbytes=400, max_row_bytes=1000)
    emit = producer.emit if stream == "default" else partial(producer.emit_direct, 3)
    with pytest.raises(EmitError):
        emit(row, 7, stream)
    assert producer.output.acked == []
    assert producer.output.emissions.emitted == 0
