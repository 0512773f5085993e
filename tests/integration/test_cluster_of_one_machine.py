"""A cluster of one machine, with real daemons: what runs on it over stops and crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from storm_py.runtime.folder import base_folder, sweep
from tests.helpers import wait_until
from tests.integration.clusters import GENEROUS_SECS, Cluster, free_ports, settings
from tests.integration.harness import run_folders

TOPOLOGY = "storm_py.topologies.word_count"


class Machine:
    """A place for one cluster after the other, and the commands for it."""

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self._folder = folder
        self.ports = ports
        self._settings = settings(folder / "local", ports)
        self.clusters: list[Cluster] = []

    def cluster(self, *arguments: str) -> Cluster:
        """Start `storm-py cluster`; it is up when this returns."""
        folder = self._folder / f"run{len(self.clusters)}"
        folder.mkdir()
        flags = [*self._settings, *arguments]
        self.clusters.append(Cluster(folder, ["-P", "-m", "storm_py"], flags))
        self.clusters[-1].wait_up()
        return self.clusters[-1]

    def run(self, command: str, *arguments: str) -> str:
        """Run another command of storm-py; what it prints."""
        process = subprocess.run(
            [sys.executable, "-m", "storm_py", command, *arguments, *self._settings],
            capture_output=True,
            text=True,
            timeout=GENEROUS_SECS,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    def topologies(self) -> list[dict[str, Any]]:
        """What `storm-py list` says."""
        found = json.loads(self.run("list", "--json"))
        assert isinstance(found, list)
        return found

    def workers(self) -> set[psutil.Process]:
        """Main processes of all workers of this machine."""
        found = set()
        for process in psutil.process_iter():
            try:
                arguments = process.cmdline()
            except psutil.Error:
                continue
            is_worker = "storm_py.runtime.cluster_worker" in arguments
            if is_worker and arguments[-1].startswith(str(self._folder)):
                found.add(process)
        return found

    def wait_workers(self, count: int) -> set[psutil.Process]:
        """So many workers, once there are as many."""
        wait_until(lambda: len(self.workers()) == count, GENEROUS_SECS)
        return self.workers()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """One that is empty, before and after."""
    with free_ports(2) as ports:
        found = Machine(tmp_path, ports)
        yield found
        for cluster in found.clusters:
            cluster.process.kill()
            cluster.process.wait()
        for worker in found.workers():
            os.killpg(worker.pid, signal.SIGKILL)
        wait_until(_swept)


def _swept() -> bool:
    """Clear up behind workers that were killed, as the next one does it once they are reaped."""
    sweep(base_folder())
    return not run_folders()


def stop(cluster: Cluster) -> None:
    cluster.process.send_signal(signal.SIGINT)
    assert cluster.wait() == 130, cluster.output


def test_topologies_run_on_over_stops_and_crashes(machine: Machine) -> None:
    cluster = machine.cluster("--supervisors", "2")
    topology_id = machine.run("submit", TOPOLOGY, "words", "--workers", "2").strip()
    first = machine.wait_workers(2)
    cluster.wait_said("follows v1", 2)
    # A stop in order takes the workers along...
    stop(cluster)
    assert machine.workers() == set()
    # ...and the next start brings them back.
    cluster = machine.cluster("--supervisors", "2")
    assert f"; it goes on with {topology_id}" in cluster.output
    second = machine.wait_workers(2)
    assert not first & second
    cluster.wait_said("follows v1", 2)
    # A crash leaves them running, and the next start takes them over.
    cluster.process.kill()
    cluster.wait()
    assert machine.workers() == second
    cluster = machine.cluster("--supervisors", "2")
    cluster.wait_said("goes on: ", 2)
    assert machine.workers() == second
    assert [found["name"] for found in machine.topologies()] == ["words"]
    # Who wants nothing of all that begins anew.
    cluster.process.kill()
    cluster.wait()
    cluster = machine.cluster("--supervisors", "1", "--fresh")
    assert machine.workers() == set()
    assert "it goes on with" not in cluster.output
    assert machine.topologies() == []
    stop(cluster)


def test_a_nimbus_that_was_killed_leads_again(machine: Machine) -> None:
    cluster = machine.cluster()
    cluster.daemons["nimbus"].kill()
    cluster.wait_said("leads", 3)  # both nimbuses, and the line that said that it was up
    assert machine.topologies() == []
    stop(cluster)


def test_a_second_signal_ends_workers_too(machine: Machine) -> None:
    cluster = machine.cluster()
    machine.run("submit", TOPOLOGY, "words")
    machine.wait_workers(1)
    cluster.wait_said("follows v1")
    cluster.daemons["supervisor-1"].suspend()  # cannot end them
    cluster.process.send_signal(signal.SIGTERM)
    cluster.wait_said("stopping: ")
    cluster.process.send_signal(signal.SIGTERM)
    assert cluster.wait() == 130
    assert "killed 1 worker that no supervisor could end" in cluster.output
    assert machine.workers() == set()
