"""Tuple trees through batch bolts: spouts hear of them what they hear of other bolts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tree_parts import (
    BATCHED,
    NEAR,
    Accident,
    BatchStep,
    Feed,
    LateBatchStep,
    Step,
    accidents,
    chain,
    go_through,
    release_all,
    stopped_inside,
)
from tests.unit.test_tracked_trees import ACKERS, MAX_PENDING, TIMEOUT, check_answers
from tests.world import World

SERIALIZE = "topology.testing.always.try.serialize"


def a_bolt(mode: str, children: int = 1, bad: tuple[int, ...] = ()) -> BatchStep:
    return BATCHED[mode](mode, children, bad)


@pytest.mark.parametrize("mode", BATCHED)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("near", NEAR)
@pytest.mark.parametrize("serialize", [False, True])
def test_every_row_is_executed_and_every_tree_finished(
    mode: str, workers: int, near: str, serialize: bool
) -> None:
    builder = chain(Feed(100), a_bolt(mode, 2), a_bolt(mode), tasks=2, near=near)
    world = World(builder, {SERIALIZE: serialize}, workers)
    assert len(world.instances) == 6 - 2 * len(near.split())
    release_all(world)
    check_answers(world)
    seen = Counter(number for step in world.all(BatchStep) for number in step.seen)
    del seen[-1]  # the last words of those that were late
    assert seen == dict.fromkeys([*range(100), *range(1000, 1100)], 3)
    assert world.ended == {executor.id for executor in world.plan.executors}
    assert world.errors == []


def test_a_batch_is_all_rows_of_a_frame() -> None:
    world = World(chain(Feed(100), BatchStep()), {"storm_py.batch.rows": 8})
    world.run()
    [step] = world.all(BatchStep)
    assert step.seen == list(range(100))
    assert step.sizes == [8] * 12 + [4]
    assert step.ended


@pytest.mark.parametrize("kind", [BatchStep, LateBatchStep])
def test_a_failed_row_fails_its_tree_only(kind: type[BatchStep]) -> None:
    world = World(chain(Feed(10), kind("", bad=(3, 7)), Step()))
    release_all(world)
    check_answers(world, {3, 7})


def test_an_exception_fails_what_was_not_answered() -> None:
    world = World(chain(Feed(10), BatchStep("raises", bad=(3,)), Step()), {MAX_PENDING: 1})
    world.run()
    check_answers(world, {3})
    world = World(chain(Feed(10), BatchStep("raises", bad=(3,)), Step()))
    world.run()
    (feed,) = world.all(Feed)
    [step] = world.all(BatchStep)
    first = 0
    for size in step.sizes:
        batch = list(range(first, first + size))
        if 3 in batch:
            assert feed.failed == batch
        first += size


def test_a_row_that_fails_behind_a_whole_batch_fails_all_of_it() -> None:
    world = World(chain(Feed(10), BatchStep("whole"), Step(bad=(4,))))
    world.run()
    (feed,) = world.all(Feed)
    [step] = world.all(BatchStep)
    start = 0
    for size in step.sizes:
        if start <= 4 < start + size:
            assert sorted(feed.failed) == list(range(start, start + size))
        start += size
    assert sorted([*feed.acked, *feed.failed]) == list(range(10))


def test_rows_of_one_batch_may_be_acked_long_after_each_other() -> None:
    world = World(chain(Feed(6), LateBatchStep(), Step()))
    world.run()
    (feed,) = world.all(Feed)
    [late] = world.all(LateBatchStep)
    assert feed.acked == []
    expected = []
    for batch, rows in late.held:
        for row in reversed(rows):
            late.collector.ack(batch, row)
            world.run()
            expected.append(batch.rows[row][0])
            assert feed.acked == expected
    check_answers(world)


def test_reset_timeout_renews_the_trees_of_a_batch() -> None:
    world = World(chain(Feed(4), LateBatchStep()), {TIMEOUT: 10})
    world.run()
    (feed,) = world.all(Feed)
    [late] = world.all(LateBatchStep)
    (kept, _), *others = late.held
    for _ in range(5):
        late.collector.reset_timeout(kept)
        world.run()
        world.advance(10)
    lost = [number for batch, _ in others for (number,) in batch.rows]
    assert sorted(feed.failed) == lost
    late.collector.ack(kept)
    world.run()
    assert sorted(feed.acked) == [number for (number,) in kept.rows]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("near", NEAR)
def test_without_ackers_nothing_is_tracked(workers: int, near: str) -> None:
    builder = chain(Feed(20), LateBatchStep(bad=(3,)), BatchStep("whole"), near=near)
    world = World(builder, {ACKERS: 0}, workers)
    release_all(world)
    check_answers(world)
    assert (world.tracked_frames, world.ack_frames) == (0, 0)
    assert world.ended == {1, 2, 3}


@pytest.mark.parametrize("batch_rows", [1, 7, 256])
@pytest.mark.parametrize("mode", ["rows", "whole"])
def test_a_chain_that_dies_fails_what_was_inside_of_it_at_once(mode: str, batch_rows: int) -> None:
    builder = chain(Feed(30), a_bolt(mode, 200), a_bolt(mode), Step(), near="b2")
    world = World(builder, {"storm_py.batch.rows": batch_rows})
    dying = stopped_inside(world, "b2")
    world.kill_instance(dying)
    world.stopped.clear()
    world.run()
    (feed,) = world.all(Feed)
    assert feed.failed != []
    world.start_instance(dying)
    world.run()
    check_answers(world, feed.failed)


@settings(max_examples=80)
@given(
    accidents,
    st.sampled_from(sorted(BATCHED)),
    st.sampled_from(["", *sorted(BATCHED)]),
    st.sampled_from([1, 3, 256]),
    st.sampled_from(NEAR),
)
def test_deaths_at_any_moment_give_one_answer_each_and_no_false_ack(
    events: list[Accident], mode: str, end: str, batch_rows: int, near: str
) -> None:
    ending = a_bolt(end, 0) if end else Step("end")
    builder = chain(Feed(40), a_bolt(mode, 2), ending, tasks=2, near=near)
    world = World(builder, {"storm_py.batch.rows": batch_rows, TIMEOUT: 10, MAX_PENDING: 15}, 2)
    go_through(world, events)
    ends = [
        step for step in world.ever if isinstance(step, (Step, BatchStep)) and step.children != 2
    ]
    arrived = [number for step in ends for number in step.seen]
    for feed in world.all(Feed):
        assert sorted([*feed.acked, *feed.failed]) == list(range(40))
        assert all(arrived.count(feed.base + number) >= 2 for number in feed.acked)
    assert world.open_trees == 0
