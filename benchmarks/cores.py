"""A micro-benchmark per hot core: what each costs, without sockets and without other processes.

Two views. `steps` times the small cores alone, in nanoseconds per row, tree or frame. `shares` runs
the whole word count on the real cores in one thread, over `storm_py.single`, and says how many
microseconds per word each of them took, user code included. Prints one line of JSON::

    python -m benchmarks.cores --sentences 20000

Unlike the other benchmarks this one looks inside: a layer of its own in tests/test_layers.py.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

from benchmarks.figures import rounded, spread
from benchmarks.measuring import last_object
from benchmarks.sentences import topology
from benchmarks.text import SENTENCES
from storm_py.api.spec import apply_limits
from storm_py.config import Config, configuration
from storm_py.core.acker import AckTracker
from storm_py.core.batching import Batcher
from storm_py.core.keys import PLAIN as PLAIN_KEYS
from storm_py.core.pending import PendingTuples
from storm_py.core.pressure import Limits, TaskQueue
from storm_py.single import SingleWorker
from storm_py.wire.frames import Tracking, decode_data, encode_data, frames, message_header
from storm_py.wire.values import PLAIN as PLAIN_CODEC

ROWS = 1024
REPEATS = 7
LEAST_SECS = 0.05
"""Shortest time that a step is repeated for, each time."""


class Stopwatch:
    """Time by name, each without what was called from it under another name."""

    def __init__(self) -> None:
        self.secs: dict[str, float] = {}
        self._running: list[str] = []
        self._since = 0.0

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed under this name."""

        def call(*args: Any) -> Any:
            self._switch(name)
            try:
                return function(*args)
            finally:
                self._switch(None)

        return call

    def _switch(self, name: str | None) -> None:
        now = time.perf_counter()
        if self._running:
            running = self._running[-1]
            self.secs[running] = self.secs.get(running, 0.0) + now - self._since
        if name is None:
            self._running.pop()
        else:
            self._running.append(name)
        self._since = time.perf_counter()


def shares(sentences: int, acks: bool) -> dict[str, float]:
    """Microseconds per word that each component and the stream manager took."""
    settings: dict[str, object] = {Config.TOPOLOGY_NAME: "cores"}
    if acks:
        settings[Config.TOPOLOGY_MAX_SPOUT_PENDING] = 20_000
    else:
        settings[Config.TOPOLOGY_ACKER_EXECUTORS] = 0
    conf = configuration(None, settings)
    args = [str(sentences), *(["--acked"] if acks else [])]
    limited = apply_limits(topology(args).create_topology(), conf)
    worker = SingleWorker(
        "cores-1-1",
        limited,
        conf,
        time.monotonic,
        time.time,
        lambda name: random.Random(name),
        lambda error: sys.exit(f"{error.component} failed: {error.message}"),
        lambda text: None,
    )
    watch = Stopwatch()
    for core in worker.cores.values():
        name = " + ".join(dict.fromkeys(task.component_id for task in core.tasks))
        for method in ("spin", "work", "tick", "on_data"):
            setattr(core, method, watch.timed(name, getattr(core, method)))
    vars(worker)["settle"] = watch.timed("stream manager", worker.settle)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        worker.open()
        worker.link()
        worker.activate()
        while not worker.done:
            worker.round(time.monotonic())
        worker.close()
    figures = last_object(output.getvalue())
    if figures is None:
        sys.exit(f"the topology printed no figures: {output.getvalue()!r}")
    return {name: secs / figures["words"] * 1e6 for name, secs in watch.secs.items()}


def per_item(step: Callable[[], object], items: int) -> float:
    """Nanoseconds per item: the best of some repeats, each of which is long enough to be timed."""
    timer = timeit.Timer(step)
    number = 1
    while timer.timeit(number) < LEAST_SECS:
        number *= 2
    return rounded(min(timer.repeat(REPEATS, number)) / number / items * 1e9)


def steps() -> dict[str, float]:
    """Nanoseconds per row, tree or frame of the small cores."""
    words = [word for sentence in SENTENCES for word in sentence.split()]
    rows = [[words[i % len(words)], 1] for i in range(ROWS)]
    pack = PLAIN_CODEC.packer()
    packed = [pack(row) for row in rows]
    rng = random.Random(1)
    roots = [rng.getrandbits(62) for _ in range(ROWS)]
    edges = [rng.getrandbits(62) for _ in range(ROWS)]
    runs = [(0, ROWS)]
    leaves = [[rng.getrandbits(62) for _ in range(ROWS)] for _ in range(3)]
    split = [a ^ b ^ c ^ d for a, b, c, d in zip(edges, *leaves, strict=True)]
    tree = [edges, split, *leaves]

    def framed(tracking: Tracking | None) -> bytes:
        return b"".join(encode_data(1, 1, 2, 0, runs, packed, tracking))

    plain = message_header(1, 1) + framed(None)
    tracked = message_header(1, 1) + framed(Tracking(roots, edges))
    keys = [[word] for word in words]
    return {
        "values: pack a row": per_item(lambda: [pack(row) for row in rows], ROWS),
        "values: unpack a row": per_item(lambda: unpack(plain), ROWS),
        "values: unpack a tracked row": per_item(lambda: unpack(tracked), ROWS),
        "frames: encode, per row": per_item(lambda: framed(None), ROWS),
        "frames: encode tracked, per row": per_item(lambda: framed(Tracking(roots, edges)), ROWS),
        "keys: hash of a word": per_item(lambda: [PLAIN_KEYS.hash(key) for key in keys], len(keys)),
        "batching: add and take, per row": per_item(lambda: batch(packed), ROWS),
        "acker: a tree of one init and four acks": per_item(lambda: track(roots, tree), ROWS),
        "pending: emit and answer a tree": per_item(lambda: answer(roots), ROWS),
        "pressure: offer and credit a frame": per_item(lambda: queue(plain), 100),
    }


def unpack(message: bytes) -> None:
    """What a bolt does with a message before its rows are tuples."""
    for frame in frames(message):
        PLAIN_CODEC.unpack_rows(decode_data(message, frame)[1])


def batch(packed: list[bytes]) -> None:
    """Fill a batch and close it."""
    batcher = Batcher([2], ROWS, 1 << 16)
    for row in packed:
        batcher.add(2, 0, row)
    batcher.batch(2).take()


def track(roots: list[int], tree: list[list[int]]) -> None:
    """As many trees as roots: an init, the ack of a split into three, and their acks."""
    tracker = AckTracker()
    tracker.inits(roots, tree[0])
    for values in tree[1:]:
        complete = tracker.acks(roots, values)
    assert complete == roots


def answer(roots: list[int]) -> None:
    """Emit with message ids, hear of all."""
    pending = PendingTuples(None, 30.0, 0.0)
    for i, root in enumerate(roots):
        pending.emitted(root, i)
    assert len(pending.answered(roots)) == len(roots)


def queue(frame: bytes) -> None:
    """A hundred frames to one task, each credited before the next."""
    task = TaskQueue(Limits(0.5, 1 << 20, 0.5, ROWS))
    task.connect(0.0)
    for i in range(1, 101):
        task.offer(frame, ROWS, i / 1000)
        task.credit(i * ROWS, i * len(frame), i / 1000 + 0.0005)


def main() -> None:
    """Time them and print what they took."""
    parser = argparse.ArgumentParser(description="Costs of the hot cores.")
    parser.add_argument("--sentences", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=5, help="runs of the whole word count")
    options = parser.parse_args()
    us_word: dict[str, Any] = {}
    for acks in (False, True):
        runs = [shares(options.sentences, acks) for _ in range(options.repeats)]
        mode = f"acks {'on' if acks else 'off'}"
        us_word[mode] = {name: spread([run[name] for run in runs]) for name in runs[0]}
    print(json.dumps({"us_word": us_word, "ns": steps()}))


if __name__ == "__main__":
    main()
