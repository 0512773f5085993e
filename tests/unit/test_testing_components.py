"""The components and the clock that tests are given, and what copies of them share."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

import storm_py.testing
from storm_py import TopologyBuilder
from storm_py.config import defaults
from storm_py.inline import InlineRun
from storm_py.testing import (
    CapturingBolt,
    FakeClock,
    FeederSpout,
    FixedTuple,
    FixedTupleSpout,
    HoldingBolt,
    TopologyDriver,
)
from storm_py.testing.shared import _living
from tests.driven import Split
from tests.unit.test_inline import Recorder


def fed(feeder: FeederSpout, capture: CapturingBolt, tasks: int = 1) -> TopologyBuilder:
    """The feeder -> Split -> the capturing bolt."""
    builder = TopologyBuilder()
    builder.set_spout("feeder", feeder, tasks)
    builder.set_bolt("split", Split()).shuffle_grouping("feeder")
    builder.set_bolt("capture", capture, tasks).shuffle_grouping("split")
    return builder


class TestFeederAndCapture:
    @pytest.mark.parametrize("tasks", [1, 3])
    def test_the_objects_of_the_test_see_what_the_copies_do(self, tasks: int) -> None:
        feeder, capture = FeederSpout("sentence"), CapturingBolt()
        with TopologyDriver(fed(feeder, capture, tasks)) as driver:
            feeder.feed(["a b"], 1)
            feeder.feed(["fail"], 2)
            feeder.feed(["c"])
            driver.run()
            assert sorted(capture.values) == [["a"], ["b"], ["c"]]
            assert {tup.source_component for tup in capture.tuples} == {"split"}
            assert (feeder.acked, feeder.failed) == ([1], [2])
            assert driver.component("feeder") is not feeder
            capture.clear()
            assert (capture.values, capture.tuples) == ([], [])

    def test_the_end_of_the_input(self) -> None:
        feeder, capture = FeederSpout("sentence"), CapturingBolt()
        with TopologyDriver(fed(feeder, capture)) as driver:
            feeder.feed(["a"], 1)
            feeder.end()
            driver.run()
            assert driver.ended
            assert feeder.acked == [1]

    def test_in_an_inline_run(self) -> None:
        feeder, capture = FeederSpout("sentence"), CapturingBolt()
        feeder.feed(["a b"], 1)
        feeder.end()
        topology = fed(feeder, capture).create_topology()
        InlineRun("x-1-1", topology, defaults(), Recorder()).run()
        assert (capture.values, feeder.acked) == ([["a"], ["b"]], [1])

    def test_streams(self) -> None:
        feeder = FeederSpout(streams={"one": "x", "two": ["x", "y"]})
        builder = TopologyBuilder()
        builder.set_spout("feeder", feeder)
        builder.set_bolt("c", CapturingBolt()).shuffle_grouping("feeder", "two")
        with TopologyDriver(builder) as driver:
            feeder.feed([1], stream="one")
            feeder.feed([2, 3], stream="two")
            driver.run()
            assert driver.outputs("feeder", "one") == [[1]]
            assert driver.received("c") == [[2, 3]]

    def test_a_restarted_feeder_goes_on(self) -> None:
        feeder, capture = FeederSpout("sentence"), CapturingBolt()
        with TopologyDriver(fed(feeder, capture)) as driver:
            feeder.feed(["a"])
            driver.kill("feeder")
            driver.kill("capture")
            driver.run()
            assert capture.values == [["a"]]


class TestFixedTuples:
    @pytest.mark.parametrize("tasks", [1, 2, 5])
    def test_each_once_whatever_the_tasks_and_then_the_end(self, tasks: int) -> None:
        builder = TopologyBuilder()
        builder.set_spout("numbers", FixedTupleSpout([[i] for i in range(4)], "number"), tasks)
        builder.set_bolt("c", CapturingBolt()).shuffle_grouping("numbers")
        with TopologyDriver(builder) as driver:
            driver.run()
            assert sorted(driver.outputs("numbers")) == [[0], [1], [2], [3]]
            assert sorted(driver.acked(), key=repr) == [0, 1, 2, 3]
            assert driver.ended
            assert driver.component("numbers").completed

    def test_what_fails_is_emitted_again(self) -> None:
        tuples: list[list[str] | FixedTuple] = [["a"], FixedTuple(["b"], "side")]
        with TopologyDriver.for_spout(FixedTupleSpout(tuples, "x", {"side": "x"})) as driver:
            driver.run()
            driver.fail("spout", 1)
            driver.ack("spout", 0)
            driver.run()
            assert driver.outputs("spout", "side") == [["b"], ["b"]]
            assert (driver.component("spout").completed, driver.ended) == (False, False)
            driver.ack("spout", 1)
            driver.run()
            assert driver.component("spout").completed

    def test_what_fails_too_often_is_not(self) -> None:
        with TopologyDriver.for_spout(FixedTupleSpout([["a"]], "x", max_fails=2)) as driver:
            for _ in range(2):
                driver.run()
                driver.fail("spout", 0)
            driver.run()
            assert driver.outputs("spout") == [["a"], ["a"]]
            assert driver.component("spout").fails == {0: 2}
            assert not driver.component("spout").completed


def test_a_holding_bolt_leaves_everything_pending() -> None:
    with TopologyDriver.for_bolt(HoldingBolt(), "x") as driver:
        driver.feed("input", [1], "id")
        assert (driver.pending(), driver.received("bolt")) == (["id"], [[1]])


class TestSharing:
    def test_copies_hold_the_same_object_in_one_process(self) -> None:
        clock = FakeClock()
        assert copy.deepcopy(clock) is clock
        assert pickle.loads(pickle.dumps(clock)) is clock
        assert cloudpickle.loads(cloudpickle.dumps([clock]))[0] is clock

    def test_nothing_is_kept_alive(self) -> None:
        before = len(_living)
        FakeClock()
        gc.collect()
        assert len(_living) <= before

    @pytest.mark.parametrize(
        ("shared", "use"),
        [
            (FakeClock(), lambda it: it()),
            (FakeClock(), lambda it: it.now),
            (FakeClock(), lambda it: setattr(it, "now", 3)),
            (FeederSpout("x"), lambda it: it.open({}, None, None)),
            (CapturingBolt(), lambda it: it.prepare({}, None, None)),
        ],
    )
    def test_in_another_process_they_say_so(
        self, monkeypatch: pytest.MonkeyPatch, shared: object, use: Callable[[Any], object]
    ) -> None:
        monkeypatch.setattr(os, "getpid", lambda: -1)
        elsewhere = pickle.loads(pickle.dumps(shared))
        for it in (elsewhere, pickle.loads(pickle.dumps(elsewhere))):
            name = type(shared).__name__
            with pytest.raises(RuntimeError, match=f"this {name} belongs to the process of the t"):
                use(it)

    @pytest.mark.parametrize("secs", [-1, float("nan"), float("inf")])
    def test_a_clock_only_goes_on(self, secs: float) -> None:
        clock = FakeClock(5)
        with pytest.raises(ValueError, match=f"cannot advance by {secs} seconds"):
            clock.advance(secs)
        clock.advance(0.5)
        assert clock() == clock.now == 5.5


@pytest.mark.parametrize("name", sorted(storm_py.testing.__all__))
def test_public_name_resolves(name: str) -> None:
    assert getattr(storm_py.testing, name) is not None
