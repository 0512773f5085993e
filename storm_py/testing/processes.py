"""Instances and stream managers of a simulated topology: thin drivers around the real cores.

Each does what its driver in `storm_py.runtime` does with sockets: an instance registers, connects
when it is told to, works when it may; a stream manager routes. Who starts, links and restarts them
is in `storm_py.testing.parents`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from storm_py.core.plan import CustomGroupings, PhysicalPlan
from storm_py.core.pressure import Limits
from storm_py.engine.instance_core import InstanceCore
from storm_py.engine.links import BEAT_SECS
from storm_py.engine.settings import Settings, max_timeout_secs
from storm_py.engine.stream_manager_core import Send, StreamManagerCore
from storm_py.engine.tasks import UserError
from storm_py.wire import control

from .network import IDLE_SECS, Died, Kind, Link, Network, Process


class Stage(Protocol):
    """What the processes share: the plan, the network, and how a task's object is made."""

    plan: PhysicalPlan
    network: Network

    def component(self, task: int, process: Instance) -> object:
        """A watched copy of the user's object."""

    def groupings(self, task: int) -> CustomGroupings:
        """Copies of the user's groupings of what a task emits."""

    def limits(self) -> Limits:
        """The bounds of the queues of a stream manager."""

    def complain(self, text: str) -> None:
        """Something is wrong with the run."""

    def user_error(self, process: Instance, error: BaseException) -> None:
        """User code has raised: a UserError says where."""


class Parent(Process):
    """What an instance or a stream manager knows of its worker."""

    number: int
    #: names of the processes that have registered
    known: set[str]


@dataclass(frozen=True, slots=True)
class Death:
    """What a worker learns from waitpid, or the parent of a worker from its own."""

    number: int
    incarnation: int
    reason: str


class Linked(Process):
    """An instance or a stream manager: sockets to peers, a channel to its worker."""

    def __init__(self, stage: Stage, name: str, worker: Parent, executor: int) -> None:
        super().__init__(stage.network, name)
        self.stage = stage
        self.worker = worker
        self.executor = executor
        self.incarnation = 0
        self.to_worker = Link(self, worker, Kind.CHANNEL)
        self.outlets: dict[str, tuple[Link, Link]] = {}

    def send(self, data: bool, peer: str, message: bytes) -> None:
        """Send to a peer, unless the link was closed since: its session is over then."""
        outlet = self.outlets.get(peer)
        if outlet is not None:
            self.network.send(outlet[0 if data else 1], message)

    def open_outlet(self, peer: str, address: str) -> None:
        dest = self.network.processes.get(address)
        if dest is not None:
            self.outlets[peer] = (Link(self, dest, Kind.DATA), Link(self, dest, Kind.CONTROL))

    def close_outlet(self, peer: str) -> bool:
        """Close the sockets to a peer; False if there were none."""
        links = self.outlets.pop(peer, None)
        for link in links or ():
            self.network.close(link)
        return links is not None

    def register(self, role: str) -> None:
        at = self.address
        record = control.Register(role, self.executor, self.incarnation, 1, at, at, at, at)
        self.network.send(self.to_worker, record)

    def guarded(self, call: Callable[..., object], *args: object) -> None:
        """Let the core do something; it may die of it."""
        try:
            call(*args)
        except Died:
            self.network.faults["kill while sending"] += 1
            self.kill("killed while sending")
        except UserError as error:
            self.give_up(error)

    def give_up(self, error: UserError) -> None:
        """User code raised: this is the end of the process, an orderly one."""
        raise NotImplementedError

    def deliver(self, link: Link, message: Any) -> None:
        if link.kind is Kind.CHANNEL:
            self.guarded(self.obey, message)
        else:
            self.guarded(self.receive, link.kind is Kind.DATA, message)

    def obey(self, order: control.Control) -> None:
        """An order of the worker."""
        raise NotImplementedError

    def receive(self, data: bool, message: bytes) -> None:
        """A message of a peer."""
        raise NotImplementedError

    def check(self) -> None:
        """Assert the invariants of the core."""
        raise NotImplementedError

    def kill(self, reason: str) -> None:
        self.network.tell("dies", self, reason)
        for links in self.outlets.values():
            for link in links:
                self.network.close(link)
        super().kill(reason)
        self.doomed = None
        # What the worker has read of it comes before the news of its death.
        self.network.send(self.to_worker, Death(self.executor, self.incarnation, reason))


class Instance(Linked):
    """One executor: an `InstanceCore`, whose port this is."""

    def __init__(self, stage: Stage, worker: Parent, executor: int, incarnation: int) -> None:
        super().__init__(stage, f"i{executor}", worker, executor)
        self.incarnation = incarnation
        plan = stage.plan
        executor_plan = plan.executor(executor)
        self.is_spout = plan.topology.components[executor_plan.component_id].kind == "spout"
        self._settings = Settings.of(plan.conf, 6700 + worker.number)
        self._ready = False
        #: a send of it waits for room
        self.waiting = False
        self.objects = {task: stage.component(task, self) for task in executor_plan.tasks}
        self.core = InstanceCore(
            plan,
            executor,
            incarnation,
            self.objects,
            self._settings,
            _Port(self),
            self.network.rng,
            groupings={task: stage.groupings(task) for task in executor_plan.tasks},
        )
        self.guarded(self._open)

    def _open(self) -> None:
        self.core.open()
        self.register("instance")

    def takes(self, kind: Kind) -> bool:
        return kind is not Kind.DATA or self.is_spout or not self.core.paused

    def receive(self, data: bool, message: bytes) -> None:
        if data:
            self.core.on_data(message)
            return
        self.core.on_control(message)
        if self.core.linked and not self._ready:
            self._ready = True
            self.network.send(self.to_worker, control.Ready(self.executor, self.incarnation))

    def run(self) -> None:
        self.wake_at = self.network.now + IDLE_SECS
        self.guarded(self._round)
        if not self.alive:
            return
        if self.core.has_work and not self.core.paused:
            self.wake_at = self.network.now
        elif self.core.spouting and self.wake_at > self.network.now:
            self.wake_at = self.network.now + self._settings.spout_wait_secs

    def _round(self) -> None:
        """One round of the driver's loop."""
        core = self.core
        core.tick(self.network.now)
        if core.paused:
            core.flush()
        elif core.has_work:
            core.work()
            self.wake_at = self.network.now
        elif core.spin():
            self.wake_at = self.network.now

    def obey(self, order: control.Control) -> None:
        match order:
            case control.Connect(incarnation=incarnation, data=address):
                self._disconnect(incarnation - 1)
                self.open_outlet("stmgr", address)
                self.core.connect()
            case control.Disconnect(incarnation=incarnation):
                self._disconnect(incarnation)
            case control.Activate():
                self.core.activate()
            case control.Deactivate():
                self.core.deactivate()
            case control.Wave(wave=wave, drain=drain):
                self.core.on_wave(wave, drain)

    def _disconnect(self, gone: int) -> None:
        if self.close_outlet("stmgr"):
            self.core.disconnect(gone)
            self._ready = False

    def give_up(self, error: UserError) -> None:
        self.network.faults["user error"] += 1
        self.stage.user_error(self, error)
        try:
            if self.outlets and self.core.linked:
                self.core.flush()
            self.network.send(self.to_worker, error.report(fatal=True))
        except Died:
            pass
        self.kill(f"died of {error}")

    def check(self) -> None:
        self.core.check()


class _Port:
    """What an instance core needs while user code runs."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._network = instance.network

    def clock(self) -> float:
        return self._network.now

    def stamp(self) -> int:
        return int(self._network.now * 1e6)

    def send(self, data: bool, message: bytes) -> None:
        self._instance.send(data, "stmgr", message)

    def report(self, error: control.ErrorReport) -> None:
        raised = sys.exception()  # whoever reports an error that ends nothing is handling it
        if error.where != "report_error" and raised is not None:
            self._instance.stage.user_error(self._instance, raised)
        self._network.send(self._instance.to_worker, error)

    def log(self, text: str) -> None:
        self._network.tell("log:", text)

    def ended(self, wave: int, failed: bool) -> None:
        one = self._instance
        record = control.Ended(one.executor, one.incarnation, wave, failed)
        self._network.send(one.to_worker, record)


class Manager(Linked):
    """A worker's stream manager: a `StreamManagerCore`."""

    def __init__(self, stage: Stage, worker: Parent, incarnation: int) -> None:
        super().__init__(stage, f"s{worker.number}", worker, 0)
        self.incarnation = incarnation
        plan = stage.plan
        self.limits = stage.limits()
        self.core = StreamManagerCore(
            plan, worker.number, incarnation, self.network.rng, self.limits
        )
        self._timeout_secs = max_timeout_secs(plan)
        self._rotate_at = self.network.now + self._timeout_secs
        self._beat_at = self.network.now + BEAT_SECS
        self.guarded(self.register, "stream-manager")

    def receive(self, data: bool, message: bytes) -> None:
        core, now = self.core, self.network.now
        self._transmit(core.on_data(message, now) if data else core.on_control(message, now))

    def run(self) -> None:
        self.guarded(self._round)
        self.wake_at = min(self._rotate_at, self._beat_at)

    def _round(self) -> None:
        if self.network.now >= self._rotate_at:
            self._rotate_at = self.network.now + self._timeout_secs
            self.core.rotate()
        if self.network.now >= self._beat_at:
            self._beat_at = self.network.now + BEAT_SECS
            self._transmit(self.core.beat())

    def _transmit(self, sends: list[Send]) -> None:
        for data, peer, message in sends:
            self.send(data, peer, message)

    def obey(self, order: control.Control) -> None:
        match order:
            case control.Connect(peer=peer, incarnation=incarnation, data=address):
                self._close(peer, incarnation - 1)
                self.open_outlet(peer, address)
                self._transmit(self.core.connect(peer))
            case control.Disconnect(peer=peer, incarnation=incarnation):
                self._close(peer, incarnation)

    def _close(self, peer: str, gone: int) -> None:
        if self.close_outlet(peer):
            self._transmit(self.core.disconnect(peer, gone))

    def give_up(self, error: UserError) -> None:
        raise AssertionError("a stream manager runs no user code") from error

    def check(self) -> None:
        self.core.check()
