"""Probe: looks at ZooKeeper, on a thread of its own, until the whole cluster has registered there.

What a cluster that was killed has left in ZooKeeper stays until its sessions end, some seconds
after the next start: only a nimbus and supervisors that were started since count.

It tells through a pipe that is readable when there is something to take; it decides nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.cluster.zookeeper import ZooKeeperSettings, ZooKeeperStorage
from storm_py.dev_zookeeper import serves
from storm_py.errors import ClusterStateError

from .plan import HOST

__all__ = ["Probe", "Registered", "Serves", "Told"]

#: Between two looks while something is missing: a start is not to be the slower for it.
_LOOK_SECS: Final = 0.03
#: ZooKeeper is on this machine, and serves already when it is asked.
_CONNECT_SECS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Serves:
    """ZooKeeper answers."""


@dataclass(frozen=True, slots=True)
class Registered:
    """Nimbus leads and all supervisors are there."""

    #: Topologies that were there before.
    storms: tuple[str, ...]


Told: TypeAlias = Serves | Registered


class Probe:
    """One look at the start of one cluster."""

    def __init__(
        self, settings: ZooKeeperSettings, supervisors: int, since_secs: int, port: int
    ) -> None:
        """So many supervisors and a nimbus at `port`, started at `since_secs` (epoch) or later."""
        # It looks again by itself, and is not to be waited for when the cluster ends.
        self._settings = dataclasses.replace(settings, servers=(HOST,), retry_times=0)
        self._supervisors = supervisors
        self._since_secs = since_secs
        self._port = port
        self._told: queue.SimpleQueue[Told] = queue.SimpleQueue()
        self._wait, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)
        # That a connection is lost, or not there yet, is no news here: daemons say so themselves.
        logging.getLogger("kazoo").addHandler(logging.NullHandler())

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        self._thread.join()
        os.close(self._wait)
        os.close(self._wake)

    def fileno(self) -> int:
        """Readable when there is something to take."""
        return self._wait

    def take(self) -> list[Told]:
        """What was found since the last call."""
        os.read(self._wait, 4096)
        found = []
        while not self._told.empty():
            found.append(self._told.get())
        return found

    # ---- on its thread -------------------------------------------------------------------------

    def _run(self) -> None:
        if self._wait_until(lambda: serves(HOST, self._settings.port)):
            self._tell(Serves())
        while not self._stopped.is_set():
            storage = ZooKeeperStorage(self._settings)
            try:
                storage.start(_CONNECT_SECS)
                state = ClusterState(storage)
                if self._wait_until(functools.partial(self._is_complete, state)):
                    self._tell(Registered(state.storms()))
                return
            except ClusterStateError:  # ZooKeeper has gone again: so has the look at it
                self._stopped.wait(_LOOK_SECS)
            finally:
                storage.close()

    def _wait_until(self, predicate: Callable[[], bool]) -> bool:
        """Whether it came to be before this was stopped."""
        while not predicate():
            if self._stopped.wait(_LOOK_SECS):
                return False
        return True

    def _is_complete(self, state: ClusterState) -> bool:
        leader = state.leader_info()
        if leader is None or leader.port != self._port or leader.start_time_secs < self._since_secs:
            return False
        found = [state.supervisor_info(supervisor_id) for supervisor_id in state.supervisors()]
        # Both in whole seconds: a supervisor of the cluster before is older by more than that.
        starts = [info.time_secs - info.uptime_secs for info in found if info is not None]
        return sum(start >= self._since_secs - 1 for start in starts) >= self._supervisors

    def _tell(self, told: Told) -> None:
        self._told.put(told)
        os.write(self._wake, b"\0")
