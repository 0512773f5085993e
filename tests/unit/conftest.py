"""What several files of tests of nimbus begin with: one that has no threads, and what it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from storm_py.cluster.records import ErrorInfo
from storm_py.heartbeat import ExecutorStatistics, dump_statistics
from storm_py.rpc import definitions
from tests.real_nimbuses import BEGIN_SECS, Bench, make_archive, submit


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A nimbus that this test ticks."""
    return Bench(tmp_path / "nimbus")


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    """An archive as clients upload it."""
    return make_archive(tmp_path)


@pytest.fixture
def running(bench: Bench, archive: bytes) -> str:
    """The id of a topology that is assigned, and of which there are statistics and an error."""
    bench.join()
    id_ = submit(bench.nimbus, archive, conf={"topology.workers": 2, "topology.version": "v7"})
    bench.tick()
    lines = ExecutorStatistics(5, 5, 9, 77, 0, 20, 21, 18, 2, 0)
    count = ExecutorStatistics(1, 2, 8, 78, 15, 3, 4, 14, 1, 6)
    ranges = [(5, 5), (1, 2)]
    beat = definitions.SupervisorWorkerHeartbeat(
        storm_id=id_,
        executors=[definitions.ExecutorInfo(task_start=a, task_end=b) for a, b in ranges],
        time_secs=5,
        statistics=dump_statistics([lines, count]),
    )
    bench.nimbus.sendSupervisorWorkerHeartbeats(
        definitions.SupervisorWorkerHeartbeats(supervisor_id="s1", worker_heartbeats=[beat])
    )
    for number in (1, 2):
        error = ErrorInfo(f"error {number}", BEGIN_SECS + number, "host-s1", 6700)
        bench.state.report_error(id_, "count", error)
    bench.clocks.passed.advance(50)
    return id_
