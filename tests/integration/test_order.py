"""Order per pair of producer and consumer task, across streams and under load."""

from __future__ import annotations

import pytest

from storm_py import TopologyBuilder
from tests.integration.harness import Outcome, run_local
from tests.integration.topologies_for_tests.flows import NumberSpout, Relay, Sink

pytestmark = pytest.mark.variants

SPOUTS = 2
TOTAL = 110_000
STREAMS = ("left", "right")
"""Each producer numbers its tuples and sends every other one on the other stream."""


def two_streams(sink: Sink) -> TopologyBuilder:
    """Two streams from spouts to bolts, and on from those bolts, by four groupings."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL, STREAMS), SPOUTS)
    relay = builder.set_bolt("relay", Relay(STREAMS, renumber=True), 2)
    relay.shuffle_grouping("numbers", "left").fields_grouping("numbers", ["key"], "right")
    near = builder.set_bolt("near", sink, 2)
    near.fields_grouping("numbers", ["key"], "left").shuffle_grouping("numbers", "right")
    far = builder.set_bolt("far", sink, 2)
    far.shuffle_grouping("relay", "left").all_grouping("relay", "right")
    return builder


def check_order(outcome: Outcome) -> None:
    """Nothing is missing, nothing came twice, nothing out of order."""
    outcome.check_clean()
    reports = outcome.reports("sink")
    assert len(reports) == 4
    for report in reports:
        assert report["disorder"] == 0, report
        assert set(report["streams"]) == set(STREAMS)
    near = [report for report in reports if report["component"] == "near"]
    assert sum(report["count"] for report in near) == SPOUTS * TOTAL
    assert sum(report["sum"] for report in near) == SPOUTS * TOTAL * (TOTAL - 1) // 2
    far = [report for report in reports if report["component"] == "far"]
    assert sum(report["streams"]["left"] for report in far) == SPOUTS * TOTAL // 2
    assert [report["streams"]["right"] for report in far] == 2 * [SPOUTS * TOTAL // 2]


@pytest.mark.parametrize("workers", [1, 2], ids=["ipc", "tcp"])
def test_order_under_load(workers: int) -> None:
    check_order(run_local(two_streams(Sink()), workers))


@pytest.mark.parametrize("workers", [1, 2], ids=["ipc", "tcp"])
def test_order_while_pressure_comes_and_goes(workers: int) -> None:
    """Sinks that stumble fill backlogs, shrink frames, pause spouts and relays, over and over."""
    check_order(run_local(two_streams(Sink(pause_secs=0.002, every=200)), workers))
