"""LocalFolder: where a supervisor keeps what, below its storm.local.dir. Names are here only.

::

    supervisor/localstate.json                what it knows: `storm_py.supervisor.local_state`
    supervisor/stormdist/<topology>/<sha256>/ code: `storm_py.supervisor.localizer`
    supervisor/tmp/                           downloads on their way; emptied at each start
    workers/<worker id>/worker.json           which process it is
    workers/<worker id>/spec.json             what it was told: `storm_py.worker_spec`
    workers/<worker id>/heartbeat             written by the worker: `storm_py.heartbeat`
    logs/<topology>/<port>/worker.log         written and rotated by the worker's own logging
    logs/<topology>/<port>/worker.log.out     its standard output, and that of its children
    logs/<topology>/<port>/worker.log.err     its standard error

All folders are for this user alone.
"""

from __future__ import annotations

from pathlib import Path


class LocalFolder:
    """The layout of a local folder; it makes nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def local_state(self) -> Path:
        """The file of what the supervisor knows."""
        return self.path / "supervisor" / "localstate.json"

    @property
    def stormdist(self) -> Path:
        """The folder of the code of topologies."""
        return self.path / "supervisor" / "stormdist"

    @property
    def tmp(self) -> Path:
        """The folder of what is not complete; on the same file system as `stormdist`."""
        return self.path / "supervisor" / "tmp"

    @property
    def workers(self) -> Path:
        """The folder of the workers' folders, which are named by worker ids."""
        return self.path / "workers"

    def worker(self, worker_id: str) -> Path:
        """The folder of a worker."""
        return self.workers / worker_id

    def record(self, worker_id: str) -> Path:
        """The file that says which process a worker is."""
        return self.worker(worker_id) / "worker.json"

    def spec(self, worker_id: str) -> Path:
        """The file that tells a worker what it is, see `storm_py.worker_spec`."""
        return self.worker(worker_id) / "spec.json"

    def heartbeat(self, worker_id: str) -> Path:
        """The file that a worker writes, see `storm_py.heartbeat`."""
        return self.worker(worker_id) / "heartbeat"

    def logs(self, topology_id: str, port: int) -> Path:
        """The folder of the logs of all workers that a topology has had on a port."""
        return self.path / "logs" / topology_id / str(port)
