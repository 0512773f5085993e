"""Slot: which worker of a run a process is or belongs to, and where that lives. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storm_py.core.plan import PhysicalPlan
from storm_py.files import put_aside

from .folder import InstanceLogs, instance_logs
from .logs import LOG_BACKUPS, LOG_BYTES

#: In local mode nobody gives out ports: workers are named as if they had those of one node.
_FIRST_PORT: Final = 6700
#: Where the stream managers of local mode listen.
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Slot:
    """A worker, by its number in the plan, and its place."""

    worker: int
    #: Counts the starts of this worker.
    incarnation: int
    #: The name of the slot on its node; nobody listens there.
    port: int
    #: Of this machine, as a number: where the stream manager listens for those of other workers.
    address: str
    #: The folder of its logs.
    logs: Path
    #: Whether logs are rotated; those of a run in local mode end with it.
    rotated: bool = False

    def instance_logs(self, plan: PhysicalPlan, instance: int) -> InstanceLogs:
        """Where what an instance says goes."""
        return instance_logs(self.logs, plan, instance, self.rotated)

    def ready_logs(self, plan: PhysicalPlan, instance: int) -> InstanceLogs:
        """The same for an instance that is to start: the folder is there, large output is not."""
        logs = self.instance_logs(plan, instance)
        self.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.rotated:
            for path in (logs.out, logs.err):
                put_aside(path, LOG_BYTES, LOG_BACKUPS)
        return logs


def local_port(worker: int) -> int:
    """The port that a worker of local mode is named by."""
    return _FIRST_PORT + worker


def local_logs(logs: Path, worker: int) -> Path:
    """The log folder of a worker of local mode, below that of the run."""
    return logs / str(local_port(worker))
