"""What users get wrong in their tests, and what they are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from storm_py import ConfigError, EmitError, InvalidTopologyException, TopologyBuilder
from storm_py.testing import FixedTuple, TopologyDriver, complete_topology
from tests.driven import Sentences, Split, word_count

Act = Callable[[TopologyDriver], object]


def after(first: Callable[[], object], then: Callable[[], object]) -> None:
    """Do one thing after another."""
    first()
    then()


DRIVING: list[tuple[str, Act, type[Exception], str]] = [
    (
        "feed an unknown component",
        lambda d: d.feed("sentence", ["a"]),
        InvalidTopologyException,
        "no component 'sentence' in this topology; it has: sentences, split, count; "
        "did you mean 'sentences'?",
    ),
    (
        "feed a bolt",
        lambda d: d.feed("count", ["a"]),
        ValueError,
        "'count' is a bolt and receives what others emit; feed a spout (sentences), or test the "
        "bolt alone with TopologyDriver.for_bolt",
    ),
    (
        "feed too many values",
        lambda d: d.feed("sentences", ["a", "b"]),
        EmitError,
        "component 'sentences', stream 'default': emit got 2 value(s), expected 1: sentence",
    ),
    (
        "feed no list",
        lambda d: d.feed("sentences", "a b"),
        EmitError,
        "component 'sentences', stream 'default': emit got a str, expected a list of 1 value(s)",
    ),
    (
        "feed what cannot be serialised",
        lambda d: d.feed("sentences", [object()]),
        EmitError,
        "component 'sentences', stream 'default': field 'sentence': value[0]",
    ),
    (
        "feed an undeclared stream",
        lambda d: d.feed("sentences", ["a"], stream="side"),
        EmitError,
        "component 'sentences' emits on stream 'side', which it has not declared",
    ),
    (
        "feed a task that is not there",
        lambda d: d.feed("sentences", ["a"], task_index=1),
        ValueError,
        "spout 'sentences' has 1 task(s), so a task_index is from 0 to 0; got 1",
    ),
    (
        "feed after the end of the input",
        lambda d: after(d.end_of_input, lambda: d.feed("sentences", ["a"])),
        ValueError,
        "spout 'sentences' has ended its input; it cannot be fed any more",
    ),
    (
        "feed a closed driver",
        lambda d: after(d.close, lambda: d.feed("sentences", ["a"])),
        RuntimeError,
        "feed after the driver was closed; make a new TopologyDriver",
    ),
    (
        "advance a closed driver",
        lambda d: after(d.close, lambda: d.advance(1)),
        RuntimeError,
        "advance after the driver was closed; make a new TopologyDriver",
    ),
    (
        "answer a closed driver",
        lambda d: after(d.close, lambda: d.ack("sentences", 1)),
        RuntimeError,
        "ack after the driver was closed; make a new TopologyDriver",
    ),
    (
        "wait for ever",
        lambda d: d.advance(float("inf")),
        ValueError,
        "cannot advance by inf seconds; expected a number of at least 0",
    ),
    (
        "go back in time",
        lambda d: d.advance(-1),
        ValueError,
        "cannot advance by -1 seconds; expected a number of at least 0",
    ),
    (
        "run a negative number of calls",
        lambda d: d.run(calls=-1),
        ValueError,
        "calls is -1; expected a number of at least 0, or None",
    ),
    (
        "outputs of an unknown stream",
        lambda d: d.outputs("count", "total"),
        ValueError,
        "bolt 'count' does not declare stream 'total'; it declares: default, totals; "
        "did you mean 'totals'?",
    ),
    (
        "received by a spout",
        lambda d: d.received("sentences"),
        ValueError,
        "'sentences' is a spout, and only bolts receive tuples; name a bolt",
    ),
    (
        "acked by a bolt",
        lambda d: d.acked("count"),
        ValueError,
        "'count' is a bolt, and only spouts have message ids; name a spout",
    ),
    (
        "an unknown task",
        lambda d: d.component("count", 3),
        ValueError,
        "bolt 'count' has 3 task(s), so a task_index is from 0 to 2; got 3",
    ),
    (
        "kill an unknown component",
        lambda d: d.kill("nobody"),
        InvalidTopologyException,
        "no component 'nobody' in this topology",
    ),
    (
        "fail what is not pending",
        lambda d: d.fail("sentences", 7),
        ValueError,
        "message id 7 of spout 'sentences' is not pending; pending: none",
    ),
]


@pytest.mark.parametrize(
    ("act", "error", "text"), [row[1:] for row in DRIVING], ids=[row[0] for row in DRIVING]
)
def test_driving(act: Act, error: type[Exception], text: str) -> None:
    driver = TopologyDriver(word_count(), mock_sources="sentences")
    with pytest.raises(error) as raised:
        act(driver)
    assert text in str(raised.value)
    driver.close()


def test_a_refused_feed_leaves_the_topology_as_it_was() -> None:
    with TopologyDriver(word_count(), mock_sources="sentences") as driver:
        spout = driver.component("sentences")
        with pytest.raises(EmitError):
            driver.feed("sentences", [1, 2])
        driver.feed("sentences", ["a"], 1)
        assert (driver.acked(), driver.component("sentences") is spout) == ([1], True)


MOCKING: list[tuple[str, Any, str]] = [
    ("a bolt", {"count": [["a"]]}, "mock source 'count' is a bolt; only spouts can be replaced"),
    ("a bolt by id", ["count"], "mock source 'count' is a bolt; only spouts can be replaced"),
    ("nobody", {"sentence": []}, "no component 'sentence' in this topology"),
    (
        "a width",
        {"sentences": [["a"], ["b", "c"]]},
        "mock source 'sentences', tuple 1 has 2 value(s), expected 1: sentence",
    ),
    (
        "bare values",
        {"sentences": ["a b"]},
        "mock source 'sentences', tuple 0: 'a b' is a str; expected a list of values",
    ),
    (
        "a str",
        {"sentences": "a b"},
        "mock source 'sentences' is a str; expected a list of tuples, each a list of values",
    ),
    (
        "a stream",
        {"sentences": [FixedTuple(["a"], "side")]},
        "mock source 'sentences', tuple 0 is for stream 'side', which the spout does not declare; "
        "it declares: default",
    ),
]


@pytest.mark.parametrize(
    ("mock_sources", "text"), [row[1:] for row in MOCKING], ids=[row[0] for row in MOCKING]
)
@pytest.mark.parametrize("make", [TopologyDriver, complete_topology])
def test_mocking(make: Callable[..., object], mock_sources: Any, text: str) -> None:
    with pytest.raises(InvalidTopologyException) as raised:
        make(word_count(), mock_sources=mock_sources)
    assert text in str(raised.value)


@pytest.mark.parametrize("make", [TopologyDriver, complete_topology])
def test_what_is_no_topology(make: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match="got a function as topology; expected a TopologyBuilder"):
        make(word_count)


@pytest.mark.parametrize("make", [TopologyDriver, complete_topology])
def test_a_pair_that_was_not_unpacked(make: Callable[..., object]) -> None:
    with pytest.raises(TypeError) as raised:
        make((word_count(), {}))
    assert str(raised.value) == (
        "got a tuple as topology; expected a TopologyBuilder or StormTopology; unpack the pair: "
        "builder, conf = topology([])"
    )


def test_a_topology_that_cannot_run() -> None:
    with pytest.raises(InvalidTopologyException, match="the topology is empty"):
        TopologyDriver(TopologyBuilder())


@pytest.mark.parametrize(
    "conf", [{"topology.message.timeout.secs": 0}, {"topology.message.timeout.sec": 5}]
)
def test_a_bad_configuration(conf: Mapping[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"topology\.message\.timeout"):
        TopologyDriver.for_bolt(Split(), "sentence", conf)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: TopologyDriver.for_spout(Split()),  # type: ignore[arg-type]
            "for_spout got a Split, which is a bolt; use for_bolt",
        ),
        (
            lambda: TopologyDriver.for_bolt(Sentences(), "x"),  # type: ignore[arg-type]
            "for_bolt got a Sentences, which is a spout; use for_spout",
        ),
        (
            lambda: TopologyDriver.for_bolt(Split, "x"),  # type: ignore[arg-type]
            "for_bolt got the class Split; pass an instance: Split()",
        ),
        (
            lambda: TopologyDriver.for_spout(3),  # type: ignore[arg-type]
            "for_spout got an int; expected an instance of a class derived from BaseRichSpout",
        ),
    ],
)
def test_what_is_no_such_component(make: Callable[[], object], text: str) -> None:
    with pytest.raises(InvalidTopologyException) as raised:
        make()
    assert str(raised.value) == text
