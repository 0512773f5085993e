"""A whole topology of real cores in one thread: links that delay as they like, a clock of our own.

What is random comes from one `random.Random`, so a seed is a whole run. Within a link nothing is
reordered; among links anything is, data and control of one pair included, as on real sockets.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

from storm_py import BaseBasicBolt, BaseRichBolt, BaseRichSpout, Tuple
from storm_py.core.plan import PhysicalPlan
from storm_py.core.pressure import FREE_ROWS
from storm_py.engine.instance_core import InstanceCore
from storm_py.engine.links import BEAT_SECS
from storm_py.engine.settings import limits
from storm_py.engine.stream_manager_core import Send, StreamManagerCore
from storm_py.transport.memory import MemoryTransport
from storm_py.wire import control
from tests.builders import FakeClock, settings_of

#: Steps without a message after which time passes.
_QUIET_STEPS = 100
#: (stream, values) in order, for each (producing task, consuming task)
Traffic = dict[tuple[int, int], list[tuple[str, list[object]]]]


class Ledger:
    """What was emitted to whom, and what has arrived from whom."""

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self.emitted: Traffic = defaultdict(list)
        self.received: Traffic = defaultdict(list)
        self.ends: list[int] = []
        self.closed: list[int] = []
        self._numbers: dict[int, int] = defaultdict(int)

    def emit(self, collector: Any, task: int, rng: random.Random) -> None:
        """Emit one tuple of this task on any of its streams."""
        spec = self.plan.topology.components[self.plan.task_to_component[task]]
        if not spec.streams:
            return
        stream = rng.choice(list(spec.streams))
        self._numbers[task] += 1
        values: list[object] = [self._numbers[task], rng.choice(["x", "y", (1, "z"), None])]
        if not spec.streams[stream].direct:
            dests = collector.emit(list(values), stream=stream)
        else:
            found = self.plan.targets(spec.id)[stream]
            dests = [rng.choice(rng.choice(found).tasks)] if found else []
            for dest in dests:
                collector.emit_direct(dest, list(values), stream=stream)
        for dest in dests:
            self.emitted[task, dest].append((stream, values))

    def receive(self, task: int, tup: Tuple) -> None:
        """A tuple has arrived at this task."""
        self.received[tup.source_task, task].append((tup.source_stream_id, list(tup.values)))


class Source(BaseRichSpout):
    """Emits `count` tuples, sometimes several per call and sometimes none, then ends."""

    def __init__(self, ledger: Ledger, rng: random.Random, count: int, clock: FakeClock) -> None:
        self.ledger, self.rng, self.left, self.clock = ledger, rng, count, clock

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.task, self.collector = context.this_task_id, collector

    def next_tuple(self) -> None:
        self.clock.now += 0.00002
        for _ in range(min(self.left, self.rng.choice([0, 1, 1, 1, 3]))):
            self.left -= 1
            self.ledger.emit(self.collector, self.task, self.rng)
        if self.left == 0:
            self.collector.end_of_input()

    def close(self) -> None:
        self.ledger.closed.append(self.task)


class Relay(BaseRichBolt):
    """Emits none, one or two tuples for each that it gets, and a last one at the end."""

    def __init__(self, ledger: Ledger, rng: random.Random, secs: float, clock: FakeClock) -> None:
        self.ledger, self.rng, self.secs, self.clock = ledger, rng, secs, clock

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.task, self.collector = context.this_task_id, collector

    def execute(self, tup: Tuple) -> None:
        self.clock.now += self.secs
        self.ledger.receive(self.task, tup)
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            self.ledger.emit(self.collector, self.task, self.rng)

    def end_of_input(self) -> None:
        self.ledger.ends.append(self.task)
        self.ledger.emit(self.collector, self.task, self.rng)


class BasicRelay(BaseBasicBolt):
    """The same with the collector as an argument."""

    def __init__(self, ledger: Ledger, rng: random.Random, secs: float, clock: FakeClock) -> None:
        self.ledger, self.rng, self.secs, self.clock = ledger, rng, secs, clock

    def prepare(self, conf: Any, context: Any) -> None:
        self.task = context.this_task_id

    def execute(self, tup: Tuple, collector: Any) -> None:
        self.clock.now += self.secs
        self.ledger.receive(self.task, tup)
        self.ledger.emit(collector, self.task, self.rng)

    def end_of_input(self, collector: Any) -> None:
        self.ledger.ends.append(self.task)
        self.ledger.emit(collector, self.task, self.rng)


class _Port:
    """What an instance core needs, over the cluster's links."""

    def __init__(self, cluster: Cluster, executor: int) -> None:
        self._cluster = cluster
        self._executor = executor
        self._manager = f"s{cluster.plan.executor(executor).worker}"
        self.clock = cluster.clock

    def stamp(self) -> int:
        return int(self.clock.now * 1e6)

    def send(self, data: bool, message: bytes) -> None:
        self._cluster.post(f"i{self._executor}", self._manager, data, message)

    def report(self, error: control.ErrorReport) -> None:
        raise AssertionError(error)

    def ended(self, wave: int, failed: bool) -> None:
        assert not failed
        self._cluster.ended[self._executor] = wave


class Cluster:
    """The cores of a plan; `secs` is what each row takes a bolt, by component."""

    def __init__(
        self, plan: PhysicalPlan, seed: int, tuples: int, secs: dict[str, float] | None = None
    ) -> None:
        self.plan = plan
        self.rng = random.Random(seed)
        self.clock = FakeClock()
        self.ledger = Ledger(plan)
        self.ended: dict[int, int] = {}
        self.wave = 1
        #: the task whose queue is watched, and the most rows that were in it
        self.watched = 0
        self.most_rows = 0
        self._links: dict[tuple[str, str, bool], MemoryTransport] = {}
        self._waiting: dict[tuple[str, str, bool], int] = {}
        self._quiet = 0
        self._tuples = tuples
        free_rows = self.rng.choice([0, 10, 100, FREE_ROWS])
        self._limits = replace(limits(plan.conf), free_rows=free_rows)
        self._secs = secs or {}
        self._incarnations: dict[str, int] = defaultdict(int)
        self.managers: dict[str, StreamManagerCore] = {}
        self.instances: dict[str, InstanceCore] = {}
        for worker in plan.workers:
            self._start_manager(f"s{worker}")
        for executor in plan.executors:
            self._start_instance(f"i{executor.id}")
        orders = [(a, b) for name in self.managers for a, b in self._pairs(name)]
        self.rng.shuffle(orders)
        for one, other in dict.fromkeys(orders):
            self._connect(one, other)

    # ---- processes -----------------------------------------------------------------------------

    def _start_manager(self, name: str) -> None:
        self._incarnations[name] += 1
        self.managers[name] = StreamManagerCore(
            self.plan, int(name[1:]), self._incarnations[name], self.rng, self._limits
        )

    def _start_instance(self, name: str) -> None:
        self._incarnations[name] += 1
        executor = self.plan.executor(int(name[1:]))
        core = InstanceCore(
            self.plan,
            executor.id,
            self._incarnations[name],
            {task: self._component(task) for task in executor.tasks},
            settings_of(self.plan),
            _Port(self, executor.id),
            self.rng,
        )
        core.open()
        core.activate()
        self.instances[name] = core

    def _component(self, task: int) -> object:
        spec = self.plan.topology.components[self.plan.task_to_component[task]]
        if spec.kind == "spout":
            return Source(self.ledger, self.rng, self._tuples, self.clock)
        make = self.rng.choice([Relay, BasicRelay])
        return make(self.ledger, self.rng, self._secs.get(spec.id, 0.00001), self.clock)

    def _pairs(self, manager: str) -> list[tuple[str, str]]:
        """Who connects to whom, of the links of a stream manager, in both directions."""
        worker = int(manager[1:])
        peers = [f"i{executor.id}" for executor in self.plan.on_worker(worker)]
        peers += [f"s{other}" for other in self.plan.workers if other != worker]
        return [pair for peer in peers for pair in ((manager, peer), (peer, manager))]

    def _connect(self, one: str, other: str) -> None:
        if one in self.managers:
            self._transmit(one, self.managers[one].connect(other))
        else:
            self.instances[one].connect()

    # ---- links ---------------------------------------------------------------------------------

    def post(self, source: str, dest: str, data: bool, message: bytes) -> None:
        """Put a message on its link."""
        link = (source, dest, data)
        self._links.setdefault(link, MemoryTransport()).send(source, dest, data, message)
        self._waiting[link] = self._waiting.get(link, 0) + 1

    def _transmit(self, manager: str, sends: list[Send]) -> None:
        for data, peer, message in sends:
            self.post(manager, peer, data, message)

    def _take(self, link: tuple[str, str, bool]) -> bytes:
        parcel = self._links[link].receive()
        assert parcel is not None
        assert (parcel.source, parcel.dest, parcel.data) == link
        self._waiting[link] -= 1
        if not self._waiting[link]:
            del self._waiting[link]
        return parcel.message

    def _deliver(self, link: tuple[str, str, bool]) -> None:
        _, dest, data = link
        message = self._take(link)
        if dest in self.managers:
            core = self.managers[dest]
            receive = core.on_data if data else core.on_control
            self._transmit(dest, receive(message, self.clock.now))
            core.check()
            queue = core.statistics().queues.get(self.watched)
            if queue is not None:
                waiting = queue.backlog_rows + queue.outstanding_rows
                self.most_rows = max(self.most_rows, waiting)
        else:
            instance = self.instances[dest]
            (instance.on_data if data else instance.on_control)(message)
            instance.check()

    # ---- time ----------------------------------------------------------------------------------

    def step(self) -> None:
        """Deliver one message of any link, or let any instance run for a moment."""
        self.clock.now += 0.00001
        waiting = list(self._waiting)
        self._quiet = 0 if waiting else self._quiet + 1
        if self._quiet > _QUIET_STEPS:
            self._beat()
        if waiting and self.rng.random() < 0.7:
            self._deliver(self.rng.choice(waiting))
            return
        name = self.rng.choice(list(self.instances))
        instance = self.instances[name]
        if instance.has_work and not instance.paused:
            instance.work()
        else:
            instance.spin()  # flushes what an idle instance still holds
        instance.check()

    def _beat(self) -> None:
        """Nothing happens any more: time passes until every link says how far it is."""
        self._quiet = 0
        self.clock.now += BEAT_SECS
        for name, manager in self.managers.items():
            self._transmit(name, manager.beat())
        for instance in self.instances.values():
            instance.tick(self.clock.now)

    def run(self, steps: int = 100_000, rewave: int | None = None) -> None:
        """Go on until every executor has ended under the newest wave and nothing is on its way.

        With `rewave`, a wave that has not come through after so many steps is followed by another.
        """
        for n in range(1, steps):
            if not self._waiting and self.finished:
                return
            if rewave and n % rewave == 0:
                self.new_wave()
            self.step()
        raise AssertionError(f"not finished after {steps} steps: {self.ended}")

    @property
    def finished(self) -> bool:
        """Whether the newest wave has come through."""
        return all(self.ended.get(executor.id) == self.wave for executor in self.plan.executors)

    # ---- accidents -----------------------------------------------------------------------------

    def lose_a_message(self) -> bool:
        """A data message of any link disappears; False if none is on its way."""
        candidates = [link for link in self._waiting if link[2]]
        if not candidates:
            return False
        self._take(self.rng.choice(candidates))
        return True

    def restart(self, name: str) -> None:
        """A process dies with what is on its way to and from it, and its successor is linked."""
        for link in [link for link in self._waiting if name in link[:2]]:
            while link in self._waiting:
                self._take(link)
        gone = self._incarnations[name]
        if name in self.managers:
            self._start_manager(name)
        else:
            self._start_instance(name)
        orders = [pair for manager in self.managers for pair in self._pairs(manager)]
        pairs = [pair for pair in dict.fromkeys(orders) if name in pair]
        for one, other in pairs:
            if other == name and one in self.managers:
                self._transmit(one, self.managers[one].disconnect(name, gone))
            elif other == name:
                self.instances[one].disconnect(gone)
        self.rng.shuffle(pairs)
        for one, other in pairs:
            self._connect(one, other)

    def new_wave(self) -> None:
        """As the parent does when something has come back."""
        self.wave += 1
        for instance in self.instances.values():
            instance.on_wave(self.wave, drain=False)
