"""ACK frames: what goes in comes out, and any bytes are a value or a ProtocolError."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storm_py.errors import ProtocolError
from storm_py.wire.acks import AckRecords, AckResults, decode_acks, encode_acks
from storm_py.wire.frames import FRAME_HEADER, Frame, FrameKind, frames

ids = st.integers(0, (1 << 62) - 1)
u64 = st.integers(0, (1 << 64) - 1)
column = st.lists(ids, max_size=20)
pairs = st.lists(st.tuples(ids, u64), max_size=20)


def records_of(
    inits: list[tuple[int, int]], acks: list[tuple[int, int]], fails: list[int], resets: list[int]
) -> AckRecords:
    return AckRecords(
        [root for root, _ in inits],
        [value for _, value in inits],
        [root for root, _ in acks],
        [value for _, value in acks],
        fails,
        resets,
    )


records = st.builds(records_of, pairs, pairs, column, column)
results = st.builds(AckResults, column, column, column)


def only(buf: bytes) -> Frame:
    (frame,) = frames(buf, 0)
    return frame


@given(records | results, st.integers(-1, 70000), st.integers(1, 70000))
def test_round_trip(acks: AckRecords | AckResults, src: int, dest: int) -> None:
    buf = encode_acks(3, src, dest, 12345, acks)
    frame = only(buf)
    assert (frame.kind, frame.epoch, frame.flags, frame.rows) == (FrameKind.ACK, 3, 0, 0)
    assert (frame.src, frame.dest, frame.sent_at) == (src, dest, 12345)
    assert decode_acks(buf, frame) == acks


@given(records, st.integers(0, 9), results)
def test_it_is_found_at_any_offset_of_a_message(
    first: AckRecords, shift: int, second: AckResults
) -> None:
    buf = bytes(shift) + encode_acks(1, 2, 3, 4, first) + encode_acks(1, 3, 2, 4, second)
    assert [decode_acks(buf, frame) for frame in frames(buf, shift)] == [first, second]


def frame_of(payload: bytes, size: int | None = None) -> bytes:
    length = len(payload) if size is None else size
    header = FRAME_HEADER.pack(FRAME_HEADER.size, FrameKind.ACK, 0, 1, 2, 3, 4, length, 0)
    return header + payload


@given(st.binary(max_size=200))
@example(b"")
@example(struct.pack("<BBHIIII", 1, 0, 0, 0, 0, 0, 0))
@example(struct.pack("<BBHIIII", 2, 0, 0, 0, 0, 0, 1))
@example(struct.pack("<BBHIIII", 1, 0, 0, *[0xFFFFFFFF] * 4))
def test_any_payload_is_a_value_or_a_protocol_error(payload: bytes) -> None:
    buf = frame_of(payload)
    try:
        found = decode_acks(buf, only(buf))
    except ProtocolError:
        return
    assert isinstance(found, (AckRecords, AckResults))


@given(records | results, st.data())
def test_one_changed_byte_is_a_value_or_a_protocol_error(
    acks: AckRecords | AckResults, data: st.DataObject
) -> None:
    buf = bytearray(encode_acks(1, 2, 3, 4, acks))
    at = data.draw(st.integers(0, len(buf) - 1))
    buf[at] = data.draw(st.integers(0, 255))
    try:
        for frame in frames(bytes(buf), 0):
            decode_acks(bytes(buf), frame)
    except ProtocolError:
        pass


@given(records | results, st.integers(1, 24))
def test_a_truncated_or_longer_payload_is_refused(acks: AckRecords | AckResults, n: int) -> None:
    payload = encode_acks(1, 2, 3, 4, acks)[FRAME_HEADER.size :]
    for wrong in (payload[:-n], payload + bytes(n)):
        buf = frame_of(wrong)
        with pytest.raises(ProtocolError, match="ACK frame of task 2"):
            decode_acks(buf, only(buf))


def test_an_unknown_kind_is_refused() -> None:
    buf = frame_of(struct.pack("<BBHIIII", 3, 0, 0, 0, 0, 0, 0))
    with pytest.raises(ProtocolError, match="unknown kind 3"):
        decode_acks(buf, only(buf))
