"""What is heard of workers: who lives, by which way it came, and what they have done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from storm_py.heartbeat import ExecutorStatistics
from storm_py.nimbus.beats import Beat, Beats
from storm_py.nimbus.liveness import Timeouts
from tests.cluster_records import assignment

ID = "words-1-2"
TIMEOUTS = Timeouts(launch_secs=120, beat_secs=30)
BOTH = ((1, 1), (2, 5))


@pytest.fixture
def beats() -> Beats:
    """Both executors are expected since 100, on the node s1."""
    found = Beats()
    found.expect(ID, assignment(), TIMEOUTS, 100.0)
    return found


def heard(stamp: int, node: str | None = "s1", **fields: object) -> Beat:
    return replace(Beat(ID, BOTH, stamp, node), **fields)  # type: ignore[arg-type]


def test_who_says_nothing_from_the_start_has_the_time_to_launch(beats: Beats) -> None:
    assert beats.next_timeout() == 220.0
    assert not beats.tick(219.0)
    assert beats.tick(220.0)
    assert beats.dead(ID) == {(1, 1), (2, 5)}
    assert not beats.tick(221.0)


def test_a_beat_counts_from_when_it_is_heard(beats: Beats) -> None:
    assert not beats.hear("thrift", heard(5), 110.0)
    assert beats.next_timeout() == 140.0
    assert not beats.hear("thrift", heard(6), 120.0)
    assert beats.next_timeout() == 150.0


def test_an_old_beat_that_is_read_again_is_none(beats: Beats) -> None:
    beats.hear("supervisors", heard(5), 110.0)
    beats.hear("thrift", heard(6), 112.0)
    beats.hear("supervisors", heard(5), 130.0)
    assert beats.next_timeout() == 142.0


def test_only_the_node_that_has_an_executor_speaks_for_it(beats: Beats) -> None:
    beats.hear("thrift", heard(5, "s2"), 110.0)
    assert beats.next_timeout() == 220.0
    beats.hear("worker", heard(5, None), 110.0)
    assert beats.next_timeout() == 140.0


def test_who_was_dead_may_come_back(beats: Beats) -> None:
    beats.tick(220.0)
    assert beats.hear("thrift", heard(5, executors=((1, 1),)), 221.0)
    assert beats.dead(ID) == {(2, 5)}


def test_what_moved_has_the_time_to_launch_again(beats: Beats) -> None:
    beats.hear("thrift", heard(5), 110.0)
    moved = replace(
        assignment(2),
        executor_node_port={(1, 1): ("s2", 6700), (2, 5): ("s1", 6701)},
        executor_start_time_secs={(1, 1): 50, (2, 5): 6},
    )
    beats.expect(ID, moved, TIMEOUTS, 120.0)
    beats.hear("thrift", heard(6), 130.0)  # s1 still runs what is to run on s2 now
    assert beats.tick(160.0)
    assert beats.dead(ID) == {(2, 5)}
    assert beats.tick(240.0)
    assert beats.dead(ID) == {(1, 1), (2, 5)}


def test_statistics_are_the_last_ones_of_what_is_assigned(beats: Beats) -> None:
    one = ExecutorStatistics(1, 1, 9, 77, 1, 2, 3, 4, 5, 6)
    stranger = replace(one, first_task=9, last_task=9)
    beats.hear("thrift", heard(5, statistics=(one, stranger)), 110.0)
    assert beats.statistics(ID) == {(1, 1): one}
    later = replace(one, emitted=20)
    beats.hear("thrift", heard(6, statistics=(later,)), 111.0)
    assert beats.statistics(ID) == {(1, 1): later}
    cut = replace(
        assignment(2),
        executor_node_port={(2, 5): ("s1", 6701)},
        executor_start_time_secs={(2, 5): 6},
    )
    beats.expect(ID, cut, TIMEOUTS, 112.0)
    assert beats.statistics(ID) == {}


def test_nothing_is_expected_of_what_was_forgotten(beats: Beats) -> None:
    assert beats.knows(ID)
    beats.forget(ID)
    assert not beats.knows(ID)
    assert beats.next_timeout() is None
    assert not beats.hear("thrift", heard(5), 110.0)


def test_a_time_in_which_nobody_could_be_heard_is_pardoned(beats: Beats) -> None:
    one = ExecutorStatistics(1, 1, 9, 77, 1, 2, 3, 4, 5, 6)
    beats.hear("thrift", heard(5, statistics=(one,)), 110.0)
    beats.pardon(200.0)
    assert not beats.tick(319.0)
    assert beats.knows(ID)
    assert beats.statistics(ID) == {(1, 1): one}
    beats.hear("thrift", heard(6), 319.0)
    assert beats.next_timeout() == 349.0


def test_a_reset_forgets_everything(beats: Beats) -> None:
    beats.tick(220.0)
    beats.reset()
    assert (beats.dead(ID), beats.knows(ID), beats.next_timeout()) == (frozenset(), False, None)
