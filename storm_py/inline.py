"""Inline mode: a whole topology in one thread, on the cores that real processes run.

Every executor is an `InstanceCore`, the worker's stream manager a `StreamManagerCore`, the sockets
a `MemoryTransport`; so grouping, batching, pressure and the end of input are the real ones, while
`breakpoint()`, profilers and plain tracebacks work in user code. What user code prints goes
straight to stdout, and nothing here may read stdin: both belong to a debugger. The other half,
with processes, is `storm_py.local`; both tell an `Observer` what happens and return a `RunResult`.
"""

from __future__ import annotations

import bdb
import random
import signal
import threading
import time
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any, Final

import cloudpickle

from storm_py.api.spec import ComponentSpec, StormTopology
from storm_py.config import Config
from storm_py.core.plan import PhysicalPlan, make_plan
from storm_py.engine.instance_core import InstanceCore
from storm_py.engine.port import Watch
from storm_py.engine.settings import Settings, limits, max_timeout_secs
from storm_py.engine.stream_manager_core import StreamManagerCore, instance_peer
from storm_py.engine.system import system_topology, users_part
from storm_py.engine.tasks import UserError
from storm_py.errors import InvalidTopologyException, a_type
from storm_py.run import ComponentFigures, Observer, Phase, RunResult, Snapshot
from storm_py.transport.memory import MemoryTransport
from storm_py.wire.control import ErrorReport

__all__ = ["InlineRun"]

_STREAM_MANAGER: Final = "s0"
_SNAPSHOT_SECS: Final = 0.25
_SHORTEST_WAIT_SECS: Final = 0.001


class _Port:
    """What an instance core needs, by direct calls."""

    def __init__(self, run: InlineRun, peer: str) -> None:
        self._run = run
        self._peer = peer

    def clock(self) -> float:
        return time.monotonic()

    def stamp(self) -> int:
        return time.time_ns() // 1000

    def send(self, data: bool, message: bytes) -> None:
        self._run.transport.send(self._peer, _STREAM_MANAGER, data, message)

    def report(self, error: ErrorReport) -> None:
        self._run.report(error)

    def ended(self, wave: int, failed: bool) -> None:
        self._run.ended[self._peer] = failed


class _WakeUp(Watch):
    """Ends the sleep of the loop; other threads call it."""

    def __init__(self, event: threading.Event) -> None:
        self.wake = event.set  # type: ignore[method-assign]


class _Signals:
    """SIGINT and SIGTERM while a run lasts: the first is counted, the next interrupts user code."""

    def __init__(self) -> None:
        self.count = 0
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        # Only the main thread may have handlers; a run on another one is nobody's Ctrl-C.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt


class InlineRun:
    """One run of a topology in this thread, from `run` to its `RunResult`."""

    def __init__(
        self,
        topology_id: str,
        topology: StormTopology,
        conf: Mapping[str, Any],
        observer: Observer,
    ) -> None:
        """Get ready; `conf` is the whole configuration, checked, with `apply_limits` applied."""
        self.transport = MemoryTransport()
        self.ended: dict[str, bool] = {}
        self._topology_id = topology_id
        self._topology = topology = system_topology(topology, conf)
        self._conf = conf
        self._woken = threading.Event()
        self._observer = observer
        self._settings = Settings.of(conf, worker_port=0)
        self._drain_secs: float = conf[Config.STORM_PY_DRAIN_TIMEOUT_SECS]
        plan = make_plan(topology_id, topology, conf, workers=1)
        rng = random.Random()
        self._manager = StreamManagerCore(plan, 0, 1, rng, limits(conf))
        self._timeout_secs = max_timeout_secs(plan)
        self._cores = self._make_cores(plan)
        self._opened: list[InstanceCore] = []
        self._current = next(iter(self._cores.values()))
        self._phase: Phase = "starting"
        self._began = self._activated = self._stopped = 0.0
        self._errors = 0
        self._failed = self._interrupted = self._forced = False
        self._lost: list[str] = []

    def _make_cores(self, plan: PhysicalPlan) -> dict[str, InstanceCore]:
        packed = {spec.id: _pack(spec) for spec in self._topology.components.values()}
        cores = {}
        for executor in plan.executors:
            peer = instance_peer(executor.id)
            spec = self._topology.components[executor.component_id]
            objects = {task: _unpack(spec, packed[spec.id]) for task in executor.tasks}
            cores[peer] = InstanceCore(
                plan,
                executor.id,
                1,
                objects,
                self._settings,
                _Port(self, peer),
                random.Random(),
                _WakeUp(self._woken),
            )
        return cores

    def report(self, error: ErrorReport) -> None:
        """Count an error of user code and show it."""
        if error.message.startswith(bdb.BdbQuit.__name__):  # no error: somebody left the debugger
            raise KeyboardInterrupt
        self._errors += 1
        self._observer.error(error)

    # ---- the run -------------------------------------------------------------------------------

    def run(self, ttl_secs: float | None = None) -> RunResult:
        """Run until the input has ended, or drain after `ttl_secs` or a SIGINT or SIGTERM.

        A second signal ends the run where it is, also inside user code that hangs.
        """
        self._began = time.monotonic()
        with _Signals() as signals:
            try:
                self._start()
                self._loop(signals, ttl_secs)
            except UserError as error:
                self._on_user_error(error)
            except SystemExit as error:
                task = self._current.tasks[0].task
                self._on_user_error(UserError(self._current.component_id, task, "exit", error))
            except KeyboardInterrupt:
                self._interrupted = True
                self._force("stopped at once")
            self._finish()
        return self._result()

    def _start(self) -> None:
        """Open everything, link it, and let the spouts go."""
        self._observer.snapshot(self._snapshot())
        for core in self._cores.values():
            self._current = core
            core.open()
            self._opened.append(core)
        for peer, core in self._cores.items():
            core.connect()
            self._transmit(self._manager.connect(peer))
        self._settle()
        for core in self._cores.values():
            self._current = core
            core.activate()
        self._activated = time.monotonic()
        self._phase = "running"

    def _loop(self, signals: _Signals, ttl_secs: float | None) -> None:
        wait_secs = _SHORTEST_WAIT_SECS
        snapshot_due = self._activated + _SNAPSHOT_SECS
        rotate_due = self._activated + self._timeout_secs
        ttl = self._activated + ttl_secs if ttl_secs is not None else float("inf")
        deadline = float("inf")
        while len(self.ended) < len(self._cores):
            now = time.monotonic()
            if signals.count and not self._interrupted:
                self._interrupted = True
                self._observer.event("interrupted: draining (interrupt again to stop at once)")
            if self._phase == "running" and (self._interrupted or now >= ttl):
                deadline = now + self._drain_secs
                if not self._interrupted:
                    self._observer.event(f"{ttl_secs:g} s are over: draining")
                self._drain()
            if now >= deadline:
                self._force(
                    f"not drained within {self._drain_secs:g} s (storm_py.drain.timeout.secs)"
                )
                return
            if now >= snapshot_due:
                snapshot_due = now + _SNAPSHOT_SECS
                self._observer.snapshot(self._snapshot())
            if now >= rotate_due:
                rotate_due = now + self._timeout_secs
                self._manager.rotate()
            if self._round(now):
                wait_secs = _SHORTEST_WAIT_SECS
            else:  # only spouts that have nothing to say: let the machine be
                self._woken.wait(wait_secs)
                self._woken.clear()
                wait_secs = min(2 * wait_secs, self._settings.spout_wait_secs)

    def _drain(self) -> None:
        """End every spout where it is and let the rest follow."""
        self._phase = "draining"
        for core in self._cores.values():
            self._current = core
            core.on_wave(1, drain=True)

    def _round(self, now: float) -> bool:
        """Let every core run once and deliver what it sent; False if nothing happened."""
        busy = False
        for core in self._cores.values():
            self._current = core
            core.tick(now)
            if core.has_work and not core.paused:
                busy = True
                core.work()
            busy |= core.spin()
            busy |= self._settle()
        return busy

    def _settle(self) -> bool:
        """Deliver until nothing is on its way."""
        moved = False
        while (parcel := self.transport.receive()) is not None:
            moved = True
            now = time.monotonic()
            if parcel.dest != _STREAM_MANAGER:
                core = self._cores[parcel.dest]
                (core.on_data if parcel.data else core.on_control)(parcel.message)
            elif parcel.data:
                self._transmit(self._manager.on_data(parcel.message, now))
            else:
                self._transmit(self._manager.on_control(parcel.message, now))
        return moved

    def _transmit(self, sends: list[tuple[bool, str, bytes]]) -> None:
        for data, peer, message in sends:
            self.transport.send(_STREAM_MANAGER, peer, data, message)

    # ---- the end -------------------------------------------------------------------------------

    def _on_user_error(self, error: UserError) -> None:
        if isinstance(error.error, bdb.BdbQuit):
            self._interrupted = True
            self._force("stopped from the debugger")
            return
        self._failed = True
        self._lose(f"{error.component} (task {error.task}) failed, which ended the run early")
        self.report(error.report(fatal=True))

    def _force(self, why: str) -> None:
        self._forced = True
        self._lose(why)

    def _lose(self, why: str) -> None:
        waiting = sum(figures.queued for figures in self._figures())
        dropped = f"; {waiting:,} tuples that waited were dropped" if waiting else ""
        self._lost.append(f"{why}{dropped}")

    def _finish(self) -> None:
        """Close what was opened, unless there is no time for that."""
        self._stopped = time.monotonic()
        self._phase = "stopping"
        if not self._forced:
            try:
                for core in self._opened:
                    core.close()
            except KeyboardInterrupt:
                self._interrupted = self._forced = True
        self._phase = "done"

    def _result(self) -> RunResult:
        started = self._activated or self._stopped
        return RunResult(
            final=self._snapshot(),
            start_secs=started - self._began,
            failed=self._failed or any(self.ended.values()),
            interrupted=self._interrupted,
            forced=self._forced,
            lost=tuple(self._lost),
            log_dir=None,
        )

    # ---- looking in ----------------------------------------------------------------------------

    def _snapshot(self) -> Snapshot:
        now = self._stopped or time.monotonic()
        return Snapshot(
            topology_id=self._topology_id,
            phase=self._phase,
            secs=now - self._activated if self._activated else 0.0,
            workers=1,
            components=self._figures(),
            restarts=0,
            errors=self._errors,
        )

    def _figures(self) -> tuple[ComponentFigures, ...]:
        queues = self._manager.statistics().queues
        figures = []
        for spec in users_part(self._topology).components.values():
            cores = [core for core in self._cores.values() if core.component_id == spec.id]
            found = [core.statistics() for core in cores]
            waiting = [
                queues[task.task].backlog_rows
                for core in cores
                for task in core.tasks
                if task.task in queues
            ]
            figures.append(
                ComponentFigures(
                    component_id=spec.id,
                    kind=spec.kind,
                    executors=spec.parallelism,
                    tasks=spec.num_tasks,
                    executed=sum(one.executed for one in found),
                    emitted=sum(one.emitted for one in found),
                    queued=sum(one.queued for one in found) + sum(waiting),
                )
            )
        return tuple(figures)


# ---- a copy of the user's object for each task -------------------------------------------------


def _pack(spec: ComponentSpec) -> bytes:
    try:
        packed: bytes = cloudpickle.dumps(spec.component)
    except Exception as error:
        hook = "open" if spec.kind == "spout" else "prepare"
        raise InvalidTopologyException(
            f"{spec.label}: {a_type(spec.component)} cannot be copied for its tasks"
            f"{_culprit(spec.component)}: {error}; make files, sockets, threads and locks in "
            f"{hook}(), not in __init__"
        ) from error
    return packed


def _culprit(component: object) -> str:
    """Name the attribute that cannot be pickled, if it is one of the object's own."""
    for name, value in getattr(component, "__dict__", {}).items():
        try:
            cloudpickle.dumps(value)
        except Exception:  # noqa: BLE001 - whatever pickling it raises, it is the culprit
            return f", because of its attribute {name!r}"
    return ""


def _unpack(spec: ComponentSpec, packed: bytes) -> object:
    try:
        return cloudpickle.loads(packed)
    except Exception as error:
        raise InvalidTopologyException(
            f"{spec.label}: the copy of {a_type(spec.component)} for a task fails with "
            f"{type(error).__name__}: {error}; see its __setstate__, __reduce__ or __init__"
        ) from error
