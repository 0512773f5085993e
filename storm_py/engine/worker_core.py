"""WorkerCore: what the parent of a worker's processes decides.

Theory of operation. A worker is one stream manager and one instance per executor. Each process
registers with its addresses once its sockets are bound; when both ends of a link have registered
the worker orders them to connect. An instance whose link is open reports itself ready. When a
process dies, whoever was linked to it is ordered to disconnect *before* a successor of a higher
incarnation is started, so that no message of the dead reaches the living. Restarts back off.

Under another version of the plan instances that it does not keep leave first; then the stream
manager goes on as its own successor, so that whatever was on its way to others is given up as if it
had died, and the instances that are new are started. Processes that are kept stay the same. What
was tracked is replayed, what was not is lost. Workers do not wait for each other: for a moment a
task that moves may run on two, of which the older version is heard by nobody.

Pure: events in, actions out; processes, pipes and clocks are in `storm_py.runtime.worker`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from storm_py.wire import control

from .worker_actions import (
    Action,
    Adopt,
    CannotStart,
    KillInstance,
    Leave,
    ReplanStreamManager,
    StartInstance,
    StartStreamManager,
    Tell,
    TellParent,
)
from .worker_children import Child, NextPlan, Orders

#: Seconds before the first, second, ... restart in a row of one process; the last one repeats.
BACKOFF_SECS: Final = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
#: A process that lived this long starts its row of restarts anew.
HEALTHY_SECS: Final = 10.0

#: Deaths in a row before it has registered after which a process is reported as unable to start.
STILLBORN: Final = 3
#: Seconds before the restart of an instance that did not come up, while the worker never was:
#: whoever runs the worker may want to stop it instead, and has to hear of it first.
STILLBORN_SECS: Final = 0.5
#: Seconds that an instance has to leave a worker that goes on without it, before it is killed.
LEAVE_SECS: Final = 5.0
#: Restarts of a process during the life of its worker that keep its numbers ascending.
_RESTARTS: Final = 1 << 16


def newest_incarnation(worker_incarnation: int) -> int:
    """No process of this or an earlier start of a worker has a higher incarnation.

    They count on when a worker is started again: who speaks to them knows only their numbers, and a
    Hello of a dead one that comes late must not shut out its successor.
    """
    return worker_incarnation * _RESTARTS


class WorkerCore:
    """The processes of one worker."""

    def __init__(self, worker: int, incarnation: int, executors: Iterable[int]) -> None:
        self._worker = worker
        self._incarnation = incarnation
        newest = newest_incarnation(incarnation - 1)
        self._manager = Child(0, newest)
        self._instances = {executor: Child(executor, newest) for executor in executors}
        self._orders = Orders()
        self._announced_ready = False
        self._next: NextPlan | None = None
        #: the last incarnations of instances under earlier versions of the plan: they may come back
        self._newest: dict[int, int] = {}

    # ---- life of the processes -----------------------------------------------------------------

    def start(self, now: float) -> list[Action]:
        """Start everything."""
        actions = self._start(self._manager, now)
        for process in self._instances.values():
            actions += self._start(process, now)
        return actions

    def _start(self, process: Child, now: float) -> list[Action]:
        process.incarnation += 1
        process.addresses = None
        process.ready = False
        process.active = False
        process.restart_at = None
        process.started_at = now
        if process.executor:
            return [StartInstance(process.executor, process.incarnation)]
        return [StartStreamManager(process.incarnation)]

    def registered(self, record: control.Register) -> list[Action]:
        """A process has bound its sockets: link it with those that are up already."""
        process = self._process(record.executor)
        if process is None or record.incarnation != process.incarnation:
            return []
        process.addresses = record
        process.stillborn = 0
        if process.executor:
            return self._link(process)
        actions: list[Action] = [
            TellParent(
                control.WorkerUp(
                    self._worker,
                    self._incarnation,
                    record.pid,
                    record.tcp_data,
                    record.tcp_control,
                    record.incarnation,
                )
            )
        ]
        for instance in self._instances.values():
            actions += self._link(instance)
        actions += [Tell("sm", connect) for connect in self._orders.peers.values()]
        return actions

    def _link(self, instance: Child) -> list[Action]:
        theirs, ours = instance.addresses, self._manager.addresses
        if theirs is None or ours is None:
            return []
        to_instance = control.Connect(
            instance.identity, theirs.incarnation, theirs.data, theirs.control
        )
        to_manager = control.Connect("stmgr", ours.incarnation, ours.data, ours.control)
        return [Tell("sm", to_instance), Tell(instance.identity, to_manager)]

    def ready(self, record: control.Ready) -> list[Action]:
        """An instance has opened its components and its link."""
        process = self._instances.get(record.executor)
        if process is None or record.incarnation != process.incarnation:
            return []
        process.ready = True
        actions: list[Action] = []
        if self._orders.active:
            actions += self._activate(process)
        for order in (self._orders.wave, self._orders.log_levels):
            if order is not None:
                actions.append(Tell(process.identity, order))
        if process.reason:
            actions.append(self._restarted(process))
        if all(instance.ready for instance in self._instances.values()):
            if self._manager.reason:
                actions.append(self._restarted(self._manager))
            if not self._announced_ready:
                self._announced_ready = True
                actions.append(TellParent(control.WorkerReady(self._worker, self._incarnation)))
        return actions

    def _restarted(self, process: Child) -> Action:
        reason, process.reason = process.reason, ""
        return TellParent(
            control.Restarted(
                self._worker, process.role, process.executor, process.incarnation, reason
            )
        )

    def died(self, executor: int, incarnation: int, reason: str, now: float) -> list[Action]:
        """A process is gone (executor 0: the stream manager)."""
        process = self._process(executor)
        if process is None or incarnation != process.incarnation:
            return []
        if process.gone or process.restart_at is not None:
            return []  # known already
        stillborn = process.addresses is None
        process.stillborn += stillborn
        process.addresses = None
        process.ready = False
        if self._orders.stopping:
            process.gone = True
            # Who waits for room in a socket of the dead would wait for ever.
            return [*([] if process.executor else self._unlink(process)), *self._after_stop()]
        actions = self._unlink(process)
        if process.leaving:
            process.gone = True
            return actions + self._go_on(now)
        if not process.executor:
            down = control.StreamManagerDown(self._worker, self._incarnation, process.incarnation)
            actions.append(TellParent(down))
        process.reason = reason
        if now - process.started_at >= HEALTHY_SECS:
            process.failures = 0
        delay = BACKOFF_SECS[min(process.failures, len(BACKOFF_SECS) - 1)]
        if process.executor and stillborn and not self._announced_ready:
            delay = max(delay, STILLBORN_SECS)
        process.failures += 1
        process.restart_at = now + delay
        if process.executor and process.stillborn == STILLBORN:
            actions.append(CannotStart(process.executor, reason))
        return actions + self.tick(now)

    def _unlink(self, process: Child) -> list[Action]:
        """Tell everybody who was linked to a process that it is gone."""
        if process.executor:
            return [Tell("sm", control.Disconnect(process.identity, process.incarnation))]
        for instance in self._instances.values():
            instance.ready = False
        gone = control.Disconnect("stmgr", process.incarnation)
        return [Tell(i.identity, gone) for i in self._instances.values() if not i.gone]

    def tick(self, now: float) -> list[Action]:
        """Start what has waited long enough."""
        actions: list[Action] = []
        for process in (self._manager, *self._instances.values()):
            if process.restart_at is not None and now >= process.restart_at:
                actions += self._start(process, now)
        if self._next is not None and now >= self._next.kill_at:
            self._next.kill_at = now + LEAVE_SECS
            actions += [
                KillInstance(process.executor, process.incarnation)
                for process in self._instances.values()
                if process.leaving and not process.gone
            ]
        return actions

    def next_timeout(self) -> float | None:
        """When `tick` should be called next, None for never."""
        waiting = [
            p.restart_at
            for p in (self._manager, *self._instances.values())
            if p.restart_at is not None
        ]
        if self._next is not None:
            waiting.append(self._next.kill_at)
        return min(waiting, default=None)

    # ---- another version of the plan -----------------------------------------------------------

    def replan(
        self, version: int, instances: Iterable[int], kept: Container[int], now: float
    ) -> list[Action]:
        """Run these instances from now on, under this version of the plan.

        Those in `kept` go on as they are; all others that run now leave, and are killed if they do
        not. An order to stop, which may have come before, is not affected.
        """
        if self._orders.stopping:
            return []
        # Who leaves already gets no more time by a newer version.
        kill_at = now + LEAVE_SECS if self._next is None else self._next.kill_at
        self._next = NextPlan(version, tuple(instances), kill_at)
        actions: list[Action] = []
        for process in self._instances.values():
            if process.executor in kept or process.leaving:
                continue
            process.leaving = True
            if process.restart_at is None:
                actions.append(Tell(process.identity, control.Stop()))
            else:
                process.restart_at = None
                process.gone = True
        return actions + self._go_on(now)

    def _go_on(self, now: float) -> list[Action]:
        """Adopt the next version once everybody has left who had to."""
        then = self._next
        if then is None or any(p.leaving and not p.gone for p in self._instances.values()):
            return []
        self._next = None
        actions: list[Action] = [Adopt(then.version)]
        manager = self._manager
        if manager.restart_at is None:
            actions += self._unlink(manager)
            down = control.StreamManagerDown(self._worker, self._incarnation, manager.incarnation)
            manager.incarnation += 1
            manager.addresses = None
            actions += [
                TellParent(down),
                ReplanStreamManager(manager.incarnation, then.version),
            ]
        before = self._instances
        self._instances = {}
        self._announced_ready = False
        self._newest |= {process.executor: process.incarnation for process in before.values()}
        first = newest_incarnation(self._incarnation - 1)
        for executor in then.instances:
            process = before.get(executor)
            if process is not None and not process.leaving:
                self._instances[executor] = process
                actions.append(Tell(process.identity, control.Replan(then.version, 0)))
                continue
            fresh = Child(executor, self._newest.get(executor, first))
            self._instances[executor] = fresh
            actions += self._start(fresh, now)
        return actions

    def _process(self, executor: int) -> Child | None:
        return self._instances.get(executor) if executor else self._manager

    # ---- orders of the parent ------------------------------------------------------------------

    def order(self, record: control.Control) -> list[Action]:
        """An order of whoever runs this worker."""
        orders = self._orders
        match record:
            case control.Activate():
                orders.active = True
                return [a for i in self._instances.values() if i.ready for a in self._activate(i)]
            case control.Deactivate():
                orders.active = False
                # Also those whose stream manager is away just now: they go on when it is back.
                told = [i for i in self._instances.values() if i.active]
                for instance in told:
                    instance.active = False
                return [Tell(instance.identity, record) for instance in told]
            case control.Wave():
                orders.wave = record
                return self._tell_instances(record)
            case control.LogLevels():
                orders.log_levels = record
                return self._tell_instances(record)
            case control.Connect(peer=peer):
                orders.peers[peer] = record
                return [Tell("sm", record)] if self._manager.addresses else []
            case control.Disconnect(peer=peer):
                orders.peers.pop(peer, None)
                return [Tell("sm", record)]
            case control.Stop():
                orders.stopping = True
                self._next = None
                actions: list[Action] = []
                for process in self._instances.values():
                    if process.restart_at is not None:
                        process.restart_at = None
                        process.gone = True
                    elif not process.leaving:
                        actions.append(Tell(process.identity, record))
                if self._manager.restart_at is not None:
                    self._manager.restart_at = None
                    self._manager.gone = True
                return actions + self._after_stop()
            case _:
                raise ValueError(f"{type(record).__name__} is no order for a worker")

    def _activate(self, instance: Child) -> list[Action]:
        """Once is enough: an instance outlives its stream manager and stays active."""
        if instance.active:
            return []
        instance.active = True
        return [Tell(instance.identity, control.Activate())]

    def _tell_instances(self, record: control.Control) -> list[Action]:
        return [Tell(i.identity, record) for i in self._instances.values() if i.ready]

    def _after_stop(self) -> list[Action]:
        """Instances first, then the stream manager, then the worker itself."""
        if not all(instance.gone for instance in self._instances.values()):
            return []
        return [Leave()] if self._manager.gone else [Tell("sm", control.Stop())]

    def check(self) -> None:
        """Assert what holds between any two events."""
        for process in (self._manager, *self._instances.values()):
            assert not (process.gone and process.restart_at is not None)
            assert not process.ready or process.addresses is not None
            if process.addresses is not None:
                assert process.addresses.incarnation == process.incarnation
