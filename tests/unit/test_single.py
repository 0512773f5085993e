"""SingleWorker: what its drivers do not see - trees that are forgotten, deaths without a trace."""

from __future__ import annotations

import random

import pytest

from storm_py import TopologyBuilder
from storm_py.config import defaults
from storm_py.single import SingleWorker
from storm_py.testing import FakeClock, HoldingBolt
from storm_py.wire.control import ErrorReport
from tests.driven import Sentences

TIMEOUT_SECS = 10


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def errors() -> list[ErrorReport]:
    return []


@pytest.fixture
def worker(clock: FakeClock, errors: list[ErrorReport]) -> SingleWorker:
    """Three sentences on their way to a bolt that keeps them; running."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences("a", "b", "c", ends=False))
    builder.set_bolt("hold", HoldingBolt()).shuffle_grouping("sentences")
    conf = {**defaults(), "topology.message.timeout.secs": TIMEOUT_SECS}
    topology = builder.create_topology()
    worker = SingleWorker(
        "x-1-1",
        topology,
        conf,
        clock,
        clock,
        lambda name: random.Random(name),
        errors.append,
        lambda text: None,
    )
    worker.open()
    worker.link()
    worker.activate()
    run(worker)
    return worker


def run(worker: SingleWorker) -> None:
    """Rounds until nothing happens; every core is sound after each."""
    for _ in range(10):
        worker.round(worker.clock())
        worker.check()


def test_open_trees_are_forgotten_once_their_spout_has_failed_them(
    worker: SingleWorker, clock: FakeClock
) -> None:
    assert worker.statistics().acks.open == 3
    for _ in range(3):
        clock.advance(TIMEOUT_SECS)
        run(worker)
    assert worker.statistics().acks.open == 0


def test_a_restart_leaves_nothing_of_the_dead(worker: SingleWorker) -> None:
    before = dict(worker.cores)
    for peer in list(worker.cores):
        worker.restart(peer)
        run(worker)
    assert all(worker.cores[peer] is not core for peer, core in before.items())
    queued = [queue.backlog_rows for queue in worker.statistics().queues.values()]
    assert sum(queued) == 0
    assert [figures.executed for figures in worker.figures()] == [0, 3]
