"""A whole cluster of real processes, from submit to kill, and what its deaths cost: no tuple."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.daemons import Cluster, wait_for
from benchmarks.flowing import NAME, RATE, TASKS, OracleRun
from benchmarks.oracle import WORDS
from storm_py.runtime.folder import base_folder, sweep
from tests.cluster import (
    assignment_of,
    check,
    family,
    files_of,
    is_followed,
    nodes_of,
    pids,
    state_of,
    stream_manager,
)
from tests.integration.harness import alive, run_folders

SINKS = range(1, TASKS + 1)
SOURCES = range(TASKS + 1, TASKS + 3)
SPLITS = range(TASKS + 3, 2 * TASKS + 3)
ROWS_PER_SEC = int(RATE) * len(SOURCES) * WORDS


@pytest.fixture
def cluster(tmp_path: Path, run_marker: str) -> Iterator[Cluster]:
    """ZooKeeper, nimbus, and two supervisors with two slots each."""
    with Cluster(tmp_path) as cluster:
        cluster.start()
        yield cluster
    sweep(base_folder())  # a worker that was killed leaves its folder to the next one


@pytest.fixture
def run(cluster: Cluster, tmp_path: Path) -> OracleRun:
    """The oracle, not submitted yet."""
    return OracleRun(cluster, tmp_path)


def wait_until_laid_out(run: OracleRun, workers: int, executors: int) -> None:
    """Wait until nimbus and supervisors have it run so."""

    def is_so() -> bool:
        found = run.summary()
        return (
            found is not None
            and (found["status"], found["workers"], found["executors"])
            == ("ACTIVE", workers, executors)
            and len(run.workers()) == workers
        )

    wait_for(is_so, f"{workers} workers with {executors} executors")
    with state_of(run.cluster) as state:
        wait_for(lambda: is_followed(state, run.id, executors), "all workers follow that")


def flowing(run: OracleRun, workers: int = 2) -> None:
    """Submit it, and wait until tuples flow."""
    run.submit(workers, 2)
    run.wait_flowing()
    assert len(run.workers()) == workers


def monitor(cluster: Cluster, times: int) -> list[str]:
    """What it says of each second."""
    return cluster.run("monitor", NAME, "-i", "1", "-n", str(times), "--json").splitlines()


# ---- what operators do ---------------------------------------------------------------------------


def test_from_submit_to_kill(cluster: Cluster, run: OracleRun) -> None:
    flowing(run, workers=1)
    [worker] = run.workers()
    first, before, manager = assignment_of(run), pids(run), stream_manager(worker)
    found = run.summary()
    assert found is not None
    del found["uptime_secs"], found["owner"]
    assert found == {
        "name": NAME,
        "id": run.id,
        "status": "ACTIVE",
        "tasks": 2 * TASKS + 2,
        "executors": 6,
        "workers": 1,
    }

    seen = [json.loads(line) for line in monitor(cluster, 2)]
    assert [(each["status"], each["slots"], each["executors"]) for each in seen] == [
        ("ACTIVE", 1, 6)
    ] * 2
    assert seen[1]["emitted"] > seen[0]["emitted"]

    cluster.run("rebalance", NAME, "-w", "1", "-n", "2", "-e", "split=4", "-e", "sink=4")
    wait_until_laid_out(run, workers=2, executors=10)
    run.wait_recovered()
    second, after = assignment_of(run), pids(run)
    assert second.executor_node_port.keys() == {
        *((first, first + 1) for tasks in (SINKS, SPLITS) for first in tasks[::2]),
        *((task, task) for task in SOURCES),
    }
    assert len({pid for task, pid in after.items() if task in SINKS}) == 4
    kept = [
        executor
        for executor, slot in second.executor_node_port.items()
        if first.executor_node_port.get(executor) == slot
    ]
    assert kept != []
    assert [after[task] for task, _ in kept] == [before[task] for task, _ in kept]
    assert worker in run.workers()
    assert stream_manager(worker) == manager

    cluster.run("deactivate", NAME)
    run.wait_quiet()
    found = run.summary()
    assert found is not None
    assert found["status"] == "INACTIVE"
    cluster.run("activate", NAME)
    run.wait_flowing()
    assert pids(run) == after

    check(run)
    processes = sorted(set.union(*map(family, run.workers())))
    cluster.run("kill", NAME, "-w", "0")
    wait_for(lambda: run.summary() is None, "it is gone")
    wait_for(lambda: not alive(processes), "its processes are gone")
    wait_for(lambda: not run_folders(), "its run folders are gone")
    wait_for(lambda: not nodes_of(cluster, run.id), "its nodes are gone")
    wait_for(lambda: not files_of(cluster, run.id), "its blobs and its code are gone")


# ---- deaths --------------------------------------------------------------------------------------


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def wait_for_another(run: OracleRun, task: int, pid: int) -> None:
    wait_for(lambda: pids(run)[task] != pid, f"another process of task {task}")


def test_kill_of_what_is_in_a_worker(run: OracleRun) -> None:
    flowing(run)
    before = pids(run)
    victim = before[SINKS[0]]
    kill(victim)
    wait_for_another(run, SINKS[0], victim)
    run.wait_recovered()
    after = pids(run)
    assert {task for task in after if after[task] != before[task]} == {
        task for task, pid in before.items() if pid == victim
    }

    first, second = run.workers()
    manager = stream_manager(first)
    kill(manager)
    wait_for(lambda: stream_manager_is_another(run, manager), "another stream manager")
    run.wait_recovered()
    assert pids(run) == after

    lost = [task for task, pid in after.items() if pid in family(second)]
    assert lost != []
    kill(second.pid)
    wait_for_another(run, lost[0], after[lost[0]])
    run.wait_recovered()
    last = pids(run)
    assert {task for task in last if last[task] != after[task]} == set(lost)
    assert [(w.supervisor, w.port) for w in run.workers()] == [
        (w.supervisor, w.port) for w in (first, second)
    ]
    check(run)


def stream_manager_is_another(run: OracleRun, pid: int) -> bool:
    found = run.workers()[0].children().get("stream_manager", [])
    return found != [] and found != [pid]


def test_kill_of_daemons(cluster: Cluster, run: OracleRun) -> None:
    flowing(run)
    before, workers = pids(run), run.workers()
    first = assignment_of(run)

    supervisor = cluster.supervisors[0]
    supervisor.kill()
    run.wait_recovered()
    with state_of(cluster) as state:
        wait_for(lambda: len(state.supervisors()) == 1, "it is known to be gone")
    # For longer than nimbus would wait for a sign of life: its workers tell nimbus themselves.
    run.wait_flowing(ROWS_PER_SEC * 8)
    supervisor.start()
    with state_of(cluster) as state:
        wait_for(lambda: len(state.supervisors()) == 2, "it is back")
    assert (pids(run), run.workers()) == (before, workers)
    kill(workers[0].pid)  # whom it has not started itself
    wait_for(lambda: len(set(run.workers()) - set(workers)) == 1, "another worker")
    run.wait_recovered()
    before, workers = pids(run), run.workers()

    cluster.nimbus.kill()
    run.wait_recovered()
    cluster.nimbus.start()
    cluster.wait_led(2)
    run.wait_recovered()
    assert (pids(run), run.workers()) == (before, workers)
    assert assignment_of(run).executor_node_port == first.executor_node_port
    check(run)


def test_a_lost_node_is_replaced_by_another(cluster: Cluster, run: OracleRun) -> None:
    flowing(run)
    kept, lost = run.workers()
    assert (kept.supervisor, lost.supervisor) == (0, 1)
    before, moved = pids(run), family(lost)
    cluster.supervisors[1].kill()
    kill(lost.pid)
    psutil.wait_procs([psutil.Process(pid) for pid in moved if psutil.pid_exists(pid)])
    wait_for(
        lambda: not {pid for pid in pids(run).values() if pid in moved}, "all tasks live elsewhere"
    )
    run.wait_recovered()
    assert [worker.supervisor for worker in run.workers()] == [0, 0]
    after = pids(run)
    assert {task for task in after if after[task] == before[task]} == {
        task for task, pid in before.items() if pid not in moved
    }
    check(run)


@pytest.mark.parametrize("secs", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_zookeeper_is_away(cluster: Cluster, run: OracleRun, secs: int) -> None:
    flowing(run)
    before, workers = pids(run), run.workers()
    cluster.zookeeper.stop()
    run.wait_flowing(ROWS_PER_SEC * (secs - 1))
    victim = before[SINKS[0]]
    kill(victim)
    wait_for_another(run, SINKS[0], victim)
    run.wait_recovered()
    cluster.zookeeper.start()
    cluster.zookeeper.wait_said("ZooKeeper is ready")
    with state_of(cluster) as state:
        wait_for(lambda: len(state.supervisors()) == 2, "supervisors are back")
    wait_for(lambda: run.summary() is not None, "nimbus is back")
    assert run.workers() == workers
    cluster.run("rebalance", NAME, "-w", "0", "-e", "sink=4")
    wait_until_laid_out(run, workers=2, executors=8)
    check(run)
