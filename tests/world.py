"""A whole topology in one thread, on real cores, with a clock and deaths that the test decides on.

Each instance is an `InstanceCore`, each worker's stream manager a `StreamManagerCore`, and between
them is a `MemoryTransport`. Processes can be stopped (they receive and do nothing), killed and
started again, in the order in which a worker does that.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from storm_py import TopologyBuilder
from storm_py.config import defaults, merge, validate
from storm_py.core.plan import make_plan
from storm_py.core.roots import RandomBits
from storm_py.engine.instance_core import InstanceCore
from storm_py.engine.links import Send
from storm_py.engine.settings import Settings, limits, max_timeout_secs
from storm_py.engine.stream_manager_core import StreamManagerCore
from storm_py.transport.memory import MemoryTransport
from storm_py.wire import frames
from storm_py.wire.control import ErrorReport

START = 1000.0
"""When a world begins, on its own clock."""

_ROUNDS = 10_000

T = TypeVar("T")


class _Port:
    """An instance's driver: sends into the world, on the world's clock."""

    def __init__(self, world: World, instance: int, worker: int) -> None:
        self._world = world
        self._instance = instance
        self._manager = f"s{worker}"

    def clock(self) -> float:
        return self._world.now

    def stamp(self) -> int:
        return int(self._world.now * 1e6)

    def send(self, data: bool, message: bytes) -> None:
        self._world.transport.send(f"i{self._instance}", self._manager, data, message)

    def report(self, error: ErrorReport) -> None:
        self._world.errors.append(error.message)

    def log(self, text: str) -> None:
        raise AssertionError(f"nothing here is run with topology.debug: {text}")

    def ended(self, executor: int, wave: int, failed: bool) -> None:
        self._world.ended.add(executor)


class World:
    """One run of a topology; `generator` gives each process its source of random bits."""

    def __init__(
        self,
        builder: TopologyBuilder,
        conf: dict[str, object] | None = None,
        workers: int = 1,
        generator: Callable[[str], RandomBits] = random.Random,
    ) -> None:
        validate(conf or {})
        self.conf: dict[str, Any] = merge(defaults(), conf)
        self.topology = builder.create_topology()
        self.plan = make_plan("trees-1", self.topology, self.conf, workers)
        self.transport = MemoryTransport()
        self.now = START
        self.tracked_frames = self.ack_frames = 0
        self.ended: set[int] = set()
        self.errors: list[str] = []
        self.stopped: set[int] = set()
        self.objects: dict[int, object] = {}
        self.ever: list[object] = []
        self.managers: dict[int, StreamManagerCore] = {}
        self.instances: dict[int, InstanceCore] = {}
        self._incarnations: dict[str, int] = {}
        self._generator = generator
        self._timeout_secs = max_timeout_secs(self.plan)
        self._rotate_at = self.now + self._timeout_secs
        for worker in self.plan.workers:
            self._make_manager(worker)
        for instance in self.plan.instances:
            self._make_instance(instance)
        for worker in self.plan.workers:
            self._link_manager(worker)
        self.settle()
        for core in self.instances.values():
            core.activate()

    # ---- processes -----------------------------------------------------------------------------

    def _incarnation(self, name: str) -> int:
        self._incarnations[name] = self._incarnations.get(name, 0) + 1
        return self._incarnations[name]

    def _rng(self, name: str) -> RandomBits:
        return self._generator(f"{name}.{self._incarnations[name]}")

    def _make_manager(self, worker: int) -> None:
        name = f"s{worker}"
        incarnation = self._incarnation(name)
        self.managers[worker] = StreamManagerCore(
            self.plan, worker, incarnation, self._rng(name), replace(limits(self.conf), free_rows=0)
        )

    def _make_instance(self, instance: int) -> None:
        name = f"i{instance}"
        objects = {
            task: copy.deepcopy(self.topology.component(executor.component_id).component)
            for executor in self.plan.instances[instance]
            for task in executor.tasks
        }
        self.objects.update(objects)
        self.ever += objects.values()
        incarnation = self._incarnation(name)
        core = InstanceCore(
            self.plan,
            instance,
            incarnation,
            objects,
            Settings.of(self.conf, 0),
            _Port(self, instance, self.plan.executor(instance).worker),
            self._rng(name),
        )
        core.open()
        self.instances[instance] = core

    def _link_manager(self, worker: int) -> None:
        """Introduce a new stream manager to its instances and to the others."""
        for instance in self.plan.instances_on(worker):
            if instance in self.instances:
                self._link_instance(instance)
        for other in self.managers:
            if other != worker:
                self._transmit(f"s{worker}", self.managers[worker].connect(f"s{other}"))
                self._transmit(f"s{other}", self.managers[other].connect(f"s{worker}"))

    def _link_instance(self, instance: int) -> None:
        worker = self.plan.executor(instance).worker
        self.instances[instance].connect()
        self._transmit(f"s{worker}", self.managers[worker].connect(f"i{instance}"))

    def kill_instance(self, instance: int) -> None:
        """An instance dies with all it had queued; its stream manager is told."""
        del self.instances[instance]
        self.stopped.discard(instance)
        worker = self.plan.executor(instance).worker
        self._transmit(f"s{worker}", self.managers[worker].disconnect(f"i{instance}"))

    def start_instance(self, instance: int) -> None:
        """Its successor comes up."""
        self._make_instance(instance)
        self._link_instance(instance)
        self.settle()
        self.instances[instance].activate()

    def kill_manager(self, worker: int) -> None:
        """A stream manager dies; its instances and the other stream managers are told."""
        del self.managers[worker]
        for instance in self.plan.instances_on(worker):
            if instance in self.instances:
                self.instances[instance].disconnect()
        for other, manager in self.managers.items():
            self._transmit(f"s{other}", manager.disconnect(f"s{worker}"))

    def start_manager(self, worker: int) -> None:
        """Its successor comes up."""
        self._make_manager(worker)
        self._link_manager(worker)
        self.settle()

    # ---- time ----------------------------------------------------------------------------------

    def settle(self, at_most: int = _ROUNDS) -> bool:
        """Deliver what is on its way; what is addressed to the dead is lost."""
        moved = False
        for _ in range(at_most):
            parcel = self.transport.receive()
            if parcel is None:
                break
            moved = True
            if parcel.data:
                for frame in frames.frames(parcel.message):
                    self.tracked_frames += bool(frame.flags & frames.FLAG_TRACKED)
                    self.ack_frames += frame.kind == frames.FrameKind.ACK
            kind, number = parcel.dest[0], int(parcel.dest[1:])
            if kind == "i":
                core = self.instances.get(number)
                if core is not None:
                    (core.on_data if parcel.data else core.on_control)(parcel.message)
            elif number in self.managers:
                manager = self.managers[number]
                on = manager.on_data if parcel.data else manager.on_control
                self._transmit(parcel.dest, on(parcel.message, self.now))
        return moved

    def _transmit(self, source: str, sends: list[Send]) -> None:
        for data, peer, message in sends:
            self.transport.send(source, peer, data, message)

    def step(self, instance: int) -> bool:
        """One process runs once, unless it is stopped or dead; nothing is delivered."""
        core = self.instances.get(instance)
        if core is None or instance in self.stopped:
            return False
        core.tick(self.now)
        works = core.has_work and not core.paused
        if works:
            core.work()
        return core.spin() or works

    def round(self) -> bool:
        """Every process runs once; False if nothing happened."""
        busy = False
        for instance in self.instances:
            busy |= self.step(instance)
            busy |= self.settle()
        for core in self.instances.values():
            core.check()
        for manager in self.managers.values():
            manager.check()
        return busy

    def run(self) -> None:
        """Rounds until nothing happens any more, without time passing."""
        for _ in range(_ROUNDS):
            if not self.round():
                return
        raise AssertionError(f"still busy after {_ROUNDS} rounds")

    def advance(self, secs: float) -> None:
        """Time passes, and everything that it makes due happens."""
        self.now += secs
        if self.now >= self._rotate_at:
            self._rotate_at = self.now + self._timeout_secs
            for manager in self.managers.values():
                manager.rotate()
        self.run()

    # ---- looking in ----------------------------------------------------------------------------

    def instances_of(self, component_id: str) -> list[int]:
        """The instances that run the executors of a component."""
        return [e.instance for e in self.plan.executors if e.component_id == component_id]

    def all(self, kind: type[T]) -> list[T]:
        """The living objects of a class, by task; `ever` holds those of the dead as well."""
        found = [self.objects[task] for task in sorted(self.objects)]
        return [each for each in found if isinstance(each, kind)]

    @property
    def open_trees(self) -> int:
        """How many trees the trackers hold open."""
        return sum(manager.statistics().acks.open for manager in self.managers.values())
