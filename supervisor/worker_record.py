"""WorkerRecord: the file that says which process is the worker of a slot, and what it runs.

Its life begins before the worker's: `storm_py.supervisor.launcher` writes it between the fork and
the first instruction of the worker's program. The supervisor alone writes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from storm_py.files import write_atomically

from .assignment import LocalAssignment
from .process_table import Identity

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker that was launched."""

    worker_id: str
    port: int
    #: What it was launched with, or told last.
    assignment: LocalAssignment
    #: Its main process.
    process: Identity

    def with_assignment(self, assignment: LocalAssignment) -> WorkerRecord:
        """The same worker, with something else to run."""
        return replace(self, assignment=assignment)

    def write(self, path: Path) -> None:
        """Write it, so that it is there also if the machine stops."""
        data = {
            "format": _FORMAT,
            "worker_id": self.worker_id,
            "port": self.port,
            "assignment": self.assignment.to_dict(),
            "pid": self.process.pid,
            "start_ticks": self.process.start_ticks,
            "boot_id": self.process.boot_id,
        }
        write_atomically(path, json.dumps(data, indent=2).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> WorkerRecord:
        """Read it: FileNotFoundError if it is missing, ValueError if it is no such record."""
        data = json.loads(path.read_bytes())
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise ValueError(f"no record of a worker in format {_FORMAT}")
        assignment = data.get("assignment")
        if not isinstance(assignment, dict):
            raise ValueError(f"assignment is {assignment!r}, not an object")
        for name, kind in (
            ("worker_id", str),
            ("port", int),
            ("pid", int),
            ("start_ticks", int),
            ("boot_id", str),
        ):
            if not isinstance(data.get(name), kind):
                raise ValueError(f"{name} is {data.get(name)!r}")
        return cls(
            data["worker_id"],
            data["port"],
            LocalAssignment.from_dict(assignment),
            Identity(data["pid"], data["start_ticks"], data["boot_id"]),
        )
