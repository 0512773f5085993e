"""ACK frames: packed columns of what happened to tuple trees.

*Records* go from instances to the stream manager that tracks a tree (the frame's destination is a
spout task it hosts); *results* come back to the spout's instance. Both are a small header and
columns of u64; any bytes give a value or a `ProtocolError`. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from storm_py.errors import ProtocolError

from .frames import FRAME_HEADER, Frame, FrameKind, u64s

_HEADER: Final = struct.Struct("<BBHIIII")
_RECORDS: Final = 1
_RESULTS: Final = 2


@dataclass(frozen=True, slots=True)
class AckRecords:
    """What one instance has to say to one tracker."""

    init_roots: Sequence[int] = ()
    init_values: Sequence[int] = ()
    ack_roots: Sequence[int] = ()
    ack_values: Sequence[int] = ()
    fail_roots: Sequence[int] = ()
    reset_roots: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class AckResults:
    """What a tracker has to say to one spout task."""

    complete: Sequence[int] = ()
    failed: Sequence[int] = ()
    renewed: Sequence[int] = ()


def encode_acks(
    epoch: int, src: int, dest: int, sent_at: int, acks: AckRecords | AckResults
) -> bytes:
    """An ACK frame; it counts as no row."""
    columns: tuple[Sequence[int], ...]
    if isinstance(acks, AckRecords):
        kind = _RECORDS
        counts = (
            len(acks.init_roots),
            len(acks.ack_roots),
            len(acks.fail_roots),
            len(acks.reset_roots),
        )
        columns = (
            acks.init_roots,
            acks.init_values,
            acks.ack_roots,
            acks.ack_values,
            acks.fail_roots,
            acks.reset_roots,
        )
    else:
        kind = _RESULTS
        counts = (len(acks.complete), len(acks.failed), len(acks.renewed), 0)
        columns = (acks.complete, acks.failed, acks.renewed)
    payload = b"".join([_HEADER.pack(kind, 0, 0, *counts), *map(u64s, columns)])
    header = FRAME_HEADER.pack(
        FRAME_HEADER.size, FrameKind.ACK, 0, epoch, src, dest, sent_at, len(payload), 0
    )
    return header + payload


def decode_records(buf: bytes, frame: Frame) -> AckRecords:
    """What an ACK frame tells the tracker of a task, or ProtocolError."""
    records = decode_acks(buf, frame)
    if not isinstance(records, AckRecords):
        raise ProtocolError(f"ACK frame for task {frame.dest} holds results, expected records")
    return records


def decode_results(buf: bytes, frame: Frame) -> AckResults:
    """What an ACK frame tells a spout task, or ProtocolError."""
    results = decode_acks(buf, frame)
    if not isinstance(results, AckResults):
        raise ProtocolError(f"ACK frame for task {frame.dest} holds records, expected results")
    return results


def decode_acks(buf: bytes, frame: Frame) -> AckRecords | AckResults:
    """The columns of an ACK frame."""
    size = frame.end - frame.payload
    if size < _HEADER.size:
        raise ProtocolError(f"ACK frame of task {frame.src} has no header")
    kind, _, _, first, second, third, fourth = _HEADER.unpack_from(buf, frame.payload)
    if kind == _RECORDS:
        widths = [first, first, second, second, third, fourth]
    elif kind == _RESULTS:
        widths = [first, second, third]
    else:
        raise ProtocolError(f"ACK frame of task {frame.src} is of unknown kind {kind}")
    if _HEADER.size + 8 * sum(widths) != size:
        raise ProtocolError(f"ACK frame of task {frame.src}: header and columns disagree")
    flat = memoryview(buf)[frame.payload + _HEADER.size : frame.end].cast("Q").tolist()
    columns: list[list[int]] = []
    start = 0
    for width in widths:
        columns.append(flat[start : start + width])
        start += width
    return AckRecords(*columns) if kind == _RECORDS else AckResults(*columns)
