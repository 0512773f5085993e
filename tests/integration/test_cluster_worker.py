"""Workers that follow an assignment in ZooKeeper: they find each other, and nothing is lost."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.oracle import TEXT, WORDS, judge, records, rows_of, write_text
from storm_py.archive import Manifest
from storm_py.cluster.records import LogConfig, LogLevel, NimbusSummary, TopologyStatus
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.cluster.zookeeper import ZooKeeperSettings, ZooKeeperStorage
from storm_py.config import Config
from storm_py.constants import VERSION
from storm_py.dev_zookeeper import DevZooKeeper
from storm_py.heartbeat import load_statistics
from storm_py.rpc.definitions import SupervisorWorkerHeartbeat
from storm_py.rpc.server import ThriftServer
from storm_py.runtime.direct_beats import is_locked
from tests.assigned import GENEROUS_SECS, ID, Assigned, Ranges, cluster_conf
from tests.helpers import wait_until
from tests.integration.harness import ROOT
from tests.integration.topologies_for_tests import replanning
from tests.zookeepers import Proxy, settings

LINES = 3_000
RATE = 1_000
FIRST, SECOND = 6700, 6701
# Tasks: sink 1-4, source 5-6, split 7-10.
ONE: Ranges = {(1, 4): FIRST, (5, 5): FIRST, (6, 6): FIRST, (7, 10): FIRST}
TWO: Ranges = {(1, 2): FIRST, (3, 4): SECOND, (5, 5): FIRST, (6, 6): SECOND, (7, 10): SECOND}


@pytest.fixture
def proxy(zookeeper: DevZooKeeper) -> Iterator[Proxy]:
    """How workers reach ZooKeeper."""
    proxy = Proxy(zookeeper.port)
    yield proxy
    proxy.close()


@pytest.fixture
def assigned(tmp_path: Path, zookeeper: DevZooKeeper, proxy: Proxy) -> Iterator[Assigned]:
    """The oracle, submitted and not yet assigned."""
    root = settings(zookeeper.port).root
    conf = cluster_conf(proxy.port, root, tmp_path / "local")
    conf[Config.WORKER_LOG_LEVEL_RESET_POLL_SECS] = 1
    direct = cluster_conf(zookeeper.port, root, tmp_path / "local")
    storage = ZooKeeperStorage(ZooKeeperSettings.from_conf(direct))
    storage.start()
    write_text(tmp_path, LINES)
    assigned = Assigned(
        tmp_path,
        ClusterState(storage),
        conf,
        replanning.build(tmp_path, RATE),
        replanning.__name__,
        ROOT,
        {Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 600, Config.TOPOLOGY_MAX_SPOUT_PENDING: 1_000},
    )
    yield assigned
    assigned.stop_all()
    storage.close()


def rows(folder: Path) -> int:
    path = folder / "rows"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for_rows(folder: Path, share: float) -> None:
    wanted = LINES * WORDS * share
    wait_until(lambda: rows(folder) >= wanted, GENEROUS_SECS, f"{wanted:g} rows")


def wait_for_all(folder: Path, assigned: Assigned) -> None:
    """Every word has arrived, each on the task of its key, and that it is over is known."""
    wait_for_rows(folder, 1)
    wait_until(lambda: judge(folder).lost == 0, GENEROUS_SECS, "all rows, some twice")
    assert judge(folder).strange == 0
    owners: defaultdict[int, set[int]] = defaultdict(set)
    for row in rows_of(folder):
        assert row.key.file == TEXT
        owners[row.key.line_number].add(row.sink)
    assert {len(tasks) for tasks in owners.values()} == {1}
    wait_until(assigned.is_over, GENEROUS_SECS, "the end of the input")


def pids(folder: Path) -> dict[tuple[str, int], list[int]]:
    """The processes in which each task has lived."""
    found: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for component, task, pid, *_ in records(folder, "births"):
        found[component, int(task)].append(int(pid))
    return dict(found)


def ports(folder: Path) -> dict[int, list[int]]:
    """The ports of the workers on which each task has lived, as its context says."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for _, task, _, port, *_ in records(folder, "births"):
        found[int(task)].append(int(port))
    return dict(found)


def test_two_workers_find_each_other(tmp_path: Path, assigned: Assigned) -> None:
    assigned.assign(TWO)
    assigned.launch(SECOND)
    assigned.launch(FIRST)
    wait_for_all(tmp_path, assigned)
    assert judge(tmp_path).duplicates == 0
    assert ports(tmp_path) == {
        **{task: [FIRST] for task in (1, 2, 5)},
        **{task: [SECOND] for task in (3, 4, 6, 7, 8, 9, 10)},
    }

    def counted() -> int:
        beats = [assigned.heartbeat(port) for port in (FIRST, SECOND)]
        return sum(e.executed for beat in beats if beat for e in beat.executors if e.last_task <= 4)

    wait_until(lambda: counted() == LINES * WORDS, GENEROUS_SECS, "heartbeats say so")
    beat = assigned.heartbeat(SECOND)
    assert beat is not None
    assert (beat.incarnation, beat.version) == (1, 1)
    assert [(e.first_task, e.last_task) for e in beat.executors] == [(3, 4), (6, 6), (7, 10)]
    for executor in beat.executors:
        assert (
            executor.pid
            == pids(tmp_path)[
                {3: "sink", 6: "source", 7: "split"}[executor.first_task], executor.first_task
            ][0]
        )


def test_more_workers_and_fewer_while_tuples_flow(tmp_path: Path, assigned: Assigned) -> None:
    assigned.assign(ONE)
    assigned.launch(FIRST)
    wait_for_rows(tmp_path, 0.2)
    assigned.assign(TWO)
    assigned.launch(SECOND)
    assigned.wait_until_followed(FIRST, SECOND)
    wait_for_rows(tmp_path, 0.6)
    assigned.assign(ONE)
    assert assigned.left(SECOND) == 0
    wait_for_all(tmp_path, assigned)
    lives = pids(tmp_path)
    assert len(lives["source", 5]) == 1, "need not move, so it is the same process all the time"
    assert len(lives["source", 6]) == 3
    assert len(lives["sink", 1]) == 3, "it was cut off its neighbours and came back to them"


def test_who_was_started_anew_gets_another_wave(tmp_path: Path, assigned: Assigned) -> None:
    assigned.assign(ONE)
    assigned.launch(FIRST)
    wait_for_all(tmp_path, assigned)
    assert assigned.state.wave(ID) == 1

    def split() -> int:
        beat = assigned.heartbeat(FIRST)
        assert beat is not None
        return next(executor.pid for executor in beat.executors if executor.first_task == 7)

    wait_until(split, GENEROUS_SECS, "its process is known")
    os.kill(split(), signal.SIGKILL)
    wait_until(lambda: assigned.state.wave(ID) == 2, GENEROUS_SECS, "another wave")
    wait_until(assigned.is_over, GENEROUS_SECS, "it has come through")


@pytest.mark.parametrize("victim", [FIRST, SECOND])
def test_a_worker_that_was_killed_is_taken_back(
    tmp_path: Path, assigned: Assigned, victim: int
) -> None:
    assigned.assign(TWO)
    assigned.launch(FIRST)
    assigned.launch(SECOND)
    wait_for_rows(tmp_path, 0.3)
    assigned.kill(victim)
    assigned.launch(victim)
    wait_for_all(tmp_path, assigned)
    beat = assigned.heartbeat(victim)
    assert beat is not None
    assert beat.incarnation == 2


def test_another_slot_takes_over_from_one_that_is_lost(tmp_path: Path, assigned: Assigned) -> None:
    assigned.assign(TWO)
    assigned.launch(FIRST)
    assigned.launch(SECOND)
    wait_for_rows(tmp_path, 0.3)
    assigned.kill(SECOND)
    third = SECOND + 1
    assigned.assign({tasks: third if port == SECOND else port for tasks, port in TWO.items()})
    assigned.launch(third)
    wait_for_all(tmp_path, assigned)
    assert pids(tmp_path)["source", 5] != []
    assert len(pids(tmp_path)["source", 5]) == 1


def test_workers_go_on_without_zookeeper(tmp_path: Path, assigned: Assigned, proxy: Proxy) -> None:
    assigned.assign(TWO)
    assigned.launch(FIRST)
    assigned.launch(SECOND)
    wait_for_rows(tmp_path, 0.1)
    proxy.cut()
    before = rows(tmp_path)
    wait_until(lambda: rows(tmp_path) > before + LINES // 10, GENEROUS_SECS, "rows without it")
    stream_manager = next(
        child
        for child in psutil.Process(assigned.processes[SECOND].pid).children()
        if "storm_py.runtime.stream_manager" in child.cmdline()
    )
    stream_manager.kill()
    # Whom it cannot tell holds back what is for it, until it can.
    proxy.mend()
    wait_for_all(tmp_path, assigned)


def test_spouts_pause_while_the_topology_is_inactive(tmp_path: Path, assigned: Assigned) -> None:
    assigned.set_status(TopologyStatus.INACTIVE)
    assigned.assign(ONE)
    assigned.launch(FIRST)
    wait_until(lambda: "are ready" in assigned_log(assigned, FIRST), GENEROUS_SECS)
    assigned.wait_until_followed(FIRST)
    assert rows(tmp_path) == 0
    assigned.set_status(TopologyStatus.ACTIVE)
    wait_for_all(tmp_path, assigned)


def assigned_log(assigned: Assigned, port: int) -> str:
    try:
        return assigned.log(port)
    except FileNotFoundError:
        return ""


def test_levels_of_loggers_reach_the_instances(tmp_path: Path, assigned: Assigned) -> None:
    assigned.assign(ONE)
    assigned.launch(FIRST)
    wait_for_rows(tmp_path, 0.1)
    assigned.state.set_topology_log_config(ID, LogConfig({"storm_py": LogLevel("DEBUG")}))

    def told(level: int) -> bool:
        logs = (tmp_path / "logs" / str(FIRST)).glob("*-*.log")
        return all(f"level of storm_py is {level} now" in log.read_text() for log in logs)

    wait_until(lambda: told(logging.DEBUG), GENEROUS_SECS, "it is set")
    for_a_second = LogLevel("DEBUG", 1, int(time.time()) + 1)
    assigned.state.set_topology_log_config(ID, LogConfig({"storm_py": for_a_second}))
    wait_until(lambda: told(logging.NOTSET), GENEROUS_SECS, "its time is over")


def test_a_worker_whose_topology_is_gone_leaves(tmp_path: Path, assigned: Assigned) -> None:
    assigned.assign(ONE)
    assigned.launch(FIRST)
    wait_for_rows(tmp_path, 0.1)
    assigned.state.remove_storm(ID)
    assert assigned.left(FIRST) == 0
    assert "stopping: its topology is assigned no more" in assigned.log(FIRST)


def test_a_second_worker_in_the_same_place_ends_the_first(
    tmp_path: Path, assigned: Assigned
) -> None:
    assigned.assign(ONE)
    assigned.launch(FIRST)
    wait_for_rows(tmp_path, 0.1)
    first = assigned.processes.pop(FIRST)
    assigned.launch(FIRST)
    assert first.wait(GENEROUS_SECS) == 0
    wait_for_all(tmp_path, assigned)


def test_told_to_stop_it_leaves_in_order(tmp_path: Path, assigned: Assigned) -> None:
    assigned.assign(ONE)
    assigned.launch(FIRST)
    wait_for_rows(tmp_path, 0.1)
    assert assigned.stop(FIRST) == 0
    assert "stopping: told to" in assigned.log(FIRST)
    beat = assigned.heartbeat(FIRST)
    assert beat is not None
    assert not any(psutil.pid_exists(executor.pid) for executor in beat.executors)


def test_without_a_supervisor_it_tells_nimbus_itself(tmp_path: Path, assigned: Assigned) -> None:
    heard: list[SupervisorWorkerHeartbeat] = []

    class Nimbus:
        def sendSupervisorWorkerHeartbeat(self, heatbeat: SupervisorWorkerHeartbeat) -> None:
            heard.append(heatbeat)

    with ThriftServer(Nimbus(), "127.0.0.1", 0) as server:
        assigned.state.set_leader_info(NimbusSummary(*server.address, 1, VERSION))
        assigned.assign(ONE)
        assigned.launch(FIRST)
        wait_until(lambda: heard, GENEROUS_SECS, "a heartbeat")
    assert heard[0].storm_id == ID
    assert [(e.task_start, e.task_end) for e in heard[0].executors] == sorted(ONE)
    statistics = load_statistics(heard[0].statistics or "")
    assert [(e.first_task, e.last_task) for e in statistics] == sorted(ONE)


def test_a_supervisor_that_lives_holds_a_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert not is_locked(lock)
    with lock.open("w") as file:
        assert not is_locked(lock)
        fcntl.flock(file, fcntl.LOCK_EX)
        assert is_locked(lock)
    assert not is_locked(lock)


@pytest.mark.parametrize(
    ("field", "found", "message"),
    [
        ("storm_py", "0.0.1", "submitted by storm_py 0.0.1, and this node has "),
        ("python", "2.7.18", "submitted by Python 2.7.18, and this node runs 3."),
    ],
)
def test_versions_that_differ_are_reported(
    assigned: Assigned, field: str, found: str, message: str
) -> None:
    manifest = Manifest.from_bytes(assigned.manifest.read_bytes(), "it")
    values = {name: getattr(manifest, name) for name in Manifest.__slots__} | {field: found}
    assigned.manifest.write_bytes(Manifest(**values).to_bytes())
    assigned.assign(ONE)
    assigned.launch(FIRST)
    assert assigned.left(FIRST) == 1
    [error] = assigned.state.errors(ID, "__system")
    assert error.error.startswith(message)
    assert (error.host, error.port) == ("localhost", FIRST)
    assert message in assigned.log(FIRST)


def test_code_that_is_gone_is_reported(assigned: Assigned) -> None:
    shutil.rmtree(assigned.manifest.parent.parent)
    assigned.assign(ONE)
    assigned.launch(FIRST)
    assert assigned.left(FIRST) == 1
    [error] = assigned.state.errors(ID, "__system")
    assert "No such file or directory: " in error.error


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("::1", "storm.local.hostname is '::1', which has no IPv4 address: "),
        ("192.0.2.1", "storm.local.hostname is '192.0.2.1', no address of this machine: "),
    ],
)
def test_a_host_that_is_not_this_one_is_reported(
    assigned: Assigned, host: str, message: str
) -> None:
    assigned.host = host
    assigned.assign(ONE)
    assigned.launch(FIRST)
    assert assigned.left(FIRST) == 1
    [error] = assigned.state.errors(ID, "__system")
    assert error.error.startswith(message)
    assert message in assigned.log(FIRST)
