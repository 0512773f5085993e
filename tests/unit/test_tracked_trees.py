"""Whole tuple trees: what a spout hears of its message ids, whatever its tuples meet."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py import TopologyBuilder
from storm_py.core.roots import RandomBits
from tests.tree_parts import (
    NEAR,
    Accident,
    Basic,
    Feed,
    Step,
    accidents,
    chain,
    go_through,
    graphs,
    release_all,
)
from tests.world import START, World

MAX_PENDING = "topology.max.spout.pending"
TIMEOUT = "topology.message.timeout.secs"
ACKERS = "topology.acker.executors"


def check_answers(world: World, failed: Collection[int] = ()) -> None:
    """Each message id was answered exactly once, and nothing is left anywhere."""
    for feed in world.all(Feed):
        assert sorted(feed.failed) == sorted(failed)
        assert sorted([*feed.acked, *feed.failed]) == list(range(feed.n))
    assert world.open_trees == 0


# ---- every tree is finished --------------------------------------------------------------------


@settings(max_examples=50)
@given(graphs(), st.integers(1, 2), st.sampled_from([None, 1, 3]), st.sampled_from([1, 2, 256]))
def test_every_message_id_is_acked_exactly_once(
    builder: TopologyBuilder, workers: int, max_pending: int | None, batch_rows: int
) -> None:
    conf: dict[str, object] = {MAX_PENDING: max_pending, "storm_py.batch.rows": batch_rows}
    world = World(builder, conf, workers)
    release_all(world)
    check_answers(world)
    assert world.ended == {executor.id for executor in world.plan.executors}
    assert world.errors == []


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("last", ["join", "late", "batch"])
def test_branch_and_join(workers: int, last: str) -> None:
    builder = TopologyBuilder()
    builder.set_spout("feed", Feed(20))
    builder.set_bolt("left", Step(children=2)).shuffle_grouping("feed")
    builder.set_bolt("right", Step()).all_grouping("feed")
    join = builder.set_bolt("join", Step(last), 2)
    join.fields_grouping("left", "number").fields_grouping("right", "number")
    world = World(builder, workers=workers)
    release_all(world)
    check_answers(world)
    assert sum(len(step.seen) for step in world.all(Step)) == 20 + 20 + 60


@pytest.mark.parametrize("bad", [(), (3, 6)])
def test_streams_that_share_a_frame_keep_their_trees_apart(bad: tuple[int, ...]) -> None:
    builder = TopologyBuilder()
    builder.set_spout("feed", Feed(9))
    builder.set_bolt("two", Step("two", children=3)).shuffle_grouping("feed")
    last = builder.set_bolt("last", Step(bad=bad))
    last.shuffle_grouping("two").shuffle_grouping("two", "side")
    world = World(builder)
    world.run()
    check_answers(world, bad)


def test_a_tree_is_open_until_the_last_late_ack() -> None:
    world = World(chain(Feed(10), Step(), Step("late")))
    world.run()
    (feed,) = world.all(Feed)
    late = world.all(Step)[1]
    assert (feed.acked, world.open_trees) == ([], 10)
    for tup in reversed(late.held):
        late.collector.ack(tup)
        world.run()
        assert feed.acked[-1] == tup[0]
    check_answers(world)


# ---- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("near", NEAR)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("where", [1, 2])
def test_a_failure_anywhere_fails_its_tree_only(workers: int, where: int, near: str) -> None:
    bad = Step(bad=(3, 5))
    bolts = [bad, Step()] if where == 1 else [Step(children=2), bad]
    world = World(chain(Feed(10), *bolts, near=near), workers=workers)
    world.run()
    check_answers(world, {3, 5})


@pytest.mark.parametrize("near", NEAR)
@pytest.mark.parametrize("reported", [False, True])
def test_a_basic_bolt_fails_its_tuple_by_an_exception(reported: bool, near: str) -> None:
    world = World(chain(Feed(10), Basic((0, 4, 9), reported), Step(), near=near))
    world.run()
    check_answers(world, {0, 4, 9})
    assert len(world.all(Step)[0].seen) == 20
    assert len(world.errors) == (3 if reported else 0)


def shared_generator(name: str) -> RandomBits:
    """What must not be: the module's generator, which user code may seed."""
    return random


@pytest.mark.parametrize("generator", [random.Random, shared_generator])
def test_user_code_that_seeds_completes_no_tree_falsely(generator: Any) -> None:
    builder = TopologyBuilder()
    builder.set_spout("feed", Feed(5))
    builder.set_bolt("left", Step("seed")).shuffle_grouping("feed")
    builder.set_bolt("right", Step("seed")).shuffle_grouping("feed")
    builder.set_bolt("lost", Step()).shuffle_grouping("left").shuffle_grouping("right")
    state = random.getstate()
    try:
        world = World(builder, generator=generator)
        world.stopped.update(world.instances_of("lost"))
        world.run()
    finally:
        random.setstate(state)
    (feed,) = world.all(Feed)
    # "lost" has executed nothing, so no tree is complete. With one generator for all, both bolts
    # draw the same edge after seeding, and the two cancel.
    falsely = generator is shared_generator
    assert feed.acked == (list(range(5)) if falsely else [])
    assert world.open_trees == (0 if falsely else 5)


# ---- deaths ------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("multi", [False, True])
def test_an_instance_that_dies_fails_exactly_the_trees_it_had_not_finished(
    workers: int, multi: bool
) -> None:
    """Also those of the spout on the other worker, and those whose row has several roots."""
    bolts = [Step("batch"), Step()] if multi else [Step()]
    world = World(chain(Feed(12), *bolts, tasks=2), workers=workers)
    dying = world.instances_of(f"b{len(bolts)}")[1]
    world.stopped.add(dying)
    if multi:
        world.run()
        for step in world.all(Step):
            step.release()
    world.run()
    (task,) = world.plan.executor(dying).tasks
    feeds = world.all(Feed)
    assert {e.worker for e in world.plan.executors} == set(range(workers))
    assert world.open_trees > 0
    assert all(feed.failed == [] for feed in feeds)
    acked = [list(feed.acked) for feed in feeds]
    world.kill_instance(dying)
    world.run()
    for feed, before in zip(feeds, acked, strict=True):
        assert feed.acked == before
        lost = [n for n in range(12) if n not in before]
        assert feed.failed == lost
        if not multi:
            assert lost == [n for n in range(12) if feed.dests[n] == (task,)]
    assert any(feed.failed for feed in feeds)
    assert world.open_trees == 0
    world.start_instance(dying)
    world.run()
    assert world.ended == {executor.id for executor in world.plan.executors}


def test_what_waits_for_a_dead_instance_is_not_failed_but_delivered_to_its_successor() -> None:
    world = World(chain(Feed(1000), Step()), {"storm_py.batch.rows": 7})
    (sink,) = world.instances_of("b1")
    for _ in range(6):  # some frames are finished and credited
        world.round()
    world.stopped.add(sink)
    world.run()
    (feed,) = world.all(Feed)
    (step,) = world.all(Step)
    (queue,) = (q for q in world.managers[0].statistics().queues.values() if q.backlog_rows)
    assert feed.acked == step.seen
    assert len(feed.acked) > 7
    assert queue.outstanding_rows > 7
    assert feed.next == len(feed.acked) + queue.outstanding_rows + queue.backlog_rows
    world.kill_instance(sink)
    world.settle()
    lost = range(len(feed.acked), len(feed.acked) + queue.outstanding_rows)
    assert feed.failed == list(lost)
    world.start_instance(sink)
    world.run()
    assert feed.failed == list(lost)
    assert sorted([*feed.acked, *lost]) == list(range(1000))
    assert world.open_trees == 0


@settings(max_examples=60)
@given(
    accidents,
    st.sampled_from(["", "late", "batch"]),
    st.sampled_from([1, 3, 256]),
    st.sampled_from(NEAR),
)
def test_deaths_at_any_moment_give_one_answer_each_and_no_false_ack(
    events: list[Accident], mode: str, batch_rows: int, near: str
) -> None:
    builder = chain(Feed(40), Step(mode, children=2), Step("end"), tasks=2, near=near)
    world = World(builder, {"storm_py.batch.rows": batch_rows, TIMEOUT: 10, MAX_PENDING: 15}, 2)
    go_through(world, events)
    for feed in world.all(Feed):
        assert sorted([*feed.acked, *feed.failed]) == list(range(40))
    # A number that was acked went all the way.
    ends = [step for step in world.ever if isinstance(step, Step) and step.mode == "end"]
    arrived = [number for step in ends for number in step.seen]
    if mode != "batch":
        for feed in world.all(Feed):
            assert all(arrived.count(feed.base + number) >= 2 for number in feed.acked)
    assert world.open_trees == 0


@pytest.mark.parametrize("near", ["", "b2"])
def test_replay_finishes_what_deaths_interrupted(near: str) -> None:
    world = World(chain(Feed(200, replay=True), Step(), Step(), tasks=2, near=near), workers=2)
    chaos = random.Random(3)
    for _ in range(8):
        for _ in range(chaos.randrange(3)):
            world.round()
        victim = chaos.choice([*world.instances_of("b1"), *world.instances_of("b2")])
        world.kill_instance(victim)
        world.round()
        world.start_instance(victim)
        worker = chaos.choice(world.plan.workers)
        world.kill_manager(worker)
        world.round()
        world.start_manager(worker)
    for _ in range(5):  # acks that died with an instance are found by the timeout alone
        world.run()
        world.advance(30)
    for feed in world.all(Feed):
        assert sorted(feed.acked) == list(range(200))
    assert world.open_trees == 0


@pytest.mark.parametrize("near", ["", "b1"])
def test_a_dying_stream_manager_fails_all_open_trees(near: str) -> None:
    world = World(chain(Feed(10), Step("late"), tasks=2, near=near), workers=2)
    world.run()
    steps = world.all(Step)
    for step in steps:
        step.collector.ack(step.held.pop())
    world.run()
    feeds = world.all(Feed)
    acked = [list(feed.acked) for feed in feeds]
    assert sum(map(len, acked)) == 2
    world.kill_manager(1)
    world.run()
    for feed, before in zip(feeds, acked, strict=True):
        assert feed.acked == before
        assert sorted([*before, *feed.failed]) == list(range(10))
    world.start_manager(1)
    release_all(world)  # acks of trees that failed are nobody's news
    assert [feed.acked for feed in feeds] == acked
    assert all(len(feed.failed) == 10 - len(feed.acked) for feed in feeds)


# ---- bounds and time ---------------------------------------------------------------------------


@pytest.mark.parametrize("near", ["", "b1"])
@pytest.mark.parametrize("limit", [1, 7])
def test_max_spout_pending_bounds_what_is_pending(limit: int, near: str) -> None:
    world = World(chain(Feed(50), Step("late"), tasks=2, near=near), {MAX_PENDING: limit})
    world.run()
    assert [feed.next for feed in world.all(Feed)] == [limit, limit]
    release_all(world)
    check_answers(world)
    assert [feed.most for feed in world.all(Feed)] == [limit, limit]


@pytest.mark.parametrize("near", ["", "b1"])
def test_a_tuple_that_nobody_acks_fails_between_one_and_two_timeouts(near: str) -> None:
    world = World(chain(Feed(6), Step("late"), near=near), {TIMEOUT: 10, MAX_PENDING: 3})
    world.run()
    (feed,) = world.all(Feed)
    (late,) = world.all(Step)
    world.advance(4)
    late.collector.ack(late.held[0])
    world.run()  # number 3 is emitted at 4 s
    for now in (9, 10, 19):
        world.advance(START + now - world.now)
        assert feed.failed == []
    world.advance(1)  # at 20 s: what was emitted at 0 s and at 4 s
    assert feed.failed == [1, 2, 3]
    for tup in late.held[1:4]:
        late.collector.ack(tup)  # too late
    world.run()
    assert (feed.acked, feed.failed) == ([0], [1, 2, 3])
    assert feed.next == 6


def test_reset_timeout_renews_a_tree_at_its_spout() -> None:
    world = World(chain(Feed(2), Step("late")), {TIMEOUT: 10})
    world.run()
    (feed,) = world.all(Feed)
    (late,) = world.all(Step)
    for _ in range(5):
        late.collector.reset_timeout(late.held[1])
        world.run()
        world.advance(10)
    assert feed.failed == [0]
    late.collector.ack(late.held[1])
    world.run()
    assert feed.acked == [1]


def test_the_end_comes_when_nothing_is_pending() -> None:
    world = World(chain(Feed(3), Step("late"), Step()))
    world.run()
    late, last = world.all(Step)
    for tup in late.held:
        assert not late.ended
        assert world.ended == set()
        late.collector.ack(tup)
        world.run()
    assert late.ended
    assert last.ended
    assert world.ended == {1, 2, 3}
    check_answers(world)


@pytest.mark.parametrize("workers", [1, 2])
def test_without_ackers_message_ids_are_acked_at_once_and_nothing_is_tracked(workers: int) -> None:
    builder = chain(Feed(20), Step("late", bad=(3,)), Basic((5,)))
    world = World(builder, {ACKERS: 0, MAX_PENDING: 1}, workers)
    world.stopped.update(world.instances_of("b1"))
    world.run()
    check_answers(world)
    world.stopped.clear()
    release_all(world)
    assert world.ended == {1, 2, 3}
    assert (world.tracked_frames, world.ack_frames) == (0, 0)


def test_what_has_no_message_id_travels_without_columns() -> None:
    world = World(chain(Feed(20, anonymous=True), Step(), Basic()))
    world.run()
    assert world.ended == {1, 2, 3}
    assert [len(step.seen) for step in world.all(Step)] == [20]
    assert (world.tracked_frames, world.ack_frames) == (0, 0)
