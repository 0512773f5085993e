"""Workers: the processes of a node's slots, and what has to be known of them after a restart.

The launcher with the local state: a worker is approved before it is launched and forgotten when it
is gone, so that after a restart one that runs is known for ours. What cannot be written to the disk
is logged and does not end the supervisor, but for the launch of a worker that would not be known:
that is not begun.

For the thread of `storm_py.supervisor.slots`, which decides what is done here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from storm_py.files import make_folder
from storm_py.heartbeat import Heartbeat
from storm_py.worker_spec import WorkerSpec

from .assignment import LocalAssignment
from .folders import LocalFolder
from .launcher import Exited, Gone, Launcher, Recovered
from .local_state import LocalState
from .localizer import CODE
from .settings import SupervisorSettings
from .slot_actions import Severity

_log = logging.getLogger(__name__)

#: Between two KILLs at the end, and until workers that survive them are left alone.
KILL_AGAIN_SECS: Final = 1.0
GIVE_UP_SECS: Final = 10.0


class Workers:
    """All workers of one node, by their ids."""

    def __init__(
        self, folder: LocalFolder, settings: SupervisorSettings, state: LocalState
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._state = state
        self._launcher = Launcher(folder)
        self._ports: dict[str, int] = {}

    def fileno(self) -> int:
        """Readable when `poll` has something to do."""
        return self._launcher.fileno()

    def close(self) -> None:
        """Let all workers run on."""
        self._launcher.close()

    @property
    def ports(self) -> Mapping[str, int]:
        """The port of each worker that is not gone."""
        return self._ports

    def logs(self, topology_id: str, port: int) -> Path:
        """The folder of the logs of all workers that a topology has had on a port."""
        return self._folder.logs(topology_id, port)

    # ---- after a restart -----------------------------------------------------------------------

    def recover(self) -> list[tuple[Recovered, bool]]:
        """What an earlier supervisor left, those that live first; whether it had approved each."""
        approved = self._state.approved_workers
        found = []
        for each in sorted(self._launcher.recover(), key=lambda each: not each.alive):
            worker_id, port = each.record.worker_id, each.record.port
            self._ports[worker_id] = port
            found.append((each, approved.get(worker_id) == port))
        for worker_id in set(approved) - self._ports.keys():
            self._forget(worker_id)
        return found

    @property
    def assignments(self) -> Mapping[int, LocalAssignment]:
        """What each port has to run, as it was remembered."""
        return self._state.assignments

    def remember(self, port: int, wanted: LocalAssignment | None) -> None:
        """What a port has to run, for the next supervisor."""
        if self._state.assignments.get(port) == wanted:
            return
        try:
            self._state.assign(port, wanted)
        except OSError as error:
            _log.error("port %d: what it has to run cannot be kept: %s", port, error)

    def _forget(self, worker_id: str) -> None:
        if worker_id not in self._state.approved_workers:
            return
        try:
            self._state.forget(worker_id)
        except OSError as error:
            _log.error("worker %s cannot be forgotten: %s", worker_id, error)

    # ---- a worker's life -----------------------------------------------------------------------

    def launch(self, worker_id: str, port: int, wanted: LocalAssignment, code: Path) -> None:
        """Start a worker of the code in this folder; OSError if it cannot be started."""
        self._state.approve(worker_id, port)
        spec = self._write_spec(worker_id, port, wanted, code)
        pid = self._launcher.launch(
            worker_id,
            port,
            wanted,
            [*self._settings.command, str(spec)],
            self._settings.environment,
            code / CODE,
        )
        self._ports[worker_id] = port
        _log.info("worker %s on port %d is process %d: %s", worker_id, port, pid, wanted)

    def _write_spec(self, worker_id: str, port: int, wanted: LocalAssignment, code: Path) -> Path:
        path = self._folder.spec(worker_id)
        make_folder(path.parent)
        WorkerSpec(
            worker_id=worker_id,
            supervisor_id=self._state.supervisor_id,
            host=self._settings.host,
            port=port,
            topology_id=wanted.topology_id,
            code_checksum=wanted.checksum,
            code_folder=str(code),
            log_folder=str(self.logs(wanted.topology_id, port)),
            heartbeat=str(self._folder.heartbeat(worker_id)),
            supervisor_lock=str(self._state.lock_path),
            conf=self._settings.conf,
        ).write(path)
        return path

    def told(self, worker_id: str, wanted: LocalAssignment) -> None:
        """It has to run this now: it sees so for itself, and its record has to say so as well."""
        try:
            self._launcher.told(worker_id, wanted)
        except OSError as error:
            _log.error("worker %s: what it runs cannot be recorded: %s", worker_id, error)

    def heartbeat(self, worker_id: str) -> Heartbeat | None:
        """Its newest heartbeat, if there is one that can be read."""
        try:
            return self._launcher.heartbeat(worker_id)
        except OSError as error:
            _log.error("the heartbeat of worker %s cannot be read: %s", worker_id, error)
            return None

    def end(self, worker_id: str, severity: Severity) -> None:
        """TERM for its main process, or KILL for all that belongs to it."""
        self._launcher.end(worker_id, severity)

    def poll(self) -> list[tuple[int, Exited | Gone]]:
        """Which have ended, with their ports."""
        found = []
        for event in self._launcher.poll():
            found.append((self._ports[event.worker_id], event))
            if isinstance(event, Gone):
                del self._ports[event.worker_id]
        return found

    def clean_up(self, worker_id: str) -> None:
        """It is gone: keep nothing of it but its logs."""
        self._launcher.cleanup(worker_id)
        self._forget(worker_id)

    def end_all(self) -> None:
        """End all and wait for that; what they ran is to be run again by the next supervisor."""
        now = time.monotonic()
        kill_at = now + self._settings.timeouts.shutdown_secs
        give_up_at = kill_at + GIVE_UP_SECS
        _log.info("workers that are to end: %d", len(self._ports))
        for worker_id in self._ports:
            self.end(worker_id, Severity.TERM)
        while self._ports and now < give_up_at:
            if now >= kill_at:
                kill_at = now + KILL_AGAIN_SECS
                for worker_id in self._ports:
                    self.end(worker_id, Severity.KILL)
            for event in self._launcher.poll(max(0.0, min(kill_at, give_up_at) - now)):
                match event:
                    case Exited(worker_id):
                        self.end(worker_id, Severity.KILL)  # what it has left
                    case Gone(worker_id):
                        del self._ports[worker_id]
                        self.clean_up(worker_id)
            now = time.monotonic()
        for worker_id, port in self._ports.items():
            _log.error("worker %s on port %d cannot be killed; it is left", worker_id, port)
