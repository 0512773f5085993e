"""The simulation: whole topologies under failure keep every promise, seed by seed."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from storm_py import BaseRichBolt, BaseRichSpout, Config, TopologyBuilder, Tuple
from storm_py.config import defaults, merge
from storm_py.core.plan import make_plan
from storm_py.testing import Faults, Simulation, SimulationError
from storm_py.testing.faults import KINDS
from storm_py.testing.random_topology import random_topology
from tests.variants import chosen

#: More of them are in tests/slow/test_simulation_seeds.py.
SEEDS = range(60)
CALM = Faults(count=0)


@pytest.mark.variants
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_topology_keeps_every_promise(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if chosen().fused:
        monkeypatch.setattr("storm_py.testing.random_topology.SHARE_FUSED", 1.0)
    Simulation(seed, conf=chosen().conf).run()


def test_the_sample_holds_fused_topologies() -> None:
    plans = [Simulation(seed).plan for seed in SEEDS]
    fused = [len(max(plan.instances.values(), key=len)) for plan in plans]
    assert 60 / 6 <= sum(length > 1 for length in fused) <= 60 / 3
    assert max(fused) > 2


def test_the_sample_holds_every_kind_of_fault() -> None:
    seen: Counter[str] = Counter()
    for seed in range(0, 60, 2):
        seen.update(Simulation(seed).run().faults)
    assert set(seen) == {*KINDS, "lost tail", "stray", "user error"}


def test_the_sample_holds_batch_bolts_that_are_fused() -> None:
    pairs: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        builder, conf, _ = random_topology(random.Random(seed), lambda secs, call: None)
        components = builder.create_topology().components
        plan = make_plan("t", builder.create_topology(), merge(defaults(), conf), 1)
        for executor in plan.executors:
            for handed in {plan.task_to_component[task] for task in plan.handed(executor)}:
                source, dest = components[executor.component_id], components[handed]
                pairs[type(source.component).__name__, type(dest.component).__name__] += 1
    batched = "RandomBatchBolt"
    assert {(batched, batched), ("RandomSpout", batched), ("RandomBolt", batched)} <= set(pairs)
    assert {(batched, "RandomBolt"), (batched, "RandomBasicBolt")} <= set(pairs)


# ---- a seed is a whole run ---------------------------------------------------------------------


def digest(seed: int) -> str:
    simulation = Simulation(seed)
    report = simulation.run()
    return hashlib.sha256(f"{report} {simulation.network.shown_story()}".encode()).hexdigest()


def test_the_same_seed_is_the_same_run_in_any_process() -> None:
    code = "from tests.unit.test_simulation import digest; print(digest(4))"
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.stdout.strip(), done.stderr) == (digest(4), "")
    assert digest(4) != digest(5)


# ---- a topology of one's own -------------------------------------------------------------------


class Numbers(BaseRichSpout):
    """Emits 0 to n - 1, and what fails once more."""

    def __init__(self, n: int, endless: bool = False) -> None:
        self.n, self.endless = n, endless

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("number")

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.todo = list(range(self.n))
        self.left = set(self.todo)

    def next_tuple(self) -> None:
        if self.todo:
            number = self.todo.pop()
            self.collector.emit([number], msg_id=number)
        elif not self.left and not self.endless:
            self.endless = True
            self.collector.end_of_input()

    def ack(self, msg_id: Any) -> None:
        self.left.discard(msg_id)

    def fail(self, msg_id: Any) -> None:
        self.todo.append(msg_id)


class Collect(BaseRichBolt):
    """Keeps what it receives, and acks it; `values` is what its tuples looked like."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.values: list[list[object]] = []

    def execute(self, tup: Tuple) -> None:
        assert list(tup.fields) == ["number"]
        self.values.append(list(tup.values))
        self.collector.ack(tup)


class Forgetful(Collect):
    """Acks at once and never emits, on behalf of nobody: a bolt with a mistake to find."""

    def execute(self, tup: Tuple) -> None:
        self.values.append(list(tup))


def counted(
    bolt: BaseRichBolt | None = None, n: int = 30, endless: bool = False
) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(n, endless))
    builder.set_bolt("collect", bolt or Collect(), 2).fields_grouping("numbers", ["number"])
    return builder


def test_a_topology_of_ones_own_runs_as_it_is() -> None:
    simulation = Simulation(3, counted(), faults=CALM)
    report = simulation.run()
    (numbers,) = simulation.components("numbers")
    received = [row for each in simulation.components("collect") for row in each.values]
    assert sorted(received) == [[n] for n in range(30)]
    assert numbers.left == set()
    assert (report.emitted, report.received, report.acked, report.failed) == (30, 30, 30, 0)
    assert report.faults == {}


@pytest.mark.parametrize("seed", range(10))
def test_what_it_acks_has_arrived_under_any_faults(seed: int) -> None:
    Simulation(seed, counted(n=100), workers=3, faults=Faults(count=15, gap_steps=30)).run()


def test_an_endless_topology_is_drained_when_the_faults_stop() -> None:
    faults = Faults(5, 80, ("delay", "duplicate"))
    report = Simulation(1, counted(endless=True), faults=faults, drain_after=60).run()
    assert report.acked == 30
    assert report.secs > 60


def test_tuples_that_are_never_acked_fail_by_timeout_and_the_run_is_called_stuck() -> None:
    conf = {Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 5}
    simulation = Simulation(8, counted(Forgetful()), conf=conf, faults=CALM)
    with pytest.raises(SimulationError, match=r"seed 8, step .*: it is stuck") as caught:
        simulation.run()
    assert simulation.report().failed >= 60
    assert "again: Simulation(8, ...).run() with the same arguments" in str(caught.value)
    assert "the last events:" in str(caught.value)


def test_a_row_takes_the_time_that_it_is_given() -> None:
    slow = Simulation(5, counted(), faults=CALM, row_secs={"collect": 0.5}).run()
    fast = Simulation(5, counted(), faults=CALM).run()
    assert slow.secs > 5 > fast.secs


def test_only_the_named_faults_happen() -> None:
    report = Simulation(2, counted(n=200), faults=Faults(4, 20, ("delay", "duplicate"))).run()
    assert set(report.faults) <= {"delay", "duplicate"}
    assert sum(report.faults.values()) == 4
