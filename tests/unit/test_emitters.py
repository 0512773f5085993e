"""Generated emits: they do what the Router says, whoever calls them however."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py import EmitError, Values
from storm_py.core.plan import PhysicalPlan
from storm_py.core.routing import Router
from storm_py.engine import keyed
from tests.builders import (
    ALL,
    CUSTOM,
    DIRECT,
    GLOBAL,
    LOCAL,
    NONE,
    SHUFFLE,
    bolt,
    by,
    by_two,
    key_groups,
    plan_of,
    scatters,
    spout,
)
from tests.producer import STYLES, Producer, Received, words

# ---- the law -----------------------------------------------------------------------------------

OLD = [SHUFFLE, ALL, GLOBAL, by("a"), by("b", "a")]
groupings = st.sampled_from([*OLD, NONE, LOCAL, CUSTOM, by_two("a"), by_two("b", "a")])
SHAPES: list[Callable[[list[object]], Sequence[object]]] = [list, tuple, lambda row: Values(*row)]
keys = st.one_of(
    st.integers(0, 3),
    st.sampled_from([1.0, True, "1", "", None, (1, 2), [1, 2], [1.0, 2], {"k": [1]}, 2**70]),
    st.lists(st.integers(0, 1), max_size=2),
)


@st.composite
def topologies(draw: st.DrawFn) -> PhysicalPlan:
    streams = draw(st.sampled_from(["a b", "a b; s: b a; t: a b", "s: a b; t: b a"]))
    names = [name for name in ("default", "s", "t") if name == "default" or f"{name}:" in streams]
    if streams.startswith("s:"):
        names.remove("default")
    consumers = []
    for number in range(draw(st.integers(0, 3))):
        heard = draw(st.lists(st.sampled_from([*names, "d"]), min_size=1, unique=True))
        inputs = {f"source:{n}": DIRECT if n == "d" else draw(groupings) for n in heard}
        consumers.append(bolt(f"b{number}", inputs, tasks=draw(st.integers(1, 4))))
    return plan_of(
        spout("source", f"{streams}; d!: a b", tasks=draw(st.integers(1, 3))),
        *consumers,
        workers=draw(st.integers(1, 3)),
    )


@settings(max_examples=150)
@given(
    topologies(),
    st.sampled_from(STYLES),
    st.lists(st.tuples(st.integers(0, 3), keys, keys), max_size=40),
    st.integers(1, 5),
    st.sampled_from([1, 2, 100_000]),
)
def test_it_emits_what_the_router_says(
    plan: PhysicalPlan,
    style: str,
    emits: list[tuple[int, object, object]],
    rows: int,
    cache_keys: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed, "CACHE_KEYS", cache_keys)
        producer = Producer(plan, style, rows=rows, nbytes=64)
        executor = plan.executor_of(producer.task)
        targets = plan.targets("source", executor, scatters(plan, "source"))
        router = Router(targets, key_groups(plan), task=producer.task)
        expected: Received = {}
        names = list(producer.streams)
        picked = plan.downstream_tasks("source")
        for i, (which, *row) in enumerate(emits):
            stream = names[which % len(names)]
            values = SHAPES[i % 3](list(row))
            if stream != "d":
                answer = producer.on(stream, values)
                assert answer == router.route(stream, row)
            else:
                dest = picked[i % len(picked)] if picked else 1
                producer.direct(dest, stream, values)
                heard = any(dest in target.tasks for target in targets["d"])
                answer = (dest,) if heard else ()
            if isinstance(values, list):
                values.clear()  # the user's list is the user's again
            for dest in answer:
                expected.setdefault(dest, []).append((stream, row))
            producer.batcher.check()
            assert all(len(batch.rows) < rows for batch in producer.batcher.open())
        assert producer.received() == expected
        assert producer.output.emissions.emitted == len(emits)
        assert all(sum(len(run) for _, run in frame.runs) <= rows for frame in producer.frames)


def test_a_warm_cache_answers_as_a_cold_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "CACHE_KEYS", 3)
    plan = plan_of(spout("source", "key"), bolt("count", {"source": by("key")}, tasks=100))
    warm = Producer(plan)
    some: list[object] = [1, "a", 1.0, True, (1,), [1], (1.0,), "b", "c", 1, None, b"a", (True,)]
    for key in some * 2:
        assert warm.emit([key]) == Producer(plan).emit([key])
    assert warm.emit([1]) == warm.emit([True]) == warm.emit([1.0])
    cache = warm.emit.__globals__["cache0"]
    assert 0 < len(cache) <= 3


def test_keys_of_several_fields_are_not_confused_in_the_cache() -> None:
    plan = plan_of(spout("source", "a b"), bolt("count", {"source": by("a", "b")}, tasks=100))
    warm = Producer(plan)
    rows: list[list[object]] = [[("x", "y"), 1], ["x", "y"], [("x", "y"), 2], [("x", "y"), 1]]
    for row in rows:
        assert warm.emit(row) == Producer(plan).emit(row)
    assert len(warm.emit.__globals__["cache0"]) == 3


# ---- how it is called --------------------------------------------------------------------------


def test_a_spout_names_message_ids_and_streams() -> None:
    producer = words("spout")
    (first,) = producer.emit(["storm", 1], 17)
    assert producer.emit(["storm", 2], msg_id="id") == (first,)
    assert producer.emit(["x"], "y", "side") == (2,)
    assert producer.emit(["z"], stream="side", msg_id=0) == (1,)
    producer.emit_direct(3, ["p"], 5, "picked")
    producer.emit_direct(3, ["q"], stream="picked", msg_id=6)
    producer.emit_direct(task_id=4, values=["r"], stream="picked")
    assert producer.output.acked == [17, "id", "y", 0, 5, 6]
    assert producer.received()[3] == [("picked", ["p"]), ("picked", ["q"])]


def test_a_bolt_names_anchors_and_streams() -> None:
    producer = words("bolt")
    producer.emit(["storm", 1], [])
    producer.emit(["storm", 2], anchors=None)
    producer.emit(["x"], stream="side", anchors=[])
    producer.emit_direct(3, ["p"], [], "picked")
    producer.emit_direct(3, ["q"], anchors=None, stream="picked")
    assert producer.output.acked == []
    assert producer.received()[3] == [("picked", ["p"]), ("picked", ["q"])]
    assert producer.output.emissions.emitted == 5


def test_a_basic_bolt_names_only_streams() -> None:
    producer = words("basic")
    producer.emit(["storm", 1])
    producer.emit(["x"], "side")
    producer.emit(["y"], stream="side")
    producer.emit_direct(3, ["p"], "picked")
    producer.emit_direct(3, ["q"], stream="picked")
    assert producer.received()[3] == [("picked", ["p"]), ("picked", ["q"])]
    with pytest.raises(TypeError, match="anchors"):
        producer.emit(["z"], anchors=[])


@pytest.mark.parametrize("style", STYLES)
def test_without_a_default_stream(style: str) -> None:
    plan = plan_of(
        spout("source", "side: value; picked!: value"),
        bolt("sink", {"source:side": SHUFFLE, "source:picked": DIRECT}),
    )
    producer = Producer(plan, style)
    assert producer.emit([1], stream="side") == (1,)
    assert producer.on("side", (2,)) == (1,)
    if style != "basic":
        second = {"spout": "msg_id", "bolt": "anchors"}[style]
        assert producer.emit([3], **{second: None, "stream": "side"}) == (1,)
    producer.direct(1, "picked", [4])
    with pytest.raises(EmitError, match=r"emits on stream 'default', which it has not declared"):
        producer.emit([5])
    expected = [1, 2, 4] if style == "basic" else [1, 2, 3, 4]
    assert [row[0] for _, row in producer.received()[1]] == expected


def test_what_nobody_hears_is_counted_only() -> None:
    producer = words("spout")
    assert producer.emit([object()], 7, "unheard") == ()
    assert (producer.output.emissions.emitted, producer.output.acked) == (1, [7])
    assert producer.received() == {}


def test_direct_to_a_task_that_does_not_subscribe_goes_nowhere() -> None:
    producer = words("spout")
    for task in (1, 5, 99, -1):
        producer.emit_direct(task, ["p"], stream="picked")
    assert producer.received() == {}
    assert producer.output.emissions.emitted == 4


def test_rows_are_packed_once_for_all_tasks() -> None:
    producer = Producer(plan_of(spout("source", "v"), bolt("all", {"source": ALL}, tasks=3)))
    assert producer.emit(["x"]) == (1, 2, 3)
    first, *others = (batch.rows[0] for batch in producer.batcher.open())
    assert all(row is first for row in others)


# ---- bounds ------------------------------------------------------------------------------------


def test_frames_are_bounded_by_rows() -> None:
    producer = words(rows=3)
    for n in range(7):
        producer.emit(["storm", n])
    assert [len(frame.runs[0][1]) for frame in producer.frames] == [3, 3]


def test_a_lowered_cap_is_heeded_from_the_next_row_on() -> None:
    producer = words(rows=8)
    (dest,) = producer.emit(["storm", 0])
    producer.emit(["storm", 1])
    producer.batcher.limit(dest, 2)
    for n in range(2, 6):
        producer.emit(["storm", n])
    assert [len(frame.runs[0][1]) for frame in producer.frames] == [3, 2]


@given(st.lists(st.integers(0, 600), max_size=30))
def test_frames_are_bounded_by_bytes(sizes: list[int]) -> None:
    producer = words(rows=8, nbytes=400)
    for size in sizes:
        producer.emit(["w", "x" * size])
        producer.batcher.check()
    rest = sum(len(row) for batch in producer.batcher.open() for row in batch.rows)
    assert rest < 400 + 8 * producer.batcher.small
    largest = 5 + max(sizes, default=0)
    assert all(size <= 24 + 100 + 800 + largest for size in producer.sizes)
