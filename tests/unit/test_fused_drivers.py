"""What tests see: every value is packed in a `TopologyDriver`, whatever a run would fuse."""

from __future__ import annotations

from typing import Any

import pytest

from storm_py import BaseBasicBolt, BasicOutputCollector, EmitError, TopologyBuilder, Tuple
from storm_py.config import defaults
from storm_py.inline import InlineRun
from storm_py.run import RunResult
from storm_py.testing import TopologyDriver, complete_topology, read_tuples
from tests.driven import Count, Sentences, Split
from tests.integration.harness import Recorder

FUSED = {"storm_py.fuse": True}
SERIALIZED = {**FUSED, "topology.testing.always.try.serialize": True}


class Wrap(BaseBasicBolt):
    """Emits what no other process could be sent."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("thing")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit([object()])


class Take(BaseBasicBolt):
    """Takes anything."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass


def words(*sentences: str) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences(*sentences))
    builder.set_bolt("split", Split()).local_or_shuffle_grouping("sentences")
    builder.set_bolt("count", Count()).local_or_shuffle_grouping("split")
    return builder


def wrapped() -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences("a"))
    builder.set_bolt("wrap", Wrap()).shuffle_grouping("sentences")
    builder.set_bolt("take", Take()).local_or_shuffle_grouping("wrap")
    return builder


def test_a_driver_fuses_only_if_it_is_told_to() -> None:
    with TopologyDriver(words()) as apart, TopologyDriver(words(), FUSED) as fused:
        assert [len(driver.plan.instances) for driver in (apart, fused)] == [3, 1]


@pytest.mark.parametrize("conf", [{}, SERIALIZED])
def test_so_a_test_finds_values_that_could_not_travel(conf: dict[str, object]) -> None:
    with pytest.raises(EmitError, match=r"component 'wrap', stream 'default': field 'thing'"):
        complete_topology(wrapped(), conf=conf)


def test_fused_they_pass() -> None:
    outcome = complete_topology(wrapped(), conf=FUSED)
    ((thing,),) = read_tuples(outcome, "wrap")
    assert type(thing) is object


def test_a_driver_does_the_same_fused() -> None:
    found = []
    for conf in ({}, FUSED):
        with TopologyDriver(words("to be", "fail or", "not to be"), conf) as driver:
            driver.run()
            assert driver.ended
            assert driver.unended == []
            found.append(
                [
                    *(driver.outputs(id) for id in ("sentences", "split", "count")),
                    *(driver.received(id) for id in ("split", "count")),
                    *(driver.acked(), driver.failed(), driver.figures()),
                ]
            )
    assert found[0] == found[1]


def test_an_inline_run_is_fused_as_any_other() -> None:
    def run(**conf: object) -> RunResult:
        return InlineRun(
            "t-1-1", wrapped().create_topology(), {**defaults(), **conf}, Recorder()
        ).run()

    assert not run().failed
    assert run(**{"storm_py.fuse": False}).failed
    assert run(**SERIALIZED).failed


def test_an_error_in_a_fused_bolt_restarts_its_chain_inline() -> None:
    seen = Recorder()
    topology = words("a raise", "b").create_topology()
    conf = {**defaults(), "storm_py.local.max.failures": 2}
    result = InlineRun("t-1-1", topology, conf, seen).run()
    assert result.failed
    assert {(error.component, error.task, error.where) for error in seen.errors} == {
        ("split", 3, "execute")
    }
