"""Control messages: every record travels, and any bytes give a record or ProtocolError."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import get_args, get_type_hints

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.errors import ProtocolError
from storm_py.wire import control
from tests.builders import hello
from tests.strategies import damaged, peak_bytes, row_values, texts

RECORDS: tuple[type[control.Control], ...] = get_args(control.Control)

VALUES: dict[object, st.SearchStrategy[object]] = {
    int: st.integers(-(2**63), 2**64 - 1),
    str: texts,
    bool: st.booleans(),
    list[int]: st.lists(st.integers(0, 2**31), max_size=3),
}


def any_record(kind: type[control.Control]) -> st.SearchStrategy[control.Control]:
    hints = get_type_hints(kind)
    return st.builds(kind, *(VALUES[hints[field.name]] for field in fields(kind)))


records = st.one_of(*map(any_record, RECORDS))


def decodes(data: bytes) -> None:
    with suppress(ProtocolError):
        control.decode(data)


class TestRecords:
    @settings(max_examples=200)
    @given(records)
    def test_round_trip(self, record: control.Control) -> None:
        data = control.encode(record)
        assert control.decode(data) == record
        assert control.decode(memoryview(data)) == record
        assert type(control.decode(data)) is type(record)

    def test_each_has_a_code_of_its_own(self) -> None:
        codes = []
        for kind in RECORDS:
            make: Callable[..., control.Control] = kind
            default = {int: 1, str: "", bool: True, list[int]: []}
            record = make(*map(default.__getitem__, get_type_hints(kind).values()))
            codes.append(msgpack.unpackb(control.encode(record))[0])
        assert len(set(codes)) == len(RECORDS) == 26

    def test_golden(self) -> None:
        # what other versions have sent must be read for ever
        assert control.decode(b"\x96\x01\xa2i3\xa3t-1\x02\x03\x92\x07\x08") == control.Hello(
            "i3", "t-1", 2, 3, [7, 8]
        )
        assert control.decode(b"\x92\x02\x05") == control.Welcome(5)
        assert control.decode(b"\x96\x03\x07\x0a\xcd\x01\x00\x02\x05") == control.Credit(
            7, 10, 256, 2, 5
        )
        assert control.decode(b"\x94\x04\x07\xc3\x10") == control.Pressure(7, True, 16)
        assert control.decode(b"\x92\x05\x05") == control.LinkBroken(5)


class TestRefusals:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            ({}, "control message is not a list"),
            (None, "control message is not a list"),
            ([], "control message is not a list"),
            ([99], "control message 99 is unknown"),
            ([0], "control message 0 is unknown"),
            (["Hello"], "control message begins with str, expected a code"),
            ([True, 5], "control message begins with bool, expected a code"),
            ([2], "Welcome has 0 fields, expected 1"),
            ([2, 5, 6], "Welcome has 2 fields, expected 1"),
            ([2, "5"], "Welcome.session is str, expected int"),
            ([2, True], "Welcome.session is bool, expected int"),
            ([2, 5.0], "Welcome.session is float, expected int"),
            ([4, 7, 1, 16], "Pressure.on is int, expected bool"),
            ([1, "i3", "t", 1, 1, 7], "Hello.tasks is int, expected list"),
            ([1, "i3", "t", 1, 1, [True]], "Hello.tasks is list, expected list"),
            ([1, b"i3", "t", 1, 1, []], "Hello.peer is bytes, expected str"),
        ],
    )
    def test_say_what_is_wrong(self, content: object, text: str) -> None:
        with pytest.raises(ProtocolError) as caught:
            control.decode(msgpack.packb(content))
        assert text in str(caught.value)

    def test_truncated_at_every_byte(self) -> None:
        whole = control.encode(hello("i3", tasks=[1, 2, 300, 70_000]))
        for size in range(len(whole)):
            with pytest.raises(ProtocolError, match="does not unpack"):
                control.decode(whole[:size])

    def test_trailing_bytes(self) -> None:
        with pytest.raises(ProtocolError, match="does not unpack"):
            control.decode(control.encode(control.Stop()) + b"\x00")


class TestAnyBytes:
    @given(st.binary(max_size=40))
    def test_random(self, data: bytes) -> None:
        decodes(data)

    @settings(max_examples=200)
    @given(st.integers(0, 40), st.lists(st.integers() | texts | st.just([1]), max_size=6))
    def test_random_fields(self, code: int, values: list[object]) -> None:
        with suppress(OverflowError):  # beyond 64 bits: not to be packed
            decodes(msgpack.packb([code, *values], unicode_errors="surrogatepass"))

    @settings(max_examples=200)
    @given(records, st.data())
    def test_damaged(self, record: control.Control, data: st.DataObject) -> None:
        decodes(data.draw(damaged(control.encode(record))))

    @pytest.mark.parametrize(
        "data",
        [
            b"\x91" * 1000 + b"\xc0",  # so deep that Python refuses to show it
            b"\x92" + b"\x91" * 1000 + b"\xc0\xc0",
            b"\x92\x02" + b"\x91" * 1000 + b"\xc0",
            b"\x91" * 3000,
            b"\x81\x91\x01\x02",  # a key that cannot be one
            b"\xd7\xff" + b"\xff" * 8,  # msgpack's own timestamps
        ],
    )
    def test_nasty(self, data: bytes) -> None:
        with pytest.raises(ProtocolError):
            control.decode(data)

    @given(row_values.map(partial(msgpack.packb, default=repr, unicode_errors="surrogatepass")))
    def test_other_msgpack(self, data: bytes) -> None:
        decodes(data)

    @pytest.mark.parametrize("head", [b"\xdd", b"\xdf", b"\xc6", b"\xdb", b"\xc9"])
    def test_a_huge_count_allocates_nothing(self, head: bytes) -> None:
        assert peak_bytes(partial(decodes, (head + b"\xff" * 4) * 100)) < 200_000
