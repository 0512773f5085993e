"""Membership: what a worker of a cluster decides about the other workers of its topology.

Theory of operation. In local mode one parent introduces the workers of a run to each other
(`storm_py.engine.run_core`); on a cluster each worker finds the others by itself. It *publishes*
where its stream manager listens, and reads what the others have published, in whatever order and
however late that comes. The incarnations of a stream manager count on for as long as the topology
lives, whoever runs it, so an older registration is known as such.

That the store of registrations is away, or that one is removed from it, is no news about a worker:
links go on until a registration says that a stream manager is down, a newer one takes its place,
or a newer assignment does without that worker. A worker that its assignment does without stops.

Pure: events in, actions out. `WorkerCore` carries out the orders; who keeps the registrations is a
driver's business.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from storm_py.wire import control

from .links import stream_manager_peer


@dataclass(frozen=True, slots=True)
class Registration:
    """Where the stream manager of a worker listens; without addresses, that it is down.

    `incarnation` is that of the worker, `stream_manager_incarnation` the one to be greeted.
    """

    worker: int
    incarnation: int
    stream_manager_incarnation: int
    data: str = ""
    control: str = ""

    @property
    def is_up(self) -> bool:
        """Whether anybody listens."""
        return bool(self.data)


@dataclass(frozen=True, slots=True)
class Publish:
    """Let the other workers of the topology know."""

    registration: Registration


@dataclass(frozen=True, slots=True)
class Order:
    """Have this worker's own processes do so."""

    record: control.Control


Action = Publish | Order


class Membership:
    """One worker among those of its topology; `others` are in its assignment as well."""

    def __init__(self, worker: int, version: int, others: Collection[int]) -> None:
        self._worker = worker
        self._version = version
        self._others = frozenset(others)
        #: the newest registration of every worker that has been heard of
        self._known: dict[int, Registration] = {}
        #: of other workers, the stream managers that ours was told to connect to
        self._connected: dict[int, Registration] = {}
        self._wanted_active = False
        self._ready = False
        self._active = False
        self._stopped = False

    # ---- this worker ---------------------------------------------------------------------------

    def stream_manager_up(self, record: control.WorkerUp) -> list[Action]:
        """Our stream manager listens."""
        return self._publish(
            record.incarnation,
            record.stream_manager_incarnation,
            record.tcp_data,
            record.tcp_control,
        )

    def stream_manager_down(self, record: control.StreamManagerDown) -> list[Action]:
        """Our stream manager died, or goes on as its successor."""
        return self._publish(record.incarnation, record.stream_manager_incarnation)

    def _publish(
        self, incarnation: int, manager: int, data: str = "", ctl: str = ""
    ) -> list[Action]:
        ours = Registration(self._worker, incarnation, manager, data, ctl)
        self._known[self._worker] = ours
        return [Publish(ours)]

    def published(self, found: Registration | None) -> list[Action]:
        """What the store holds of this worker; once more ours, if that is older.

        Called when the store is there again: what was published meanwhile may not have reached it.
        If somebody was started in our place since, we stop.
        """
        ours = self._known.get(self._worker)
        if ours is None or found == ours or self._stopped:
            return []
        if found is None or found.incarnation <= ours.incarnation:
            return [Publish(ours)]
        return self._stop()

    def ready(self) -> list[Action]:
        """All of our instances are ready."""
        self._ready = True
        return self._turn()

    def activate(self, active: bool) -> list[Action]:
        """The topology is active, or is not: its spouts go on, or pause."""
        self._wanted_active = active
        return self._turn()

    def _turn(self) -> list[Action]:
        """Spouts wait until all of this worker was ready once; restarts are no reason to pause.

        Those that are paused when another assignment comes wait until all is ready under that: what
        they emitted before would have to be emitted again.
        """
        wanted = self._wanted_active and self._ready
        if wanted == self._active or self._stopped:
            return []
        self._active = wanted
        return [Order(control.Activate() if wanted else control.Deactivate())]

    # ---- the others ----------------------------------------------------------------------------

    def registered(self, found: Registration) -> list[Action]:
        """A registration was read: of another worker, one of now or of long ago."""
        worker = found.worker
        known = self._known.get(worker)
        if worker == self._worker:
            beyond = known is not None and found.incarnation > known.incarnation
            return self._stop() if beyond and not self._stopped else []
        if known is not None and not _is_newer(found, known):
            return []
        self._known[worker] = found
        return self._follow(worker)

    def assigned(self, version: int, workers: Collection[int]) -> list[Action]:
        """An assignment was read: of now, or an older one, which is none of our business."""
        if version <= self._version or self._stopped:
            return []
        self._version = version
        if self._worker not in workers:
            return self._stop()
        self._others = frozenset(workers) - {self._worker}
        self._ready = self._ready and self._active
        actions: list[Action] = [
            Order(_goodbye(self._connected.pop(worker)))
            for worker in sorted(self._connected.keys() - self._others)
        ]
        actions.append(Order(control.Replan(version, 0)))
        for worker in sorted(self._others):
            actions += self._follow(worker)
        return actions

    def _stop(self) -> list[Action]:
        self._stopped = True
        self._active = False
        return [Order(control.Stop())]

    def _follow(self, worker: int) -> list[Action]:
        """Have our stream manager linked to that of a worker as it is now."""
        if worker not in self._others or self._stopped:
            return []
        known, connected = self._known.get(worker), self._connected.get(worker)
        if known is None or known == connected:
            return []
        if known.is_up:
            self._connected[worker] = known
            return [Order(_introduction(known))]
        # Also who is linked to an older one: that one is gone as well.
        return [] if self._connected.pop(worker, None) is None else [Order(_goodbye(known))]

    def check(self) -> None:
        """Assert what holds between any two events."""
        assert self._connected.keys() <= self._others
        assert self._worker not in self._others
        assert not (self._active and self._stopped)
        for worker, connected in self._connected.items():
            assert connected.is_up
            assert connected == self._known[worker]


def _is_newer(found: Registration, known: Registration) -> bool:
    """A stream manager that is down stays so: what says otherwise is older."""
    ours, theirs = known.stream_manager_incarnation, found.stream_manager_incarnation
    return theirs > ours or (theirs == ours and known.is_up and not found.is_up)


def _introduction(of: Registration) -> control.Connect:
    peer = stream_manager_peer(of.worker)
    return control.Connect(peer, of.stream_manager_incarnation, of.data, of.control)


def _goodbye(to: Registration) -> control.Disconnect:
    return control.Disconnect(stream_manager_peer(to.worker), to.stream_manager_incarnation)
