"""The parents of a simulated topology's processes: its workers, and the parent of those.

A worker starts, links and restarts its processes as `WorkerCore` decides, and the parent of the
workers obeys `RunCore`. So the order of connecting, the back-off of restarts and the END waves are
those of a real run.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from storm_py.engine import run_core, worker_actions
from storm_py.engine.run_core import RunCore
from storm_py.engine.worker_core import WorkerCore
from storm_py.wire import control

from .instances import Instance
from .managers import Manager
from .network import Kind, Link, Process
from .processes import Death, Linked, Parent, Stage


class Worker(Parent):
    """The parent of one slot's processes: a `WorkerCore`."""

    def __init__(self, stage: Stage, run: Run, number: int, incarnation: int) -> None:
        super().__init__(stage.network, f"w{number}")
        self.stage = stage
        self.number = number
        self.incarnation = incarnation
        self.core = WorkerCore(number, incarnation, stage.plan.instances_on(number))
        self.children: dict[str, Linked] = {}
        self.known = set()
        self._channels: dict[str, Link] = {}
        self._to_run = Link(self, run, Kind.CHANNEL)
        self._perform(self.core.start(self.network.now))

    def _perform(self, actions: list[worker_actions.Action]) -> None:
        self.core.check()
        for action in actions:
            match action:
                case worker_actions.StartStreamManager(incarnation=incarnation):
                    self._start("sm", Manager, self.stage, self, incarnation)
                case worker_actions.StartInstance(executor=executor, incarnation=incarnation):
                    name = f"i{executor}"
                    self._start(name, Instance, self.stage, self, executor, incarnation)
                case worker_actions.Tell(identity=identity, record=record):
                    channel = self._channels.get(identity)
                    if channel is not None:
                        self.network.send(channel, record)
                case worker_actions.TellParent(record=record):
                    self.network.send(self._to_run, record)
                case worker_actions.CannotStart(executor=executor, reason=reason):
                    self.stage.complain(f"executor {executor} cannot start: {reason}")

    def _start(self, identity: str, make: Callable[..., Linked], *args: object) -> None:
        def start() -> None:
            self.children[identity] = make(*args)

        self.network.after(self.network.rng.uniform(0.001, 0.05), self, start)

    def deliver(self, link: Link, message: Any) -> None:
        now = self.network.now
        if isinstance(link.source, Run):
            self._perform(self.core.order(message))
            return
        match message:
            case control.Register(executor=executor):
                identity = f"i{executor}" if executor else "sm"
                self._channels[identity] = Link(self, link.source, Kind.CHANNEL)
                self.known.add(link.source.name)
                self._perform(self.core.registered(message))
            case control.Ready():
                self._perform(self.core.ready(message))
            case Death(number=executor, incarnation=incarnation, reason=reason):
                self._channels.pop(f"i{executor}" if executor else "sm", None)
                self.known.discard(link.source.name)
                self._perform(self.core.died(executor, incarnation, reason, now))
            case _:
                self.network.send(self._to_run, message)

    def run(self) -> None:
        self._perform(self.core.tick(self.network.now))
        timeout = self.core.next_timeout()
        self.wake_at = inf if timeout is None else timeout

    def kill(self, reason: str) -> None:
        """It takes its processes with it."""
        self.network.tell("dies", self, reason)
        super().kill(reason)
        for child in self.children.values():
            if child.alive:
                child.kill("died with its worker")
        self.network.send(self._to_run, Death(self.number, self.incarnation, reason))


class Run(Process):
    """The parent of all workers: a `RunCore`."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.network, "run")
        self.stage = stage
        self.core = RunCore(stage.plan)
        self._channels: dict[int, Link] = {}
        self._perform(self.core.start(self.network.now))

    def _perform(self, actions: list[run_core.Action]) -> None:
        self.core.check()
        for action in actions:
            match action:
                case run_core.StartWorker(worker=worker, incarnation=incarnation):
                    self._start(worker, incarnation)
                case run_core.TellWorker(worker=worker, record=record):
                    channel = self._channels.get(worker)
                    if channel is not None and self.core.phase != "stopping":
                        self.network.send(channel, record)
                case run_core.CannotStart(worker=worker, reason=reason):
                    self.stage.complain(f"worker {worker} cannot start: {reason}")
                case run_core.Note(text=text):
                    self.network.tell("note:", text)

    def _start(self, number: int, incarnation: int) -> None:
        def start() -> None:
            worker = Worker(self.stage, self, number, incarnation)
            self._channels[number] = Link(self, worker, Kind.CHANNEL)

        self.network.after(self.network.rng.uniform(0.01, 0.1), self, start)

    def drain(self) -> None:
        """End every spout where it is."""
        self._perform(self.core.drain())

    def deliver(self, link: Link, message: Any) -> None:
        core, now = self.core, self.network.now
        match message:
            case control.WorkerUp():
                self._perform(core.worker_up(message))
            case control.StreamManagerDown():
                self._perform(core.stream_manager_down(message))
            case control.WorkerReady():
                self._perform(core.worker_ready(message, now))
            case control.Restarted():
                self._perform(core.restarted(message, now))
            case control.Ended():
                self._perform(core.ended(message, now))
            case control.ErrorReport():
                self._perform(core.failed_to_run(message, now))
            case Death(number=worker, reason=reason):
                self._channels.pop(worker, None)
                self._perform(core.worker_died(worker, reason, now))

    def run(self) -> None:
        self._perform(self.core.tick(self.network.now))
        timeout = self.core.next_timeout()
        self.wake_at = inf if timeout is None else timeout
