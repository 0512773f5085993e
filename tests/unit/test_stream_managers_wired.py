"""Two or three StreamManagerCores wired to each other: in every order links open, frames pass."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from storm_py.core.plan import PhysicalPlan
from storm_py.engine.links import Send
from storm_py.engine.stream_manager_core import StreamManagerCore
from storm_py.wire.control import Control, Credit, Grant, Pressure, Welcome
from tests.builders import (
    NO_LIMITS,
    Numbers,
    Rows,
    Said,
    bolt,
    control_message,
    data_message,
    frame_size,
    hello,
    in_words,
    plan_of,
    rows,
    spout,
)

Link = tuple[str, str, bool]


class Wires:
    """The stream managers of a plan, and instances that credit at once what they get.

    An instance speaks in session 1000 + its executor and is linked from the start.
    """

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self.managers = {
            f"s{worker}": StreamManagerCore(plan, worker, 1, Numbers(100 * (worker + 1)), NO_LIMITS)
            for worker in plan.workers
        }
        self.waiting: dict[Link, list[bytes]] = {}
        self.got: list[Rows] = []
        self.pressured: dict[int, set[int]] = {executor.id: set() for executor in plan.executors}
        self._seqs: dict[int, int] = {}
        self._credits: dict[int, tuple[int, int]] = {}
        for executor in plan.executors:
            peer = f"i{executor.id}"
            (greeting,) = self._of(executor.id).connect(peer)
            self._say(executor.id, hello(peer))
            self._say(executor.id, Welcome(in_words(False, greeting[2]).session))

    def _of(self, executor: int) -> StreamManagerCore:
        return self.managers[f"s{self.plan.executor(executor).worker}"]

    def _act(self, core: StreamManagerCore, sends: list[Send]) -> None:
        core.check()
        name = next(name for name, each in self.managers.items() if each is core)
        for data, peer, message in sends:
            if peer in self.managers:
                self.waiting.setdefault((name, peer, data), []).append(message)
            else:
                self._hear(int(peer[1:]), data, message)

    # ---- instances -----------------------------------------------------------------------------

    def _say(self, executor: int, record: Control) -> None:
        core = self._of(executor)
        self._act(core, core.on_control(control_message(1000 + executor, record), 0.0))

    def emit(self, executor: int, frame: Rows) -> None:
        """An instance sends a frame."""
        self._seqs[executor] = self._seqs.get(executor, 0) + 1
        core = self._of(executor)
        message = data_message(1000 + executor, self._seqs[executor], frame)
        self._act(core, core.on_data(message, 0.0))

    def _hear(self, executor: int, data: bool, message: bytes) -> None:
        words = in_words(data, message)
        if isinstance(words, Said):
            if isinstance(words.record, Pressure):
                told = self.pressured[executor]
                (told.add if words.record.on else told.discard)(words.record.task)
            elif isinstance(words.record, Grant):
                self.pressured[executor].discard(words.record.task)
            return
        for frame in words.frames:
            assert isinstance(frame, Rows)
            self.got.append(frame)
            done, nbytes = self._credits.get(frame.dest, (0, 0))
            self._credits[frame.dest] = done + len(frame.runs[0][1]), nbytes + frame_size(frame)
            self._say(executor, Credit(frame.dest, *self._credits[frame.dest]))

    # ---- between stream managers ---------------------------------------------------------------

    def connect(self, one: str, other: str) -> None:
        """One of them gets the order to connect to the other."""
        core = self.managers[one]
        self._act(core, core.connect(other))

    def deliver(self, link: Link, lose: bool = False) -> None:
        """The next message of a link arrives."""
        message = self.waiting[link].pop(0)
        if not self.waiting[link]:
            del self.waiting[link]
        if not lose:
            core = self.managers[link[1]]
            self._act(core, (core.on_data if link[2] else core.on_control)(message, 0.0))

    def deliver_all(self) -> None:
        """What is on its way arrives, and what comes of it."""
        while self.waiting:
            self.deliver(next(iter(self.waiting)))

    @property
    def linked(self) -> bool:
        """Whether every stream manager is linked to every other one."""
        return all(
            core.linked([peer for peer in self.managers if peer != name])
            for name, core in self.managers.items()
        )


def plan(workers: int) -> PhysicalPlan:
    """One task of count and one of words on each worker: tasks 1 to n and n + 1 to 2n."""
    return plan_of(
        spout("words", "word", tasks=workers),
        bolt("count", "words", tasks=workers),
        workers=workers,
    )


def every_run(actors: list[Callable[[Wires], None]]) -> Iterator[Wires]:
    """Every order of these steps, each once, and of the deliveries that they lead to."""
    todo: list[list[int | Link]] = [[]]
    while todo:
        path = todo.pop()
        wires, left = Wires(plan(2)), dict(enumerate(actors))
        for step in path:
            if isinstance(step, int):
                left.pop(step)(wires)
            else:
                wires.deliver(step)
        options: list[int | Link] = [*left, *wires.waiting]
        if options:
            todo += [[*path, option] for option in options]
        else:
            yield wires


def test_two_in_every_order() -> None:
    """Both are told to connect, and a frame is emitted: whatever comes first, it arrives."""
    frame = rows(3, 2, ["storm"])
    runs = 0
    for wires in every_run(
        [
            lambda wires: wires.connect("s0", "s1"),
            lambda wires: wires.connect("s1", "s0"),
            lambda wires: wires.emit(3, frame),
        ]
    ):
        runs += 1
        assert wires.linked
        assert wires.got == [frame]
        assert not any(wires.pressured.values())
    assert runs > 50


def test_two_that_lose_something_of_each_other_at_once() -> None:
    """What each says of it finds the other's session over: links open all the same, frames pass."""
    wires = Wires(plan(2))
    wires.connect("s0", "s1")
    wires.connect("s1", "s0")
    wires.deliver_all()
    there, back = ("s0", "s1", True), ("s1", "s0", True)
    for word in ("lost", "behind it"):
        wires.emit(3, rows(3, 2, [word]))
        wires.emit(4, rows(4, 1, [word]))
    wires.deliver(there, lose=True)
    wires.deliver(back, lose=True)
    wires.deliver(there)
    wires.deliver(back)
    wires.deliver_all()
    assert wires.got == []
    frames = [rows(3, 2, ["storm"]), rows(4, 1, ["storm"])]
    wires.emit(3, frames[0])
    wires.emit(4, frames[1])
    wires.deliver_all()
    assert wires.linked
    assert wires.got == frames
    assert not any(wires.pressured.values())


@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(2, 3), st.integers(0, 2**32), st.integers(0, 3))
def test_three_in_any_order_with_messages_lost(workers: int, seed: int, losses: int) -> None:
    """What is not lost arrives once and in order; afterwards links are open and nobody waits."""
    rng = random.Random(seed)
    wires = Wires(plan(workers))
    names = list(wires.managers)
    todo = [partial(wires.connect, a, b) for a in names for b in names if a != b]
    sent: dict[tuple[int, int], list[Rows]] = {}
    for n in range(40):
        src, dest = rng.randint(workers + 1, 2 * workers), rng.randint(1, workers)
        frame = rows(src, dest, *([n] * 1 for _ in range(rng.randint(1, 3))))
        sent.setdefault((src, dest), []).append(frame)
    lost = 0
    rest = {pair: list(content) for pair, content in sent.items()}
    rng.shuffle(todo)
    while todo or rest or wires.waiting:
        kind = rng.random()
        if todo and kind < 0.1:
            todo.pop()()
        elif rest and kind < 0.4:
            pair = rng.choice(list(rest))
            wires.emit(pair[0], rest[pair].pop(0))
            if not rest[pair]:
                del rest[pair]
        elif wires.waiting:
            link = rng.choice(list(wires.waiting))
            lose = lost < losses and link[2] and rng.random() < 0.2
            lost += lose
            wires.deliver(link, lose)
    for src in range(workers + 1, 2 * workers + 1):  # whoever lost something notices it now
        for dest in range(1, workers + 1):
            wires.emit(src, rows(src, dest, ["last"]))
    while wires.waiting:
        wires.deliver(rng.choice(list(wires.waiting)))
    assert wires.linked
    assert not any(wires.pressured.values())
    for pair, content in sent.items():
        got = [frame for frame in wires.got if (frame.src, frame.dest) == pair]
        whole = [*content, rows(*pair, ["last"])]
        remaining = iter(whole)
        assert all(frame in remaining for frame in got)
        assert got == whole or lost
