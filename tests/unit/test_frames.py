"""Messages and frames: what is encoded is decoded, and any bytes give a value or ProtocolError."""

from __future__ import annotations

import struct
from contextlib import suppress
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.errors import ProtocolError
from storm_py.wire import frames
from storm_py.wire.frames import Frame, MarkerKind, Tracking
from storm_py.wire.values import PLAIN
from tests.strategies import damaged, peak_bytes

u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
i32 = st.integers(-(2**31), 2**31 - 1)
pack = PLAIN.packer()
small_rows = st.lists(st.integers(0, 300), max_size=2)

HEADER = frames.message_header(0x1122334455667788, 9)
SIZE = frames.MESSAGE_HEADER.size


def only(message: bytes) -> Frame:
    (frame,) = frames.frames(message)
    return frame


def data_frame(tracking: Tracking | None = None, rows: int = 3) -> bytes:
    packed = [pack([i, "word"]) for i in range(rows)]
    runs = [(0, rows - 1), (2, 1)]
    return b"".join(frames.encode_data(1, 4, 5, 6, runs, packed, tracking))


SINGLE = Tracking([7, 0, 9], [1, 0, 3])
MULTI = Tracking([7, 8, 9], [1, 2, 3], [2, 0, 1])


class TestMessageHeader:
    @given(u64, u64)
    def test_round_trip(self, session: int, seq: int) -> None:
        assert frames.read_message_header(frames.message_header(session, seq)) == (session, seq)

    def test_golden(self) -> None:
        assert HEADER.hex() == "7350010000000000" + "8877665544332211" + "0900000000000000"

    @pytest.mark.parametrize("size", range(SIZE))
    def test_truncated(self, size: int) -> None:
        with pytest.raises(ProtocolError, match=f"message of {size} bytes is shorter"):
            frames.read_message_header(HEADER[:size])

    def test_foreign_magic(self) -> None:
        with pytest.raises(ProtocolError, match="starts with 0x4547, expected 0x5073"):
            frames.read_message_header(b"GET / HTTP/1.1\r\nHost: a\r\n")
        with pytest.raises(ProtocolError, match="starts with 0x0000"):
            frames.read_message_header(bytes(SIZE))

    def test_another_version(self) -> None:
        with pytest.raises(ProtocolError, match=r"wire version 2 is not ours \(1\)"):
            frames.read_message_header(HEADER[:2] + b"\x02" + HEADER[3:])


@st.composite
def data_frames(draw: st.DrawFn) -> tuple[object, ...]:
    """The arguments of encode_data, consistent."""
    packed = draw(st.lists(small_rows.map(pack), min_size=1, max_size=6))
    cuts = draw(st.lists(st.integers(0, len(packed)), max_size=3))
    bounds = [0, *sorted(cuts), len(packed)]
    runs = [(draw(u16), end - start) for start, end in pairwise(bounds)]
    tracking = None
    kind = draw(st.sampled_from(["none", "single", "multi"]))
    if kind != "none":
        counts = None
        n = len(packed)
        if kind == "multi":
            counts = tuple(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
            n = sum(counts)
        numbers = st.lists(u64, min_size=n, max_size=n)
        tracking = Tracking(draw(numbers), draw(numbers), counts)
    return draw(u32), draw(i32), draw(i32), draw(u64), runs, packed, tracking


class TestDataFrames:
    @given(data_frames())
    def test_round_trip(self, given_: tuple[object, ...]) -> None:
        epoch, src, dest, sent_at, runs, packed, tracking = given_
        message = HEADER + b"".join(frames.encode_data(*given_))  # type: ignore[arg-type]
        frame = only(message)
        assert (frame.kind, frame.epoch, frame.src, frame.dest, frame.sent_at) == (
            *(frames.FrameKind.DATA, epoch),
            *(src, dest, sent_at),
        )
        assert (frame.start, frame.end) == (SIZE, len(message))
        assert isinstance(packed, list)
        assert frame.rows == len(packed)
        assert frames.read_tracking(message, frame)[0] == tracking
        found, body = frames.decode_data(message, frame)
        assert found == runs
        assert bytes(body[5:]) == b"".join(packed)
        assert len(PLAIN.unpack_rows(body)) == len(packed)

    def test_golden(self) -> None:
        parts = frames.encode_data(3, -1, 2, 5, [(1, 1)], [pack(["a"])])
        assert b"".join(parts).hex(" ", 4) == (
            "20000100 03000000 ffffffff 02000000 05000000 00000000 14000000 01000000 "
            "01000000 01000000 01000000 dd000000 0191a161"
        )

    def test_several_frames_lie_behind_each_other(self) -> None:
        one, two = data_frame(), frames.encode_marker(1, 4, 6, 7, MarkerKind.END, 8)
        found = list(frames.frames(HEADER + one + two))
        assert [(f.dest, f.start, f.end) for f in found] == [
            (5, SIZE, SIZE + len(one)),
            (6, SIZE + len(one), SIZE + len(one) + len(two)),
        ]

    def test_an_extended_header_is_skipped(self) -> None:
        plain = data_frame()
        size = frames.FRAME_HEADER.size
        longer = struct.pack("<H", size + 3) + plain[2:size] + b"ext" + plain[size:]
        message = HEADER + longer
        assert frames.decode_data(message, only(message))[0] == [(0, 2), (2, 1)]

    @pytest.mark.parametrize("tracking", [None, SINGLE, MULTI])
    def test_truncated_at_every_byte(self, tracking: Tracking | None) -> None:
        whole = HEADER + data_frame(tracking)
        for size in range(SIZE + 1, len(whole)):
            with pytest.raises(ProtocolError):
                only(whole[:size])

    @pytest.mark.parametrize("tracking", [None, SINGLE, MULTI])
    def test_a_shorter_payload_than_its_content(self, tracking: Tracking | None) -> None:
        whole = HEADER + data_frame(tracking)
        frame = only(whole)
        for end in range(frame.payload, frame.end):
            shorter = Frame(
                *(frame.kind, frame.flags, frame.epoch, frame.src, frame.dest, frame.sent_at),
                *(frame.rows, frame.start, frame.payload, end),
            )
            with pytest.raises(ProtocolError):
                PLAIN.unpack_rows(frames.decode_data(whole, shorter)[1])

    def test_no_frame_at_all(self) -> None:
        assert list(frames.frames(HEADER)) == []

    def test_header_runs_and_rows_must_agree(self) -> None:
        for runs in ([(0, 1)], [(0, 1), (1, 2)], [(0, 2**32 - 1)], []):
            message = HEADER + b"".join(frames.encode_data(1, 4, 5, 6, runs, [pack([1])] * 2))
            with pytest.raises(ProtocolError, match="DATA frame of task 4"):
                frames.decode_data(message, only(message))

    def test_a_frame_without_rows_is_refused(self) -> None:
        # nobody would ever credit it
        message = HEADER + b"".join(frames.encode_data(1, 4, 5, 6, [], []))
        with pytest.raises(ProtocolError, match="DATA frame of task 4"):
            frames.decode_data(message, only(message))


class TestMarkers:
    @given(u32, i32, i32, u64, u32)
    def test_round_trip(self, epoch: int, src: int, dest: int, sent_at: int, id: int) -> None:
        message = HEADER + frames.encode_marker(epoch, src, dest, sent_at, MarkerKind.END, id)
        frame = only(message)
        assert frames.decode_marker(message, frame) == (MarkerKind.END, id)
        assert (frame.kind, frame.rows) == (frames.FrameKind.MARKER, 0)
        assert (frame.src, frame.dest, frame.sent_at) == (src, dest, sent_at)

    def test_truncated_at_every_byte(self) -> None:
        whole = HEADER + frames.encode_marker(1, 4, 5, 6, MarkerKind.END, 1)
        for size in range(SIZE + 1, len(whole)):
            with pytest.raises(ProtocolError):
                only(whole[:size])

    def test_wrong_length(self) -> None:
        message = HEADER + data_frame()
        with pytest.raises(ProtocolError, match="MARKER frame of task 4 has a wrong length"):
            frames.decode_marker(message, only(message))

    def test_unknown_kind(self) -> None:
        message = bytearray(HEADER + frames.encode_marker(1, 4, 5, 6, MarkerKind.END, 1))
        message[-8] = 9
        with pytest.raises(ProtocolError, match="marker kind 9 is unknown"):
            frames.decode_marker(bytes(message), only(bytes(message)))


def decode_all(message: bytes) -> None:
    """Everything that a receiver may do with a message; each a value or ProtocolError."""
    with suppress(ProtocolError):
        frames.read_message_header(message)
        for frame in frames.frames(message):
            for decode in (frames.read_tracking, frames.decode_marker, decode_rows):
                with suppress(ProtocolError):
                    decode(message, frame)


def decode_rows(message: bytes, frame: Frame) -> None:
    PLAIN.unpack_rows(frames.decode_data(message, frame)[1])


class TestAnyBytes:
    @given(st.binary(max_size=120))
    def test_random(self, content: bytes) -> None:
        decode_all(content)
        decode_all(HEADER + content)

    @settings(max_examples=200)
    @given(st.sampled_from([None, SINGLE, MULTI]), st.data())
    def test_damaged(self, tracking: Tracking | None, data: st.DataObject) -> None:
        valid = data_frame(tracking) + frames.encode_marker(1, 4, 6, 7, MarkerKind.END, 8)
        decode_all(HEADER + data.draw(damaged(valid)))

    @pytest.mark.parametrize("flags", [0, 1, 3])
    def test_a_huge_count_allocates_nothing(self, flags: int) -> None:
        header = frames.FRAME_HEADER.pack(32, 1, flags, 1, 4, 5, 6, 40, 2**32 - 1)
        runs = struct.pack("<HHHHI", 1, 0, 0, 0, 2**32 - 1)
        for payload in (b"\xff" * 40, runs + b"\xdd" + b"\xff" * 27, bytes(40)):
            message = HEADER + header + payload
            assert peak_bytes(partial(decode_all, message)) < 50_000
