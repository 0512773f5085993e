"""WorkerSpec: what a supervisor tells the worker that it launches, in a file beside its record.

The worker finds everything else through it: its code on the disk, its assignment in ZooKeeper. It
holds the configuration of the node, which says where that is. Only the supervisor writes it, once;
the worker (`storm_py.runtime.cluster_worker`) gets its path as its only argument.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from .errors import LocalStateError
from .files import write_atomically

__all__ = ["WorkerSpec"]

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """The slot of a worker, and where things are on its node. All paths are absolute."""

    worker_id: str
    #: The node of its slot.
    supervisor_id: str
    #: What other nodes call this one, and where it listens.
    host: str
    port: int
    topology_id: str
    #: sha256 of the code that it runs, in hexadecimal.
    code_checksum: str
    #: The code of its topology, see `storm_py.supervisor.localizer`.
    code_folder: str
    #: Its logs, and those of its instances.
    log_folder: str
    #: The file of its heartbeats, see `storm_py.heartbeat`.
    heartbeat: str
    #: A file that the supervisor holds locked (flock) while it lives.
    supervisor_lock: str
    #: The configuration of the node.
    conf: Mapping[str, Any]

    def write(self, path: Path) -> None:
        """Write it, for this user alone; OSError if that is not possible."""
        data = {"format": _FORMAT, **asdict(self)}
        write_atomically(path, json.dumps(data, indent=1).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> WorkerSpec:
        """Read it; LocalStateError if it is not there, or no such file."""
        try:
            data = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise LocalStateError(f"{path} cannot be read: {error}") from error
        if not isinstance(data, dict) or data.pop("format", None) != _FORMAT:
            raise LocalStateError(f"{path} is no specification of a worker, format {_FORMAT}")
        names = {field.name for field in fields(cls)}
        if set(data) != names:
            odd = ", ".join(sorted(names ^ set(data)))
            raise LocalStateError(f"{path} has other fields than expected: {odd}")
        return cls(**data)
