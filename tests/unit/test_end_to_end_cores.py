"""Whole topologies of real cores without failures: everything arrives once, and memory is bounded.

What happens under failure is in `test_simulation`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from storm_py import BaseBasicBolt, BaseRichSpout, Config, TopologyBuilder, Tuple
from storm_py.testing import Faults, Simulation
from storm_py.testing.instances import Instance
from storm_py.testing.managers import Manager

CALM = Faults(count=0)

# A seed cannot be made smaller: it is the whole run, and reproduces it.
UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]


@settings(max_examples=40, phases=UNSHRUNK)
@given(st.integers(0, 2**32))
def test_every_tuple_arrives_once_and_in_order_and_the_end_reaches_all(seed: int) -> None:
    """The checker of the simulation says so; here is what is left in the cores."""
    simulation = Simulation(seed, faults=CALM)
    report = simulation.run()
    if report.faults:
        return  # user code that raises is part of some random topologies
    assert report.restarts == 0
    for process in simulation.network.processes.values():
        if isinstance(process, Manager):
            found = process.core.statistics()
            assert (found.refused, found.unroutable, found.lost_rows) == (0, 0, 0)
            assert process.core.statistics().acks.open <= report.failed
            for queue in found.queues.values():
                assert (queue.backlog_rows, queue.backlog_bytes, queue.pressured) == (0, 0, False)
        elif isinstance(process, Instance):
            assert not process.core.paused
            assert process.core.statistics().queued == 0


class Flood(BaseRichSpout):
    """Emits as fast as it may."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("n")

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.left = collector, 4000

    def next_tuple(self) -> None:
        self.left -= 1
        self.collector.emit([self.left])
        if not self.left:
            self.collector.end_of_input()


class Pass(BaseBasicBolt):
    """Emits what it gets, and counts it."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("n")

    def prepare(self, conf: Any, context: Any) -> None:
        self.count = 0

    def execute(self, tup: Tuple, collector: Any) -> None:
        self.count += 1
        collector.emit([tup[0]])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_slow_consumer_bounds_what_waits_for_it(workers: int) -> None:
    builder = TopologyBuilder()
    builder.set_spout("source", Flood(), 2)
    builder.set_bolt("fast", Pass()).shuffle_grouping("source")
    builder.set_bolt("slow", Pass()).shuffle_grouping("fast")
    builder.set_bolt("aside", Pass()).shuffle_grouping("source")
    simulation = Simulation(
        7,
        builder,
        workers=workers,
        conf={Config.STORM_PY_BATCH_ROWS: 16},
        faults=CALM,
        row_secs={"slow": 0.001},
    )
    report = simulation.run()
    (slow,) = simulation.components("slow")
    assert slow.count == 8000
    # 0.5 s of its work in its window, as much in the backlog, and what was on its way meanwhile
    assert 400 < report.most_rows["slow"] < 2500
