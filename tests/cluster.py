"""What is looked at in tests of a whole cluster: its nodes in ZooKeeper, files, processes of tasks.

The cluster and what flows through it are `benchmarks.daemons` and `benchmarks.flowing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from kazoo.client import KazooClient

from benchmarks.daemons import HOST, Cluster, WorkerProcess
from benchmarks.flowing import TASKS, OracleRun, owners
from benchmarks.oracle import Verdict
from storm_py.cluster.records import Assignment
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.cluster.zookeeper import ZooKeeperStorage
from tests.zookeepers import settings

ROOT = "/storm"


@contextmanager
def state_of(cluster: Cluster) -> Iterator[ClusterState]:
    """What the cluster keeps in ZooKeeper."""
    storage = ZooKeeperStorage(settings(cluster.zookeeper_port, ROOT))
    storage.start()
    try:
        yield ClusterState(storage)
    finally:
        storage.close()


def assignment_of(run: OracleRun) -> Assignment:
    """What runs where, as nimbus has decided."""
    with state_of(run.cluster) as state:
        found = state.assignment(run.id)
    assert found is not None
    return found


def is_followed(state: ClusterState, topology_id: str, executors: int) -> bool:
    """Whether so many executors are assigned, and each worker says that it follows that."""
    assignment = state.assignment(topology_id)
    if assignment is None or len(assignment.executor_node_port) != executors:
        return False
    infos = [state.supervisor_info(id_) for id_ in state.supervisors()]
    versions = [
        beat.assignment_version
        for info in infos
        if info is not None
        for beat in info.worker_heartbeats.values()
        if beat.storm_id == topology_id
    ]
    return versions == [assignment.version] * len(set(assignment.executor_node_port.values()))


def nodes_of(cluster: Cluster, topology_id: str) -> list[str]:
    """All nodes in ZooKeeper whose path names this topology."""
    client = KazooClient(f"{HOST}:{cluster.zookeeper_port}")
    client.start()
    try:
        return [path for path in _below(client, ROOT) if topology_id in path]
    finally:
        client.stop()
        client.close()


def _below(client: KazooClient, path: str) -> Iterator[str]:
    yield path
    for child in client.get_children(path):
        yield from _below(client, f"{path}/{child}")


def files_of(cluster: Cluster, topology_id: str) -> list[Path]:
    """All files and folders of the daemons that are named after this topology, but for logs."""
    return [
        path
        for path in cluster.folder.rglob(f"*{topology_id}*")
        if "logs" not in path.relative_to(cluster.folder).parts
    ]


def pids(run: OracleRun) -> dict[int, int]:
    """The process of each task."""
    return {task: birth.pid for task, birth in run.tasks().items()}


def stream_manager(worker: WorkerProcess) -> int:
    """The process of the stream manager of a worker."""
    [pid] = worker.children()["stream_manager"]
    return pid


def family(worker: WorkerProcess) -> set[int]:
    """All processes of a worker."""
    return {worker.pid, *(each.pid for each in psutil.Process(worker.pid).children(recursive=True))}


def check(run: OracleRun) -> Verdict:
    """Stop the spouts, and assert that nothing was lost and every key has stayed on its task."""
    verdict = run.finish()
    assert (verdict.lost, verdict.strange) == (0, 0)
    found = owners(run.folder)
    assert {len(tasks) for tasks in found.values()} == {1}
    assert len(set.union(*found.values())) == TASKS
    return verdict
