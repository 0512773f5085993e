"""What instances and stream managers of a simulated topology have in common: links and a worker.

Each is a thin driver around the real core and does what its driver in `storm_py.runtime` does with
sockets (`storm_py.testing.instances`, `storm_py.testing.managers`). Who starts, links and restarts
them is in `storm_py.testing.parents`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from storm_py.core.plan import CustomGroupings, PhysicalPlan
from storm_py.core.pressure import Limits
from storm_py.engine.tasks import UserError
from storm_py.wire import control

from .network import Died, Kind, Link, Network, Process

if TYPE_CHECKING:  # an instance is one of these
    from .instances import Instance


class Stage(Protocol):
    """What the processes share: the plan, the network, and how a task's object is made."""

    plan: PhysicalPlan
    network: Network
    #: data messages that a link to a stream manager holds; whoever sends more has to wait
    hwm: int

    def wait(self, ready: Callable[[], bool]) -> None:
        """Let the others go on until `ready` says so, or as good as that."""

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

    def is_full(self, peer: str) -> bool:
        """Whether the data socket to a peer takes nothing now."""
        outlet = self.outlets.get(peer)
        return outlet is not None and len(outlet[0].queue) >= self.stage.hwm

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
            if self.alive:  # else it was killed while a send of it waited
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
