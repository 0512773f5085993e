"""Messages and frames of the data sockets: fixed little-endian headers around opaque rows.

A *message* is one ZeroMQ part: a message header (per hop: magic, version, session, sequence number)
and its *frames*; one without any only counts, so that a loss before it shows. A frame travels
unchanged from the producing instance to the consuming one; a stream manager reads only its fixed
header. This module turns values into bytes and back and holds no state: sessions and sequence
numbers are counted in `storm_py.engine.sessions`, rows are packed by `storm_py.wire.values`,
control messages live in `storm_py.wire.control`.

Layout (all integers little-endian)::

    message  = magic u16 | version u8 | 0 u8 | 0 u32 | session u64 | seq u64 | frame...
    frame    = header_len u16 | kind u8 | flags u8 | epoch u32 | src i32 | dest i32
             | sent_at u64 | payload_len u32 | rows u32 | extensions... | payload
    DATA     = [tracking] | runs u16 | 0 u16 | (stream u16, 0 u16, count u32)... | msgpack array
    MARKER   = marker kind u8 | 0 u8 | 0 u16 | id u32
    tracking = roots u64 * n | edges u64 * n            (flag TRACKED; n = rows, root 0: untracked)
             | counts u32 * rows first with flag MULTI  (n = sum of counts, padded to 8 bytes)

Every decoder answers any bytes with a value or a `ProtocolError`, never with another error.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from storm_py.errors import ProtocolError

MAGIC: Final = 0x5073
VERSION: Final = 1

MESSAGE_HEADER: Final = struct.Struct("<HBBIQQ")
FRAME_HEADER: Final = struct.Struct("<HBBIiiQII")
_RUNS: Final = struct.Struct("<HH")
_RUN: Final = struct.Struct("<HHI")
_MARKER: Final = struct.Struct("<BBHI")
#: msgpack's array32: fixed width, so that rows packed one by one can be joined behind it.
_ARRAY32: Final = struct.Struct(">BI")

FLAG_TRACKED: Final = 0x01
FLAG_MULTI: Final = 0x02

#: What each run of rows of one stream takes.
RUN_BYTES: Final = _RUN.size
#: Bytes of a frame with one run and without tracking that are not rows.
FRAME_OVERHEAD_BYTES: Final = FRAME_HEADER.size + _RUNS.size + _RUN.size + _ARRAY32.size


class FrameKind(IntEnum):
    """What a frame on a data socket is."""

    DATA = 1
    ACK = 2
    MARKER = 3


class MarkerKind(IntEnum):
    """Why a marker travels; checkpoints will add theirs."""

    END = 1


@dataclass(slots=True)  # frozen, it takes five times as long to make, and there is one per frame
class Frame:
    """One frame found in a message: its fixed header and where it lies in the buffer."""

    kind: int
    flags: int
    epoch: int
    src: int
    dest: int
    sent_at: int
    rows: int
    start: int
    payload: int
    end: int


@dataclass(slots=True)
class Tracking:
    """The tracking columns of a DATA frame.

    `roots` and `edges` run in parallel. `counts` is None when each row has exactly one pair (root 0
    means: this row is untracked); else it says how many pairs each row has.
    """

    roots: Sequence[int]
    edges: Sequence[int]
    counts: Sequence[int] | None = None


def message_header(session: int, seq: int) -> bytes:
    """The header of message number `seq` of a session."""
    return MESSAGE_HEADER.pack(MAGIC, VERSION, 0, 0, session, seq)


def read_message_header(buf: bytes) -> tuple[int, int]:
    """Session and sequence number of a message, or ProtocolError."""
    if len(buf) < MESSAGE_HEADER.size:
        raise ProtocolError(f"message of {len(buf)} bytes is shorter than its header")
    magic, version, _, _, session, seq = MESSAGE_HEADER.unpack_from(buf)
    if magic != MAGIC:
        raise ProtocolError(f"message starts with {magic:#06x}, expected {MAGIC:#06x}")
    if version != VERSION:
        raise ProtocolError(f"wire version {version} is not ours ({VERSION})")
    return session, seq


def frames(buf: bytes, offset: int = MESSAGE_HEADER.size) -> Iterator[Frame]:
    """The frames of a message, maybe none, checked against the buffer's bounds."""
    size = len(buf)
    while offset < size:
        if size - offset < FRAME_HEADER.size:
            raise ProtocolError(f"{size - offset} bytes at {offset} are no frame header")
        header_len, kind, flags, epoch, src, dest, sent_at, payload_len, rows = (
            FRAME_HEADER.unpack_from(buf, offset)
        )
        payload = offset + header_len
        end = payload + payload_len
        if header_len < FRAME_HEADER.size or end > size:
            raise ProtocolError(
                f"frame at {offset} claims {header_len} + {payload_len} bytes of {size - offset}"
            )
        yield Frame(kind, flags, epoch, src, dest, sent_at, rows, offset, payload, end)
        offset = end


def encode_data(
    epoch: int,
    src: int,
    dest: int,
    sent_at: int,
    runs: Sequence[tuple[int, int]],
    rows: Sequence[bytes],
    tracking: Tracking | None = None,
) -> list[bytes]:
    """The parts of a DATA frame, to be joined with whatever else goes into the message.

    `runs` are (stream index, row count) in order, `rows` the rows packed by `values`, `sent_at` in
    microseconds since the Unix epoch.
    """
    count = len(rows)
    flags = 0
    columns = b""
    if tracking is not None:
        flags, columns = _encode_tracking(tracking)
    head = _RUNS.pack(len(runs), 0) + b"".join(_RUN.pack(s, 0, n) for s, n in runs)
    body = b"".join(rows)
    payload_len = len(columns) + len(head) + _ARRAY32.size + len(body)
    header = FRAME_HEADER.pack(
        FRAME_HEADER.size, FrameKind.DATA, flags, epoch, src, dest, sent_at, payload_len, count
    )
    return [header, columns, head, _ARRAY32.pack(0xDD, count), body]


def _encode_tracking(tracking: Tracking) -> tuple[int, bytes]:
    flags = FLAG_TRACKED
    counts = b""
    if tracking.counts is not None:
        flags |= FLAG_MULTI
        counts = struct.pack(f"<{len(tracking.counts)}I", *tracking.counts)
        counts += bytes(-len(counts) % 8)
    return flags, counts + u64s(tracking.roots) + u64s(tracking.edges)


def u64s(values: Sequence[int]) -> bytes:
    """A column of unsigned 64-bit integers, little-endian as the machines that this runs on."""
    return array("Q", values).tobytes()


def decode_data(
    buf: bytes, frame: Frame, offset: int | None = None
) -> tuple[list[tuple[int, int]], memoryview]:
    """The runs of an untracked or tracked DATA frame and its rows, still packed.

    `offset` is where its tracking columns end, where `read_tracking` has said so before.
    """
    if offset is None:
        _, offset = read_tracking(buf, frame)
    if frame.end - offset < _RUNS.size:
        raise ProtocolError(f"DATA frame of task {frame.src} has no runs")
    n_runs, _ = _RUNS.unpack_from(buf, offset)
    offset += _RUNS.size
    body = offset + n_runs * _RUN.size
    if body + _ARRAY32.size > frame.end:
        raise ProtocolError(f"DATA frame of task {frame.src} is too short for {n_runs} runs")
    runs = [(s, n) for s, _, n in _RUN.iter_unpack(memoryview(buf)[offset:body])]
    code, count = _ARRAY32.unpack_from(buf, body)
    if not runs or code != 0xDD or count != frame.rows or sum(n for _, n in runs) != count:
        raise ProtocolError(f"DATA frame of task {frame.src}: header, runs and rows disagree")
    return runs, memoryview(buf)[body : frame.end]


def read_tracking(buf: bytes, frame: Frame) -> tuple[Tracking | None, int]:
    """The tracking columns of a DATA frame, if any, and the offset behind them."""
    if not frame.flags & FLAG_TRACKED:
        return None, frame.payload
    offset, n = frame.payload, frame.rows
    counts: tuple[int, ...] | None = None
    if frame.flags & FLAG_MULTI:
        width = frame.rows * 4
        if offset + width > frame.end:
            raise ProtocolError(f"frame of task {frame.src}: truncated tracking counts")
        counts = struct.unpack_from(f"<{frame.rows}I", buf, offset)
        offset += width + (-width % 8)
        n = sum(counts)
    if offset + 16 * n > frame.end:
        raise ProtocolError(f"frame of task {frame.src}: truncated tracking columns")
    columns = memoryview(buf)[offset : offset + 16 * n].cast("Q").tolist()
    return Tracking(columns[:n], columns[n:], counts), offset + 16 * n


def encode_marker(
    epoch: int, src: int, dest: int, sent_at: int, kind: MarkerKind, marker_id: int
) -> bytes:
    """A MARKER frame; it counts as no row and keeps its place behind the rows sent before it."""
    return FRAME_HEADER.pack(
        FRAME_HEADER.size,
        FrameKind.MARKER,
        0,
        epoch,
        src,
        dest,
        sent_at,
        _MARKER.size,
        0,
    ) + _MARKER.pack(kind, 0, 0, marker_id)


def decode_marker(buf: bytes, frame: Frame) -> tuple[MarkerKind, int]:
    """Kind and id of a MARKER frame."""
    if frame.end - frame.payload != _MARKER.size:
        raise ProtocolError(f"MARKER frame of task {frame.src} has a wrong length")
    kind, _, _, marker_id = _MARKER.unpack_from(buf, frame.payload)
    try:
        return MarkerKind(kind), marker_id
    except ValueError:
        raise ProtocolError(f"marker kind {kind} is unknown") from None
