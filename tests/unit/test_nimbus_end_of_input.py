"""With storm_py.kill.on.end a topology is killed once its workers have passed the END wave."""

from __future__ import annotations

import pytest

from storm_py.cluster.records import TopologyStatus, WorkerRegistration
from storm_py.rpc.definitions import RebalanceOptions
from tests.real_nimbuses import Bench, assignment, status, submit


@pytest.fixture
def running(bench: Bench, archive: bytes) -> str:
    """On two workers, which are there."""
    bench.join()
    id_ = submit(bench.nimbus, archive, conf={"storm_py.kill.on.end": True})
    bench.nimbus.rebalance("words", RebalanceOptions(wait_secs=0, num_workers=2))
    bench.tick()
    for number in assignment(bench, id_).worker_numbers.values():
        bench.state.claim_worker(id_, number)
    return id_


def passed(bench: Bench, id_: str, *waves: int) -> None:
    found = assignment(bench, id_)
    for number, wave in zip(found.worker_numbers.values(), waves, strict=True):
        ours = WorkerRegistration(number, 1, 1, "d", "c", wave, True, found.version)
        bench.state.register(id_, ours)
    bench.tick(10)


def test_a_topology_that_asked_for_it_is_killed(bench: Bench, running: str) -> None:
    passed(bench, running, 0, 1)
    assert bench.state.storms() == (running,)
    passed(bench, running, 1, 1)
    bench.tick()
    assert bench.state.storms() == ()


def test_an_older_wave_is_not_the_end(bench: Bench, running: str) -> None:
    bench.state.renew_wave(running)
    passed(bench, running, 1, 2)
    assert status(bench, running) is TopologyStatus.ACTIVE
    passed(bench, running, 2, 2)
    bench.tick()
    assert bench.state.storms() == ()


def test_what_held_under_an_older_assignment_is_not_the_end(bench: Bench, running: str) -> None:
    passed(bench, running, 1, 0)
    # The worker that is left gets what the other one ran, and has not heard of it yet.
    bench.nimbus.rebalance("words", RebalanceOptions(wait_secs=0, num_workers=1))
    bench.tick()
    bench.tick(10)
    assert len(assignment(bench, running).worker_numbers) == 1
    assert status(bench, running) is TopologyStatus.ACTIVE
    passed(bench, running, 1)
    bench.tick()
    assert bench.state.storms() == ()


def test_any_other_stays(bench: Bench, archive: bytes) -> None:
    bench.join()
    id_ = submit(bench.nimbus, archive)
    bench.tick()
    [number] = assignment(bench, id_).worker_numbers.values()
    bench.state.claim_worker(id_, number)
    passed(bench, id_, 1)
    assert status(bench, id_) is TopologyStatus.ACTIVE
