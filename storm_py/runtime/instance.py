"""Instance: the process of an executor, or of a fused chain - sockets around an `InstanceCore`.

Forked by `storm_py.runtime.fork_server`. It unpacks the component once per task, opens it, links
itself to the stream manager that the worker names, and then does nothing but: take a message, let
the core work, look at control when it is due, sleep in poll when there is nothing to do. An
exception of user code is reported and ends this process only; the worker starts another.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import random
import time
from collections import deque

import zmq

from storm_py.components import TaskObjects, unpack
from storm_py.core.plan import PhysicalPlan
from storm_py.engine.idling import Idling
from storm_py.engine.instance_core import InstanceCore
from storm_py.engine.lingering import Lingering
from storm_py.engine.port import Watch
from storm_py.engine.settings import Settings, linger_secs
from storm_py.engine.tasks import SpoutTask, UserError
from storm_py.transport.zeromq import UPSTREAM_HWM, ChannelClient, Context, Inlet, Outlet
from storm_py.wire import control

from .folder import RunFolder
from .instance_spec import InstanceSpec
from .logs import LoggerLevels, RecordQueue
from .page import PageWriter
from .process import CALM_SECS, drain_pipe, run_times

_LOG = logging.getLogger("storm_py.instance")

#: Seconds between two looks at the control sockets while there is work.
_LOOK_SECS = 0.001
#: Longest sleep of spouts, as pending messages time out meanwhile, and of a send between two looks
#: at control. A bolt sleeps until something is for it.
_IDLE_SECS = 1.0
#: Messages with results of acking that a spout takes between two bursts.
_ACK_BURST = 64


class Instance(Watch):
    """The driver; it is the core's port as well, and watches what it does."""

    def __init__(
        self,
        spec: InstanceSpec,
        folder: RunFolder,
        plan: PhysicalPlan,
        channel: ChannelClient,
        records: RecordQueue,
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._records = records
        self._channel = channel
        self._context: Context = zmq.Context.instance()
        addresses = folder.inlet_addresses(
            f"i{spec.instance}", spec.worker_incarnation, spec.incarnation
        )
        self._inlet = Inlet(self._context, addresses[:1], addresses[1:], hwm=0)
        self._outlet: Outlet | None = None
        self._orders: deque[control.Control] = deque()
        page = folder.page(spec.instance, spec.worker_incarnation, spec.incarnation)
        members = plan.instances[spec.instance]
        self._page = PageWriter(page, spec.incarnation, len(members))
        self._wakeup, self._wakeup_write = os.pipe()
        for fd in (self._wakeup, self._wakeup_write):
            os.set_blocking(fd, False)
        records.wake_by(self.wake)
        self._stopped = False
        self._ready = False
        self._levels = LoggerLevels()
        self._look_at = self._calm_until = 0.0
        conf = plan.conf
        settings = Settings.of(conf, spec.port)
        self._lingering = Lingering(linger_secs(conf))
        self._idling = Idling(settings.spout_wait_secs)
        objects: dict[int, TaskObjects] = {}
        for executor in members:
            packed = folder.read_component(plan, executor.component_id)
            component = plan.topology.components[executor.component_id]
            objects |= {task: unpack(component, packed) for task in executor.tasks}
        self._components = [executor.component_id for executor in members]
        self._core = InstanceCore(
            plan,
            spec.instance,
            spec.incarnation,
            {task: own.component for task, own in objects.items()},
            settings,
            self,
            random.Random(),
            self,
            {task: own.groupings for task, own in objects.items()},
        )
        self._core.linger(self._lingering.secs)
        self._is_spout = self._components[0] in plan.topology.spouts
        self._poller, self._poller_with_data, self._poller_with_fds = (
            zmq.Poller() for _ in range(3)
        )
        for poller in (self._poller, self._poller_with_data, self._poller_with_fds):
            for source in (self._inlet.control, channel.socket, self._wakeup):
                poller.register(source, zmq.POLLIN)
            if poller is not self._poller:
                poller.register(self._inlet.data, zmq.POLLIN)

    # ---- the core's port -----------------------------------------------------------------------

    def clock(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def stamp(self) -> int:
        """Microseconds since the Unix epoch."""
        return time.time_ns() // 1000

    def send(self, data: bool, message: bytes) -> None:
        """Send to the stream manager; waits, serving control only, when its socket is full."""
        outlet = self._outlet
        if outlet is None:
            return  # the link was closed while the core was sending: its session is over
        socket = outlet.data if data else outlet.control
        try:
            socket.send(message, zmq.NOBLOCK)
        except zmq.Again:
            self._send_waiting(outlet, socket, message)

    def _send_waiting(self, outlet: Outlet, socket: zmq.Socket[bytes], message: bytes) -> None:
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLOUT)
        poller.register(self._inlet.control, zmq.POLLIN)
        poller.register(self._channel.socket, zmq.POLLIN)
        busy = self._page.busy(0.0)  # it is not user code that takes this time
        while self._outlet is outlet:
            poller.poll(int(_IDLE_SECS * 1000))
            try:
                socket.send(message, zmq.NOBLOCK)
                break
            except zmq.Again:
                self._serve_link()
                self._take_orders()
            for order in self._orders:
                if isinstance(order, control.Disconnect):
                    # The stream manager died, and the message belongs to its session. The order
                    # stays where it is: in its turn it finds nothing to close.
                    self._disconnect(gone=order.incarnation)
        if busy:
            self._page.busy(time.monotonic())

    def report(self, error: control.ErrorReport) -> None:
        """Log an error and tell the worker."""
        _LOG.error(
            "%s task %d, %s: %s\n%s",
            error.component,
            error.task,
            error.where,
            error.message,
            error.traceback,
        )
        self._channel.send(control.encode(error))

    def log(self, text: str) -> None:
        """Log a line, to this instance's file only."""
        _LOG.info("%s", text)

    def ended(self, executor: int, wave: int, failed: bool) -> None:
        """Tell the worker that all tasks of an executor have ended."""
        self._write_page()
        record = control.Ended(executor, self._spec.incarnation, wave, failed)
        self._channel.send(control.encode(record))

    # ---- the core's watch ----------------------------------------------------------------------

    def wake(self) -> None:
        """End the sleep in poll; any thread may call it."""
        try:
            os.write(self._wakeup_write, b"!")
        except BlockingIOError:
            pass  # full of wake-ups: one is enough

    def entered(
        self, what: str, task: int, source: int = 0, stream: str = "", first: int = 0, last: int = 0
    ) -> None:
        """Note what user code runs, for the worker."""
        self._page.entered(time.monotonic(), what, task, source, stream, first, last)

    # ---- the loop ------------------------------------------------------------------------------

    def run(self) -> None:
        """Open the components and serve until the worker says stop."""
        spec, inlet = self._spec, self._inlet
        self._core.open()
        self._channel.send(
            control.encode(
                control.Register(
                    "instance",
                    spec.instance,
                    spec.incarnation,
                    os.getpid(),
                    inlet.data_addresses[0],
                    inlet.control_addresses[0],
                    "",
                    "",
                )
            )
        )
        self._idling.wait_on(t.wait_fd for t in self._core.tasks if isinstance(t, SpoutTask))
        for fd in self._idling.fds:
            self._poller_with_fds.register(fd, zmq.POLLIN)
        gc.collect()
        gc.freeze()
        step = self._spout_round if self._is_spout else self._bolt_round
        while not self._stopped:
            step()
            now = time.monotonic()
            if now >= self._look_at:
                self._write_page()
                self._attend(now)
        self._core.close()
        self._write_page()

    def _bolt_round(self) -> None:
        core = self._core
        if core.paused:
            core.idle()
            self._sleep(self._poller)
        elif core.has_work:
            core.work()
        else:
            try:
                message = self._inlet.data.recv(zmq.NOBLOCK)
            except zmq.Again:
                core.idle()
                self._sleep(self._poller_with_data)
            else:
                core.on_data(message)
                core.work()

    def _spout_round(self) -> None:
        core = self._core
        receive = self._inlet.data.recv
        try:
            for _ in range(_ACK_BURST):
                core.on_data(receive(zmq.NOBLOCK))
        except zmq.Again:
            pass
        if core.spin():
            self._idling.reset()
        elif not core.spouting:
            self._idling.reset()
            self._sleep(self._poller_with_data, _IDLE_SECS)
        else:
            wait = self._idling.next(time.monotonic())
            poller = self._poller_with_fds if wait is None else self._poller_with_data
            self._sleep(poller, _IDLE_SECS if wait is None else wait)

    def _sleep(self, poller: zmq.Poller, secs: float = math.inf) -> None:
        """Wait for a message on the poller's sockets."""
        self._write_page()
        timeout = self._core.next_timeout()
        if timeout is not None:
            secs = max(0.0, min(secs, timeout - time.monotonic()))
        patience = None if secs == math.inf else math.ceil(secs * 1000)
        ready = [source for source, _ in poller.poll(patience)]
        if self._wakeup in ready:
            drain_pipe(self._wakeup)
        self._idling.woken(ready)
        now = time.monotonic()
        calm = ready in ([], [self._inlet.data]) and now < self._calm_until
        if calm and (timeout is None or now < timeout):
            self._look_at = now + _LOOK_SECS  # data comes before a look at what is not there
        else:
            self._attend(now)

    def _attend(self, now: float) -> None:
        """Do what is due, and look at control."""
        self._core.tick(now)
        self._look()
        if self._lingering.due(now):
            self._lingering.look(now, *run_times())
            self._core.linger(self._lingering.secs)
        now = time.monotonic()
        self._look_at, self._calm_until = now + _LOOK_SECS, now + CALM_SECS

    def _look(self) -> None:
        """Serve control: the link's, then the worker's."""
        # One poll costs less than to learn from an exception of each socket that it is empty.
        ready = [source for source, _ in self._poller.poll(0)]
        if self._inlet.control in ready:
            self._serve_link()
        if self._channel.socket in ready:
            self._take_orders()
        while self._orders and not self._stopped:
            self._obey(self._orders.popleft())
        for record in self._records.take():
            self._channel.send(control.encode(record))
        self._page.busy(0.0)  # what tick and orders called has returned

    def _serve_link(self) -> None:
        receive = self._inlet.control.recv
        while True:
            try:
                message = receive(zmq.NOBLOCK)
            except zmq.Again:
                break
            self._core.on_control(message)
        if self._core.linked and not self._ready:
            self._ready = True
            spec = self._spec
            self._channel.send(control.encode(control.Ready(spec.instance, spec.incarnation)))

    def _take_orders(self) -> None:
        while (message := self._channel.receive()) is not None:
            self._orders.append(control.decode(message))

    def _obey(self, order: control.Control) -> None:
        match order:
            case control.Connect(incarnation=incarnation, data=data, control=address):
                self._disconnect(gone=incarnation - 1)
                self._outlet = Outlet(self._context, data, address, UPSTREAM_HWM)
                self._core.connect()
            case control.Disconnect(incarnation=incarnation):
                self._disconnect(gone=incarnation)
            case control.Activate():
                self._core.activate()
            case control.Deactivate():
                self._core.deactivate()
            case control.Wave(wave=wave, drain=drain):
                self._core.on_wave(wave, drain)
            case control.LogLevels(levels=levels):
                self._levels.set(levels)
            case control.Replan(version=version):
                self._core.replan(self._folder.read_plan(version))
            case control.Stop():
                self._stopped = True
            case _:
                _LOG.warning("order %s is not for an instance", type(order).__name__)

    def _disconnect(self, gone: int) -> None:
        if self._outlet is not None:
            self._outlet.close()
            self._outlet = None
            self._core.disconnect(gone)
            self._ready = False

    def _write_page(self) -> None:
        self._page.write([self._core.statistics(id_) for id_ in self._components])

    def give_up(self, error: UserError) -> None:
        """User code raised: send what was emitted before, tell the worker."""
        if self._outlet is not None and self._core.linked:
            self._core.flush()
        self._write_page()
        self.report(error.report(fatal=True))
