"""The heartbeat of a worker: a small file that it writes again and again, and its supervisor reads.

The file is written whole (`storm_py.files`), but not forced to the disk each time; a reader takes
what is missing, torn or of another format for no heartbeat. The time in it is `time.monotonic()`,
which on one machine is the same for all processes and goes back for nobody; the file says nothing
after a reboot, which no worker survives.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .files import write_atomically

__all__ = ["Heartbeat"]

_FORMAT = 1


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

    def write(self, path: Path) -> None:
        """Write it; OSError if that is not possible."""
        data = {
            "format": _FORMAT,
            "worker_id": self.worker_id,
            "incarnation": self.incarnation,
            "version": self.version,
            "time": self.time,
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
        return cls(worker_id, incarnation, version, float(time))
