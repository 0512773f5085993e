"""What a worker of a cluster does once it is started: `storm_py.runtime.cluster_worker` starts it.

It reads from ZooKeeper what it is assigned, takes its number among the workers of its topology, and
then is a `Worker` like that of local mode, under another parent. It outlives its supervisor, and
goes on without ZooKeeper once it runs. SIGTERM stops it in an orderly way: instances close their
components.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from storm_py.cluster.records import Assignment, ErrorInfo
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.cluster.zookeeper import ZooKeeperSettings, ZooKeeperStorage
from storm_py.config import Config
from storm_py.constants import SYSTEM_COMPONENT_ID, VERSION
from storm_py.errors import ClusterStateError, ConnectionLost, StormPyError
from storm_py.worker_spec import WorkerSpec

from .assigned_run import AssignedRun, LocalCode
from .cluster_link import ClusterLink
from .cluster_parent import ClusterParent
from .direct_beats import DirectBeats
from .logs import set_up_logging
from .slot import Slot
from .worker import Worker

_LOG = logging.getLogger("storm_py.worker")

_ADVICE: Final = "set it to a name by which the other machines reach this one"


def run(path: Path, fork_server: subprocess.Popen[bytes]) -> None:
    """Be the worker of this specification; exits with code 1 if it cannot be."""
    spec = WorkerSpec.read(path)
    set_up_logging(None, Path(spec.log_folder) / "worker.log")
    _LOG.info("worker %s of %s on port %d", spec.worker_id, spec.topology_id, spec.port)
    storage = ZooKeeperStorage(ZooKeeperSettings.from_conf(spec.conf))
    patience: int = spec.conf[Config.SUPERVISOR_WORKER_START_TIMEOUT_SECS]
    try:
        storage.start(patience)
        state = ClusterState(storage)
        try:
            address = _address(spec.host)
            assigned = _prepare(spec, state, patience)
        except (StormPyError, OSError, ValueError) as error:
            _tell(state, spec, error)
            raise
        _serve(spec, address, state, assigned, fork_server)
    except StormPyError as error:
        _LOG.error("%s", error)
        sys.exit(1)
    finally:
        storage.close()


def _prepare(spec: WorkerSpec, state: ClusterState, patience_secs: float) -> AssignedRun:
    local = LocalCode.read(Path(spec.code_folder), VERSION)
    assignment = _assignment(spec, state, patience_secs)
    number = assignment.worker_numbers[spec.supervisor_id, spec.port]
    incarnation = state.claim_worker(spec.topology_id, number)
    return AssignedRun(spec, local, assignment, incarnation)


def _assignment(spec: WorkerSpec, state: ClusterState, patience_secs: float) -> Assignment:
    """The assignment that this worker was launched for, or a newer one."""
    changed = threading.Event()
    cancel = state.watch_assignment(spec.topology_id, changed.set)
    deadline = time.monotonic() + patience_secs
    try:
        while True:
            changed.clear()
            try:
                found = state.assignment(spec.topology_id)
            except ConnectionLost:
                found = None
            slot = spec.supervisor_id, spec.port
            if (
                found is not None
                and slot in found.worker_numbers
                and found.code_checksum == spec.code_checksum
            ):
                return found
            if not changed.wait(deadline - time.monotonic()):
                raise ClusterStateError(
                    f"{spec.topology_id} has no assignment with {slot[0]}:{slot[1]} and this code"
                )
    finally:
        cancel()


def _serve(
    spec: WorkerSpec,
    address: str,
    state: ClusterState,
    run: AssignedRun,
    fork_server: subprocess.Popen[bytes],
) -> None:
    wakeup, wakeup_write = os.pipe()
    for fd in (wakeup, wakeup_write):
        os.set_blocking(fd, False)

    def wake() -> None:
        try:
            os.write(wakeup_write, b"!")
        except BlockingIOError:
            pass  # full of wake-ups: one is enough

    link = ClusterLink(state, spec.topology_id, run.worker, wake)
    try:
        parent = ClusterParent(spec, run, link, wakeup)
        slot = Slot(
            run.worker, run.incarnation, spec.port, address, Path(spec.log_folder), rotated=True
        )
        worker = Worker(run.folder, slot, run.plan.version, parent, fork_server)
        signal.signal(signal.SIGTERM, lambda *_: parent.stop())
        link.start()
        beats = DirectBeats(
            state,
            spec.topology_id,
            Path(spec.supervisor_lock),
            spec.conf[Config.SUPERVISOR_HEARTBEAT_FREQUENCY_SECS],
            parent.newest_beat,
        )
        beats.start()
        worker.run()
        beats.close()
    finally:
        run.folder.remove()


def _address(host: str) -> str:
    """A host of this machine as a number; StormPyError if it is none of this machine."""
    what = f"{Config.STORM_LOCAL_HOSTNAME} is {host!r}"
    try:
        found: list[Any] = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise StormPyError(f"{what}, which has no IPv4 address: {error}; {_ADVICE}") from error
    address = str(found[0][4][0])
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            where = "" if host == address else f" ({address})"
            raise StormPyError(
                f"{what}{where}, no address of this machine: {error.strerror}; {_ADVICE}"
            ) from error
    return address


def _tell(state: ClusterState, spec: WorkerSpec, error: Exception) -> None:
    """Have the operator see why nothing runs, beside errors of components."""
    info = ErrorInfo(str(error), int(time.time()), spec.host, spec.port)
    try:
        state.report_error(spec.topology_id, SYSTEM_COMPONENT_ID, info)
    except ClusterStateError as reason:
        _LOG.warning("the error below is reported to nobody: %s", reason)
