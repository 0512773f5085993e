"""The simulation and user code: groupings of its own, and what becomes of its exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    Config,
    CustomStreamGrouping,
    FailedException,
    ReportedFailedException,
    TopologyBuilder,
    Tuple,
)
from storm_py.testing import Faults, Simulation, SimulationError
from tests.unit.test_simulation import CALM, Collect, Numbers, counted

# ---- custom groupings --------------------------------------------------------------------------


class Chooses(CustomStreamGrouping):
    """Sends number n to the n-th choice, each a list of indices among the bolt's tasks."""

    def __init__(self, *choices: Sequence[int]) -> None:
        self.choices = choices

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: list[Any]) -> list[int]:
        (number,) = values
        return [self.tasks[i] for i in self.choices[number % len(self.choices)]]


def chosen(grouping: CustomStreamGrouping, n: int) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(n))
    builder.set_bolt("collect", Collect(), 3).custom_grouping("numbers", grouping)
    return builder


def test_a_custom_grouping_may_choose_nobody_several_and_one_task_twice() -> None:
    grouping = Chooses([], [2, 0], [1, 1], [0])
    simulation = Simulation(2, chosen(grouping, 8), faults=CALM)
    report = simulation.run()
    received = [sorted(each.values) for each in simulation.components("collect")]
    assert received == [[[1], [3], [5], [7]], [[2], [2], [6], [6]], [[1], [5]]]
    assert (report.acked, report.received) == (8, 10)


@pytest.mark.parametrize("seed", range(20))
def test_what_a_custom_grouping_chose_is_what_arrives_under_any_faults(seed: int) -> None:
    grouping = Chooses([], [2, 0], [1, 1], [0], [0, 1, 2])
    Simulation(seed, chosen(grouping, 60), workers=2, faults=Faults(12, 30)).run()


def test_a_wrong_answer_of_a_custom_grouping_is_the_user_s_error() -> None:
    class Wrong(Chooses):
        def choose_tasks(self, task_id: int, values: list[Any]) -> list[int]:
            return [99]

    with pytest.raises(SimulationError, match=r"custom grouping Wrong for 'collect' returned 99"):
        Simulation(2, chosen(Wrong(), 8), faults=CALM).run()


# ---- exceptions --------------------------------------------------------------------------------


class Untracked(Numbers):
    """Emits its numbers without message ids."""

    def next_tuple(self) -> None:
        if self.todo:
            self.collector.emit([self.todo.pop()])
        elif not self.endless:
            self.endless = True
            self.collector.end_of_input()


class Raises(Collect):
    """Raises on number 3; in every life, or in its first only."""

    lives = 0

    def __init__(self, always: bool = True) -> None:
        self.always = always

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        type(self).lives += 1

    def execute(self, tup: Tuple) -> None:
        if tup["number"] == 3 and (self.always or type(self).lives == 1):
            raise KeyError("a mistake")
        super().execute(tup)


@pytest.fixture(autouse=True)
def no_lives() -> None:
    Raises.lives = 0


def collected(spout: BaseRichSpout, bolt: BaseRichBolt | BaseBasicBolt) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout)
    builder.set_bolt("collect", bolt).shuffle_grouping("numbers")
    return builder


@pytest.mark.parametrize("spout", [Untracked(10), Numbers(10)], ids=["untracked", "tracked"])
def test_what_user_code_raises_breaks_off_the_run_and_is_named(spout: BaseRichSpout) -> None:
    with pytest.raises(SimulationError) as caught:
        Simulation(1, collected(spout, Raises()), faults=CALM).run()
    first, second, *_ = str(caught.value).splitlines()
    assert "collect (task 1) raised in execute of Tuple(" in first
    assert "[3]" in first
    assert first.endswith("KeyError: 'a mistake'")
    assert second.endswith("Simulation(..., expected_errors=KeyError)")
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("expected", [KeyError, LookupError, (ValueError, KeyError)])
def test_an_expected_error_costs_a_restart_and_the_run_goes_on(expected: Any) -> None:
    topology = collected(Numbers(10), Raises(always=False))
    simulation = Simulation(1, topology, faults=CALM, expected_errors=expected)
    report = simulation.run()
    assert (report.acked, report.restarts) == (10, 1)
    assert report.faults["user error"] == 1
    assert Raises.lives == 2


def test_an_error_of_another_class_than_expected_breaks_off_the_run() -> None:
    topology = collected(Numbers(10), Raises())
    with pytest.raises(SimulationError, match="KeyError: 'a mistake'"):
        Simulation(1, topology, faults=CALM, expected_errors=(ValueError,)).run()


def test_an_expected_error_that_never_ends_is_named_where_the_run_is_stuck() -> None:
    conf = {Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 1}
    topology = collected(Numbers(4), Raises())
    with pytest.raises(SimulationError, match="it is stuck") as caught:
        Simulation(1, topology, conf=conf, faults=CALM, expected_errors=KeyError).run()
    assert "the last: collect (task 1) raised in execute of Tuple(" in str(caught.value)


class AtTheEnd(Collect):
    def __init__(self, method: str, error: Exception) -> None:
        self.method, self.error = method, error

    def end_of_input(self) -> None:
        if self.method == "end_of_input":
            raise self.error

    def cleanup(self) -> None:
        if self.method == "cleanup":
            raise self.error


@pytest.mark.parametrize("method", ["end_of_input", "cleanup"])
def test_what_is_raised_at_the_end_is_no_less_an_error(method: str) -> None:
    def simulation(**more: Any) -> Simulation:
        bolt = AtTheEnd(method, OSError("no room"))
        return Simulation(1, collected(Numbers(3), bolt), faults=CALM, **more)

    with pytest.raises(SimulationError, match=rf"\(task 1\) raised in {method}: OSError: no room"):
        simulation().run()
    assert simulation(expected_errors=OSError).run().acked == 3


class Refuses(BaseBasicBolt):
    """Fails each tuple once, and reports every other of them."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.seen: set[int] = set()

    def execute(self, tup: Tuple, collector: Any) -> None:
        if tup["number"] not in self.seen:
            self.seen.add(tup["number"])
            raise (ReportedFailedException if tup["number"] % 2 else FailedException)("once more")
        collector.report_error(ValueError("for the operator"))


def test_failed_exceptions_and_reported_errors_are_no_mistakes() -> None:
    report = Simulation(1, collected(Numbers(6), Refuses()), faults=CALM).run()
    assert (report.acked, report.failed, report.restarts) == (6, 6, 0)


class NeverBegins(Collect):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        raise OSError("no such table")


@pytest.mark.parametrize("expected", [(), OSError])
def test_what_cannot_be_prepared_ends_the_run_whatever_is_expected(expected: Any) -> None:
    with pytest.raises(SimulationError, match=r"raised in prepare: OSError: no such table"):
        Simulation(1, counted(NeverBegins()), faults=CALM, expected_errors=expected).run()
