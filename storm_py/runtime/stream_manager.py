"""Stream manager: `python -m storm_py.runtime.stream_manager` - sockets around its core.

One process per worker, started by it. Never blocks on a send: what a peer's socket does not take
waits here, and the core is told, so that senders pause before much piles up.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import random
import sys
import time
from collections import deque
from pathlib import Path

import zmq

from storm_py.core.plan import PhysicalPlan
from storm_py.engine.lingering import Lingering
from storm_py.engine.links import Send
from storm_py.engine.settings import limits, linger_secs, max_timeout_secs
from storm_py.engine.stream_manager_core import StreamManagerCore
from storm_py.errors import ProtocolError
from storm_py.processes import die_with_parent
from storm_py.transport.zeromq import UNBOUNDED, UPSTREAM_HWM, ChannelClient, Context, Inlet, Outlet
from storm_py.wire import control

from .folder import RunFolder
from .logs import set_up_logging
from .process import (
    CALM_SECS,
    collect_rarely,
    leave_terminal_signals_to_parent,
    run_times,
)

_LOG = logging.getLogger("storm_py.stream_manager")

#: Seconds between two looks at control while data keeps coming.
_LOOK_SECS = 0.001
#: Seconds after which a socket that was full is tried again.
_RETRY_SECS = 0.02
#: Seconds between two reports of queue lengths to the worker, at least.
_REPORT_SECS = 0.25
#: What a stream manager lingers of what is found good for a process: frames pass it twice.
_SHARE = 0.5
#: Data messages in a row before the clock is read again.
_BURST = 16


class StreamManager:
    """The driver."""

    def __init__(
        self,
        folder: RunFolder,
        address: str,
        worker: int,
        worker_incarnation: int,
        incarnation: int,
        version: int,
    ) -> None:
        self._folder = folder
        self._worker = worker
        plan = folder.read_plan(version)
        self._context: Context = zmq.Context.instance()
        self._lingering = Lingering(linger_secs(plan.conf))
        self._begin(plan, incarnation)
        self._high_bytes = limits(plan.conf).high_bytes
        self._timeout_secs: float = max_timeout_secs(plan)
        data, ctl = folder.inlet_addresses(f"s{worker}", worker_incarnation, incarnation)
        tcp = f"tcp://{address}:*"
        self._inlet = Inlet(self._context, [data, tcp], [ctl, tcp], UPSTREAM_HWM)
        self._outlets: dict[str, Outlet] = {}
        self._waiting: dict[str, deque[bytes]] = {}
        self._waiting_bytes: dict[str, int] = {}
        address = folder.worker_address(worker, worker_incarnation)
        self._channel = ChannelClient(self._context, address, f"sm.{incarnation}")
        self._reported: list[int] = []
        self._reported_frames = 0
        #: whether queues may have changed since the last report, without a frame that came
        self._unreported = False
        self._stopped = False
        self._control, self._poller = zmq.Poller(), zmq.Poller()
        for socket in (self._inlet.control, self._channel.socket):
            self._control.register(socket, zmq.POLLIN)
            self._poller.register(socket, zmq.POLLIN)
        self._poller.register(self._inlet.data, zmq.POLLIN)

    def _begin(self, plan: PhysicalPlan, incarnation: int) -> None:
        self._incarnation = incarnation
        rng, bounds = random.Random(), limits(plan.conf)
        self._core = StreamManagerCore(plan, self._worker, incarnation, rng, bounds)
        self._core.parcels.linger_secs = self._lingering.secs * _SHARE

    def _replan(self, version: int, incarnation: int) -> None:
        """Go on under another plan as what a successor would be: with no link, and no trees."""
        for outlet in self._outlets.values():
            outlet.close()
        for what_was in (self._outlets, self._waiting, self._waiting_bytes):
            what_was.clear()
        self._begin(self._folder.read_plan(version), incarnation)
        self._unreported = True
        self._register()
        gc.unfreeze()  # the predecessor's state goes
        gc.collect()
        gc.freeze()

    def run(self) -> None:
        """Register and serve until the worker says stop."""
        self._register()
        gc.collect()
        gc.freeze()
        receive, clock = self._inlet.data.recv, time.monotonic
        look_at = calm_until = report_at = 0.0
        rotate_at = clock() + self._timeout_secs
        while not self._stopped:
            now = clock()
            try:
                for _ in range(_BURST):
                    self._route(receive(zmq.NOBLOCK), now)
            except zmq.Again:
                only_data = self._sleep(min(rotate_at, report_at if self._has_news else math.inf))
                if only_data and clock() < calm_until:
                    continue  # it comes before a look at what is not there
                look_at = 0.0
            now = clock()
            if now >= look_at:
                self._transmit(self._core.parcels.due(now))
                self._consider_lingering(now)
                self._look(now)
                look_at, calm_until = now + _LOOK_SECS, now + CALM_SECS
                if now >= rotate_at:
                    self._core.rotate()
                    rotate_at = now + self._timeout_secs
                self._transmit(self._core.beat(now))
                if now >= report_at and self._has_news:
                    self._report()
                    report_at = now + _REPORT_SECS
        self._report()  # what is left in the queues is the last that is said about them
        self._channel.close(linger_secs=1.0)

    def _consider_lingering(self, now: float) -> None:
        if self._lingering.due(now):
            self._lingering.look(now, *run_times())
            self._core.parcels.linger_secs = self._lingering.secs * _SHARE

    def _sleep(self, until: float) -> bool:
        """Wait for a message, or until something is due; whether data has come and nothing else."""
        now = time.monotonic()
        until = min(until, self._core.next_beat(now))
        if self._waiting:
            until = min(until, now + _RETRY_SECS)
        due_at = self._core.parcels.next()
        if due_at is not None:
            until = min(until, due_at)
        ready = self._poller.poll(math.ceil(max(0.0, until - now) * 1000))
        return [source for source, _ in ready] == [self._inlet.data]

    def _register(self) -> None:
        data, tcp_data = self._inlet.data_addresses
        ctl, tcp_control = self._inlet.control_addresses
        self._channel.send(
            control.encode(
                control.Register(
                    "stream-manager",
                    0,
                    self._incarnation,
                    os.getpid(),
                    data,
                    ctl,
                    tcp_data,
                    tcp_control,
                )
            )
        )

    def _route(self, message: bytes, now: float) -> None:
        try:
            sends = self._core.on_data(message, now)
        except ProtocolError as error:
            _LOG.error("a data message was refused: %s", error)
            return
        if sends:
            self._transmit(sends)

    def _transmit(self, sends: list[Send]) -> None:
        kept: dict[str, None] = {}
        for data, peer, message in sends:
            outlet = self._outlets.get(peer)
            if outlet is None:
                continue  # closed since: its session is over
            if not data:
                outlet.control.send(message)
                continue
            if peer not in self._waiting:
                try:
                    outlet.data.send(message, zmq.NOBLOCK)
                    continue
                except zmq.Again:
                    pass
            self._keep(peer, message)
            kept[peer] = None
        # Behind the last word of the list: the core has decided all of it before it hears of this.
        for peer in kept:
            if self._waiting_bytes[peer] > self._high_bytes:
                self._transmit(self._core.egress(peer, congested=True))

    def _keep(self, peer: str, message: bytes) -> None:
        """A peer's socket is full: wait with this message and all behind it."""
        self._waiting.setdefault(peer, deque()).append(message)
        self._waiting_bytes[peer] = self._waiting_bytes.get(peer, 0) + len(message)

    def _send_waiting(self) -> None:
        for peer in list(self._waiting):
            queue, socket = self._waiting[peer], self._outlets[peer].data
            try:
                while queue:
                    socket.send(queue[0], zmq.NOBLOCK)
                    self._waiting_bytes[peer] -= len(queue.popleft())
            except zmq.Again:
                pass
            if self._waiting_bytes[peer] <= self._high_bytes // 2:
                self._transmit(self._core.egress(peer, congested=False))
            if not queue:
                del self._waiting[peer], self._waiting_bytes[peer]

    def _look(self, now: float) -> None:
        """Serve control: links, then the worker, then sockets that were full."""
        # One poll costs less than to learn from an exception of each socket that it is empty.
        ready = [source for source, _ in self._control.poll(0)]
        if self._inlet.control in ready:
            self._serve_links(now)
        while self._channel.socket in ready and (order := self._channel.receive()) is not None:
            self._obey(control.decode(order))
        if self._waiting:
            self._send_waiting()

    def _serve_links(self, now: float) -> None:
        receive = self._inlet.control.recv
        while True:
            try:
                message = receive(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._unreported = True
            try:
                self._transmit(self._core.on_control(message, now))
            except ProtocolError as error:
                _LOG.error("a control message was refused: %s", error)

    def _obey(self, order: control.Control) -> None:
        match order:
            case control.Connect(peer=peer, incarnation=incarnation, data=data, control=address):
                self._close(peer, gone=incarnation - 1)
                hwm = UNBOUNDED if peer.startswith("i") else UPSTREAM_HWM
                self._connect(peer, Outlet(self._context, data, address, hwm))
            case control.Disconnect(peer=peer, incarnation=incarnation):
                self._close(peer, gone=incarnation)
            case control.Stop():
                self._stopped = True
            case control.Replan(version=version, incarnation=incarnation):
                self._replan(version, incarnation)
            case _:
                _LOG.warning("order %s is not for a stream manager", type(order).__name__)

    def _connect(self, peer: str, outlet: Outlet) -> None:
        self._outlets[peer] = outlet
        try:
            self._transmit(self._core.connect(peer))
        except ProtocolError as error:
            # Of another version of the plan: the worker orders it again once that is adopted.
            _LOG.info("not connected: %s", error)
            self._outlets.pop(peer).close()

    def _close(self, peer: str, gone: int) -> None:
        outlet = self._outlets.pop(peer, None)
        if outlet is not None:
            outlet.close()
            self._waiting.pop(peer, None)
            self._waiting_bytes.pop(peer, None)
            self._transmit(self._core.disconnect(peer, gone))
            self._unreported = True

    @property
    def _has_news(self) -> bool:
        return self._unreported or self._core.frames != self._reported_frames

    def _report(self) -> None:
        """Tell the worker how long the queues are; also that there was traffic, if they are equal.

        It looks at the instances' pages rarely while it is told nothing.
        """
        queues = self._core.statistics().queues
        rows = [q.backlog_rows + q.outstanding_rows for q in queues.values()]
        frames, self._unreported = self._core.frames, False
        if rows != self._reported or frames != self._reported_frames:
            self._reported, self._reported_frames = rows, frames
            self._channel.send(control.encode(control.QueueStats(list(queues), rows)))


def main() -> None:
    """Entry point: folder, worker, its incarnation, own one, plan's version, address, parent."""
    path, worker, worker_incarnation, incarnation, version, address, parent = sys.argv[1:]
    leave_terminal_signals_to_parent()
    die_with_parent(int(parent))
    set_up_logging(None)
    collect_rarely()
    numbers = [int(number) for number in (worker, worker_incarnation, incarnation, version)]
    StreamManager(RunFolder(Path(path)), address, *numbers).run()
    zmq.Context.instance().destroy(linger=0)


if __name__ == "__main__":
    main()
