"""The heartbeat of a worker: a small file that it writes again and again, and its supervisor reads.

The file is written whole (`storm_py.files`), but not forced to the disk each time; a reader takes
what is missing, torn or of another format for no heartbeat. The time in it is `time.monotonic()`,
which on one machine is the same for all processes and goes back for nobody; the file says nothing
after a reboot, which no worker survives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from .errors import ProtocolError
from .files import write_atomically

__all__ = ["ExecutorStatistics", "Heartbeat", "dump_statistics", "load_statistics"]

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ExecutorStatistics:
    """What an executor has done since its worker started; counts of tuples."""

    first_task: int
    last_task: int
    #: Since its process was started, in seconds; 0 while it is not up.
    uptime_secs: int
    #: Its process; 0 while there is none.
    pid: int
    executed: int
    emitted: int
    transferred: int
    acked: int
    failed: int
    #: That wait for it now.
    queued: int


def dump_statistics(executors: Iterable[ExecutorStatistics]) -> str:
    """As a text that travels in heartbeats."""
    return json.dumps([astuple(executor) for executor in executors], separators=(",", ":"))


def load_statistics(text: str) -> tuple[ExecutorStatistics, ...]:
    """What `dump_statistics` made; ProtocolError if it did not make this."""
    try:
        return _statistics(json.loads(text))
    except ValueError as error:
        raise ProtocolError(f"statistics of a worker: {error}") from error


def _statistics(found: Any) -> tuple[ExecutorStatistics, ...]:
    fields = len(ExecutorStatistics.__slots__)
    if not isinstance(found, list):
        raise ValueError(f"{found!r:.80} is no list")
    for row in found:
        if not isinstance(row, list) or [type(each) for each in row] != [int] * fields:
            raise ValueError(f"{row!r:.80} is no list of {fields} whole numbers")
    return tuple(ExecutorStatistics(*row) for row in found)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a worker says of itself."""

    worker_id: str
    #: Of the worker on its slot.
    incarnation: int
    #: Version of the assignment that it follows.
    version: int
    #: time.monotonic() when it was written.
    time: float
    #: What its executors have done.
    executors: tuple[ExecutorStatistics, ...] = ()

    def write(self, path: Path) -> None:
        """Write it; OSError if that is not possible."""
        data = {
            "format": _FORMAT,
            "worker_id": self.worker_id,
            "incarnation": self.incarnation,
            "version": self.version,
            "time": self.time,
            "executors": [astuple(executor) for executor in self.executors],
        }
        write_atomically(path, json.dumps(data).encode(), durable=False)

    @classmethod
    def read(cls, path: Path) -> Heartbeat | None:
        """The newest one, None if there is none that can be read."""
        try:
            data = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            return None
        worker_id, time = data.get("worker_id"), data.get("time")
        incarnation, version = data.get("incarnation"), data.get("version")
        if (
            not isinstance(worker_id, str)
            or not isinstance(incarnation, int)
            or not isinstance(version, int)
            or not isinstance(time, (int, float))
        ):
            return None
        try:
            executors = _statistics(data.get("executors"))
        except ValueError:
            return None
        return cls(worker_id, incarnation, version, float(time), executors)
