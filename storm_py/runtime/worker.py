"""Worker: `python -m storm_py.runtime.worker` - the parent of one slot's processes.

Starts a fork server, a stream manager and, through the fork server, the instances of its executors;
hosts their control channel; does what `WorkerCore` decides; reads statistics pages. Whoever runs it
is a `Parent`. This program is the worker of `storm-py local`, and dies with that; a cluster's is
`storm_py.runtime.cluster_worker`.
"""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import zmq

from storm_py.config import Config
from storm_py.core.plan import ExecutorPlan
from storm_py.engine import worker_actions as does
from storm_py.engine import worker_core as core
from storm_py.engine.looks import Looks
from storm_py.engine.stuck import StuckWatch
from storm_py.processes import describe_exit, die_with_parent
from storm_py.transport.zeromq import ChannelServer, Context
from storm_py.wire import control

from .folder import RunFolder
from .instance_spec import InstanceSpec
from .logs import last_words, set_up_logging
from .page import Counters, Totals, read_page
from .parents import ChannelParent, Parent
from .process import drain_pipe, leave_terminal_signals_to_parent
from .programs import spawn, start_fork_server
from .slot import LOOPBACK, Slot, local_logs, local_port

_LOG = logging.getLogger("storm_py.worker")

#: Seconds between two reports of statistics to the parent, and at most while there is nothing new.
REPORT_SECS = 0.25
_QUIET_SECS = 8.0
#: Share of storm_py.stuck.secs between two looks at most: who hangs in user code says nothing.
_STUCK_SHARE = 0.25
_LAST_REPORT_MS = 200


class Worker:
    """The driver."""

    def __init__(
        self,
        folder: RunFolder,
        slot: Slot,
        version: int,
        parent: Parent,
        fork_server: subprocess.Popen[bytes] | None = None,
    ) -> None:
        """`fork_server` is one that this process has started already, None for a new one."""
        self._folder = folder
        self._slot = slot
        self._worker = worker = slot.worker
        self._incarnation = incarnation = slot.incarnation
        self._plan = folder.read_plan(version)
        self._core = core.WorkerCore(worker, incarnation, self._plan.instances_on(worker))
        limit_secs: Any = self._plan.conf[Config.STORM_PY_STUCK_SECS]
        self._stuck = StuckWatch(self._plan.task_to_component, limit_secs)
        self._looks = Looks(REPORT_SECS, min(_QUIET_SECS, _STUCK_SHARE * limit_secs))
        context: Context = zmq.Context.instance()
        self._channel = ChannelServer(context, folder.worker_address(worker, incarnation))
        self._parent = parent
        self._identities: dict[str, str] = {}
        self._untold: dict[str, list[control.Control]] = {}
        #: the identities of the processes that were started last
        self._living: dict[str, str] = {}
        self._manager: subprocess.Popen[bytes] | None = None
        self._manager_incarnation = 0
        self._instances: dict[int, int] = {}
        self._pids: dict[int, int] = {}
        self._news = b""
        #: by executor, the totals of its incarnations that are dead
        self._gone: dict[int, Totals] = {}
        for instance in self._plan.instances_on(worker):
            for path in folder.pages(instance):  # of earlier starts of this worker
                self._bank(instance, path)
        #: by instance, the task in whose user code it died, if it was in any
        self._last_task: dict[int, int] = {}
        self._queued: dict[int, int] = {}
        self._reported: dict[int, control.ExecutorStats] = {}
        self._left = False
        self._poller = zmq.Poller()
        self._wakeup, wakeup_write = os.pipe()
        for fd in (self._wakeup, wakeup_write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._use_fork_server(fork_server or start_fork_server())
        for source in (self._channel.socket, parent.source, self._wakeup):
            self._poller.register(source, zmq.POLLIN)

    def run(self) -> None:
        """Serve until everything has stopped."""
        self._perform(self._core.start(time.monotonic()))
        looks = self._looks
        while not self._left:
            due = [looks.at, self._core.next_timeout(), self._parent.next_timeout()]
            until = min(at for at in due if at is not None)
            if self._poller.poll(math.ceil(max(0.0, until - time.monotonic()) * 1000)):
                looks.news()
            self._take_messages()
            self._reap()
            self._take_news()
            now = time.monotonic()
            self._perform(self._core.tick(now))
            self._parent.tick(now)
            if now >= looks.at:
                looks.looked(now, self._report())
        if any(self._queued.values()):  # what the stream manager said last may be on its way
            self._channel.socket.poll(_LAST_REPORT_MS)
            self._take_messages()
        self._report()
        self._stop_fork_server()
        self._parent.close()
        self._channel.close()
        zmq.Context.instance().destroy(linger=None)

    # ---- processes -----------------------------------------------------------------------------

    def _use_fork_server(self, server: subprocess.Popen[bytes]) -> None:
        assert server.stdout is not None
        os.set_blocking(server.stdout.fileno(), False)
        self._poller.register(server.stdout.fileno(), zmq.POLLIN)
        self._fork_server = server

    def _stop_fork_server(self) -> None:
        server = self._fork_server
        assert server.stdin is not None
        server.stdin.close()
        server.wait()

    def _reap(self) -> None:
        """Notice the deaths of the stream manager and the fork server."""
        drain_pipe(self._wakeup)
        now = time.monotonic()
        manager = self._manager
        if manager is not None and manager.poll() is not None:
            self._manager = None
            reason = f"stream manager {manager.pid} {describe_exit(manager.returncode)}"
            self._died(0, self._manager_incarnation, reason, now)
        if self._fork_server.poll() is not None and not self._left:
            server = self._fork_server
            assert server.stdout is not None
            self._take_news()
            self._poller.unregister(server.stdout.fileno())
            server.stdout.close()
            reason = f"fork server {server.pid} {describe_exit(server.returncode)}"
            self._use_fork_server(start_fork_server())
            for executor, incarnation in list(self._instances.items()):
                self._died(executor, incarnation, reason, now)

    def _take_news(self) -> None:
        """News of deaths from the fork server."""
        stdout = self._fork_server.stdout
        assert stdout is not None
        try:
            data = os.read(stdout.fileno(), 65536)
        except BlockingIOError:
            return
        *lines, self._news = (self._news + data).split(b"\n")
        for line in lines:
            news = json.loads(line)
            # What it sent before it died must be heard before its death.
            self._take_messages()
            self._died(news["instance"], news["incarnation"], news["reason"], time.monotonic())

    def _died(self, executor: int, incarnation: int, reason: str, now: float) -> None:
        if executor:
            if self._instances.get(executor) != incarnation:
                return
            del self._instances[executor]
            self._pids.pop(executor, None)
            activity = read_page(self._page(executor, incarnation)).activity
            self._last_task.pop(executor, None)
            if activity is not None:
                self._last_task[executor] = activity.task
                fused = len(self._plan.instances[executor]) > 1
                words = activity.located if fused else activity.words
                reason += f" in {words(self._plan.task_to_component)}"
            self._bank(executor, self._page(executor, incarnation))
        identity = f"i{executor}" if executor else "sm"
        self._identities.pop(identity, None)
        _LOG.info("%s: %s", identity, reason)
        self._perform(self._core.died(executor, incarnation, reason, now))

    # ---- what the core decides -----------------------------------------------------------------

    def _perform(self, actions: list[does.Action]) -> None:
        for action in actions:
            match action:
                case does.StartStreamManager(incarnation=incarnation):
                    self._manager_incarnation = incarnation
                    self._untold.pop("sm", None)  # it was for the predecessor
                    self._living["sm"] = f"sm.{incarnation}"
                    self._manager = spawn(
                        "stream_manager",
                        [
                            self._folder.path,
                            self._worker,
                            self._incarnation,
                            incarnation,
                            self._plan.version,
                            self._slot.address,
                        ],
                        stdin=subprocess.DEVNULL,
                        stdout=None,
                    )
                case does.StartInstance(executor=executor, incarnation=incarnation):
                    self._start_instance(executor, incarnation)
                case does.KillInstance(executor=executor, incarnation=incarnation):
                    _LOG.warning("i%d did not leave: killing its process", executor)
                    self._order_fork_server({"kill": [executor, incarnation]})
                case does.Adopt(version=version):
                    self._adopt(version)
                case does.ReplanStreamManager(incarnation=incarnation, version=version):
                    self._manager_incarnation = incarnation
                    self._tell("sm", control.Replan(version, incarnation))
                case does.Tell(identity=identity, record=record):
                    self._tell(identity, record)
                case does.TellParent(record=record):
                    self._parent.send(record)
                case does.CannotStart(executor=executor, reason=reason):
                    self._parent.send(self._cannot_start(executor, reason))
                case does.Leave():
                    self._left = True

    def _adopt(self, version: int) -> None:
        self._report()  # the last that is said of those that have left
        self._plan = self._folder.read_plan(version)
        tasks = {task for each in self._plan.on_worker(self._worker) for task in each.tasks}
        self._queued = {task: rows for task, rows in self._queued.items() if task in tasks}

    def _cannot_start(self, executor: int, reason: str) -> control.ErrorReport:
        first = self._plan.executor(executor).tasks[0]
        task = self._last_task.get(executor, first)
        message = f"died {core.STILLBORN} times before it was up, last: {reason}"
        logs = self._slot.instance_logs(self._plan, executor)
        words = last_words(logs.log) or last_words(logs.err)
        return control.ErrorReport(
            self._plan.task_to_component[task], task, "start", message, words, True
        )

    def _start_instance(self, executor: int, incarnation: int) -> None:
        logs = self._slot.ready_logs(self._plan, executor)
        spec = InstanceSpec(
            str(self._folder.path),
            self._worker,
            self._incarnation,
            executor,
            incarnation,
            self._plan.version,
            self._slot.port,
            str(logs.log) if self._slot.rotated else None,
        )
        order = {"spec": asdict(spec), "out": str(logs.out), "err": str(logs.err)}
        self._instances[executor] = incarnation
        self._untold.pop(f"i{executor}", None)  # it was for the predecessor
        self._living[f"i{executor}"] = f"i{executor}.{incarnation}"
        self._order_fork_server(order)

    def _order_fork_server(self, order: Mapping[str, object]) -> None:
        stdin = self._fork_server.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(order).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            return  # it is dead: its reaping will tell the core that its instances died as well

    def _tell(self, identity: str, record: control.Control) -> None:
        known = self._identities.get(identity)
        if known is not None:
            self._channel.send(known, control.encode(record))
        elif isinstance(record, (control.Stop, control.Replan)):
            self._untold.setdefault(identity, []).append(record)

    def _take_messages(self) -> None:
        while (received := self._channel.receive()) is not None:
            identity, message = received
            self._on_record(identity, control.decode(message))
        while (order := self._parent.receive()) is not None:
            self._obey(order)

    def _obey(self, order: control.Control) -> None:
        if not isinstance(order, control.Replan):
            self._perform(self._core.order(order))
            return
        then = self._folder.read_plan(order.version)
        instances = then.instances_on(self._worker)
        kept = {instance for instance in instances if self._plan.runs_alike(instance, then)}
        self._perform(self._core.replan(order.version, instances, kept, time.monotonic()))

    def _on_record(self, identity: str, record: control.Control) -> None:
        match record:
            case control.Register():
                peer = identity.split(".")[0]
                if self._living.get(peer) != identity:
                    return  # the last words of one that is dead
                self._identities[peer] = identity
                self._pids[record.executor] = record.pid
                for untold in self._untold.pop(peer, []):
                    self._tell(peer, untold)
                self._perform(self._core.registered(record))
            case control.Ready():
                self._perform(self._core.ready(record))
            case control.QueueStats(tasks=tasks, rows=rows):
                self._queued.update(zip(tasks, rows, strict=True))
            case _:
                self._parent.send(record)

    # ---- statistics ----------------------------------------------------------------------------

    def _page(self, instance: int, incarnation: int) -> Path:
        return self._folder.page(instance, self._incarnation, incarnation)

    def _bank(self, instance: int, path: Path) -> None:
        """An instance died: keep what it had counted."""
        page = read_page(path)
        for executor, counters in zip(self._plan.instances[instance], page.counters, strict=False):
            self._gone[executor.id] = self._totals(executor.id, counters)

    def _totals(self, executor: int, counters: Counters) -> Totals:
        executed, emitted, transferred, acked, failed = counters.totals
        before = self._gone.get(executor, Counters().totals)
        return (
            before[0] + executed,
            before[1] + emitted,
            before[2] + transferred,
            before[3] + acked,
            before[4] + failed,
        )

    def _report(self) -> bool:
        """Tell the parent what has changed since the last report; whether anything has."""
        before = dict(self._reported)
        for instance in self._plan.instances_on(self._worker):
            page = read_page(self._page(instance, self._instances.get(instance, 0)))
            warning = self._stuck.look(instance, page.activity, time.monotonic())
            if warning is not None:
                source = f"worker {self._worker}"
                self._parent.send(control.LogRecord(logging.WARNING, source, warning))
            for i, executor in enumerate(self._plan.instances[instance]):
                counters = page.counters[i] if page.counters else Counters()
                self._report_executor(executor, page.incarnation, counters)
        return before != self._reported

    def _report_executor(
        self, executor: ExecutorPlan, incarnation: int, counters: Counters
    ) -> None:
        if executor.id == executor.instance:
            # Rows in an instance are outstanding for its stream manager as well: count them once.
            queued = sum(self._queued.get(task, 0) for task in executor.tasks)
        else:
            queued = counters.queued
        totals = self._totals(executor.id, counters)
        pid = self._pids.get(executor.instance, 0)
        record = control.ExecutorStats(executor.id, incarnation, *totals, queued, pid)
        if self._reported.get(executor.id) != record:
            self._reported[executor.id] = record
            self._parent.send(record)


def main() -> None:
    """Entry point: folder, worker, incarnation, plan's version, log folder, parent's process id."""
    path, worker, incarnation, version, logs, parent = sys.argv[1:]
    leave_terminal_signals_to_parent()
    die_with_parent(int(parent))
    set_up_logging(None)
    number = int(worker)
    port, slot_logs = local_port(number), local_logs(Path(logs), number)
    slot = Slot(number, int(incarnation), port, LOOPBACK, slot_logs)
    folder = RunFolder(Path(path))
    Worker(folder, slot, int(version), ChannelParent(zmq.Context.instance(), folder, slot)).run()


if __name__ == "__main__":
    main()
