"""LocalState: what a supervisor has to know after its restart, in one file.

That is its own id, made once; what each port has to run, as far as was known; and which workers it
has approved, with their ports: a worker that runs and is not among them is nobody's. The file is
JSON with a format number, written whole at each change (`storm_py.files`), and loaded once. A lock
beside it, which ends with its process, keeps a second supervisor from the folder: two would kill
each other's workers.

Which processes the workers are is in their own records, `storm_py.supervisor.worker_record`.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from storm_py.errors import LocalStateError
from storm_py.files import make_folder, write_atomically

from .assignment import LocalAssignment

FORMAT: Final = 1
#: Who looks whether a supervisor lives takes the lock for a moment: that is not another supervisor.
_LOCK_ATTEMPTS: Final = 10
_LOCK_PAUSE_SECS: Final = 0.03


@dataclass(frozen=True, slots=True)
class _Known:
    supervisor_id: str
    assignments: Mapping[int, LocalAssignment]
    approved_workers: Mapping[str, int]


class LocalState:
    """The file, and what is in it. Each change is on the disk when the call returns.

    A change raises OSError if it cannot be written, and is not made then.
    """

    def __init__(self, path: Path) -> None:
        """Load it, or begin one; LocalStateError if it cannot be read, or another process has it.

        A broken file is kept under another name, so that the next start begins a new one.
        """
        self._path = path
        make_folder(path.parent)
        self._lock = _lock(self.lock_path)
        try:
            self._known = self._load()
        except (LocalStateError, OSError):
            self.close()
            raise

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)

    def _load(self) -> _Known:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return self._change(_Known(str(uuid.uuid4()), {}, {}))
        return self._judge(data)

    def _judge(self, data: bytes) -> _Known:
        try:
            plain = json.loads(data)
            if not isinstance(plain, dict):
                raise ValueError(f"it holds {plain!r:.80}, not an object")
            if isinstance(plain.get("format"), int) and plain["format"] > FORMAT:
                raise LocalStateError(
                    f"{self._path} has format {plain['format']}, and this storm-py reads {FORMAT}: "
                    "it was written by a newer one; start that, or move the file away"
                )
            return _known(plain)
        except (ValueError, RecursionError) as error:
            aside = self._put_aside()
            raise LocalStateError(
                f"{self._path} is not what a supervisor writes: {error}; it is kept as {aside}. "
                "Start the supervisor again: it begins anew, under another id, with what the "
                "cluster assigns to it"
            ) from error

    def _put_aside(self) -> Path:
        number = 1
        while (aside := self._path.with_name(f"{self._path.name}.broken-{number}")).exists():
            number += 1
        os.rename(self._path, aside)
        return aside

    @property
    def lock_path(self) -> Path:
        """The file that is locked (flock) while its process lives."""
        return self._path.with_name(f"{self._path.name}.lock")

    @property
    def supervisor_id(self) -> str:
        """The id of this supervisor, the same as long as the file is there."""
        return self._known.supervisor_id

    @property
    def assignments(self) -> Mapping[int, LocalAssignment]:
        """What each port has to run."""
        return MappingProxyType(self._known.assignments)

    @property
    def approved_workers(self) -> Mapping[str, int]:
        """The port of each worker that was launched and is not known to be gone."""
        return MappingProxyType(self._known.approved_workers)

    def assign(self, port: int, assignment: LocalAssignment | None) -> None:
        """A port has to run this from now on, or nothing."""
        assignments = {each: value for each, value in self.assignments.items() if each != port}
        if assignment is not None:
            assignments[port] = assignment
        self._change(_Known(self.supervisor_id, assignments, self._known.approved_workers))

    def approve(self, worker_id: str, port: int) -> None:
        """A worker is about to be launched."""
        approved = {**self._known.approved_workers, worker_id: port}
        self._change(_Known(self.supervisor_id, self._known.assignments, approved))

    def forget(self, worker_id: str) -> None:
        """A worker is gone."""
        approved = {
            each: port for each, port in self._known.approved_workers.items() if each != worker_id
        }
        self._change(_Known(self.supervisor_id, self._known.assignments, approved))

    def _change(self, known: _Known) -> _Known:
        data = {
            "format": FORMAT,
            "supervisor_id": known.supervisor_id,
            "assignments": {
                str(port): assignment.to_dict() for port, assignment in known.assignments.items()
            },
            "approved_workers": dict(known.approved_workers),
        }
        write_atomically(self._path, json.dumps(data, indent=2).encode() + b"\n")
        self._known = known
        return known


def _lock(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for attempt in range(1, _LOCK_ATTEMPTS + 1):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if attempt == _LOCK_ATTEMPTS:
                os.close(fd)
                raise LocalStateError(
                    f"another supervisor uses the folder {path.parent.parent}: stop that, or give "
                    "this one a storm.local.dir of its own"
                ) from error
            time.sleep(_LOCK_PAUSE_SECS)
        else:
            break
    return fd


def _known(plain: dict[str, object]) -> _Known:
    """ValueError says what is not as it should be."""
    if plain.get("format") != FORMAT:
        raise ValueError(f"format is {plain.get('format')!r}, not {FORMAT}")
    supervisor_id = plain.get("supervisor_id")
    if not isinstance(supervisor_id, str) or not supervisor_id:
        raise ValueError(f"supervisor_id is {supervisor_id!r}, not a text")
    assignments = plain.get("assignments")
    if not isinstance(assignments, dict) or not all(
        port.isdecimal() and isinstance(value, dict) for port, value in assignments.items()
    ):
        raise ValueError(f"assignments is {assignments!r:.80}, not an object of objects by port")
    approved = plain.get("approved_workers")
    if not isinstance(approved, dict) or not all(type(port) is int for port in approved.values()):
        raise ValueError(f"approved_workers is {approved!r:.80}, not an object of ports")
    return _Known(
        supervisor_id,
        {int(port): LocalAssignment.from_dict(value) for port, value in assignments.items()},
        approved,
    )
