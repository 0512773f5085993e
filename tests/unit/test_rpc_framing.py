"""Frames: whole, in pieces, several at once; and what is none."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.errors import ProtocolError
from storm_py.rpc.framing import FrameReader, frame


def test_a_frame_is_a_message_behind_its_length() -> None:
    assert frame(b"abc") == b"\0\0\0\3abc"


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=5), st.data())
def test_messages_come_out_as_they_went_in_however_they_are_cut(
    messages: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(map(frame, messages))
    reader = FrameReader(20)
    found = []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += reader.receive(stream[:cut])
        stream = stream[cut:]
    assert found == messages
    assert not reader.partial


def test_a_frame_that_has_begun_is_partial() -> None:
    reader = FrameReader(20)
    assert reader.receive(b"\0") == []
    assert reader.partial
    assert reader.receive(b"\0\0\2a") == []
    assert reader.partial
    assert reader.receive(b"b\0") == [b"ab"]
    assert reader.partial


def test_a_frame_of_the_limit_passes() -> None:
    assert FrameReader(3).receive(frame(b"abc")) == [b"abc"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">i", 21), "a frame of 21 bytes; the limit is 20"),
        (struct.pack(">i", 2**31 - 1), "a frame of 2147483647 bytes; the limit is 20"),
        (struct.pack(">i", -2), "a frame of 4294967294 bytes; the limit is 20"),
        (struct.pack(">i", 0), "an empty frame"),
        (b"\x80\x01\x00\x01", "a message without a frame: use TFramedTransport, as Storm does"),
        (b"GET / HTTP", "what arrives is text, not Thrift: it begins with b'GET '"),
    ],
)
def test_what_is_no_frame_is_refused_by_its_first_four_bytes(data: bytes, reason: str) -> None:
    reader = FrameReader(20)
    assert reader.receive(data[:3]) == []
    with pytest.raises(ProtocolError) as caught:
        reader.receive(data[3:])
    assert str(caught.value) == reason


def test_a_length_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        assert FrameReader(2**31).receive(struct.pack(">i", 2**31 - 1) + b"x") == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
