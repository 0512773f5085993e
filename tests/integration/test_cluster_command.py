"""`storm-py cluster` as a process: its start, its end, and what it does about deaths.

ZooKeeper is the real one; nimbus and supervisors are those of tests/fake_daemons.py. With all that
is real: tests/integration/test_cluster_of_one_machine.py.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from storm_py.one_machine.plan import HOST
from tests import fake_daemons
from tests.helpers import wait_until
from tests.integration.clusters import GENEROUS_SECS, Cluster, free_ports, settings

#: `storm-py` with other daemons.
PROGRAM = f"""\
import functools, sys
from storm_py.cli import main
from storm_py.one_machine import run
command = (sys.executable, {fake_daemons.__file__!r})
run.ClusterRun = functools.partial(run.ClusterRun, command=command)
main()
"""

Launch = Callable[..., Cluster]


@pytest.fixture
def ports() -> Iterator[list[int]]:
    """That of ZooKeeper, and that of nimbus."""
    with free_ports(2) as found:
        yield found


@pytest.fixture
def launch(tmp_path: Path, ports: list[int]) -> Iterator[Launch]:
    """Start the command in a storm.local.dir of this test."""
    clusters: list[Cluster] = []
    environ = {fake_daemons.FOLDER_VARIABLE: str(tmp_path)}

    def launched(*arguments: str) -> Cluster:
        folder = tmp_path / f"run{len(clusters)}"
        folder.mkdir()
        flags = [*settings(tmp_path / "local", ports), *arguments]
        clusters.append(Cluster(folder, ["-c", PROGRAM], flags, **environ))
        return clusters[-1]

    yield launched
    for cluster in clusters:
        cluster.process.kill()
        cluster.process.wait()


# ---- start and end -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_runs_until_it_is_stopped(
    launch: Launch, tmp_path: Path, ports: list[int], number: int
) -> None:
    cluster = launch("--supervisors", "2", "--slots", "3")
    cluster.wait_up()
    up = cluster.said("cluster")[1]
    assert up.startswith("up after ")
    assert up.endswith(f" s: nimbus leads on port {ports[1]}, 2 supervisors with 3 slots each")
    assert cluster.said("cluster")[2] == (
        f"now, in another terminal: storm-py submit -c nimbus.thrift.port={ports[1]} TOPOLOGY "
        "NAME; Ctrl-C stops everything"
    )
    assert sorted(cluster.daemons) == ["nimbus", "supervisor-1", "supervisor-2", "zookeeper"]
    os.killpg(cluster.process.pid, number)  # as a terminal does it
    assert cluster.wait() == 130
    assert cluster.said("cluster")[3:] == [
        "stopping: supervisors with their workers, nimbus, ZooKeeper",
        "everything is stopped; data is kept for the next start",
    ]
    # Each in its turn, and none of them by the terminal.
    ends = [line for line in cluster.output.splitlines() if line.endswith(("in order", "stopped"))]
    assert sorted(ends[:2]) == [
        "supervisor-1 | supervisor-1 ends in order",
        "supervisor-2 | supervisor-2 ends in order",
    ]
    assert ends[2:] == [
        "nimbus       | nimbus ends in order",
        "zookeeper    | ZooKeeper is stopped",
    ]
    assert "\x1b" not in cluster.output


def test_its_daemons_die_with_it(launch: Launch) -> None:
    cluster = launch()
    cluster.wait_up()
    [java] = cluster.daemons["zookeeper"].children()
    cluster.process.kill()
    assert cluster.wait() == -signal.SIGKILL
    psutil.wait_procs([java], GENEROUS_SECS)
    assert not java.is_running()
    again = launch()  # nothing is in its way, and nobody of before is taken for one of now
    again.wait_up()
    again.process.send_signal(signal.SIGTERM)
    assert again.wait() == 130


def test_a_second_signal_kills(launch: Launch) -> None:
    cluster = launch()
    cluster.wait_up()
    cluster.daemons["supervisor-1"].suspend()  # will not end in order
    cluster.process.send_signal(signal.SIGINT)
    cluster.wait_said("stopping: ")
    cluster.process.send_signal(signal.SIGINT)
    assert cluster.wait() == 130
    assert "killing what still runs" in cluster.said("cluster")


# ---- deaths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["zookeeper", "nimbus", "supervisor-1"])
def test_a_daemon_that_is_killed_is_started_again(launch: Launch, name: str) -> None:
    cluster = launch()
    cluster.wait_up()
    before = cluster.daemons[name]
    before.kill()
    cluster.wait_said(f"{name} was killed by SIGKILL; it is started again in 1 s")
    wait_until(lambda: cluster.running().get(name) not in (None, before), GENEROUS_SECS)
    cluster.wait_said("ZooKeeper is ready" if name == "zookeeper" else "has registered", 2)
    cluster.process.send_signal(signal.SIGINT)
    assert cluster.wait() == 130


def test_a_daemon_that_keeps_dying_is_the_end(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "supervisor-1.dies").touch()
    cluster = launch()
    assert cluster.wait() == 1
    again = "supervisor-1 exited with code 1; it is started again in 1 s"
    assert cluster.said("cluster")[1:] == [
        again,
        again,
        "supervisor-1 died 3 times in a row soon after its start; it exited with code 1: "
        "the cluster is stopped",
    ]
    assert cluster.output.endswith(
        "Error: supervisor-1 died 3 times in a row soon after its start; it exited with code 1; "
        "its last words:\n" + "the last words of supervisor-1\n" * 3
    )


# ---- what is in the way --------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["storm.zookeeper.port", "nimbus.thrift.port"])
def test_a_port_that_is_taken(launch: Launch, tmp_path: Path, key: str) -> None:
    owner = "nimbus" if key.startswith("nimbus") else "ZooKeeper"
    host = "localhost" if key.startswith("nimbus") else HOST
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        cluster = launch("-c", f"{key}={port}")
        assert cluster.wait() == 1
    message = cluster.output.splitlines()[-1]
    assert message.startswith(
        f"Error: {owner} cannot listen on {host}:{port}: process {os.getpid()} ("
    )
    assert message.endswith(f") listens there; stop it, or choose another port: -c {key}=...")
    assert cluster.said("zookeeper") == []


def test_a_second_cluster_in_the_same_folder(launch: Launch, tmp_path: Path) -> None:
    cluster = launch()
    cluster.wait_up()
    second = launch("--fresh")
    assert second.wait() == 1
    assert second.output.endswith(
        f"Error: another cluster runs in {tmp_path / 'local'}, process {cluster.process.pid}: "
        "stop it, or set storm.local.dir to another folder\n"
    )
    assert cluster.running() == cluster.daemons
    cluster.process.send_signal(signal.SIGINT)
    assert cluster.wait() == 130


def test_a_folder_that_cannot_be(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "local").touch()
    cluster = launch()
    assert cluster.wait() == 1
    assert f"Error: a cluster cannot keep its data in {tmp_path}/local: " in cluster.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--supervisors", "0"], "0 is not in the range"),
        (["--slots", "x"], "'x' is not a valid integer"),
        (["--supervisors", "60", "--slots", "1000"], "and the last port is 65535"),
        (["--config", "nowhere"], "--config nowhere: "),
        (["-c", "nimbus.thrift.port=x"], "nimbus.thrift.port is 'x' (str); expected an"),
    ],
)
def test_wrong_usage(launch: Launch, arguments: list[str], reason: str) -> None:
    cluster = launch(*arguments)
    assert cluster.wait() == 2
    assert reason in cluster.output
