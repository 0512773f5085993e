"""WorkerCore with processes that come up, link and die, under ever new plans, in any order.

In the end all is well.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from storm_py.engine.worker_actions import (
    Action,
    Adopt,
    KillInstance,
    Leave,
    ReplanStreamManager,
    StartInstance,
    StartStreamManager,
    Tell,
    TellParent,
)
from storm_py.engine.worker_core import WorkerCore
from storm_py.wire.control import (
    Activate,
    Connect,
    Control,
    Deactivate,
    Disconnect,
    Ready,
    Register,
    Replan,
    Restarted,
    Stop,
    Wave,
    WorkerReady,
    WorkerUp,
)

EXECUTORS = (7, 8)
MANAGER = 0
POOL = (*EXECUTORS, 9, 10)
"""What there may be an instance of under some plan."""
NAMES = {MANAGER: "sm"} | {executor: f"i{executor}" for executor in POOL}


@dataclass
class Process:
    """A process as the worker's children are: it does what it is told once it has registered."""

    incarnation: int
    version: int
    registered: bool = False
    links: dict[str, int] = field(default_factory=dict)
    linked_to: int = 0
    active: bool = False
    wave: int = 0
    stop: bool = False


class WorkerMachine(RuleBasedStateMachine):
    """Deaths, registrations, links and orders in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.core = WorkerCore(4, 1, EXECUTORS)
        self.now = 0.0
        self.alive: dict[int, Process] = {}
        self.told: list[Control] = []
        self.active = False
        self.wave = 0
        self.deaths: list[tuple[int, int]] = []
        self.left = 0
        self.wanted: tuple[int, ...] = EXECUTORS
        self.version = self.adopted = 1
        self.ready = 0
        self.perform(self.core.start(self.now))

    # ---- the world -----------------------------------------------------------------------------

    def perform(self, actions: list[Action]) -> None:
        self.core.check()
        for action in actions:
            match action:
                case StartStreamManager(incarnation=incarnation):
                    self.launch(MANAGER, incarnation)
                case StartInstance(executor=executor, incarnation=incarnation):
                    self.launch(executor, incarnation)
                case Tell(identity=identity, record=record):
                    process = next(number for number, name in NAMES.items() if name == identity)
                    self.tell(process, record)
                case TellParent(record=record):
                    self.told.append(record)
                    self.ready += isinstance(record, WorkerReady)
                case Adopt(version=version):
                    assert self.adopted < version <= self.version
                    self.adopted = version
                    self.ready = 0
                    assert not any(p.stop for p in self.alive.values()), "it is still here"
                case ReplanStreamManager(incarnation=incarnation, version=version):
                    assert MANAGER not in self.alive or not self.links_to("stmgr")
                    if MANAGER in self.alive:
                        self.alive[MANAGER] = Process(incarnation, version)
                case KillInstance(executor=executor):
                    assert self.alive[executor].stop
                    self.die(executor)
                case Leave():
                    assert not self.alive
                    self.left += 1

    def links_to(self, peer: str) -> list[Process]:
        return [process for process in self.alive.values() if peer in process.links]

    def launch(self, number: int, incarnation: int) -> None:
        assert number not in self.alive, "two of a kind at a time"
        for other in self.alive.values():
            assert NAMES[number] not in other.links, "somebody is linked to its dead predecessor"
            if number == MANAGER:
                assert "stmgr" not in other.links
        self.alive[number] = Process(incarnation, self.adopted)

    def tell(self, number: int, record: Control) -> None:
        process = self.alive.get(number)
        if process is None:
            return
        if isinstance(record, Stop):
            process.stop = True  # kept until it has registered
        if isinstance(record, Replan):
            assert record.version == self.adopted
            process.version = record.version  # so is this
        if not process.registered:
            return
        match record:
            case Connect(peer=peer, incarnation=incarnation):
                process.links[peer] = incarnation
            case Disconnect(peer=peer):
                process.links.pop(peer, None)
                process.linked_to = 0
            case Activate() | Deactivate():
                process.active = isinstance(record, Activate)
            case Wave(wave=wave):
                process.wave = max(process.wave, wave)

    def open_link(self, executor: int) -> None:
        """Both ends know each other: the instance is ready."""
        instance, manager = self.alive.get(executor), self.alive.get(MANAGER)
        if instance is not None and instance.stop:
            return
        if instance is None or manager is None or instance.linked_to == manager.incarnation:
            return
        if (
            instance.links.get("stmgr") == manager.incarnation
            and manager.links.get(NAMES[executor]) == instance.incarnation
        ):
            instance.linked_to = manager.incarnation
            self.perform(self.core.ready(Ready(executor, instance.incarnation)))

    # ---- what may happen -----------------------------------------------------------------------

    @rule(number=st.sampled_from(sorted(NAMES)))
    def register(self, number: int) -> None:
        process = self.alive.get(number)
        if process is not None and not process.registered:
            process.registered = True
            role = "instance" if number else "stream-manager"
            record = Register(role, number, process.incarnation, 1, "d", "c", "", "")
            self.perform(self.core.registered(record))

    @rule(executor=st.sampled_from(POOL))
    def link(self, executor: int) -> None:
        self.open_link(executor)

    @rule(number=st.sampled_from(sorted(NAMES)))
    def die(self, number: int) -> None:
        process = self.alive.pop(number, None)
        if process is not None:
            if not process.stop:
                self.deaths.append((number, process.incarnation))
            self.perform(self.core.died(number, process.incarnation, "killed", self.now))

    @precondition(lambda self: self.deaths)
    @rule(data=st.data())
    def news_of_an_old_death(self, data: st.DataObject) -> None:
        number, incarnation = data.draw(st.sampled_from(self.deaths))
        self.perform(self.core.died(number, incarnation, "killed", self.now))

    @rule(secs=st.sampled_from([0.05, 1.0, 20.0]))
    def tick(self, secs: float) -> None:
        self.now += secs
        self.perform(self.core.tick(self.now))
        due = self.core.next_timeout()
        assert due is None or due > self.now

    @rule(active=st.booleans())
    def activate(self, active: bool) -> None:
        self.active = active
        self.perform(self.core.order(Activate() if active else Deactivate()))

    @rule(data=st.data())
    def replan(self, data: st.DataObject) -> None:
        wanted = data.draw(st.lists(st.sampled_from(POOL), min_size=1, unique=True))
        kept = data.draw(st.sets(st.sampled_from(wanted)))
        self.version += 1
        self.wanted = tuple(wanted)
        self.perform(self.core.replan(self.version, wanted, kept, self.now))

    @rule()
    def settle(self) -> None:
        """Whoever may leave does, and whoever may come up and open its link does."""
        for number in [n for n, process in self.alive.items() if process.stop]:
            self.die(number)
        for number in NAMES:
            self.register(number)
        for executor in POOL:
            self.open_link(executor)

    @rule()
    def new_wave(self) -> None:
        self.wave += 1
        self.perform(self.core.order(Wave(self.wave, False)))

    @invariant()
    def ready_is_told_once_per_plan(self) -> None:
        assert self.ready <= 1

    # ---- the end -------------------------------------------------------------------------------

    def teardown(self) -> None:
        for _ in range(3):
            self.settle()
            self.tick(20.0)
        self.settle()
        assert self.adopted == self.version
        assert set(self.alive) == {MANAGER, *self.wanted}
        assert {process.version for process in self.alive.values()} == {self.version}
        for executor in self.wanted:
            instance = self.alive[executor]
            assert instance.linked_to == self.alive[MANAGER].incarnation
            assert (instance.active, instance.wave) == (self.active, self.wave)
        assert self.ready == 1
        ups = [r.stream_manager_incarnation for r in self.told if isinstance(r, WorkerUp)]
        assert ups == sorted(set(ups))
        restarted = [r.executor for r in self.told if isinstance(r, Restarted)]
        died = {number for number, _ in self.deaths}
        assert set(restarted) <= died
        assert set(restarted) == died or self.version > 1
        self.perform(self.core.order(Stop()))
        for _ in range(2):
            for number in [n for n, process in self.alive.items() if process.stop]:
                self.die(number)
        assert self.left == 1


TestWorkerMachine = WorkerMachine.TestCase
TestWorkerMachine.settings = settings(max_examples=120, stateful_step_count=30)
