"""Supervisor: the daemon of one node; its loop, and the threads that bring it news.

Theory of operation. One thread, that of `run`, owns the slots with their machines, their processes
and the local state (`storm_py.supervisor.slots`). It sleeps until a process ends, a time has come,
or another thread has something for it. Those are: the watch over ZooKeeper, which waits for a
connection and reads assignments; the reporter, which waits for nimbus; and the localizer's, which
download. None of them decides anything, and the loop waits for none of them.

Workers outlive their supervisor: it ends, by whatever, and the next one on the same local folder
takes them over, with or without ZooKeeper. What it finds there is what was assigned last; what
ZooKeeper says later counts more. Only where there is nothing to look after, and ZooKeeper does not
answer, it gives up.

An error that is ours ends the supervisor, and no worker.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import selectors
import threading
import time
from collections.abc import Callable
from typing import Final

from storm_py.cluster.base import StateStorage
from storm_py.constants import VERSION
from storm_py.errors import ConnectionLost

from .blobs import LeaderBlobs
from .claims import Claims
from .cluster_watch import ClusterWatch
from .folders import LocalFolder
from .heartbeats import NimbusReporter, SupervisorReport
from .leader import Leader
from .local_state import LocalState
from .localizer import Localizer
from .settings import SupervisorSettings
from .slots import Slots
from .workers import Workers

_log = logging.getLogger(__name__)

#: Shortest time between two reports: what changes together is told once.
_REPORT_AGAIN_SECS: Final = 0.1


class Supervisor:
    """One life of a supervisor: `run` it once, on the thread that may fork."""

    def __init__(
        self,
        folder: LocalFolder,
        settings: SupervisorSettings,
        storages: Callable[[], StateStorage],
    ) -> None:
        """`storages` makes a storage that is not started, for each attempt to connect."""
        self._folder = folder
        self._settings = settings
        self._storages = storages
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        # A signal may come while its own thread has this: so that thread may take it again.
        self._wake_lock = threading.RLock()
        self._wake: int | None = None
        self._stopping = False
        self._end_workers = False
        self._failure: BaseException | None = None
        self._signed_at = 0.0
        self._told_at = 0.0
        self._is_up = False
        self._is_alone = False

    def stop(self, end_workers: bool = False) -> None:
        """Have `run` return soon, with or without an end for all workers; from anywhere.

        Ended workers are started again by the next supervisor that runs here.
        """
        self._end_workers |= end_workers
        self._stopping = True
        self._wake_up()

    def run(self) -> None:
        """Do its work until `stop`.

        LocalStateError if another supervisor has the local folder, or what it holds cannot be read;
        ConnectionLost if there is no ZooKeeper, and no worker to look after; OSError for a disk
        that does not let it begin.
        """
        with contextlib.ExitStack() as stack:
            self._begin(stack)
            self._loop()
            if self._end_workers:
                self._workers.end_all()
        if self._failure is not None:
            raise self._failure

    def _begin(self, stack: contextlib.ExitStack) -> None:
        """Take over the local folder, then go to ZooKeeper; `stack` undoes it."""
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        stack.callback(self._close_wake)
        state = LocalState(self._folder.local_state)
        stack.callback(state.close)
        self._started = time.monotonic()
        self._supervisor_id = state.supervisor_id
        leader = Leader()
        localizer = Localizer(self._folder, LeaderBlobs(leader))
        stack.callback(localizer.close)
        self._workers = Workers(self._folder, self._settings, state)
        stack.callback(self._workers.close)
        self._slots = Slots(self._settings, self._workers, localizer, self._call_soon)
        self._reporter = NimbusReporter(leader, self._broken)
        self._watch = ClusterWatch(
            state.supervisor_id,
            self._storages,
            connected=leader.use,
            away=lambda error: self._call_soon(lambda: self._is_away(error)),
            claimed=lambda claims: self._call_soon(lambda: self._claimed(claims)),
            broken=self._broken,
        )
        self._slots.recover()
        self._report()
        self._reporter.start()
        stack.callback(self._reporter.close)
        self._watch.start()
        stack.callback(self._watch.close)

    # ---- the loop ------------------------------------------------------------------------------

    def _loop(self) -> None:
        with selectors.DefaultSelector() as selector:
            assert self._wake is not None
            selector.register(self._wake, selectors.EVENT_READ)
            selector.register(self._workers.fileno(), selectors.EVENT_READ)
            while not self._stopping:
                selector.select(self._timeout())
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
                self._turn()

    def _timeout(self) -> float:
        due = self._slots.next_timeout()
        report_at = self._report_at()
        return max(0.0, (report_at if due is None else min(due, report_at)) - time.monotonic())

    def _report_at(self) -> float:
        """When ZooKeeper or nimbus is to hear of this supervisor."""
        if not self._workers.ports:
            return self._sign_at()
        return min(self._sign_at(), self._told_at + self._settings.statistics_secs)

    def _sign_at(self) -> float:
        changed = self._slots.changed
        return self._signed_at + (_REPORT_AGAIN_SECS if changed else self._settings.heartbeat_secs)

    def _turn(self) -> None:
        while not self._inbox.empty():
            self._inbox.get()()
        self._slots.poll()
        self._slots.tick()
        if self._report_at() <= time.monotonic():
            self._report()

    def _report(self) -> None:
        """Tell nimbus what workers do; also ZooKeeper, if a sign of life is due there."""
        workers = self._slots.reports()
        now = self._told_at = time.monotonic()
        report = SupervisorReport(
            supervisor_id=self._supervisor_id,
            host=self._settings.host,
            ports=self._settings.ports,
            used_ports=tuple(sorted(set(self._workers.ports.values()))),
            time_secs=int(time.time()),
            uptime_secs=int(now - self._started),
            version=VERSION,
            workers=workers,
        )
        if self._sign_at() <= now:
            self._slots.changed = False
            self._signed_at = now
            self._watch.heartbeat(report.info())
        if workers and self._is_up:  # before that nobody knows which nimbus leads
            self._reporter.report(report)

    # ---- what other threads bring --------------------------------------------------------------

    def _call_soon(self, call: Callable[[], None]) -> None:
        self._inbox.put(call)
        self._wake_up()

    def _wake_up(self) -> None:
        with self._wake_lock:
            if self._wake is not None:
                os.eventfd_write(self._wake, 1)

    def _close_wake(self) -> None:
        with self._wake_lock:
            if self._wake is not None:
                os.close(self._wake)
                self._wake = None

    def _claimed(self, claims: Claims) -> None:
        self._slots.assign(claims)
        if not self._is_up:
            self._is_up = True
            self._slots.remove_unused()
            self._slots.changed = True
            _log.info("%s is up", self._name)

    def _is_away(self, error: ConnectionLost) -> None:
        if self._slots.are_idle:
            self._failure = error
            self.stop()
        elif not self._is_alone:
            self._is_alone = True
            _log.warning("%s looks after its workers without ZooKeeper: %s", self._name, error)

    def _broken(self, error: BaseException) -> None:
        self._failure = error
        self.stop()

    @property
    def _name(self) -> str:
        ports = ", ".join(map(str, self._settings.ports)) or "none"
        return f"supervisor {self._supervisor_id} on {self._settings.host}, ports {ports},"
