"""ClusterLink: a worker's ear and mouth in ZooKeeper, on a thread of its own.

Theory of operation. What concerns the worker - its topology, its assignment, the registrations of
other workers - is read whenever ZooKeeper says that it changed and put into a queue, from which the
worker's own thread takes it; what the worker has to say is written. All of it happens on one
thread, so that nothing that is read arrives before what was read earlier. Without a connection jobs
wait for it; each is there once, and does what is up to date when its turn comes.

Decides nothing: that is `storm_py.engine.membership` and `storm_py.runtime.cluster_parent`.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Final

from storm_py.cluster.base import Cancel, ConnectionState
from storm_py.cluster.records import Assignment, ErrorInfo, LogConfig, StormBase, WorkerRegistration
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.errors import ClusterStateError, ConnectionLost, InvalidRecord, NoNode

_LOG = logging.getLogger("storm_py.worker")

#: Errors of components that wait for a connection, at most.
_ERRORS: Final = 100
#: Seconds until a job is tried again that failed with the connection, unless that comes back first.
_AGAIN_SECS: Final = 1.0


@dataclass(frozen=True, slots=True)
class AssignmentRead:
    """The assignment of the topology; None if there is none (any more)."""

    assignment: Assignment | None


@dataclass(frozen=True, slots=True)
class StormRead:
    """The topology; None if there is none (any more)."""

    base: StormBase | None


@dataclass(frozen=True, slots=True)
class RegistrationRead:
    """The registration of a worker, this one included; None if there is none (any more)."""

    worker: int
    registration: WorkerRegistration | None


@dataclass(frozen=True, slots=True)
class WaveRead:
    """The number of the END wave that all workers share."""

    wave: int


@dataclass(frozen=True, slots=True)
class LogConfigRead:
    """The levels of loggers that are set."""

    config: LogConfig


@dataclass(frozen=True, slots=True)
class _Failed:
    """The link reads and writes no more, by a mistake in it."""

    error: Exception


Event = AssignmentRead | StormRead | RegistrationRead | WaveRead | LogConfigRead


class ClusterLink:
    """What one worker reads and writes; `wake` is called, on another thread, for each event."""

    def __init__(
        self, state: ClusterState, storm_id: str, worker: int, wake: Callable[[], None]
    ) -> None:
        self._state = state
        self._storm_id = storm_id
        self._worker = worker
        self._wake = wake
        self._events: queue.SimpleQueue[Event | _Failed] = queue.SimpleQueue()
        self._lock = threading.Condition()
        #: by key, in the order in which they are due
        self._jobs: dict[object, Callable[[], None]] = {}
        self._errors: deque[tuple[str, ErrorInfo]] = deque(maxlen=_ERRORS)
        self._registration: WorkerRegistration | None = None
        self._closing = False
        self._connected_again = True
        self._watched: dict[int, Cancel] = {}
        self._cancels: list[Cancel] = []
        self._thread = threading.Thread(target=self._work, name="cluster-link", daemon=True)

    def start(self) -> None:
        """Begin: everything is read once, and again when it has changed."""
        self._cancels = [
            self._state.listen(self._connection_changed),
            self._state.watch_assignment(self._storm_id, partial(self._due, "assignment")),
            self._state.watch_storm(self._storm_id, partial(self._due, "storm")),
            self._state.watch_wave(self._storm_id, partial(self._due, "wave")),
            self._state.watch_topology_log_config(self._storm_id, partial(self._due, "levels")),
            self._state.watch_registration(
                self._storm_id, self._worker, partial(self._due, self._worker)
            ),
        ]
        self._thread.start()
        for what in ("assignment", "storm", "wave", "levels", self._worker):
            self._due(what)

    def close(self, patience_secs: float) -> None:
        """End; what is still to be written gets this long."""
        for cancel in (*self._cancels, *self._watched.values()):
            cancel()
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        self._thread.join(patience_secs)

    # ---- for the worker's thread ---------------------------------------------------------------

    def take(self) -> Event | None:
        """The next event, None if there is none now.

        Raises what the link came to an end by: a worker that hears nothing any more must not go on.
        """
        try:
            event = self._events.get_nowait()
        except queue.Empty:
            return None
        if isinstance(event, _Failed):
            raise event.error
        return event

    def follow(self, workers: Collection[int]) -> None:
        """Read the registrations of these other workers from now on, and of no others."""
        with self._lock:
            self._jobs["follow"] = partial(self._follow, frozenset(workers))
            self._lock.notify_all()

    def publish(self, registration: WorkerRegistration) -> None:
        """Write the registration of this worker; one that is not written yet is replaced."""
        with self._lock:
            self._registration = registration
            self._jobs["publish"] = self._publish
            self._lock.notify_all()

    def renew_wave(self) -> None:
        """Raise the number of the END wave."""
        with self._lock:
            self._jobs["renew wave"] = self._renew_wave
            self._lock.notify_all()

    def report_error(self, component_id: str, error: ErrorInfo) -> None:
        """Add an error of a component; the oldest are given up if too many wait."""
        with self._lock:
            if len(self._errors) == _ERRORS:
                _LOG.warning("an error of %s is not reported: too many wait", self._errors[0][0])
            self._errors.append((component_id, error))
            self._jobs["errors"] = self._report_errors
            self._lock.notify_all()

    # ---- the thread ----------------------------------------------------------------------------

    def _due(self, what: str | int) -> None:
        """Something may have changed: read it."""
        with self._lock:
            self._jobs["read", what] = partial(self._read, what)
            self._lock.notify_all()

    def _connection_changed(self, state: ConnectionState) -> None:
        with self._lock:
            self._connected_again = state is ConnectionState.CONNECTED
            self._lock.notify_all()

    def _work(self) -> None:
        try:
            self._do_jobs()
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker's thread has to hear it
            _LOG.exception("the link to ZooKeeper failed")
            self._events.put(_Failed(error))
            self._wake()

    def _do_jobs(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._jobs or self._closing)
                if not self._jobs:
                    return
                key = next(iter(self._jobs))
                job = self._jobs.pop(key)
                self._connected_again = False
            try:
                job()
            except ConnectionLost:
                with self._lock:
                    self._jobs.setdefault(key, job)
                    if self._closing:
                        return
                    self._lock.wait_for(lambda: self._connected_again or self._closing, _AGAIN_SECS)
            except ClusterStateError as error:
                _LOG.error("%s", error)

    def _read(self, what: str | int) -> None:
        try:
            event = self._event(what)
        except InvalidRecord as error:
            _LOG.error("%s; what was there before still holds", error)
            return
        self._events.put(event)
        self._wake()

    def _event(self, what: str | int) -> Event:
        match what:
            case "assignment":
                return AssignmentRead(self._state.assignment(self._storm_id))
            case "wave":
                return WaveRead(self._state.wave(self._storm_id))
            case "levels":
                return LogConfigRead(self._state.topology_log_config(self._storm_id))
            case int():
                return RegistrationRead(what, self._state.registration(self._storm_id, what))
            case _:
                return StormRead(self._state.storm_base(self._storm_id))

    def _follow(self, workers: frozenset[int]) -> None:
        for worker in self._watched.keys() - workers:
            self._watched.pop(worker)()
        for worker in sorted(workers - self._watched.keys()):
            due = partial(self._due, worker)
            self._watched[worker] = self._state.watch_registration(self._storm_id, worker, due)
            due()

    def _publish(self) -> None:
        with self._lock:
            registration = self._registration
        assert registration is not None
        try:
            written = self._state.register(self._storm_id, registration)
        except NoNode:
            _LOG.info("nobody is to know where this worker listens: its topology is gone")
            return
        if not written:
            self._due(self._worker)  # somebody was started in our place

    def _renew_wave(self) -> None:
        try:
            self._state.renew_wave(self._storm_id)
        except NoNode:
            _LOG.info("no wave is begun: its topology is gone")

    def _report_errors(self) -> None:
        while True:
            with self._lock:
                if not self._errors:
                    return
                component_id, error = self._errors[0]
            try:
                self._state.report_error(self._storm_id, component_id, error)
            except NoNode:
                _LOG.info("an error of %s is not reported: its topology is gone", component_id)
            except ConnectionLost:
                raise
            except ClusterStateError as reason:
                _LOG.error("an error of %s is not reported: %s", component_id, reason)
            with self._lock:
                if self._errors and self._errors[0] == (component_id, error):
                    self._errors.popleft()
