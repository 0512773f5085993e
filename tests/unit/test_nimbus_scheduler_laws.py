"""EvenScheduler, by law: what holds for all clusters, and through all that happens to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storm_py.nimbus.executors import compute_executors, make_groups, number_tasks
from storm_py.nimbus.scheduler import (
    SchedulerAssignment,
    SupervisorDetails,
    TopologyDetails,
    WorkerSlot,
    interleaved,
    schedule,
)
from tests.placements import after, clusters, on, several, sizes, slots_of, topologies

Found = Mapping[str, SchedulerAssignment]


def check(given: Sequence[TopologyDetails], found: Found) -> None:
    """What every outcome must be."""
    users: dict[WorkerSlot, set[str]] = {}
    for one in given:
        assignment = found[one.id]
        executors = [executor for group in one.groups for executor in group]
        both = [*assignment.executor_to_slot, *assignment.unassigned]
        assert Counter(both) == Counter(executors), "each executor once"
        for group in one.groups:
            places = {assignment.executor_to_slot.get(executor) for executor in group}
            assert len(places) == 1, "a group is one process"
        assert len(assignment.slots) <= max(one.num_workers, len(set(one.assigned.values())))
        lacks = bool(assignment.unassigned) or len(assignment.slots) < one.wanted_workers
        assert (assignment.complaint is not None) == lacks
        for place in assignment.slots:
            users.setdefault(place, set()).add(one.id)
    assert all(len(ids) == 1 for ids in users.values()), "a slot holds one topology"


@given(clusters, several())
def test_new_topologies_are_spread_evenly_over_slots_that_are_offered(
    cluster: list[SupervisorDetails], new: list[TopologyDetails]
) -> None:
    found = schedule(new, cluster)
    check(new, found)
    left = len(slots_of(cluster))
    for one in sorted(new, key=lambda t: (t.launch_time_secs, t.id)):
        assignment = found[one.id]
        assert set(assignment.slots) <= slots_of(cluster)
        assert len(assignment.slots) == min(one.wanted_workers, left), "as many as there are"
        left -= len(assignment.slots)
        held = sizes(one, assignment.executor_to_slot)
        assert not held or held[0] - held[-1] <= 1, "evenly"
        assert bool(assignment.unassigned) == (not held), "all or nothing"


@given(clusters, topologies())
def test_a_new_topology_goes_round_robin(
    cluster: list[SupervisorDetails], new: TopologyDetails
) -> None:
    """Storm's algorithm, in a line."""
    order = interleaved(slots_of(cluster))[: new.wanted_workers]
    found = schedule([new], cluster)[new.id]
    for i, group in enumerate(sorted(new.groups) if order else []):
        assert found.executor_to_slot[group[0]] == order[i % len(order)]


@given(clusters, several(), st.randoms(use_true_random=False))
def test_the_order_of_what_is_given_does_not_matter(
    cluster: list[SupervisorDetails], new: list[TopologyDetails], random: Random
) -> None:
    found = schedule(new, cluster)
    later = [after(one, found) for one in new]
    for topologies_ in (new, later):
        expected = schedule(topologies_, cluster[1:])
        shuffled = []
        for one in topologies_:
            groups = list(one.groups)
            pairs = list(one.assigned.items())
            random.shuffle(groups)
            random.shuffle(pairs)
            shuffled.append(replace(one, groups=tuple(groups), assigned=dict(pairs)))
        supervisors = cluster[1:]
        random.shuffle(shuffled)
        random.shuffle(supervisors)
        assert schedule(shuffled, supervisors) == expected


@given(clusters, several())
def test_nothing_moves_if_nothing_changed(
    cluster: list[SupervisorDetails], new: list[TopologyDetails]
) -> None:
    found = schedule(new, cluster)
    assert schedule([after(one, found) for one in new], cluster) == found


@given(clusters, several(), st.data())
def test_a_dead_supervisor_moves_only_its_executors(
    cluster: list[SupervisorDetails], new: list[TopologyDetails], data: st.DataObject
) -> None:
    found = schedule(new, cluster)
    lost = data.draw(st.sampled_from(cluster))
    running = [
        replace(after(one, found), dead=frozenset(on(lost.id, found[one.id].executor_to_slot)))
        for one in new
    ]
    without = [supervisor for supervisor in cluster if supervisor is not lost]
    again = schedule(running, without)
    check(running, again)
    for one in running:
        for executor, place in one.assigned.items():
            if executor not in one.dead:
                assert again[one.id].executor_to_slot[executor] == place
        assert not on(lost.id, again[one.id].executor_to_slot)


@given(topologies(), st.integers(1, 8), st.data())
def test_another_number_of_workers_makes_it_even_with_the_fewest_moves(
    one: TopologyDetails, workers: int, data: st.DataObject
) -> None:
    plenty = [SupervisorDetails(id_, id_, frozenset(range(8))) for id_ in "abc"]
    slots = st.sampled_from(sorted(slots_of(plenty))[:6])
    before = {e: place for group in one.groups for place in [data.draw(slots)] for e in group}
    asked = replace(one, assigned=before, num_workers=workers)
    found = schedule([asked], plenty)[one.id]
    old, new = (sizes(one, mapping) for mapping in (before, found.executor_to_slot))
    moved = [g for g in one.groups if found.executor_to_slot[g[0]] != before[g[0]]]
    assert len(new) == asked.wanted_workers
    if len(new) == len(old):
        assert not moved
    else:
        assert new[0] - new[-1] <= 1
        # The most can stay if the fullest slots keep the largest shares.
        assert len(moved) == len(one.groups) - sum(map(min, old, new))


class Cluster(RuleBasedStateMachine):
    """Supervisors come and go, executors die, topologies are rebalanced, in any order."""

    @initialize(cluster=clusters, new=several())
    def begin(self, cluster: list[SupervisorDetails], new: list[TopologyDetails]) -> None:
        self.offered = {supervisor.id: supervisor for supervisor in cluster}
        self.there = dict(self.offered)
        self.topologies = {one.id: one for one in new}

    @rule(index=st.integers(0, 3))
    def supervisor_goes(self, index: int) -> None:
        self.there.pop("abcd"[index], None)

    @rule(index=st.integers(0, 3))
    def supervisor_comes(self, index: int) -> None:
        if (id_ := "abcd"[index]) in self.offered:
            self.there[id_] = self.offered[id_]

    @rule(index=st.integers(0, 2), workers=st.integers(1, 6))
    def other_workers(self, index: int, workers: int) -> None:
        one = self._one(index)
        self.topologies[one.id] = replace(one, num_workers=workers)

    @rule(index=st.integers(0, 2), parallelism=st.lists(st.integers(1, 5), min_size=4, max_size=4))
    def other_executors(self, index: int, parallelism: list[int]) -> None:
        one = self._one(index)
        num_tasks: Counter[str] = Counter()
        for group in one.groups:
            for executor in group:
                num_tasks[executor.component_id] += len(executor.tasks)
        executors = compute_executors(
            number_tasks(num_tasks), dict(zip(sorted(num_tasks), parallelism, strict=False))
        )
        self.topologies[one.id] = replace(one, groups=make_groups(executors))

    @rule(index=st.integers(0, 2), data=st.data())
    def executors_die(self, index: int, data: st.DataObject) -> None:
        one = self._one(index)
        if one.assigned:
            dead = data.draw(st.frozensets(st.sampled_from(sorted(one.assigned)), max_size=4))
            self.topologies[one.id] = replace(one, dead=dead)

    @rule()
    def nimbus_schedules(self) -> None:
        before = list(self.topologies.values())
        found = self._schedule()
        check(before, found)
        for one in before:
            self._check_that_the_living_go_on(one, found[one.id])
            assert not {one.assigned.get(e) for e in one.dead} & set(found[one.id].slots)
        self.topologies = {one.id: after(one, found) for one in before}

    @invariant()
    def it_comes_to_rest(self) -> None:
        """Two rounds, as what is dead is left alone for one; the third changes nothing."""
        first = self._schedule()
        second = self._schedule(first)
        assert self._schedule(second) == second

    def _one(self, index: int) -> TopologyDetails:
        every = sorted(self.topologies)
        return self.topologies[every[index % len(every)]]

    def _schedule(self, found: Found | None = None) -> Found:
        every = [after(t, found) if found else t for t in self.topologies.values()]
        return schedule(every, self.there.values())

    @staticmethod
    def _check_that_the_living_go_on(one: TopologyDetails, found: SchedulerAssignment) -> None:
        """Whoever has a slot, and a head that is as it was, has some slot afterwards."""
        bad = {one.assigned[executor] for executor in one.dead}
        for group in one.groups:
            if group[0] in one.assigned and one.assigned[group[0]] not in bad:
                assert group[0] in found.executor_to_slot


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=60, stateful_step_count=12)
