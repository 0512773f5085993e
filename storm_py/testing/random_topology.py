"""Random topologies: what a `Simulation` runs when it is given nothing else.

Up to two spouts and four bolts (`storm_py.testing.random_components` and `random_batches`), linked
in any acyclic way by any grouping, some on several streams, some with ticks, some with metrics. In
some of them bolts join their source, by local_or_shuffle and with as many tasks: those run fused.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from storm_py.api.component import Bolt
from storm_py.api.declarers import BoltDeclarer
from storm_py.api.topology import TopologyBuilder
from storm_py.config import Config

from .random_batches import RandomBatchBolt
from .random_components import (
    Later,
    Manners,
    NoConsumer,
    RandomBasicBolt,
    RandomBolt,
    RandomGrouping,
    RandomSpout,
    Source,
)

#: How many of the topologies have bolts that join their source.
SHARE_FUSED: Final = 0.3


def random_topology(
    rng: random.Random, later: Later
) -> tuple[TopologyBuilder, dict[str, Any], dict[str, float]]:
    """A topology, its configuration, and the seconds that each component takes for a tuple."""
    builder = TopologyBuilder()
    prefix = f"{rng.getrandbits(32):x}"
    fusing = random.Random(prefix)
    most_join = fusing.random() < SHARE_FUSED
    streams_of: dict[str, Mapping[str, bool]] = {}
    sizes: dict[str, tuple[int, int]] = {}  # executors and tasks
    conf = _random_conf(rng)
    # What is held is acked when more arrives, which a small bound may not let happen; what is
    # dropped keeps its place until it fails for its time, one after the other.
    may_hold = conf[Config.TOPOLOGY_MAX_SPOUT_PENDING] not in (1, 5)
    row_secs: dict[str, float] = {}
    shapes: list[dict[str, bool]] = [
        {"default": False},
        {"default": False, "side": False},
        {"side": False, "picked": True},
    ]
    spouts = rng.choice([1, 1, 2])
    for i in range(spouts + rng.randint(1, 4)):
        name = rng.choice("abc") + str(i)  # so that tasks are numbered in any order
        tasks = rng.randint(1, 3)
        streams = rng.choice(shapes)
        row_secs[name] = rng.choice([1e-5, 1e-5, 1e-4, 1e-3])
        if i < spouts:
            source = Source(
                rng.choice([0, 5, 20, 40, 80]),
                tracked=rng.random() < 0.85,
                pushed=rng.choice([0, 0, 0.2]),
            )
            spout = RandomSpout(f"{prefix} {name}", source, streams, later)
            sizes[name] = rng.randint(1, min(tasks, 2)), tasks
            builder.set_spout(name, spout, sizes[name][0]).set_num_tasks(tasks)
        else:
            last = rng.random() < 0.3
            made = {} if last else streams
            bolt = _random_bolt(rng, f"{prefix} {name}", made, may_hold, later)
            sizes[name] = rng.randint(1, tasks), tasks
            joined = fusing.choice(list(streams_of)) if fusing.random() < most_join * 0.8 else ""
            if joined:
                sizes[name] = sizes[joined]
            executors, tasks = sizes[name]
            declarer = builder.set_bolt(name, bolt, executors).set_num_tasks(tasks)
            if rng.random() < 0.25:
                secs = rng.choice([0.2, 1, 5])
                declarer.add_configuration(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, secs)
            if joined:
                _join(declarer, joined, streams_of[joined])
            else:
                heard = rng.sample(list(streams_of), rng.randint(1, min(2, len(streams_of))))
                for before in heard:
                    _subscribe(rng, declarer, before, streams_of[before])
            if last:
                continue
        streams_of[name] = streams
    return builder, conf, row_secs


def _random_bolt(
    rng: random.Random, name: str, streams: Mapping[str, bool], may_hold: bool, later: Later
) -> Bolt:
    manners = Manners(
        fail=rng.choice([0, 0, 0.02, 0.1]),
        drop=rng.choice([0, 0, 0.01]) if may_hold else 0,
        hold=rng.choice([0, 0, 0.1, 0.5]) if may_hold else 0,
        error=rng.choice([0, 0, 0, 0.005]),
        later=rng.choice([0, 0, 0.1, 0.5]),
        children=rng.choice([(1,), (0, 1, 1), (0, 1, 1, 2)]),
    )
    match rng.choice(["rich", "rich", "basic", "batch", "batch"]):
        case "basic":
            return RandomBasicBolt(name, manners, streams)
        case "batch":
            return RandomBatchBolt(name, manners, streams, later)
        case _:
            return RandomBolt(name, manners, streams, later)


def _join(declarer: BoltDeclarer, source: str, streams: Mapping[str, bool]) -> None:
    for stream, direct in streams.items():
        if not direct:
            declarer.local_or_shuffle_grouping(source, stream)


def _subscribe(
    rng: random.Random, declarer: BoltDeclarer, source: str, streams: Mapping[str, bool]
) -> None:
    for stream, direct in streams.items():
        if direct:
            declarer.direct_grouping(source, stream)
            continue
        key = rng.choice([["key"], ["key", "message"]])
        match rng.choice(["shuffle", "fields", "fields", "all", "global", "near", "two", "own"]):
            case "shuffle":
                declarer.shuffle_grouping(source, stream)
            case "near":
                declarer.local_or_shuffle_grouping(source, stream)
            case "two":
                declarer.partial_key_grouping(source, key, stream)
            case "own":
                declarer.custom_grouping(source, RandomGrouping(source), stream)
            case "fields":
                declarer.fields_grouping(source, key, stream)
            case "all":
                declarer.all_grouping(source, stream)
            case "global":
                declarer.global_grouping(source, stream)


def _random_conf(rng: random.Random) -> dict[str, Any]:
    conf = Config()
    if rng.random() < 0.15:
        conf.register_metrics_consumer(NoConsumer, parallelism_hint=rng.randint(1, 2))
    return {
        **conf,
        Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: rng.choice([5, 10, 30]),
        Config.TOPOLOGY_MAX_SPOUT_PENDING: rng.choice([None, None, 1, 5, 50]),
        Config.TOPOLOGY_ACKER_EXECUTORS: rng.choice([None] * 9 + [0]),
        Config.STORM_PY_BATCH_ROWS: rng.choice([1, 4, 64, 256]),
        Config.STORM_PY_BATCH_BYTES: rng.choice([64, 65536]),
        Config.STORM_PY_BACKPRESSURE_HIGH_BYTES: rng.choice([1024, 1 << 20]),
        Config.STORM_PY_BACKPRESSURE_WINDOW_SECS: rng.choice([0.02, 0.5]),
    }
