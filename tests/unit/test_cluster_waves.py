"""ClusterWaves: when a topology on a cluster counts as ended, and who begins waves anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storm_py.engine.cluster_waves import (
    LONGEST_PATIENCE_SECS,
    PATIENCE_SECS,
    Action,
    Begin,
    ClusterWaves,
    Ends,
    Renew,
    Tell,
)

SPOUT, BOLT = 1, 2


def alone() -> ClusterWaves:
    """A worker without others, of one spout and one bolt."""
    waves = ClusterWaves(1)
    assert waves.assigned([SPOUT, BOLT], [SPOUT], [], 0.0) == []
    return waves


def test_a_worker_has_ended_when_all_of_its_executors_have() -> None:
    waves = alone()
    assert waves.ended(SPOUT, 1, 1.0) == [Tell(Ends(0, spouts=True))]
    assert waves.ended(BOLT, 1, 2.0) == [Tell(Ends(1, spouts=True))]
    assert waves.ended(BOLT, 1, 3.0) == []
    assert waves.next_timeout() is None


def test_a_worker_of_bolts_has_no_spout_to_wait_for() -> None:
    waves = ClusterWaves(2)
    assert waves.assigned([BOLT], [], [1], 0.0) == [Tell(Ends(0, spouts=True))]


def test_what_is_started_anew_begins_a_new_wave() -> None:
    waves = alone()
    waves.ended(SPOUT, 1, 1.0)
    waves.ended(BOLT, 1, 1.0)
    assert waves.restarted([BOLT], 2.0) == [Tell(Ends(0, spouts=True)), Renew()]
    assert waves.wave_read(2, 2.1) == [Begin(2)]
    assert waves.ended(SPOUT, 2, 2.2) == []
    assert waves.ended(BOLT, 2, 2.3) == [Tell(Ends(2, spouts=True))]


def test_a_spout_that_is_started_anew_has_not_ended() -> None:
    waves = alone()
    waves.ended(SPOUT, 1, 1.0)
    assert waves.restarted([SPOUT], 2.0) == [Tell(Ends(0, spouts=False)), Renew()]


def test_the_number_of_all_only_grows() -> None:
    waves = alone()
    assert waves.wave_read(1, 0.0) == []
    assert waves.wave_read(4, 0.0) == [Begin(4)]
    assert waves.wave_read(3, 0.0) == []
    assert waves.wave_read(4, 0.0) == []


def test_executors_that_leave_are_waited_for_no_more() -> None:
    waves = alone()
    waves.ended(SPOUT, 1, 1.0)
    assert waves.assigned([SPOUT], [SPOUT], [2], 2.0) == [Tell(Ends(1, spouts=True))]
    assert waves.assigned([SPOUT, BOLT], [SPOUT], [], 3.0) == [Tell(Ends(0, spouts=True))]
    assert waves.ended(7, 1, 4.0) == []


def test_a_wave_that_does_not_come_through_is_renewed_with_more_patience() -> None:
    waves = alone()
    assert waves.next_timeout() is None, "a spout goes on"
    waves.ended(SPOUT, 1, 1.0)
    at = 1.0 + PATIENCE_SECS
    assert waves.next_timeout() == at
    assert waves.tick(at - 0.1) == []
    patience = PATIENCE_SECS
    for number in range(2, 9):
        assert waves.tick(at) == [Renew()]
        waves.wave_read(number, at)
        patience = min(2 * patience, LONGEST_PATIENCE_SECS)
        at += patience
        assert waves.next_timeout() == at
    waves.ended(SPOUT, 8, at)
    waves.ended(BOLT, 8, at)
    assert waves.next_timeout() is None


def test_only_the_lowest_worker_renews_and_only_when_all_spouts_have_ended() -> None:
    first, second = ClusterWaves(1), ClusterWaves(2)
    first.assigned([BOLT], [], [2], 0.0)
    second.assigned([SPOUT], [SPOUT], [1], 0.0)
    assert first.next_timeout() is None
    second.ended(SPOUT, 1, 1.0)
    second.other_told(1, first.ends, 1.0)
    assert second.next_timeout() is None
    first.other_told(2, second.ends, 1.0)
    assert first.next_timeout() == 1.0 + PATIENCE_SECS
    first.other_told(2, Ends(0, spouts=False), 2.0)
    assert first.next_timeout() is None
    first.other_told(2, second.ends, 3.0)
    first.ended(BOLT, 1, 4.0)
    assert first.next_timeout() is None
    first.other_told(9, Ends(1, spouts=True), 5.0)
    first.check()


class Topology:
    """Workers 1..n with a spout and a bolt each, the number that they share, and what is seen."""

    def __init__(self, workers: int) -> None:
        self.number = 1
        self.workers = {n: ClusterWaves(n) for n in range(1, workers + 1)}
        self.told = dict.fromkeys(self.workers, Ends())
        self.begun = dict.fromkeys(self.workers, 1)
        for n, waves in self.workers.items():
            others = self.workers.keys() - {n}
            self.perform(n, waves.assigned([2 * n, 2 * n + 1], [2 * n], others, 0.0))

    def perform(self, worker: int, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Renew():
                    self.number += 1
                case Begin(wave=wave):
                    self.begun[worker] = wave
                case Tell(ends=ends):
                    self.told[worker] = ends
        self.workers[worker].check()

    def settle(self, now: float) -> None:
        """Everybody reads, and what runs passes the wave that it was told of."""
        for n, waves in self.workers.items():
            for other, ends in self.told.items():
                waves.other_told(other, ends, now)
            self.perform(n, waves.wave_read(self.number, now))
            for executor in (2 * n, 2 * n + 1):
                self.perform(n, waves.ended(executor, self.begun[n], now))

    @property
    def over(self) -> bool:
        return all(ends.wave >= self.number for ends in self.told.values())


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.booleans()), max_size=12),
)
def test_over_is_what_all_have_passed_since_the_last_start(
    workers: int, deaths: list[tuple[int, bool, bool]]
) -> None:
    topology = Topology(workers)
    assert not topology.over
    topology.settle(1.0)
    assert topology.over
    for now, (n, spout, settles) in enumerate(deaths, 2):
        if n <= workers:
            died = topology.workers[n].restarted([2 * n if spout else 2 * n + 1], now)
            topology.perform(n, died)
            assert not topology.over, "what was started anew has passed nothing"
        if settles:
            topology.settle(now)
            topology.settle(now)
            assert topology.over
