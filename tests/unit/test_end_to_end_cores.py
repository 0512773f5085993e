"""Whole topologies of real cores: everything arrives once and in order, however links delay."""

from __future__ import annotations

import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from storm_py.core.plan import PhysicalPlan
from tests.builders import ALL, DIRECT, GLOBAL, SHUFFLE, bolt, by, plan_of, spout
from tests.cluster import Cluster, Traffic

seeds = st.integers(0, 2**32)


def random_plan(rng: random.Random) -> PhysicalPlan:
    """One or two spouts and up to three bolts, each hearing some of those before it."""
    components = []
    names: list[str] = []
    for number in range(rng.randint(2, 5)):
        tasks = rng.randint(1, 3)
        shape = (tasks, rng.randint(1, tasks))
        streams = rng.choice(["n key", "n key; side: n key", "side: n key; picked!: n key"])
        name = rng.choice("abc") + str(number)  # so that tasks are numbered in any order
        if number == 0 or (number == 1 and rng.random() < 0.5):
            components.append(spout(name, streams, *shape))
        else:
            inputs = {}
            heard = rng.sample(names, rng.randint(1, min(2, len(names))))
            for before in components:
                for stream, info in before.streams.items():
                    if before.id in heard:
                        regular = [SHUFFLE, ALL, GLOBAL, by("key"), by("key", "n")]
                        grouping = DIRECT if info.direct else rng.choice(regular)
                        inputs[f"{before.id}:{stream}"] = grouping
            streams = rng.choice([streams, ""])
            components.append(bolt(name, inputs, streams, *shape))
        names += [name] if streams else []
    return plan_of(
        *components,
        workers=rng.randint(1, 3),
        batch_rows=rng.choice([1, 4, 64]),
        batch_bytes=rng.choice([64, 65536]),
        backpressure_high_bytes=rng.choice([1024, 1 << 20]),
    )


def random_cluster(seed: int, tuples: int) -> Cluster:
    """A random plan, with bolts of different speed; the seed is the whole run."""
    rng = random.Random(seed)
    plan = random_plan(rng)
    secs = {id: rng.choice([1e-5, 1e-5, 1e-3]) for id in plan.topology.components}
    return Cluster(plan, seed, tuples, secs)


def shown(traffic: Traffic) -> Traffic:
    return {pair: content for pair, content in sorted(traffic.items()) if content}


def is_subsequence(part: list[object], whole: list[object]) -> bool:
    remaining = iter(whole)
    return all(item in remaining for item in part)


# A seed cannot be made smaller: it is the whole run, and reproduces it.
UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]


@settings(max_examples=40, phases=UNSHRUNK)
@given(seeds, st.sampled_from([0, 1, 30, 120]))
def test_every_tuple_arrives_once_and_in_order_and_the_end_reaches_all(
    seed: int, tuples: int
) -> None:
    cluster = random_cluster(seed, tuples)
    cluster.run()
    ledger = cluster.ledger
    assert shown(ledger.received) == shown(ledger.emitted)
    bolts = [
        task
        for task, component in cluster.plan.task_to_component.items()
        if cluster.plan.topology.components[component].kind == "bolt"
    ]
    assert sorted(ledger.ends) == bolts
    for manager in cluster.managers.values():
        found = manager.statistics()
        assert (found.refused, found.unroutable, found.lost_rows) == (0, 0, 0)
        for queue in found.queues.values():
            assert (queue.backlog_rows, queue.backlog_bytes, queue.pressured) == (0, 0, False)
    for instance in cluster.instances.values():
        assert not instance.paused
        assert instance.statistics().queued == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_slow_consumer_bounds_what_waits_for_it(workers: int) -> None:
    plan = plan_of(
        spout("source", "n key", tasks=2),
        bolt("fast", "source", "n key"),
        bolt("slow", "fast"),
        bolt("aside", "source"),
        workers=workers,
        batch_rows=16,
    )
    cluster = Cluster(plan, seed=7, tuples=4000, secs={"slow": 0.001})
    (slow,) = plan.tasks_of("slow")
    cluster.watched = slow
    cluster.run(steps=1_000_000)
    assert shown(cluster.ledger.received) == shown(cluster.ledger.emitted)
    arrived = sum(len(each) for (_, dest), each in cluster.ledger.received.items() if dest == slow)
    assert arrived > 6000
    # 0.5 s of its work in its window, as much in the backlog, and what was on its way meanwhile
    assert 500 < cluster.most_rows < 2500


@settings(max_examples=20, phases=UNSHRUNK)
@given(seeds, st.lists(st.sampled_from(["lose", "instance", "manager"]), min_size=1, max_size=3))
def test_after_accidents_nothing_is_doubled_reordered_or_stuck(
    seed: int, accidents: list[str]
) -> None:
    cluster = random_cluster(seed, tuples=80)
    rng = cluster.rng
    for accident in accidents:
        for _ in range(rng.randint(0, 600)):
            cluster.step()
        if accident == "lose":
            cluster.lose_a_message()
        else:
            names = cluster.managers if accident == "manager" else cluster.instances
            cluster.restart(rng.choice(sorted(names)))
            cluster.new_wave()
    cluster.run(rewave=3000)  # as the parent does, in case that markers were lost
    ledger = cluster.ledger
    for pair, content in ledger.received.items():
        assert is_subsequence(list(content), list(ledger.emitted[pair]))
    for instance in cluster.instances.values():
        assert not instance.paused
