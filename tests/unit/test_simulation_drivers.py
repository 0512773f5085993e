"""What drivers do besides moving messages is simulated too: ticks, call_soon, sends that wait."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from storm_py import Config, TopologyBuilder, Tuple
from storm_py.testing import Faults, Simulation
from storm_py.testing.parents import Run, Worker
from tests.unit.test_simulation import CALM, Collect, Numbers, counted


@pytest.fixture(scope="module")
def sample() -> tuple[Counter[str], int]:
    entered: Counter[str] = Counter()
    waits = 0
    for seed in range(20):
        report = Simulation(seed).run()
        entered.update(report.entered)
        waits += report.waits
    return entered, waits


@pytest.mark.parametrize("what", ["execute (tick)", "call_soon", "metrics", "end_of_input"])
def test_the_sample_enters_user_code_in_every_way(
    sample: tuple[Counter[str], int], what: str
) -> None:
    assert sample[0][what] > 20


def test_the_sample_holds_sends_that_wait(sample: tuple[Counter[str], int]) -> None:
    assert sample[1] > 100


class Clock(Collect):
    """Counts its ticks."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        self.ticks: list[Any] = []

    def execute(self, tup: Tuple) -> None:
        if tup.is_tick:
            self.ticks.append(tup.values[0])
        else:
            super().execute(tup)


def test_ticks_come_by_the_virtual_clock() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20))
    declarer = builder.set_bolt("clock", Clock()).shuffle_grouping("numbers")
    declarer.add_configuration(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, 2)
    simulation = Simulation(3, builder, faults=CALM, row_secs={"clock": 0.75})
    report = simulation.run()
    (clock,) = simulation.components("clock")
    # The 20 rows and the ticks themselves take 0.75 s each; the first interval began before them.
    assert clock.ticks == [2] * len(clock.ticks)
    assert 15 + 0.75 * len(clock.ticks) - 2 < 2 * len(clock.ticks) <= report.secs
    assert report.entered["execute (tick)"] == len(clock.ticks)


class Lends(Collect):
    """Hands each tuple on, to be acked by a call that another thread might make."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        self.context = context

    def execute(self, tup: Tuple) -> None:
        assert self.context.call_soon(super().execute, tup)


@pytest.mark.parametrize("seed", range(10))
def test_what_call_soon_asks_for_is_done_under_any_faults(seed: int) -> None:
    report = Simulation(seed, counted(Lends(), n=50), faults=Faults(8, 40)).run()
    assert report.entered["call_soon"] >= 50


def busy(seed: int, *kinds: str) -> Simulation:
    """Small batches, many numbers, a link that holds little: sends have to wait."""
    conf = {Config.STORM_PY_BATCH_ROWS: 1}
    faults = Faults(10, 40, kinds) if kinds else CALM
    return Simulation(seed, counted(n=300), conf=conf, workers=2, faults=faults)


def test_a_send_that_finds_no_room_waits_and_nothing_is_lost() -> None:
    reports = [busy(seed).run() for seed in range(8)]
    assert sum(report.waits for report in reports) > 100
    assert [(report.acked, report.failed) for report in reports] == [(300, 0)] * 8


@pytest.mark.parametrize("seed", range(8))
def test_who_waits_in_a_send_may_be_killed_or_lose_its_stream_manager(seed: int) -> None:
    kinds = ("kill instance", "kill stream manager", "kill worker", "stop", "delay")
    assert busy(seed, *kinds).run().acked >= 300


@pytest.mark.parametrize("workers", [1, 2])
def test_nobody_waits_for_a_worker_that_dies_while_the_run_stops(workers: int) -> None:
    simulation = Simulation(1, counted(), workers=workers, faults=CALM)
    processes = simulation.network.processes.values()
    (run,) = (each for each in processes if isinstance(each, Run))
    while run.core.phase != "stopping":
        simulation.step()
    victim = next(each for each in processes if isinstance(each, Worker))
    victim.kill("killed")
    assert simulation.run().received == 30
    assert run.core.gone == {victim.number}
