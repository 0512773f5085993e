"""Instances of a simulated topology: an `InstanceCore` each, with links instead of sockets.

What its driver `storm_py.runtime.instance` does: it registers, connects when it is told to, works
when it may. A send that finds its link full waits, in the middle of user code if that emits, and
only control is served meanwhile.
"""

from __future__ import annotations

import sys
from collections import deque
from math import inf
from typing import Any

from storm_py.engine.idling import Idling
from storm_py.engine.instance_core import InstanceCore
from storm_py.engine.port import Watch
from storm_py.engine.settings import Settings
from storm_py.engine.tasks import UserError
from storm_py.wire import control

from .network import IDLE_SECS, Died, Kind, Link
from .processes import Linked, Parent, Stage


class Instance(Linked):
    """One executor: an `InstanceCore`, whose port this is."""

    def __init__(self, stage: Stage, worker: Parent, executor: int, incarnation: int) -> None:
        super().__init__(stage, f"i{executor}", worker, executor)
        self.incarnation = incarnation
        plan = stage.plan
        self.is_spout = plan.executor(executor).component_id in plan.topology.spouts
        self._settings = Settings.of(plan.conf, 6700 + worker.number)
        self._idling = Idling(self._settings.spout_wait_secs)
        self._ready = False
        self._orders: deque[control.Control] = deque()
        self.objects = {task: stage.component(task, self) for task in plan.tasks_in(executor)}
        port = _Port(self)
        self.core = InstanceCore(
            plan,
            executor,
            incarnation,
            self.objects,
            self._settings,
            port,
            self.network.rng,
            port,
            groupings={task: stage.groupings(task) for task in plan.tasks_in(executor)},
        )
        self.guarded(self._open)

    def _open(self) -> None:
        self.core.open()
        self.register("instance")

    # ---- sending -------------------------------------------------------------------------------

    def send(self, data: bool, peer: str, message: bytes) -> None:
        """As any process, but wait for room where there is none, as in a socket's send."""
        if data and self.is_full(peer):
            self._wait_for_room(self.outlets[peer][0])
        super().send(data, peer, message)

    def _wait_for_room(self, link: Link) -> None:
        self.network.waits += 1
        outer, self.blocked = self.blocked, link
        self._let_go()
        self.stage.wait(lambda: not self.alive or not self._is_blocked)
        self.blocked = outer
        if not self.alive:
            raise Died

    def _let_go(self) -> None:
        """Close the link to a stream manager that died; in its turn the order finds nothing."""
        for order in self._orders:
            if isinstance(order, control.Disconnect):
                self._disconnect(order.incarnation)

    @property
    def _is_blocked(self) -> bool:
        """Whether the send that waits, if one does, has to wait on."""
        link = self.blocked
        if link is None:
            return False
        room = len(link.queue) < self.stage.hwm and (link.dest.alive or link.stray)
        return self.stopped_until > self.network.now or not (room or link.closed)

    # ---- what comes in -------------------------------------------------------------------------

    def takes(self, kind: Kind) -> bool:
        if self.blocked is not None:
            return kind is not Kind.DATA and self._is_blocked
        return kind is not Kind.DATA or self.is_spout or not self.core.paused

    def deliver(self, link: Link, message: Any) -> None:
        if link.kind is Kind.CHANNEL:
            self._orders.append(message)
            if self.blocked is not None:
                self.guarded(self._let_go)
        else:
            super().deliver(link, message)
        self._obey_orders()

    def _obey_orders(self) -> None:
        """Obey the worker, but never while a send waits."""
        while self._orders and self.alive and self.blocked is None:
            self.guarded(self.obey, self._orders.popleft())

    def receive(self, data: bool, message: bytes) -> None:
        if data:
            self.core.on_data(message)
            return
        self.core.on_control(message)
        if self.core.linked and not self._ready:
            self._ready = True
            self.network.send(self.to_worker, control.Ready(self.executor, self.incarnation))

    def run(self) -> None:
        now = self.network.now
        self.wake_at = now + IDLE_SECS if self.is_spout else inf
        self.guarded(self._round)
        self._obey_orders()
        if not self.alive:
            return
        if self.core.has_work and not self.core.paused:
            self.wake_at = now
        elif not self.core.spouting or self.wake_at <= now:
            self._idling.reset()
        else:
            wait = self._idling.next(now)
            assert wait is not None
            self.wake_at = now + wait
        timeout = self.core.next_timeout()
        if timeout is not None:
            self.wake_at = min(self.wake_at, timeout)

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


class _Port(Watch):
    """What an instance core needs while user code runs, and tells of it."""

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

    def ended(self, executor: int, wave: int, failed: bool) -> None:
        one = self._instance
        record = control.Ended(executor, one.incarnation, wave, failed)
        self._network.send(one.to_worker, record)

    def wake(self) -> None:
        self._instance.wake_at = self._network.now

    def entered(
        self, what: str, task: int, source: int = 0, stream: str = "", first: int = 0, last: int = 0
    ) -> None:
        self._network.entered[what] += 1
