"""The cores of a whole topology, linked in memory: one worker, one thread, no process.

What inline runs (`storm_py.inline`) and the drivers of tests (`storm_py.testing`) have in common.
Every instance is an `InstanceCore`, the stream manager a `StreamManagerCore`, the sockets a
`MemoryTransport`. Time and random bits come from the caller, who also decides when anything runs:
nothing here waits, and what user code raises passes through as `UserError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from storm_py.api.spec import ComponentSpec, StormTopology
from storm_py.components import TaskObjects, pack, unpack
from storm_py.core.plan import make_plan
from storm_py.core.roots import RandomBits
from storm_py.engine.instance_core import InstanceCore
from storm_py.engine.links import instance_peer
from storm_py.engine.port import Watch
from storm_py.engine.settings import Settings, limits, max_timeout_secs
from storm_py.engine.statistics import StreamManagerStatistics
from storm_py.engine.stream_manager_core import StreamManagerCore
from storm_py.engine.system import system_topology, users_part
from storm_py.run import ComponentFigures
from storm_py.transport.memory import MemoryTransport
from storm_py.wire.control import ErrorReport

__all__ = ["SingleWorker"]

_STREAM_MANAGER: Final = "s0"


class _Port:
    """What an instance core needs, by direct calls."""

    def __init__(self, worker: SingleWorker, peer: str) -> None:
        self._worker = worker
        self._peer = peer
        self.clock = worker.clock

    def stamp(self) -> int:
        return int(self._worker.epoch_secs() * 1_000_000)

    def send(self, data: bool, message: bytes) -> None:
        self._worker.transport.send(self._peer, _STREAM_MANAGER, data, message)

    def report(self, error: ErrorReport) -> None:
        self._worker.report(error)

    def log(self, text: str) -> None:
        self._worker.log(text)

    def ended(self, executor: int, wave: int, failed: bool) -> None:
        self._worker.ended[executor] = failed


class SingleWorker:
    """A topology on one worker: `open`, `link`, `activate`, then `round` again and again.

    `conf` is the whole configuration, checked, with `apply_limits` applied to the topology.
    `clock` gives monotonic seconds, `epoch_secs` those since the Unix epoch, `generator` random
    bits for the process of that name. `adapt` may wrap the object of each task before it is used,
    `watch` hears when another thread wants something.
    """

    def __init__(
        self,
        topology_id: str,
        topology: StormTopology,
        conf: Mapping[str, Any],
        clock: Callable[[], float],
        epoch_secs: Callable[[], float],
        generator: Callable[[str], RandomBits],
        report: Callable[[ErrorReport], None],
        log: Callable[[str], None],
        adapt: Callable[[int, object], object] = lambda task, component: component,
        watch: Watch | None = None,
    ) -> None:
        self.clock = clock
        self.epoch_secs = epoch_secs
        self.report = report
        self.log = log
        self.transport = MemoryTransport()
        #: the executors whose tasks have all ended, and whether one of them failed
        self.ended: dict[int, bool] = {}
        self._topology = topology = system_topology(topology, conf)
        self.plan = make_plan(topology_id, topology, conf, workers=1)
        # In one thread a credit wakes nobody, and time may stand still while it waits.
        self._settings = replace(Settings.of(conf, worker_port=0), credit_secs=0.0)
        self._generator = generator
        self._adapt = adapt
        self._watch = watch
        self._packed = pack(topology)
        self._incarnations: dict[str, int] = {}
        rng = generator(_STREAM_MANAGER)
        self._manager = StreamManagerCore(self.plan, 0, 1, rng, limits(conf))
        self._timeout_secs = max_timeout_secs(self.plan)
        self._rotate_at = float("inf")
        self._active = self._draining = False
        self._wave = 1
        self.cores = {instance_peer(id_): self._make_core(id_) for id_ in self.plan.instances}
        self._opened: list[InstanceCore] = []
        #: the core whose user code runs or ran last
        self.current = next(iter(self.cores.values()))

    def _make_core(self, instance: int) -> InstanceCore:
        peer = instance_peer(instance)
        incarnation = self._incarnations[peer] = self._incarnations.get(peer, 0) + 1
        objects: dict[int, TaskObjects] = {}
        for executor in self.plan.instances[instance]:
            spec = self._topology.components[executor.component_id]
            packed = self._packed[spec.id]
            objects |= {task: unpack(spec, packed) for task in executor.tasks}
        components = {task: self._adapt(task, own.component) for task, own in objects.items()}
        groupings = {task: own.groupings for task, own in objects.items()}
        rng = self._generator(f"{peer}.{incarnation}")
        port = _Port(self, peer)
        return InstanceCore(
            self.plan,
            instance,
            incarnation,
            components,
            self._settings,
            port,
            rng,
            self._watch,
            groupings,
        )

    # ---- life ----------------------------------------------------------------------------------

    def open(self) -> None:
        """Call open or prepare of every task."""
        for core in self.cores.values():
            self._open(core)

    def _open(self, core: InstanceCore) -> None:
        self.current = core
        core.open()
        self._opened.append(core)

    def link(self) -> None:
        """Connect every instance with the stream manager."""
        for peer, core in self.cores.items():
            core.connect()
            self._transmit(self._manager.connect(peer))
        self.settle()

    def activate(self) -> None:
        """Let the spouts go."""
        if self._rotate_at == float("inf"):
            self._rotate_at = self.clock() + self._timeout_secs
        self._active = True
        for core in self.cores.values():
            self.current = core
            core.activate()

    def deactivate(self) -> None:
        """Let the spouts pause until the next `activate`."""
        self._active = False
        for core in self.cores.values():
            self.current = core
            core.deactivate()

    def drain(self) -> None:
        """End every spout where it is and let the rest follow."""
        self._draining = True
        for core in self.cores.values():
            self.current = core
            core.on_wave(self._wave, drain=True)

    def restart(self, peer: str) -> None:
        """An instance dies with all it had queued, and its successor comes up.

        What had ended ends once more, under a new wave.
        """
        self._transmit(self._manager.disconnect(peer))
        old = self.cores[peer]
        if old in self._opened:
            self._opened.remove(old)
        core = self.cores[peer] = self._make_core(int(peer[1:]))
        self._open(core)
        core.connect()
        self._transmit(self._manager.connect(peer))
        self.settle()
        if self._active:
            core.activate()
        if self._draining or self.ended:
            self.ended.clear()
            self._wave += 1
            for each in self.cores.values():
                self.current = each
                each.on_wave(self._wave, drain=self._draining)

    def close(self) -> None:
        """Call close or cleanup of every task that was opened."""
        for core in self._opened:
            self.current = core
            core.close()

    # ---- running -------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether every task has ended."""
        return len(self.ended) == len(self.plan.executors)

    def round(self, now: float) -> bool:
        """Let every core run once and deliver what it sent; False if nothing happened."""
        if now >= self._rotate_at:
            self._rotate_at = now + self._timeout_secs
            self._manager.rotate()
        busy = False
        for core in self.cores.values():
            self.current = core
            core.tick(now)
            if core.has_work and not core.paused:
                busy = True
                core.work()
            busy |= core.spin()
            busy |= self.settle()
        return busy

    def settle(self) -> bool:
        """Deliver until nothing is on its way."""
        moved = False
        while (parcel := self.transport.receive()) is not None:
            moved = True
            if parcel.dest != _STREAM_MANAGER:
                core = self.cores[parcel.dest]
                (core.on_data if parcel.data else core.on_control)(parcel.message)
            elif parcel.data:
                self._transmit(self._manager.on_data(parcel.message, self.clock()))
            else:
                self._transmit(self._manager.on_control(parcel.message, self.clock()))
        return moved

    def _transmit(self, sends: list[tuple[bool, str, bytes]]) -> None:
        for data, peer, message in sends:
            self.transport.send(_STREAM_MANAGER, peer, data, message)

    # ---- looking in ----------------------------------------------------------------------------

    def statistics(self) -> StreamManagerStatistics:
        """The stream manager's counters and queues."""
        return self._manager.statistics()

    def figures(self) -> tuple[ComponentFigures, ...]:
        """What each component has done and what waits for it."""
        specs = users_part(self._topology).components.values()
        return tuple(self._figures_of(spec) for spec in specs)

    def _figures_of(self, spec: ComponentSpec) -> ComponentFigures:
        queues = self.statistics().queues
        found = [core.statistics(spec.id) for core in self.cores.values()]
        waiting = sum(queues[task].backlog_rows for task in self.plan.tasks_of(spec.id))
        return ComponentFigures(
            component_id=spec.id,
            kind=spec.kind,
            executors=spec.parallelism,
            tasks=spec.num_tasks,
            executed=sum(one.executed for one in found),
            emitted=sum(one.emitted for one in found),
            queued=sum(one.queued for one in found) + waiting,
            acked=sum(one.acked for one in found),
            failed=sum(one.failed for one in found),
        )

    def check(self) -> None:
        """Assert the invariants of every core."""
        self._manager.check()
        for core in self.cores.values():
            core.check()
