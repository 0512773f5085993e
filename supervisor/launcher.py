"""Launcher: starts the workers of a node, watches them, finds them again, and ends them.

Theory of operation. A worker is a session of its own, so that it outlives its supervisor. It is
started through a *gate*: a shell that waits for a word on a pipe before it becomes the worker's
program, under the same process id. The word is given once the record of the worker is on the disk;
a supervisor that dies before that takes the pipe with it, and the shell ends. So each program that
runs has a record, and a folder without one belongs to nothing that runs.

What belongs to a worker: its main process, known by its `Identity`; all that descends from it; its
process group, while the main process is not reaped, as the number means something else later; and
whatever carries the worker's id in its environment, which finds those that left the group and lost
their parents. Nothing else is ever signalled, and signals go through pidfds: none hits a stranger
under a number that is used again. Only what left the group, lost its parents and dropped its
environment is not found.

Ends are told by the kernel through the pidfds of all these, of children and of found ones alike:
`fileno()` is readable then, and `poll` says what ended. A child is reaped when nothing of its
worker is left; of a found one the exit code cannot be known. Nobody else may reap children here.

Logs. The worker's own logging writes and rotates worker.log. What user code and its children print
goes to worker.log.out and worker.log.err, which are opened for append: files that many processes
write cannot be rotated under them without losing lines, so they are when a worker starts, and
nobody writes.

Decides nothing: that is `storm_py.supervisor.slot`.
"""

from __future__ import annotations

import logging
import os
import select
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storm_py.files import make_folder, put_aside
from storm_py.heartbeat import Heartbeat

from .assignment import LocalAssignment
from .belongings import Belongings
from .folders import LocalFolder
from .process_table import Identity, is_alive, process_info
from .slot_actions import Severity
from .worker_record import WorkerRecord

_log = logging.getLogger(__name__)

#: In the environment of a worker and of all that descends from it.
WORKER_ID_VARIABLE: Final = "STORM_PY_WORKER_ID"
#: Becomes the worker's program when told to, at the end of the pipe it just ends.
_GATE: Final = 'umask 077; cd -- "$1" && shift && read -r go <&3 && exec 3<&- && exec "$@"'
#: Size from which the output of earlier workers is put aside when a worker starts, and how often.
OUTPUT_BYTES: Final = 10 * 1024 * 1024
OUTPUT_BACKUPS: Final = 3


@dataclass(frozen=True, slots=True)
class Exited:
    """The main process of a worker has ended; the code is None if it is no child of this process.

    Below 0 it is the number of a signal, as in subprocess.
    """

    worker_id: str
    returncode: int | None


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing of a worker runs any more."""

    worker_id: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """A worker that an earlier supervisor launched."""

    record: WorkerRecord
    #: Whether its main process lives.
    alive: bool
    heartbeat: Heartbeat | None


@dataclass(slots=True)
class _Watched:
    """A worker, from its launch or recovery until it is gone."""

    record: WorkerRecord
    is_child: bool
    belongings: Belongings
    told: bool = False
    returncode: int | None = None


class Launcher:
    """The workers of one node; for one thread, the one that forks."""

    def __init__(self, folder: LocalFolder) -> None:
        self._folder = folder
        self._epoll = select.epoll()
        self._watched: dict[str, _Watched] = {}

    def fileno(self) -> int:
        """Readable when `poll` has something to do, for a selector."""
        return self._epoll.fileno()

    def close(self) -> None:
        """Forget all workers and let them run."""
        for watched in self._watched.values():
            watched.belongings.close()
        self._watched.clear()
        self._epoll.close()

    # ---- beginning -----------------------------------------------------------------------------

    def launch(
        self,
        worker_id: str,
        port: int,
        assignment: LocalAssignment,
        command: Sequence[str],
        environment: Mapping[str, str],
        working_folder: Path,
    ) -> int:
        """Start a worker; its process id. It is recorded on the disk when this returns.

        `working_folder` is absolute.

        OSError if it cannot be started; nothing of it runs then. A program that is not there, or a
        working folder, is an exit code of 1, 2, 126 or 127, with a sentence in worker.log.err.
        """
        make_folder(self._folder.worker(worker_id))
        logs = make_folder(self._folder.logs(assignment.topology_id, port))
        gate_out, gate_in = os.pipe2(os.O_CLOEXEC)
        try:
            program = ["sh", "-c", _GATE, "sh", str(working_folder), *command]
            pid = _spawn(program, {**environment, WORKER_ID_VARIABLE: worker_id}, logs, gate_out)
            self._record(worker_id, port, assignment, pid)
            _open_gate(gate_in)
            return pid
        finally:
            os.close(gate_out)
            os.close(gate_in)

    def _record(self, worker_id: str, port: int, assignment: LocalAssignment, pid: int) -> None:
        info = process_info(pid)
        assert info is not None, "a child is there until it is reaped"
        record = WorkerRecord(worker_id, port, assignment, info.identity)
        try:
            record.write(self._folder.record(worker_id))
        except OSError:
            os.kill(pid, signal.SIGKILL)  # behind the gate it is just the shell
            os.waitpid(pid, 0)
            raise
        self._watch(record, is_child=True)

    def recover(self) -> list[Recovered]:
        """What an earlier supervisor has launched here and not cleaned up, in no order.

        The workers are watched from now on, those whose main process is dead included: end them
        with KILL to know when they are gone. Folders without a record are removed, as nothing runs
        there; so are those whose record cannot be read, after what carries their worker's id is
        killed.
        """
        found = []
        for path in sorted(self._folder.workers.glob("*")):
            try:
                record = WorkerRecord.read(self._folder.record(path.name))
            except FileNotFoundError:
                shutil.rmtree(path, ignore_errors=True)
                continue
            except ValueError as error:
                _log.warning("worker %s: its record is broken (%s); it is killed", path, error)
                self._drop(path.name)
                continue
            alive = is_alive(record.process)
            watched = self._watch(record, is_child=False)
            watched.told = not alive
            heartbeat = self.heartbeat(record.worker_id)
            found.append(Recovered(record, alive, heartbeat))
        return found

    def _drop(self, worker_id: str) -> None:
        belongings = self._belongings(worker_id, None)
        belongings.look()
        belongings.kill()
        belongings.close()
        self.cleanup(worker_id)

    def _watch(self, record: WorkerRecord, is_child: bool) -> _Watched:
        belongings = self._belongings(record.worker_id, record.process)
        watched = _Watched(record, is_child, belongings)
        self._watched[record.worker_id] = watched
        return watched

    def _belongings(self, worker_id: str, main: Identity | None) -> Belongings:
        return Belongings(main, f"{WORKER_ID_VARIABLE}={worker_id}".encode(), self._epoll)

    # ---- running -------------------------------------------------------------------------------

    def told(self, worker_id: str, assignment: LocalAssignment) -> None:
        """Record that a worker was told of another assignment; OSError if that is not possible."""
        watched = self._watched[worker_id]
        record = watched.record.with_assignment(assignment)
        record.write(self._folder.record(worker_id))
        watched.record = record

    def heartbeat(self, worker_id: str) -> Heartbeat | None:
        """The newest heartbeat of a worker, None if there is none that can be read."""
        beat = Heartbeat.read(self._folder.heartbeat(worker_id))
        return beat if beat is not None and beat.worker_id == worker_id else None

    def poll(self, timeout_secs: float = 0.0) -> list[Exited | Gone]:
        """What has ended since the last call, or ends within `timeout_secs`."""
        ended = {fd for fd, _ in self._epoll.poll(timeout_secs)}
        for watched in self._watched.values():
            watched.belongings.ended(ended)
        events: list[Exited | Gone] = []
        for worker_id, watched in list(self._watched.items()):
            if not watched.belongings.main_has_ended:
                continue
            if not watched.told:
                watched.told = True
                watched.returncode = self._returncode(watched)
                events.append(Exited(worker_id, watched.returncode))
            if watched.belongings.are_gone():
                if watched.is_child:
                    os.waitpid(watched.record.process.pid, 0)
                watched.belongings.close()
                del self._watched[worker_id]
                events.append(Gone(worker_id))
        return events

    def _returncode(self, watched: _Watched) -> int | None:
        if not watched.is_child:
            return None
        # Not reaped yet: its number stays that of the group until nothing is left of that.
        pid = watched.record.process.pid
        status = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert status is not None, "it has ended"
        exited = status.si_code == os.CLD_EXITED
        return status.si_status if exited else -status.si_status

    # ---- ending --------------------------------------------------------------------------------

    def end(self, worker_id: str, severity: Severity) -> None:
        """TERM for the main process, or KILL for all that belongs to a worker.

        What belongs to it is looked up both times: what leaves the group when it is told to end, or
        loses its parent, is known then. Without effect on a worker that is gone.
        """
        watched = self._watched.get(worker_id)
        if watched is None:
            return
        watched.belongings.look()
        if severity is Severity.TERM:
            watched.belongings.terminate_main()
        else:
            watched.belongings.kill()

    def cleanup(self, worker_id: str) -> None:
        """Remove the folder of a worker that is gone; its logs stay."""
        shutil.rmtree(self._folder.worker(worker_id), ignore_errors=True)


def _spawn(program: list[str], environment: Mapping[str, str], logs: Path, gate: int) -> int:
    """Start a shell in a session of its own, with its output in files and the gate as its fd 3."""
    output = [logs / "worker.log.out", logs / "worker.log.err"]
    for path in output:
        put_aside(path, OUTPUT_BYTES, OUTPUT_BACKUPS)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        "/bin/sh",
        program,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            *((os.POSIX_SPAWN_OPEN, n, path, append, 0o600) for n, path in enumerate(output, 1)),
            (os.POSIX_SPAWN_DUP2, gate, 3),
            *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable() if fd > 3),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )


def _inheritable() -> list[int]:
    """What this process got from whoever started it, and its children would."""
    found = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            inheritable = os.get_inheritable(fd)
        except OSError:  # closed by now, as that of the list itself
            continue
        if inheritable:
            found.append(fd)
    return found


def _open_gate(fd: int) -> None:
    try:
        os.write(fd, b"go\n")
    except BrokenPipeError:  # the shell has ended already: its exit is told like that of any worker
        return
