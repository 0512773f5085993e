"""Keeper: what is started when, what a death leads to, and the order of the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from storm_py.errors import InvalidTransition
from storm_py.one_machine.keeper import (
    MAX_DEATHS,
    PAUSE_SECS,
    QUICK_SECS,
    Action,
    Failure,
    Keeper,
    Kill,
    Phase,
    Say,
    Start,
    Terminate,
)

SUPERVISORS = ["supervisor-1", "supervisor-2"]
ALL = ["zookeeper", "nimbus", *SUPERVISORS]
STOP_SECS = 20.0
STOPPING = Say("stopping: supervisors with their workers, nimbus, ZooKeeper")
AGAIN = "it is started again in 1 s"


def phase_of(keeper: Keeper) -> Phase:
    """As a call, whose result a type checker does not take for settled."""
    return keeper.phase


def new() -> Keeper:
    return Keeper(SUPERVISORS, STOP_SECS)


def starting() -> Keeper:
    keeper = new()
    keeper.begin(0)
    keeper.zookeeper_serves(1)
    return keeper


def up() -> Keeper:
    keeper = starting()
    keeper.registered(2)
    return keeper


# ---- start ---------------------------------------------------------------------------------------


def test_zookeeper_comes_first_then_all_others_at_once() -> None:
    keeper = new()
    assert keeper.begin(0) == [Start("zookeeper")]
    assert phase_of(keeper) is Phase.ZOOKEEPER
    assert keeper.zookeeper_serves(1) == [
        Start("nimbus"),
        Start("supervisor-1"),
        Start("supervisor-2"),
    ]
    assert phase_of(keeper) is Phase.STARTING
    assert keeper.registered(2) == []
    assert phase_of(keeper) is Phase.UP
    assert keeper.next_timeout() is None
    keeper.check()


def test_a_zookeeper_that_never_served_is_the_end() -> None:
    keeper = new()
    keeper.begin(0)
    reason = "exited with code 1"
    assert keeper.exited("zookeeper", reason, 0.5) == [
        Say("zookeeper exited with code 1: the cluster is stopped")
    ]
    assert phase_of(keeper) is Phase.ENDED
    assert keeper.failure == Failure("zookeeper", reason)


# ---- deaths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("make", [starting, up])
def test_a_daemon_that_died_is_started_again_after_a_pause(
    name: str, make: Callable[[], Keeper]
) -> None:
    keeper = make()
    assert keeper.exited(name, "was killed by SIGKILL", 50) == [
        Say(f"{name} was killed by SIGKILL; {AGAIN}")
    ]
    keeper.check()
    assert keeper.next_timeout() == 50 + PAUSE_SECS
    assert keeper.tick(50 + PAUSE_SECS - 0.01) == []
    assert keeper.tick(50 + PAUSE_SECS) == [Start(name)]
    assert keeper.next_timeout() is None
    keeper.check()


def test_a_daemon_that_dies_again_and_again_at_once_is_the_end() -> None:
    keeper = up()
    now = 100.0
    for _ in range(MAX_DEATHS - 1):
        assert keeper.exited("nimbus", "exited with code 1", now) == [
            Say(f"nimbus exited with code 1; {AGAIN}")
        ]
        now += PAUSE_SECS
        assert keeper.tick(now) == [Start("nimbus")]
        now += QUICK_SECS / 2
    reason = "died 3 times in a row soon after its start; it exited with code 1"
    # The first of these deaths came late and begins the row.
    assert keeper.exited("nimbus", "exited with code 1", now) == [
        Say(f"nimbus {reason}: the cluster is stopped"),
        Terminate("supervisor-1"),
        Terminate("supervisor-2"),
    ]
    assert keeper.failure == Failure("nimbus", reason)
    assert phase_of(keeper) is Phase.ENDING


def test_a_daemon_that_lived_for_long_begins_anew() -> None:
    keeper = up()
    now = 100.0
    for _ in range(3 * MAX_DEATHS):
        assert keeper.exited("nimbus", "died", now) == [Say(f"nimbus died; {AGAIN}")]
        now += PAUSE_SECS
        assert keeper.tick(now) == [Start("nimbus")]
        now += QUICK_SECS
    assert phase_of(keeper) is Phase.UP


def test_deaths_of_several_do_not_add_up() -> None:
    keeper = up()
    for name in ALL:
        assert keeper.exited(name, "died", 3) == [Say(f"{name} died; {AGAIN}")]
    assert keeper.tick(4) == [Start(name) for name in ALL]
    for name in ALL:
        assert keeper.exited(name, "died", 5) == [Say(f"{name} died; {AGAIN}")]


def test_who_does_not_run_cannot_die() -> None:
    keeper = up()
    keeper.exited("nimbus", "died", 3)
    with pytest.raises(InvalidTransition, match="nimbus does not run and died; what happened, "):
        keeper.exited("nimbus", "died", 3.5)


# ---- end -----------------------------------------------------------------------------------------


def test_supervisors_end_first_then_nimbus_then_zookeeper() -> None:
    keeper = up()
    stage = [Terminate("supervisor-1"), Terminate("supervisor-2")]
    assert keeper.interrupt(10) == [STOPPING, *stage]
    assert keeper.next_timeout() == 10 + STOP_SECS
    assert keeper.exited("supervisor-2", "exited with code 130", 11) == []
    keeper.check()
    assert keeper.exited("supervisor-1", "exited with code 130", 12) == [Terminate("nimbus")]
    assert keeper.next_timeout() == 12 + STOP_SECS
    assert keeper.exited("nimbus", "exited with code 130", 13) == [Terminate("zookeeper")]
    assert keeper.exited("zookeeper", "exited with code 130", 14) == []
    assert phase_of(keeper) is Phase.ENDED
    assert keeper.failure is None
    assert keeper.next_timeout() is None
    keeper.check()


def test_who_waits_for_its_next_start_is_not_started() -> None:
    keeper = up()
    for name in (*SUPERVISORS, "nimbus"):
        keeper.exited(name, "died", 3)
    assert keeper.interrupt(3.5) == [STOPPING, Terminate("zookeeper")]
    assert keeper.tick(10) == []


def test_an_end_before_zookeeper_serves() -> None:
    keeper = new()
    keeper.begin(0)
    assert keeper.interrupt(1) == [STOPPING, Terminate("zookeeper")]
    assert keeper.zookeeper_serves(2) == []
    assert keeper.exited("zookeeper", "exited with code 130", 3) == []
    assert phase_of(keeper) is Phase.ENDED


def test_what_was_found_too_late_is_not_up() -> None:
    keeper = starting()
    keeper.interrupt(2)
    assert keeper.registered(3) == []
    assert phase_of(keeper) is Phase.ENDING


def test_who_dies_out_of_turn_is_not_waited_for() -> None:
    keeper = up()
    keeper.interrupt(10)
    assert keeper.exited("nimbus", "died", 11) == []
    keeper.exited("supervisor-1", "exited", 12)
    assert keeper.exited("supervisor-2", "exited", 13) == [Terminate("zookeeper")]


def test_a_stage_that_takes_too_long_is_killed() -> None:
    keeper = up()
    keeper.interrupt(10)
    keeper.exited("supervisor-1", "exited", 11)
    assert keeper.tick(10 + STOP_SECS) == [
        Say("supervisor-2 did not end in 20 s; it is killed"),
        Kill("supervisor-2"),
    ]
    assert keeper.tick(100) == []
    assert keeper.exited("supervisor-2", "was killed", 101) == [Terminate("nimbus")]


def test_a_second_interrupt_kills_all_that_is_left() -> None:
    keeper = up()
    keeper.interrupt(10)
    keeper.exited("supervisor-1", "exited", 11)
    killed = [Kill("zookeeper"), Kill("nimbus"), Kill("supervisor-2")]
    assert keeper.interrupt(12) == [Say("killing what still runs"), *killed]
    assert keeper.interrupt(13) == []
    for name in ("zookeeper", "supervisor-2", "nimbus"):
        assert keeper.exited(name, "was killed", 14) == []
    assert phase_of(keeper) is Phase.ENDED


def test_what_happened_is_told_with_an_event_that_cannot_be() -> None:
    keeper = starting()
    with pytest.raises(InvalidTransition) as raised:
        keeper.begin(7)
    assert str(raised.value) == (
        "'begin' cannot happen to a cluster that is starting; what happened, oldest first: "
        "0.000 new: begin; 1.000 waiting for ZooKeeper: ZooKeeper serves; 7.000 starting: begin"
    )


# ---- laws ----------------------------------------------------------------------------------------


class AnyLife(RuleBasedStateMachine):
    """Any deaths, interrupts and pauses: what runs is what was started, and the end comes."""

    def __init__(self) -> None:
        super().__init__()
        self.keeper = new()
        self.now = 0.0
        self.running: set[str] = set()
        self.gone_in_order: list[str] = []
        self._do(self.keeper.begin(self.now))

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Start):
                assert action.name not in self.running
                assert self.keeper.phase is not Phase.ENDING
                self.running.add(action.name)
            elif isinstance(action, Terminate | Kill):
                assert action.name in self.running
                assert self.keeper.phase is Phase.ENDING

    def _is(self, *phases: Phase) -> bool:
        return self.keeper.phase in phases

    @precondition(lambda self: self._is(Phase.ZOOKEEPER))
    @rule()
    def serves(self) -> None:
        self._do(self.keeper.zookeeper_serves(self.now))

    @precondition(lambda self: self._is(Phase.STARTING))
    @rule()
    def registered(self) -> None:
        self._do(self.keeper.registered(self.now))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def dies(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.running)))
        self.running.remove(name)
        self._do(self.keeper.exited(name, "died", self.now))

    @precondition(lambda self: not self._is(Phase.ENDED))
    @rule()
    def interrupt(self) -> None:
        self._do(self.keeper.interrupt(self.now))

    @rule(secs=st.sampled_from([0.1, 1.0, 5.0, 30.0]))
    def time_passes(self, secs: float) -> None:
        self.now += secs
        self._do(self.keeper.tick(self.now))

    @invariant()
    def all_is_well(self) -> None:
        self.keeper.check()
        assert self._is(Phase.ENDED) <= (not self.running)
        due = self.keeper.next_timeout()
        assert due is None or due > self.now or not self._is(Phase.UP)

    def teardown(self) -> None:
        """Two interrupts, and the end comes."""
        if not self._is(Phase.ENDED):
            self._do(self.keeper.interrupt(self.now))
        if not self._is(Phase.ENDED):
            self._do(self.keeper.interrupt(self.now))
        for name in sorted(self.running):
            self._do(self.keeper.exited(name, "was killed", self.now))
        assert self._is(Phase.ENDED)


TestAnyLife = AnyLife.TestCase
