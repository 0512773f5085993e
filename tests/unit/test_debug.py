"""`topology.debug`: one line for each tuple emitted, and nothing of it where it is off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import EmitError, GroupingKind
from storm_py.core.routing import Target
from storm_py.engine.debug import shortened
from storm_py.engine.emit_source import EmitShape, Tracking, emit_lines
from tests.builders import (
    ALL,
    DIRECT,
    SHUFFLE,
    bolt,
    by,
    plan_of,
    spout,
)
from tests.instance import Instance, ScriptedBolt, ScriptedSpout
from tests.producer import STYLES, Producer
from tests.strategies import row_values
from tests.tracked import CONSUMERS, tracked
from tests.tracked import Producer as TrackedProducer

KINDS = [kind for kind in GroupingKind if kind is not GroupingKind.DIRECT]

PLAN = plan_of(
    spout("source", "word n; picked!: value; unheard: value"),
    bolt("all", {"source": ALL}, tasks=2),
    bolt("direct", {"source:picked": DIRECT}),
)


@pytest.mark.parametrize("style", STYLES)
def test_each_emit_says_who_emitted_what_to_whom(style: str) -> None:
    lines: list[str] = []
    producer = Producer(PLAN, style, log=lines.append)
    assert producer.on("default", ["storm", 1]) == (1, 2)
    assert producer.on("unheard", (None,)) == ()
    producer.direct(3, "picked", ["x"])
    producer.direct(1, "picked", ("y",))
    start = "source task 4 emits on stream"
    assert lines == [
        f"{start} 'default' to 1, 2: ['storm', 1]",
        f"{start} 'unheard' to nobody: [None]",
        f"{start} 'picked' to 3: ['x']",
        f"{start} 'picked' to nobody: ['y']",
    ]


@pytest.mark.parametrize("style", STYLES)
def test_what_is_refused_is_not_logged(style: str) -> None:
    lines: list[str] = []
    producer = Producer(PLAN, style, log=lines.append, nbytes=64, max_row_bytes=100)
    for row in (["storm"], [object(), 1], ["x" * 200, 1]):
        with pytest.raises(EmitError):
            producer.on("default", row)
    with pytest.raises(EmitError):
        producer.direct(3, "picked", [])
    assert lines == []


def test_tracked_emits_are_logged_once_however_they_are_anchored() -> None:
    lines: list[str] = []
    targets = {"default": [Target("three", ALL.kind, CONSUMERS["three"])]}
    producer = TrackedProducer("bolt", targets, log=lines.append)
    one, other = tracked({7: 1}), tracked({8: 2})
    for anchors in (None, one, [one], [one, other]):
        producer.emit([1, 2], anchors)
    assert lines == ["words task 4 emits on stream 'default' to 13, 14, 15: [1, 2]"] * 4


def test_it_is_a_matter_of_each_component() -> None:
    for here in (None, True, False):
        for everywhere in (True, False):
            plan = plan_of(
                spout("words", "word"), bolt("count", "words"), topology_debug=everywhere
            )
            if here is not None:
                config = plan.topology.components["words"].config
                config["topology.debug"] = here  # type: ignore[index]
            made = Instance(plan, 2, lambda recorder: ScriptedSpout(recorder)).open()
            made.only.collector.emit(["a"])
            expected = everywhere if here is None else here
            assert len(made.port.logged) == expected


def test_a_bolt_is_logged_by_its_instance() -> None:
    plan = plan_of(
        spout("words", "word"),
        bolt("copy", "words", "word"),
        bolt("count", {"copy": by("word")}),
        topology_debug=True,
    )
    made = Instance(plan, 1, lambda recorder: ScriptedBolt(recorder)).open()
    made.only.collector.emit(["a"])
    assert made.port.logged == ["copy task 1 emits on stream 'default' to 2: ['a']"]


@given(
    st.sampled_from(STYLES),
    st.sampled_from(Tracking),
    st.lists(st.sampled_from(KINDS), max_size=3),
    st.data(),
)
def test_off_leaves_nothing_of_it_and_on_adds_nothing_else(
    style: str, tracking: Tracking, found: list[GroupingKind], data: st.DataObject
) -> None:
    targets = [Target("bolt", kind, (1, 2), (0,)) for kind in found]
    mixed = data.draw(st.sampled_from([None, 1]))
    off = emit_lines(EmitShape(style, 2, targets, 100, 4096, 10, mixed, tracking))
    on = emit_lines(EmitShape(style, 2, targets, 100, 4096, 10, mixed, tracking, debug=True))
    assert "log" not in "\n".join(off)
    assert on[:-3] == off[:-1]
    assert off[-1].startswith("    return ")
    answer = off[-1].removeprefix("    return ")
    assert on[-3:] == [
        f"    answer = {answer}",
        "    log_emit(values, answer)",
        "    return answer",
    ]


def test_the_text_of_groupings_is_exactly_this() -> None:
    """The hot path, written down: a change here is a change of every emit."""
    plan = plan_of(
        spout("source", "word n"),
        bolt("count", {"source": by("word")}, tasks=2),
        bolt("show", {"source": SHUFFLE}, tasks=2),
    )
    targets = plan.targets("source")["default"]
    assert emit_lines(EmitShape("basic", 2, targets, 100, 4096, 10, None, Tracking.OFF)) == [
        "def emit(values, stream=HOME):",
        "    if stream is not HOME and stream != HOME:",
        "        return other(values, None, stream)",
        "    if values.__class__ is not list:",
        "        values = as_row(values)",
        "    if len(values) != 2:",
        "        raise wrong_width(values)",
        "    try:",
        "        row = pack(values)",
        "    except Exception as error:",
        "        row = repack(values, error)",
        "    try:",
        "        batch0 = cache0[values[0]]",
        "    except Exception:",
        "        batch0 = miss0(values)",
        "    batch1 = next1()",
        *(
            line
            for i in range(2)
            for line in [
                f"    rows = batch{i}.rows",
                "    rows.append(row)",
                "    if len(row) > 100:",
                f"        grow(batch{i}, row)",
                f"    if len(rows) >= batch{i}.cap:",
                f"        flush(batch{i})",
            ]
        ),
        "    emissions.emitted += 1",
        "    return batch0.answer + batch1.answer",
    ]


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("not for you")


@given(st.lists(row_values, max_size=40))
def test_values_of_any_kind_are_shown_in_bounds(values: list[object]) -> None:
    assert len(shortened(values)) <= 500


def test_long_values_are_cut() -> None:
    assert shortened(["x" * 10_000, 1]) == f"['{'x' * 47}...{'x' * 48}', 1]"
    assert shortened([[0] * 10_000]) == f"[[{'0, ' * 20}...]]"
    assert len(shortened(["x" * 10_000] * 50)) == 500
    assert shortened([10**5000]).startswith("1 value(s) that cannot be shown (ValueError: Exceeds")
    assert "Rude instance at" in shortened([Rude(), 1])
    assert shortened(()) == "[]"


def test_a_list_that_holds_itself_is_shown() -> None:
    deep: list[object] = []
    deep.append(deep)
    assert len(shortened(deep)) < 100
