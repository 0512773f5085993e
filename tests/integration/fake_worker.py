"""A worker that only lives: the program `python fake_worker.py SPEC`.

It writes heartbeats, follows the version in its record as soon as that changes, and says with them
that its executors run. What its topology is called says what else it does: `mute` has no
heartbeats, `stubborn` does not end by TERM, `late` follows no version but its first.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from storm_py.heartbeat import ExecutorStatistics, Heartbeat
from storm_py.supervisor.worker_record import WorkerRecord
from storm_py.worker_spec import WorkerSpec


def main() -> None:
    """Live."""
    path = Path(sys.argv[1])
    spec = WorkerSpec.read(path)
    name = spec.topology_id.partition("-")[0]
    if name == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if name == "mute":
        signal.pause()
    version = None
    while True:
        found = WorkerRecord.read(path.with_name("worker.json")).assignment
        version = version if name == "late" and version is not None else found.version
        executors = tuple(
            ExecutorStatistics(first, last, 7, 4711, 1, 2, 3, 4, 5, 6)
            for first, last in found.executors
        )
        now = time.monotonic()
        Heartbeat(spec.worker_id, 1, version, now, executors).write(Path(spec.heartbeat))
        time.sleep(0.02)


if __name__ == "__main__":
    main()
