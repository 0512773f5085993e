"""WorkerCore with processes that come up, link and die in any order: in the end all is well."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from storm_py.engine.worker_core import (
    Action,
    Leave,
    StartInstance,
    StartStreamManager,
    Tell,
    TellParent,
    WorkerCore,
)
from storm_py.wire.control import (
    Activate,
    Connect,
    Control,
    Deactivate,
    Disconnect,
    Ready,
    Register,
    Restarted,
    Stop,
    Wave,
    WorkerReady,
    WorkerUp,
)

EXECUTORS = (7, 8)
MANAGER = 0
NAMES = {MANAGER: "sm", 7: "i7", 8: "i8"}


@dataclass
class Process:
    """A process as the worker's children are: it does what it is told once it has registered."""

    incarnation: int
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
                case Leave():
                    assert not self.alive
                    self.left += 1

    def launch(self, number: int, incarnation: int) -> None:
        assert number not in self.alive, "two of a kind at a time"
        for other in self.alive.values():
            assert NAMES[number] not in other.links, "somebody is linked to its dead predecessor"
            if number == MANAGER:
                assert "stmgr" not in other.links
        self.alive[number] = Process(incarnation)

    def tell(self, number: int, record: Control) -> None:
        process = self.alive.get(number)
        if process is None:
            return
        if isinstance(record, Stop):
            process.stop = True  # kept until it has registered
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

    @rule(executor=st.sampled_from(EXECUTORS))
    def link(self, executor: int) -> None:
        self.open_link(executor)

    @rule(number=st.sampled_from(sorted(NAMES)))
    def die(self, number: int) -> None:
        process = self.alive.pop(number, None)
        if process is not None:
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

    @rule()
    def new_wave(self) -> None:
        self.wave += 1
        self.perform(self.core.order(Wave(self.wave, False)))

    @invariant()
    def ready_is_told_once(self) -> None:
        assert sum(isinstance(record, WorkerReady) for record in self.told) <= 1

    # ---- the end -------------------------------------------------------------------------------

    def teardown(self) -> None:
        for _ in range(3):
            self.tick(20.0)
            for number in NAMES:
                self.register(number)
            for executor in EXECUTORS:
                self.open_link(executor)
        for executor in EXECUTORS:
            instance = self.alive[executor]
            assert instance.linked_to == self.alive[MANAGER].incarnation
            assert (instance.active, instance.wave) == (self.active, self.wave)
        assert sum(isinstance(record, WorkerReady) for record in self.told) == 1
        ups = [r.stream_manager_incarnation for r in self.told if isinstance(r, WorkerUp)]
        assert ups == sorted(set(ups))
        restarted = [r.executor for r in self.told if isinstance(r, Restarted)]
        assert set(restarted) == {number for number, _ in self.deaths}
        self.perform(self.core.order(Stop()))
        for _ in NAMES:
            for number in [n for n, process in self.alive.items() if process.stop]:
                self.die(number)
        assert self.left == 1


TestWorkerMachine = WorkerMachine.TestCase
TestWorkerMachine.settings = settings(max_examples=80, stateful_step_count=30)
