"""What a supervisor says of itself and of its workers: to ZooKeeper, and to nimbus by Thrift.

That it lives, and which ports are used, goes to ZooKeeper in one write for all workers
(`storm_py.supervisor.cluster_watch` writes it). What each executor has done goes to the nimbus that
leads, on a thread of its own, as nothing may wait for a nimbus: the newest report counts, and one
that cannot be sent is of no use later.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from storm_py.cluster.records import Executor, SupervisorInfo, WorkerHeartbeat
from storm_py.errors import StormPyError
from storm_py.rpc.client import Patience, ThriftClient
from storm_py.rpc.definitions import (
    ExecutorInfo,
    SupervisorWorkerHeartbeat,
    SupervisorWorkerHeartbeats,
)

from .blobs import FindsLeader

_log = logging.getLogger(__name__)

#: The next report comes soon: nothing is gained by much patience with this one.
_PATIENCE = Patience(attempts=1, connect_secs=3.0, answer_secs=10.0)
#: How long a supervisor that stops waits for a call that is under way.
_STOP_SECS = 1.0


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """A worker that lives, by its newest heartbeat."""

    port: int
    topology_id: str
    #: Of the assignment that it follows.
    version: int
    executors: tuple[Executor, ...]
    #: When it said so, in seconds since 1970.
    time_secs: int
    uptime_secs: int
    #: As `storm_py.heartbeat.dump_statistics` makes them.
    statistics: str


@dataclass(frozen=True, slots=True)
class SupervisorReport:
    """A supervisor and its workers at one time."""

    supervisor_id: str
    host: str
    #: All ports that workers may be given.
    ports: tuple[int, ...]
    #: Those on which a worker is, be it starting, living or ending.
    used_ports: tuple[int, ...]
    #: In seconds since 1970.
    time_secs: int
    uptime_secs: int
    #: Of storm-py.
    version: str
    workers: tuple[WorkerReport, ...]

    def info(self) -> SupervisorInfo:
        """As ZooKeeper gets it."""
        return SupervisorInfo(
            time_secs=self.time_secs,
            hostname=self.host,
            assignment_id=self.supervisor_id,
            used_ports=self.used_ports,
            meta=self.ports,
            uptime_secs=self.uptime_secs,
            version=self.version,
            worker_heartbeats={
                worker.port: WorkerHeartbeat(
                    storm_id=worker.topology_id,
                    assignment_version=worker.version,
                    executors=worker.executors,
                    time_secs=worker.time_secs,
                    uptime_secs=worker.uptime_secs,
                )
                for worker in self.workers
            },
        )

    def heartbeats(self) -> SupervisorWorkerHeartbeats:
        """As nimbus gets it."""
        return SupervisorWorkerHeartbeats(
            supervisor_id=self.supervisor_id,
            worker_heartbeats=[_heartbeat(worker) for worker in self.workers],
        )


def _heartbeat(worker: WorkerReport) -> SupervisorWorkerHeartbeat:
    return SupervisorWorkerHeartbeat(
        storm_id=worker.topology_id,
        executors=[
            ExecutorInfo(task_start=first, task_end=last) for first, last in worker.executors
        ],
        time_secs=worker.time_secs,
        statistics=worker.statistics,
    )


class NimbusReporter:
    """Sends the newest report to the nimbus that leads, on a thread of its own."""

    def __init__(
        self,
        leader: FindsLeader,
        broken: Callable[[BaseException], None],
        patience: Patience = _PATIENCE,
    ) -> None:
        """`broken` is called when the thread ends by an error that is ours, on that thread."""
        self._leader = leader
        self._broken = broken
        self._patience = patience
        self._changed = threading.Condition()
        self._report: SupervisorReport | None = None
        self._closing = False
        self._answered = True
        self._thread = threading.Thread(target=self._run, name="nimbus-reporter", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; a call that is under way is given up."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(_STOP_SECS)

    def report(self, report: SupervisorReport) -> None:
        """Send this, instead of any that has not been sent; does not wait."""
        with self._changed:
            self._report = report
            self._changed.notify()

    def _run(self) -> None:
        try:
            self._send_all()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the supervisor has to know
            self._broken(error)

    def _send_all(self) -> None:
        client: ThriftClient | None = None
        while (report := self._next()) is not None:
            try:
                if client is None:
                    # Asked for only now: whoever asks ZooKeeper while that goes away waits for it,
                    # and workers must not seem dead meanwhile. Who leads no more refuses the call.
                    client = ThriftClient(*self._leader.address(), self._patience)
                client.nimbus.sendSupervisorWorkerHeartbeats(report.heartbeats())
            except StormPyError as error:
                _close(client)
                client = None
                self._failed(error)
            else:
                self._succeeded()
        _close(client)

    def _next(self) -> SupervisorReport | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._report is not None)
            report, self._report = self._report, None
            return None if self._closing else report

    def _failed(self, error: StormPyError) -> None:
        level = logging.INFO if self._answered else logging.DEBUG
        self._answered = False
        _log.log(level, "nimbus gets no heartbeats of workers: %s; workers go on", error)

    def _succeeded(self) -> None:
        if not self._answered:
            self._answered = True
            _log.info("nimbus gets heartbeats of workers again")


def _close(client: ThriftClient | None) -> None:
    if client is not None:
        client.close()
