"""No frame is above the limit, whatever its rows and their roots weigh; no row is lost or moved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import EmitError
from storm_py.core.batching import OpenBatch
from storm_py.engine.framing import SINGLE_ROW_OVERHEAD_BYTES, data_frames
from storm_py.wire import frames
from storm_py.wire.values import PLAIN
from tests.builders import DIRECT, SHUFFLE, bolt, plan_of, spout
from tests.instance import Instance, ScriptedSpout
from tests.tracked import Producer, target, tracked

LIMIT = 600
pack = PLAIN.packer()

#: (stream, size of a text, number of roots; None where the row is untracked)
rows = st.tuples(st.integers(0, 2), st.integers(0, 400), st.none() | st.integers(1, 12))


def batch_of(content: list[tuple[int, int, int | None]]) -> OpenBatch:
    """An open batch with these rows, each with its number as first value and roots to tell."""
    batch = OpenBatch(5, 256)
    for number, (stream, size, roots) in enumerate(content):
        batch.switch(stream)
        batch.rows.append(pack([number, "x" * size]))
        if roots == 1:
            batch.track(number + 1, 9)
        elif roots is not None:
            batch.track(tuple((number + 1, edge) for edge in range(roots)), 0)
    return batch


def framed(batch: OpenBatch) -> list[tuple[int, list[tuple[int, int, int]]]]:
    """The frames of a batch: size, and per row stream, number and roots."""
    tracked = batch.take_tracking() if batch.roots else None
    runs, packed = batch.take()
    message = b"".join(data_frames(1, 4, 5, 6, runs, packed, tracked, LIMIT))
    found = []
    for frame in frames.frames(message, 0):
        decoded, body = frames.decode_data(message, frame)
        streams = [stream for stream, count in decoded for _ in range(count)]
        columns, _ = frames.read_tracking(message, frame)
        counts = [0] * frame.rows
        if columns is not None:
            pairs = iter(columns.roots)
            of_row = [[next(pairs) for _ in range(n)] for n in columns.counts or [1] * frame.rows]
            counts = [sum(map(bool, roots)) for roots in of_row]
            for roots, row in zip(of_row, PLAIN.unpack_rows(body), strict=True):
                assert {root for root in roots if root} <= {int(str(row[0])) + 1}
        arrived = zip(streams, PLAIN.unpack_rows(body), counts, strict=True)
        content = [(stream, int(str(row[0])), count) for stream, row, count in arrived]
        found.append((frame.end - frame.start, content))
    return found


@given(st.lists(rows, min_size=1, max_size=30))
def test_frames_stay_below_the_limit_and_hold_every_row_in_order(
    content: list[tuple[int, int, int | None]],
) -> None:
    found = framed(batch_of(content))
    assert [row for _, part in found for row in part] == [
        (stream, number, roots or 0) for number, (stream, _, roots) in enumerate(content)
    ]
    assert all(size <= LIMIT or len(part) == 1 for size, part in found)


def test_frames_hold_as_many_rows_as_fit() -> None:
    assert [len(part) for _, part in framed(batch_of([(0, 100, None)] * 12))] == [5, 5, 2]
    assert [len(part) for _, part in framed(batch_of([(0, 100, 7)] * 6))] == [2, 2, 2]


def test_a_batch_below_the_limit_is_one_frame() -> None:
    assert [len(part) for _, part in framed(batch_of([(0, 20, 1)] * 5))] == [5]


def test_the_overhead_of_a_frame_with_one_row() -> None:
    for roots in (None, 1):
        row = len(pack([0, "x" * 1000]))
        ((size, _),) = framed(batch_of([(0, 1000, roots)]))
        assert size <= row + SINGLE_ROW_OVERHEAD_BYTES < row + 80


@pytest.mark.parametrize("direct", [False, True])
def test_a_row_whose_roots_do_not_fit_is_refused_at_emit(direct: bool) -> None:
    kind = DIRECT.kind if direct else SHUFFLE.kind
    stream = "picked" if direct else "default"
    producer = Producer("bolt", {stream: [target("one", kind)]}, max_row_bytes=1000)
    held = [tracked({root: root}) for root in range(1, 101)]
    before = [(tup.root, tup.xor) for tup in held]

    def emit(n: int) -> None:
        if direct:
            producer.emit_direct(10, [1], held[:n], stream)
        else:
            producer.emit([1, 2], held[:n])

    with pytest.raises(EmitError) as caught:
        emit(100)
    size = 2 if direct else 3
    assert str(caught.value) == (
        f"component 'words', stream '{stream}': a tuple of {size} bytes, anchored to 100 roots of "
        "16 bytes each, is above the limit of 1000; anchor it to fewer tuples or raise "
        "storm_py.frame.max.bytes"
    )
    assert [(tup.root, tup.xor) for tup in held] == before
    assert producer.output.emissions.emitted == 0
    emit(62)
    assert len(producer.flush()[10]) == 1


def test_many_roots_fill_a_batch_as_large_rows_do() -> None:
    producer = Producer("bolt", {"default": [target("one", SHUFFLE.kind)]}, rows=100)
    held = [tracked({root: root}) for root in range(1, 101)]
    for _ in range(4):
        producer.emit([1, 2], held)
    assert len(producer.received[10]) == 4  # 3000 bytes of columns are due at the second row


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30), st.booleans())
def test_an_instance_sends_no_larger_frame(sizes: list[int], tracked: bool) -> None:
    plan = plan_of(
        spout("words", "number text"), bolt("count", "words"), frame_max_bytes=1024, batch_rows=8
    )

    def emit(spout: ScriptedSpout) -> None:
        if spout.count <= len(sizes):
            number = spout.count - 1
            text = "x" * sizes[number]
            spout.collector.emit([number, text], msg_id=number if tracked else None)

    instance = Instance(plan, 2, lambda log: ScriptedSpout(log, emit)).open()
    numbers = []
    while instance.core.spin():
        pass
    for data, message in instance.port.sent:
        for frame in frames.frames(message) if data else ():
            if frame.kind == frames.FrameKind.DATA:
                found = PLAIN.unpack_rows(frames.decode_data(message, frame)[1])
                numbers += [row[0] for row in found]
                assert frame.end - frame.start <= 1024 or len(found) == 1
                assert frame.end - frame.start <= 1024 + SINGLE_ROW_OVERHEAD_BYTES
    assert numbers == list(range(len(sizes)))
