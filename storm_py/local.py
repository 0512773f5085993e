"""Local mode: a topology on real worker processes, without nimbus, supervisor and ZooKeeper.

`LocalRun` is the parent of the workers: it lays the topology out, writes the run folder, starts the
workers, does what `RunCore` decides, gathers figures for an `Observer`, and leaves nothing behind -
no process, no socket, no folder. `storm_py.inline` is the other way to run a topology from one
command; `storm_py.cli.local` is the command.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import zmq

from storm_py.api.spec import StormTopology
from storm_py.components import pack
from storm_py.config import Config
from storm_py.constants import SYSTEM_TASK_ID
from storm_py.core.plan import make_plan
from storm_py.engine import run_core as core
from storm_py.engine.looks import Looks
from storm_py.engine.settings import codec_of
from storm_py.engine.system import system_topology, users_part
from storm_py.engine.worker_core import STILLBORN
from storm_py.processes import describe_exit
from storm_py.run import ComponentFigures, Observer, RunResult, Snapshot
from storm_py.runtime.folder import RunFolder, UserCode
from storm_py.runtime.logs import last_words
from storm_py.runtime.process import drain_pipe
from storm_py.runtime.slot import local_logs
from storm_py.runtime.tails import OutputTails
from storm_py.transport.zeromq import ChannelServer, Context
from storm_py.wire import control

_SNAPSHOT_SECS = 0.25
#: The longest between two snapshots, and two looks at what user code has printed, in a quiet run.
QUIET_SECS = 4.0
#: Seconds between two looks at the clock while it does not just run.
_BUSY_SECS = 0.05
#: Seconds that workers have to leave after the last report, before they are killed.
_LEAVE_SECS = 5.0


class LocalRun:
    """One run of a topology on worker processes of this machine.

    `conf` is the whole configuration, defaults included; `sys_path` and `module` say where the
    user's classes are found. `log_dir` keeps the logs; without it they go with the run folder.
    While nothing happens snapshots come ever more rarely, after `quiet_secs` at most.
    """

    def __init__(
        self,
        topology_id: str,
        topology: StormTopology,
        conf: Mapping[str, Any],
        sys_path: str,
        module: str,
        workers: int,
        log_dir: Path | None,
        observer: Observer,
        quiet_secs: float = QUIET_SECS,
    ) -> None:
        topology = system_topology(topology, conf)
        codec_of(conf)  # a serializer that is not found is an error before anything starts
        self._components = pack(topology)
        self._plan = make_plan(topology_id, topology, conf, workers)
        self._user = UserCode(module, sys_path)
        self._observer = observer
        self._log_dir = log_dir
        self._drain_secs: float = conf[Config.STORM_PY_DRAIN_TIMEOUT_SECS]
        self._core = core.RunCore(self._plan)
        self._signals = 0
        self._signals_to_force = 2
        self._interrupted = False
        self._forced = False
        self._stats: dict[int, control.ExecutorStats] = {}
        self._errors = 0
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._deadline: float | None = None
        self._turns: deque[bool] = deque()
        self._looks = Looks(_SNAPSHOT_SECS, quiet_secs)
        #: the pipe's end that ends the sleep of the loop, while there is one
        self._wakeup_write: int | None = None
        self._wakeup_lock = threading.Lock()

    def activate(self) -> None:
        """Let the spouts go on; from any thread, also before `run`."""
        self._turn(True)

    def deactivate(self) -> None:
        """Let the spouts pause until `activate`, those of processes that start later too.

        What they have emitted is processed, and they hear of it. From any thread.
        """
        self._turn(False)

    def _turn(self, active: bool) -> None:
        self._turns.append(active)
        with self._wakeup_lock:
            if self._wakeup_write is not None:
                try:
                    os.write(self._wakeup_write, b"!")
                except BlockingIOError:
                    pass  # full of wake-ups: one is enough

    def run(self, ttl_secs: float | None) -> RunResult:
        """Run until the input ends, `ttl_secs` after activation, or a signal.

        The first SIGINT or SIGTERM drains, the second forces. Blocks; call it on the main thread.
        """
        self._began = time.monotonic()
        self._activated: float | None = None
        self._ended_at: float | None = None
        self._ttl_secs = ttl_secs
        wakeup, wakeup_write = os.pipe()
        for fd in (wakeup, wakeup_write):
            os.set_blocking(fd, False)
        old_fd = signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        handled = (signal.SIGINT, signal.SIGTERM)
        old = {number: signal.signal(number, self._on_signal) for number in handled}
        old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wakeup_write = wakeup_write
        try:
            folder = RunFolder.create()
            try:
                return self._run_in(folder, wakeup)
            finally:
                self._kill()
                folder.remove()
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(old_fd)
            with self._wakeup_lock:
                self._wakeup_write = None
            os.close(wakeup)
            os.close(wakeup_write)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1

    def _run_in(self, folder: RunFolder, wakeup: int) -> RunResult:
        folder.write_run(self._plan, self._user, self._components)
        self._folder = folder
        self._logs = self._log_dir or folder.path / "logs"
        context: Context = zmq.Context()
        self._channel = ChannelServer(context, folder.parent_address)
        tails = OutputTails(self._logs, self._plan, self._observer.output)
        poller = zmq.Poller()
        poller.register(self._channel.socket, zmq.POLLIN)
        poller.register(wakeup, zmq.POLLIN)
        try:
            cycle = self._plan.cyclic_components()
            if cycle:
                self._observer.event(
                    f"{', '.join(cycle)} form a cycle, so the input never counts as ended: "
                    "stop this run with --ttl or Ctrl-C"
                )
            self._perform(self._core.start(time.monotonic()))
            while self._core.phase != "done" and not self._forced:
                if poller.poll(math.ceil(self._patience_secs(time.monotonic()) * 1000)):
                    self._looks.news()
                drain_pipe(wakeup)
                self._take_messages()
                self._reap()
                now = time.monotonic()
                self._perform(self._core.tick(now))
                while self._turns:
                    self._perform(self._core.activate(self._turns.popleft()))
                self._heed(now)
                if now >= self._looks.at:
                    printed = tails.read()
                    self._observer.snapshot(self._snapshot())
                    self._looks.looked(now, printed)
            self._kill()
            self._take_messages()
            tails.read(last=True)
        finally:
            tails.close()
            self._channel.close()
            context.destroy(linger=0)
        return self._result()

    # ---- signals and time ----------------------------------------------------------------------

    def _patience_secs(self, now: float) -> float:
        """How long to sleep unless something wakes it: a signal, a death, a message, a turn."""
        if self._core.phase != "running" or self._deadline is not None or self._activated is None:
            return _BUSY_SECS
        due = [self._looks.at, self._core.next_timeout(), self._ttl_at]
        return max(0.0, min(at for at in due if at is not None) - now)

    @property
    def _ttl_at(self) -> float | None:
        """When the time to live is over; None for never, and before the spouts were activated."""
        if self._ttl_secs is None or self._activated is None:
            return None
        return self._activated + self._ttl_secs

    def _heed(self, now: float) -> None:
        """Signals, the time to live, and the limits of patience."""
        phase = self._core.phase
        if phase == "running" and self._activated is None:
            self._activated = now
        if self._signals >= self._signals_to_force:
            self._interrupted = self._forced = True
            self._observer.event("stopping at once")
            return
        over = self._ttl_at is not None and now >= self._ttl_at
        if (self._signals or over) and phase in ("starting", "running"):
            self._interrupted = bool(self._signals)
            self._signals_to_force = self._signals + 1
            why = "interrupted" if self._signals else f"{self._ttl_secs:g} s are over"
            self._observer.event(f"{why}: draining (interrupt again to stop at once)")
            self._deadline = now + self._drain_secs
            self._perform(self._core.drain())
        if self._core.phase == "stopping" and self._ended_at is None:
            self._ended_at = now
            self._deadline = now + _LEAVE_SECS
        if self._deadline is not None and now >= self._deadline:
            self._forced = True
            if self._ended_at is None:
                self._observer.event(
                    f"not drained after {self._drain_secs:g} s (storm_py.drain.timeout.secs): "
                    "stopping at once"
                )
            else:
                self._observer.event(f"still stopping after {_LEAVE_SECS:g} s: stopping at once")

    # ---- processes -----------------------------------------------------------------------------

    def _perform(self, actions: list[core.Action]) -> None:
        for action in actions:
            match action:
                case core.StartWorker(worker=worker, incarnation=incarnation):
                    self._start_worker(worker, incarnation)
                case core.TellWorker(worker=worker, record=record):
                    incarnation = self._core.incarnations[worker]
                    self._channel.send(f"w{worker}.{incarnation}", control.encode(record))
                case core.Note(text=text):
                    self._observer.event(text)
                case core.CannotStart(worker=worker, reason=reason):
                    self._errors += 1
                    self._observer.error(self._cannot_start(worker, reason))

    def _start_worker(self, worker: int, incarnation: int) -> None:
        logs = local_logs(self._logs, worker)
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        command = [sys.executable, "-P", "-m", "storm_py.runtime.worker"]
        args = [self._folder.path, worker, incarnation, self._plan.version, self._logs, os.getpid()]
        with (logs / "worker.log").open("ab") as log:
            self._processes[worker] = subprocess.Popen(
                [*command, *(str(arg) for arg in args)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for this process, which drains
            )

    def _cannot_start(self, worker: int, reason: str) -> control.ErrorReport:
        message = f"died {STILLBORN} times before it was up, last: {reason}"
        log = local_logs(self._logs, worker) / "worker.log"
        return control.ErrorReport(
            f"worker {worker}", SYSTEM_TASK_ID, "start", message, last_words(log), True
        )

    def _reap(self) -> None:
        for worker, process in list(self._processes.items()):
            if process.poll() is not None:
                self._take_messages()
                del self._processes[worker]
                reason = f"process {process.pid} {describe_exit(process.returncode)}"
                self._perform(self._core.worker_died(worker, reason, time.monotonic()))

    def _kill(self) -> None:
        """End what is still there; a worker's children die with it."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._processes.clear()

    # ---- messages ------------------------------------------------------------------------------

    def _take_messages(self) -> None:
        while (received := self._channel.receive()) is not None:
            self._on_record(control.decode(received[1]))

    def _on_record(self, record: control.Control) -> None:
        now = time.monotonic()
        match record:
            case control.ExecutorStats():
                self._stats[record.executor] = record
            case control.WorkerUp():
                self._perform(self._core.worker_up(record))
            case control.StreamManagerDown():
                self._perform(self._core.stream_manager_down(record))
            case control.WorkerReady():
                self._perform(self._core.worker_ready(record, now))
            case control.Restarted():
                self._perform(self._core.restarted(record, now))
            case control.Ended():
                self._perform(self._core.ended(record, now))
            case control.ErrorReport():
                self._errors += 1
                self._observer.error(record)
                self._perform(self._core.failed_to_run(record, now))
            case control.LogRecord():
                self._observer.log(record.level, record.source, record.text)
            case _:
                raise AssertionError(f"{type(record).__name__} from a worker")

    # ---- figures -------------------------------------------------------------------------------

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            self._plan.topology_id,
            self._core.phase,
            self._secs(),
            len(self._plan.workers),
            tuple(self._figures(c) for c in users_part(self._plan.topology).components),
            self._core.restarts,
            self._errors,
        )

    def _secs(self) -> float:
        if self._activated is None:
            return 0.0
        return (self._ended_at or time.monotonic()) - self._activated

    def _figures(self, component_id: str) -> ComponentFigures:
        spec = self._plan.topology.components[component_id]
        executors = [e for e in self._plan.executors if e.component_id == component_id]
        found = [self._stats[e.id] for e in executors if e.id in self._stats]
        return ComponentFigures(
            component_id,
            spec.kind,
            len(executors),
            spec.num_tasks,
            sum(stats.executed for stats in found),
            sum(stats.emitted for stats in found),
            sum(stats.queued for stats in found),
            sum(stats.acked for stats in found),
            sum(stats.failed for stats in found),
        )

    def _result(self) -> RunResult:
        started = self._activated if self._activated is not None else time.monotonic()
        lost = list(self._core.lost)
        if self._forced:
            lost.append("the run was stopped before it was drained; tuples in flight are lost")
        return RunResult(
            self._snapshot(),
            started - self._began,
            self._core.failed,
            self._interrupted,
            self._forced,
            tuple(lost),
            None if self._log_dir is None else str(self._log_dir),
        )
