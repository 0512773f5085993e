"""Membership: workers of a cluster find each other by registrations, whatever their order."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.engine.membership import Action, Membership, Order, Publish, Registration
from storm_py.wire.control import (
    Activate,
    Connect,
    Deactivate,
    Disconnect,
    Replan,
    Stop,
    StreamManagerDown,
    WorkerUp,
)

ME = 4


def up(worker: int, manager: int, incarnation: int = 1) -> Registration:
    return Registration(
        worker, incarnation, manager, f"d{worker}.{manager}", f"c{worker}.{manager}"
    )


def down(worker: int, manager: int, incarnation: int = 1) -> Registration:
    return Registration(worker, incarnation, manager)


def connect(worker: int, manager: int) -> Order:
    return Order(Connect(f"s{worker}", manager, f"d{worker}.{manager}", f"c{worker}.{manager}"))


def disconnect(worker: int, manager: int) -> Order:
    return Order(Disconnect(f"s{worker}", manager))


class Worker:
    """Worker 4 of an assignment of version 1, with workers 5 and 6 beside it."""

    def __init__(self) -> None:
        self.core = Membership(ME, 1, [5, 6])

    def hears(self, *found: Registration) -> list[Action]:
        actions = [action for each in found for action in self.core.registered(each)]
        self.core.check()
        return actions

    def assigned(self, version: int, *workers: int) -> list[Action]:
        actions = self.core.assigned(version, workers)
        self.core.check()
        return actions


class TestOurOwn:
    def test_it_is_published_whenever_it_changes(self) -> None:
        core = Worker().core
        ours = WorkerUp(ME, 2, 900, "d", "c", 17)
        assert core.stream_manager_up(ours) == [Publish(Registration(ME, 2, 17, "d", "c"))]
        gone = StreamManagerDown(ME, 2, 17)
        assert core.stream_manager_down(gone) == [Publish(Registration(ME, 2, 17))]

    def test_once_more_if_the_store_has_another(self) -> None:
        core = Worker().core
        assert core.published(up(ME, 3)) == []  # there is nothing yet that we could say
        core.stream_manager_up(WorkerUp(ME, 2, 900, "d", "c", 17))
        ours = Registration(ME, 2, 17, "d", "c")
        assert core.published(ours) == []
        for found in (None, up(ME, 3), down(ME, 17, 2)):
            assert core.published(found) == [Publish(ours)]

    def test_what_is_read_of_it_is_no_news(self) -> None:
        worker = Worker()
        assert worker.hears(up(ME, 9)) == []
        worker.core.stream_manager_up(WorkerUp(ME, 2, 900, "d", "c", 17))
        assert worker.hears(up(ME, 9), up(ME, 17, 2)) == []

    @pytest.mark.parametrize("found", [up(ME, 33, 3), down(ME, 33, 3)])
    def test_who_was_started_in_our_place_ends_us(self, found: Registration) -> None:
        for hear in (Membership.published, Membership.registered):
            core = Worker().core
            core.stream_manager_up(WorkerUp(ME, 2, 900, "d", "c", 17))
            assert hear(core, found) == [Order(Stop())]
            assert hear(core, found) == []


class TestOthers:
    def test_one_that_is_up_is_connected_to_once(self) -> None:
        worker = Worker()
        assert worker.hears(up(5, 1), up(5, 1)) == [connect(5, 1)]

    def test_one_that_is_down_is_left_and_its_successor_connected_to(self) -> None:
        worker = Worker()
        worker.hears(up(5, 1))
        assert worker.hears(down(5, 1), up(5, 2)) == [disconnect(5, 1), connect(5, 2)]

    def test_a_successor_takes_the_place_at_once(self) -> None:
        worker = Worker()
        worker.hears(up(5, 1))
        assert worker.hears(up(5, 2)) == [connect(5, 2)]

    def test_a_successor_that_is_down_already_ends_its_predecessors_link(self) -> None:
        worker = Worker()
        worker.hears(up(5, 1))
        assert worker.hears(down(5, 3)) == [disconnect(5, 3)]

    @pytest.mark.parametrize("late", [up(5, 1), down(5, 1), up(5, 2)])
    def test_older_words_change_nothing(self, late: Registration) -> None:
        worker = Worker()
        worker.hears(up(5, 2), down(5, 2))
        assert worker.hears(late) == []
        assert worker.hears(up(5, 3)) == [connect(5, 3)]

    def test_strangers_do_not_matter_until_they_are_assigned(self) -> None:
        worker = Worker()
        assert worker.hears(up(9, 7)) == []
        assert worker.assigned(2, ME, 9) == [Order(Replan(2, 0)), connect(9, 7)]


class TestActivation:
    def test_spouts_wait_until_all_is_ready(self) -> None:
        core = Worker().core
        assert core.activate(True) == []
        assert core.ready() == [Order(Activate())]
        assert core.ready() == []  # after a restart
        assert core.activate(True) == []

    def test_they_pause_and_go_on(self) -> None:
        core = Worker().core
        assert core.ready() == []
        assert core.activate(True) == [Order(Activate())]
        assert core.activate(False) == [Order(Deactivate())]
        assert core.activate(True) == [Order(Activate())]


class TestAssignments:
    def test_the_others_of_a_newer_one(self) -> None:
        worker = Worker()
        worker.hears(up(5, 1), up(6, 1))
        assert worker.assigned(2, 6, ME, 7) == [disconnect(5, 1), Order(Replan(2, 0))]
        assert worker.hears(up(5, 2), up(7, 1)) == [connect(7, 1)]

    def test_spouts_that_pause_meanwhile_wait_until_all_is_ready_again(self) -> None:
        worker = Worker()
        worker.core.ready()
        worker.assigned(2, ME, 5)
        assert worker.core.activate(True) == []
        assert worker.core.ready() == [Order(Activate())]
        assert worker.assigned(3, ME, 5) == [Order(Replan(3, 0))]
        assert worker.core.activate(False) == [Order(Deactivate())]
        assert worker.core.activate(True) == [Order(Activate())]

    @pytest.mark.parametrize("version", [0, 1])
    def test_an_older_one_is_none_of_our_business(self, version: int) -> None:
        assert Worker().assigned(version, 6) == []

    def test_one_that_does_without_us_ends_us(self) -> None:
        worker = Worker()
        worker.core.activate(True)
        worker.core.ready()
        assert worker.assigned(2, 5, 6) == [Order(Stop())]
        assert worker.assigned(3, ME) == []
        assert worker.hears(up(5, 1)) == []
        assert [*worker.core.activate(False), *worker.core.activate(True)] == []


histories = st.lists(
    st.sampled_from([5, 6, 7]).flatmap(
        lambda worker: st.integers(1, 4).flatmap(
            lambda n: st.sampled_from([up(worker, n), down(worker, n)])
        )
    ),
    max_size=30,
)


@settings(max_examples=200)
@given(histories, st.lists(st.sets(st.sampled_from([5, 6, 7])), max_size=4), st.randoms())
def test_in_the_end_everybody_assigned_is_linked_as_its_newest_word_says(
    heard: list[Registration], assignments: list[Collection[int]], random: Random
) -> None:
    worker = Worker()
    links: dict[str, int] = {}
    others: Collection[int] = [5, 6]
    steps: list[Registration | int] = [*heard, *range(len(assignments))]
    random.shuffle(steps)
    version = 1
    for step in steps:
        if isinstance(step, Registration):
            actions = worker.hears(step)
        else:
            version, others = version + 1, assignments[step]
            actions = worker.assigned(version, ME, *others)
        for action in actions:
            assert isinstance(action, Order)
            match action.record:
                case Connect(peer=peer, incarnation=incarnation):
                    assert links.get(peer, 0) < incarnation
                    links[peer] = incarnation
                case Disconnect(peer=peer, incarnation=incarnation):
                    assert links.pop(peer) <= incarnation
                case replan:
                    assert replan == Replan(version, 0)
    expected = {}
    for other in others:
        words = [each for each in heard if each.worker == other]
        newest = max((each.stream_manager_incarnation for each in words), default=0)
        if words and down(other, newest) not in words:
            expected[f"s{other}"] = newest
    assert links == expected
