"""ClusterRun: a cluster of one machine in this process and its children, from start to end.

Theory of operation. One thread waits for all there is at once: signals, what the daemons say, their
ends, and what the probe finds in ZooKeeper. Each is an event for `storm_py.one_machine.keeper`,
which decides; this carries it out. A signal handler does nothing: the number is read from a pipe.

When it returns nothing of the cluster runs: also workers of a supervisor that was killed, or that
had died for good, are ended then. Only if this process itself is killed do workers stay; the next
cluster takes over those of the supervisors that it has, and ends the others.
"""

from __future__ import annotations

import selectors
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from storm_py.cluster.zookeeper import ZooKeeperSettings
from storm_py.config import Config
from storm_py.errors import ClusterFailed

from . import children, probe
from .checks import check_ports, locked
from .children import COMMAND, Children
from .keeper import Action, Keeper, Kill, Phase, Say, Start, Terminate
from .leftovers import end_workers, end_workers_of_others, remove_data
from .output import MergedLog
from .plan import ClusterPlan
from .probe import Probe

__all__ = ["ClusterRun"]

#: What a stage of the end may take beyond the time that workers get to end.
_STOP_SECS: Final = 15.0
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ClusterRun:
    """One cluster; for the main thread."""

    def __init__(self, plan: ClusterPlan, log: MergedLog, command: Sequence[str] = COMMAND) -> None:
        """`command` is what starts a daemon, given its arguments."""
        self._plan = plan
        self._log = log
        self._command = command
        self._daemons = {daemon.name: daemon for daemon in plan.daemons}
        worker_secs = plan.conf[Config.SUPERVISOR_WORKER_SHUTDOWN_SLEEP_SECS]
        names = [daemon.name for daemon in plan.supervisors]
        self._keeper = Keeper(names, worker_secs + _STOP_SECS)
        self._selector = selectors.DefaultSelector()
        self._children = Children(self._selector, command)
        self._begun = 0.0

    def run(self, fresh: bool = False) -> None:
        """Run until somebody stops it; ClusterFailed if it cannot be started, or does not live.

        `fresh` removes the data of an earlier cluster first.
        """
        with locked(self._plan.local_dir):
            check_ports(self._plan.ports)
            if fresh:
                remove_data(self._plan)
            self._say_killed(end_workers_of_others(self._plan), "whose supervisor is not started")
            try:
                self._run()
            finally:
                self._children.close()
                self._selector.close()
                left = end_workers(self._plan.supervisor_dirs)
                self._say_killed(left, "that no supervisor could end")
        failure = self._keeper.failure
        if failure is not None:
            raise ClusterFailed(
                f"{failure.name} {failure.reason}; its last words:\n"
                f"{self._log.last_words(failure.name)}"
            )
        self._log.say("everything is stopped; data is kept for the next start")

    def _run(self) -> None:
        self._begun = time.monotonic()
        look = Probe(
            ZooKeeperSettings.from_conf(self._plan.conf),
            len(self._plan.supervisors),
            int(time.time()),
            self._plan.conf[Config.NIMBUS_THRIFT_PORT],
        )
        with _signals() as told:
            self._selector.register(told, selectors.EVENT_READ, told)
            self._selector.register(look, selectors.EVENT_READ, look)
            look.start()
            try:
                self._do(self._keeper.begin(time.monotonic()))
                while self._keeper.phase is not Phase.ENDED:
                    self._wait(look, told)
            finally:
                look.stop()

    def _wait(self, look: Probe, told: socket.socket) -> None:
        at = self._keeper.next_timeout()
        timeout = None if at is None else max(0.0, at - time.monotonic())
        for key, _ in self._selector.select(timeout):
            if key.data is look:
                for found in look.take():
                    self._on_found(found)
            elif key.data is told:
                for _ in told.recv(64):
                    self._do(self._keeper.interrupt(time.monotonic()))
            else:
                for event in self._children.take(key.fd):
                    self._on_child(event)
        self._do(self._keeper.tick(time.monotonic()))

    def _on_found(self, found: probe.Told) -> None:
        now = time.monotonic()
        if isinstance(found, probe.Serves):
            self._do(self._keeper.zookeeper_serves(now))
            return
        self._do(self._keeper.registered(now))
        if self._keeper.phase is Phase.UP:
            self._say_up(found.storms, now - self._begun)

    def _on_child(self, event: children.Told) -> None:
        if isinstance(event, children.Line):
            self._log.line(event.name, event.text)
        else:
            self._do(self._keeper.exited(event.name, event.how, time.monotonic()))

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Say(text):
                    self._log.say(text)
                case Start(name):
                    self._children.start(self._daemons[name])
                case Terminate(name):
                    self._children.signal(name, signal.SIGTERM)
                case Kill(name):
                    self._children.signal(name, signal.SIGKILL)

    def _say_killed(self, count: int, which: str) -> None:
        if count:
            workers = "1 worker" if count == 1 else f"{count} workers"
            self._log.say(f"killed {workers} {which}")

    def _say_up(self, storms: tuple[str, ...], secs: float) -> None:
        plan = self._plan
        count = len(plan.supervisors)
        supervisors = "1 supervisor" if count == 1 else f"{count} supervisors"
        goes_on = f"; it goes on with {', '.join(storms)}" if storms else ""
        self._log.say(
            f"up after {secs:.1f} s: nimbus leads on port "
            f"{plan.conf[Config.NIMBUS_THRIFT_PORT]}, {supervisors} with {plan.slots} slots"
            f"{' each' if count > 1 else ''}{goes_on}"
        )
        self._log.say(
            f"now, in another terminal: storm-py submit{plan.client_options} TOPOLOGY NAME; "
            "Ctrl-C stops everything"
        )


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """A socket from which a byte can be read for each signal that asks for the end."""
    told, tell = socket.socketpair()
    told.setblocking(False)
    tell.setblocking(False)
    before = {number: signal.signal(number, _ignore) for number in _SIGNALS}
    fd = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    try:
        yield told
    finally:
        signal.set_wakeup_fd(fd)
        for number, handler in before.items():
            signal.signal(number, handler)
        told.close()
        tell.close()


def _ignore(number: int, frame: object) -> None:
    """What is to be done is read from the socket."""
