"""DirectBeats: a worker whose supervisor is gone tells nimbus itself that it lives.

Usually the supervisor does, for all of its workers; who is silent for too long is given to another
slot. A supervisor that lives holds a lock, which the kernel takes from it at its death, so nobody
has to be asked. On a thread of its own, as nothing of the worker may wait for nimbus.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.errors import StormPyError
from storm_py.heartbeat import Heartbeat, dump_statistics

_LOG = logging.getLogger("storm_py.worker")

_LOCKS: Final = Path("/proc/locks")


class DirectBeats:
    """Looks every `every_secs` whether it has to; `beat` gives the newest heartbeat."""

    def __init__(
        self,
        state: ClusterState,
        topology_id: str,
        supervisor_lock: Path,
        every_secs: float,
        beat: Callable[[], Heartbeat | None],
    ) -> None:
        self._state = state
        self._topology_id = topology_id
        self._lock = supervisor_lock
        self._every_secs = every_secs
        self._beat = beat
        self._closing = threading.Event()
        self._silent = False
        self._thread = threading.Thread(target=self._work, name="direct-beats", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; a call that is under way is not waited for."""
        self._closing.set()

    def _work(self) -> None:
        while not self._closing.wait(self._every_secs):
            try:
                if is_locked(self._lock):
                    continue
                self._send()
            except (OSError, StormPyError) as error:
                if not self._silent:
                    _LOG.warning("neither the supervisor nor nimbus hears this worker: %s", error)
                self._silent = True
            else:
                self._silent = False

    def _send(self) -> None:
        # Here, as it takes long to import and most workers never need it.
        from storm_py.rpc.client import Patience, ThriftClient
        from storm_py.rpc.definitions import ExecutorInfo, SupervisorWorkerHeartbeat

        beat, leader = self._beat(), self._state.leader_info()
        if beat is None:
            return
        if leader is None:
            raise StormPyError("no nimbus leads")
        # The next one comes soon: nothing is gained by much patience with this one.
        patience = Patience(attempts=1, connect_secs=3.0, answer_secs=10.0)
        client = ThriftClient(leader.host, leader.port, patience)
        try:
            client.nimbus.sendSupervisorWorkerHeartbeat(
                SupervisorWorkerHeartbeat(
                    storm_id=self._topology_id,
                    executors=[
                        ExecutorInfo(task_start=each.first_task, task_end=each.last_task)
                        for each in beat.executors
                    ],
                    time_secs=int(time.time()),
                    statistics=dump_statistics(beat.executors),
                )
            )
        finally:
            client.close()


def is_locked(path: Path) -> bool:
    """Whether some process holds a file locked with flock.

    Not by trying to lock it: whoever wants it at that moment would be refused. A file that is not
    there is locked by nobody; where the kernel does not show locks nobody knows, and what is told
    twice does no harm.
    """
    try:
        inode = os.stat(path).st_ino
    except FileNotFoundError:
        return False
    if not _LOCKS.exists():
        return False
    for line in _LOCKS.read_text().splitlines():
        fields = line.split()  # "1: FLOCK  ADVISORY  WRITE 708 08:01:2621 0 EOF"
        if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(inode):
            return True
    return False
