"""What holds of a slot, whatever happens to it in whatever order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from storm_py.supervisor.assignment import Code, LocalAssignment
from storm_py.supervisor.slot import SlotMachine
from storm_py.supervisor.slot_actions import (
    Action,
    CannotKill,
    Cleanup,
    FoundWorker,
    Kill,
    Launch,
    Localize,
    Release,
    Severity,
    Tell,
)
from storm_py.supervisor.slot_states import MachineState
from storm_py.supervisor.slot_worker import HOPELESS_SECS
from tests.slots import TIMEOUTS, names

TOPOLOGIES = st.tuples(
    st.sampled_from(["a-1-1", "b-2-1"]),
    st.sampled_from(["c1", "c2"]),
    st.sampled_from(["ann", "bob"]),
)


@dataclass(slots=True)
class World:
    """What a driver of the machine and its workers would be: it does what it is told."""

    #: The process of each worker that is not gone: whether its main process lives.
    workers: dict[str, bool] = field(default_factory=dict)
    #: What each was launched with or told last, and the version it follows.
    given: dict[str, LocalAssignment] = field(default_factory=dict)
    follows: dict[str, int] = field(default_factory=dict)
    #: When TERM was sent, in time that never goes back.
    terms: dict[str, float] = field(default_factory=dict)
    killed: set[str] = field(default_factory=set)
    cleaned: set[str] = field(default_factory=set)
    #: Codes that were asked for and not answered, and those that are held.
    asked: set[Code] = field(default_factory=set)
    held: set[Code] = field(default_factory=set)

    def act(self, action: Action, spent: float) -> None:
        """Do it; an AssertionError if that must not be."""
        match action:
            case Localize(code):
                assert code not in self.asked | self.held, "asked for twice"
                self.asked.add(code)
            case Release(code):
                assert code in self.asked | self.held, "given back, but not held"
                self.asked.discard(code)
                self.held.discard(code)
            case Launch(worker_id, wanted):
                assert not self.workers, "two workers on a port"
                assert self.cleaned >= self.given.keys(), "launched before the last was cleaned up"
                assert wanted.code in self.held, "launched without its code"
                self.workers[worker_id] = True
                self.given[worker_id] = wanted
                self.follows[worker_id] = wanted.version
            case Tell(worker_id, wanted):
                assert self.workers[worker_id], "told, but dead"
                assert worker_id not in self.terms, "told, but ending"
                assert self.given[worker_id].code == wanted.code, "told of another code"
                self.given[worker_id] = wanted
            case Kill(worker_id, Severity.TERM):
                assert self.workers[worker_id], "TERM for the dead"
                assert worker_id not in self.terms, "TERM twice"
                self.terms[worker_id] = spent
            case Kill(worker_id, Severity.KILL):
                assert worker_id in self.workers
                if self.workers[worker_id]:
                    waited = spent - self.terms[worker_id]
                    assert waited >= TIMEOUTS.shutdown_secs - 1e-6, "KILL before its time"
                self.killed.add(worker_id)
            case Cleanup(worker_id):
                assert worker_id not in self.workers, "cleaned up, but not gone"
                assert worker_id not in self.cleaned, "cleaned up twice"
                self.cleaned.add(worker_id)
            case CannotKill(worker_id, after_secs):
                assert worker_id in self.killed
                assert after_secs == HOPELESS_SECS


class AnySlot(RuleBasedStateMachine):
    """Events in any order, with a clock that may go back."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = SlotMachine(6700, TIMEOUTS, names())
        self.world = World()
        self.now = 0.0
        #: time that really passed, whatever the clock says
        self.spent = 0.0
        self.version = 0
        self.wanted: LocalAssignment | None = None

    def do(self, actions: list[Action]) -> None:
        for action in actions:
            self.world.act(action, self.spent)

    def pass_time(self, secs: float) -> None:
        self.now += secs
        self.spent += secs

    @initialize(
        topology=st.none() | TOPOLOGIES,
        same=st.booleans(),
        alive=st.booleans(),
        beat=st.none() | st.floats(-60, 5),
    )
    def recover(
        self, topology: tuple[str, str, str] | None, same: bool, alive: bool, beat: float | None
    ) -> None:
        if topology is None:
            return
        before = self.assignment(topology)
        self.wanted = self.assignment(topology) if same else None
        self.world.workers["w0"] = alive
        self.world.given["w0"] = before
        self.world.follows["w0"] = before.version
        self.do(self.machine.recover(self.wanted, FoundWorker("w0", before, alive, beat), self.now))

    def assignment(self, topology: tuple[str, str, str], executors: int = 1) -> LocalAssignment:
        self.version += 1
        name, checksum, owner = topology
        return LocalAssignment(name, self.version, ((1, executors),), checksum, owner)

    @rule(topology=TOPOLOGIES, executors=st.integers(1, 2))
    def assign(self, topology: tuple[str, str, str], executors: int) -> None:
        self.wanted = self.assignment(topology, executors)
        self.do(self.machine.assign(self.wanted, self.now))

    @rule()
    def assign_nothing(self) -> None:
        self.wanted = None
        self.do(self.machine.assign(None, self.now))

    @precondition(lambda self: self.wanted is not None)
    @rule()
    def assign_next_version(self) -> None:
        assert self.wanted is not None
        code = self.wanted.code
        self.wanted = self.assignment((code.topology_id, code.checksum, code.owner))
        self.do(self.machine.assign(self.wanted, self.now))

    # ---- answers ----

    @precondition(lambda self: self.world.asked)
    @rule(data=st.data(), well=st.booleans())
    def answer(self, data: st.DataObject, well: bool) -> None:
        code = data.draw(st.sampled_from(sorted(self.world.asked, key=str)))
        self.world.asked.discard(code)
        if well:
            self.world.held.add(code)
            self.do(self.machine.localized(code, self.now))
        else:
            self.do(self.machine.localize_failed(code, "no room", self.now))

    @precondition(lambda self: any(self.world.workers.values()))
    @rule(follow=st.booleans())
    def heartbeat(self, follow: bool) -> None:
        [worker_id] = self.world.workers
        if follow:
            self.world.follows[worker_id] = self.world.given[worker_id].version
        self.do(self.machine.heartbeat(worker_id, self.world.follows[worker_id], self.now))

    @precondition(lambda self: any(self.world.workers.values()))
    @rule()
    def exit_or_obey(self) -> None:
        [worker_id] = self.world.workers
        self.world.workers[worker_id] = False
        self.do(self.machine.exited(worker_id, None, self.now))

    @precondition(lambda self: self.world.workers)
    @rule()
    def all_gone(self) -> None:
        [worker_id] = self.world.workers
        del self.world.workers[worker_id]
        self.do(self.machine.gone(worker_id, self.now))

    @precondition(lambda self: any(self.world.workers.values()))
    @rule()
    def memory_violation(self) -> None:
        [worker_id] = self.world.workers
        self.do(self.machine.memory_violation(worker_id, self.now))

    @rule(data=st.data())
    def news_of_the_dead(self, data: st.DataObject) -> None:
        """What comes late, of workers that are gone and codes that are not wanted."""
        gone = sorted(self.world.given.keys() - self.world.workers.keys())
        if gone:
            worker_id = data.draw(st.sampled_from(gone))
            events: list[Callable[[], list[Action]]] = [
                lambda: self.machine.exited(worker_id, 0, self.now),
                lambda: self.machine.gone(worker_id, self.now),
                lambda: self.machine.heartbeat(worker_id, 1, self.now),
                lambda: self.machine.memory_violation(worker_id, self.now),
                lambda: self.machine.launch_failed(worker_id, "late", self.now),
            ]
            assert data.draw(st.sampled_from(events))() == []

    # ---- time ----

    @rule(secs=st.floats(0, 200))
    def wait(self, secs: float) -> None:
        self.pass_time(secs)
        self.do(self.machine.tick(self.now))

    @rule(secs=st.floats(0, 10_000))
    def clock_goes_back(self, secs: float) -> None:
        before = self.machine.next_timeout()
        left = None if before is None else max(before - self.now, 0.0)
        known_now = self.now
        self.now -= secs
        # It is known with the next event; nothing becomes due by it.
        if left is None or left > 0:
            assert self.machine.tick(self.now) == []
            after = self.machine.next_timeout()
            assert (after is None) == (left is None)
            assert after is None or left is None or abs(after - self.now - left) < 1e-6
        else:
            self.do(self.machine.tick(self.now))
        assert self.now <= known_now

    @precondition(lambda self: self.machine.next_timeout() is not None)
    @rule()
    def wait_exactly(self) -> None:
        at = self.machine.next_timeout()
        assert at is not None
        if at > self.now:
            self.pass_time(at - self.now)
        self.now = max(at, self.now)
        self.do(self.machine.tick(self.now))
        after = self.machine.next_timeout()
        assert after is None or after > at, "tick did nothing when it was due"

    @precondition(lambda self: self.machine.next_timeout() is not None)
    @rule(share=st.floats(0, 0.99))
    def wait_less(self, share: float) -> None:
        at = self.machine.next_timeout()
        assert at is not None
        self.pass_time(max(at - self.now, 0.0) * share)
        if self.now < at:
            assert self.machine.tick(self.now) == [], "tick did something before it was due"
            assert self.machine.next_timeout() == at

    # ---- what always holds ----

    @invariant()
    def is_sound(self) -> None:
        self.machine.check()
        assert len(self.world.workers) <= 1

    @invariant()
    def code_of_the_worker_stays(self) -> None:
        for worker_id in self.world.workers:
            if worker_id != "w0":  # which was found with whatever it had
                assert self.world.given[worker_id].code in self.world.held

    def teardown(self) -> None:
        """Once inputs stop, and all do what they are told, it ends in EMPTY or RUNNING."""
        for _ in range(200):
            if self.is_settled():
                break
            self.cooperate()
        assert self.is_settled(), f"it never settles: {self.machine.statistics()}"
        assert set(self.world.given) - self.world.cleaned == set(self.world.workers)

    def is_settled(self) -> bool:
        wanted_codes = set() if self.wanted is None else {self.wanted.code}
        if self.world.asked or self.world.held != wanted_codes:
            return False
        if self.wanted is None:
            return self.machine.state is MachineState.EMPTY and not self.world.workers
        return (
            self.machine.state is MachineState.RUNNING
            and list(self.world.workers.values()) == [True]
            and all(self.world.follows[each] >= self.wanted.version for each in self.world.workers)
        )

    def cooperate(self) -> None:
        for code in sorted(self.world.asked, key=str):
            self.world.asked.discard(code)
            self.world.held.add(code)
            self.do(self.machine.localized(code, self.now))
        for worker_id, alive in list(self.world.workers.items()):
            if worker_id in self.world.terms or worker_id in self.world.killed:
                if alive:
                    self.exit_or_obey()
                self.all_gone()
            elif alive:
                self.heartbeat(follow=True)
            else:
                self.all_gone()
        self.machine.check()
        at = self.machine.next_timeout()
        if at is not None and not self.is_settled():
            self.pass_time(min(max(at - self.now, 0.0), 1.0))
            self.do(self.machine.tick(self.now))
            self.machine.check()


TestAnySlot = AnySlot.TestCase
TestAnySlot.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
