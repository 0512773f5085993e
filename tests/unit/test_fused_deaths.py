"""A fused chain that dies takes nothing with it that its stream manager does not hear of.

And the rules that this rests on: without any one of them some test here fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storm_py import Tuple
from storm_py.engine.acking import Acks
from storm_py.engine.intake import Intake
from storm_py.engine.outflow import Outflow
from tests.tree_parts import Feed, Step, chain
from tests.world import World

_flush = Outflow.flush
_feed = Intake.feed


class Slow(Step):
    """Each tuple takes so long that a flush is due behind it, and the instance looks about."""

    world: World | None = None

    def execute(self, tup: Tuple) -> None:
        if self.world is not None:
            self.world.now += 0.002
        super().execute(tup)


def dies_after(rounds: int, batch_rows: int, children: int = 9) -> tuple[World, bool]:
    """A chain dies, and another comes up; no time passes that a timeout could see.

    Also whether rows were on their way inside of it.
    """
    builder = chain(Feed(50), Step(children=children), Slow(), Step(), near="b2")
    world = World(builder, {"storm_py.batch.rows": batch_rows})
    (dying,) = world.instances_of("b2")
    (slow,) = world.all(Slow)
    slow.world = world
    for _ in range(rounds):
        world.round()
    inside = world.instances[dying].statistics("b2").queued > 0
    world.kill_instance(dying)
    world.start_instance(dying)
    world.run()
    return world, inside


def check_dying(batch_rows: int) -> None:
    """Whenever it dies, each message id is answered at once: acked or failed, and only once."""
    found = []
    for rounds in range(1, 20):
        world, inside = dies_after(rounds, batch_rows)
        found.append(inside)
        (feed,) = world.all(Feed)
        assert sorted([*feed.acked, *feed.failed]) == list(range(50))
        assert world.open_trees == 0
    assert found.count(True) > 5


def check_living() -> None:
    """Nothing dies: everything arrives in order, and is acked."""
    world = World(chain(Feed(40), Step(children=3), Step(), Step(), near="b1 b2 b3"))
    world.run()
    (feed,) = world.all(Feed)
    assert sorted(feed.acked) == list(range(40))
    assert world.all(Step)[2].seen == [number for number in range(40) for _ in range(3)]


@pytest.mark.parametrize("batch_rows", [1, 7, 256])
def test_what_was_inside_of_it_fails_at_once(batch_rows: int) -> None:
    """It had come in, and nothing of it was credited: nobody has to wait for a timeout."""
    check_dying(batch_rows)


def test_without_a_death_everything_is_acked() -> None:
    check_living()


# ---- mutations ---------------------------------------------------------------------------------


def credits_at_once(patch: pytest.MonkeyPatch) -> None:
    """Input is credited though rows of it are still in the chain."""

    def flush(self: Any, final: bool = False) -> None:
        _flush(self, final)
        self._credit(final=True)

    patch.setattr(Outflow, "flush", flush)


def settling_without_values(patch: pytest.MonkeyPatch) -> None:
    """An ack in the flush of its root's init is dropped."""

    def settle(self: Any) -> None:
        for root in self.init_roots:
            self.acks.pop(root, None)

    patch.setattr(Acks, "_settle", settle)


def newest_first(patch: pytest.MonkeyPatch) -> None:
    """The beginning of the chain goes first, and what was handed over last ahead of the rest."""

    class Stack(list[Any]):
        def append(self, item: Any) -> None:
            self.insert(0, item)

        def popleft(self) -> Any:
            return self.pop(0)

    def feed(self: Any, tasks: Any) -> None:
        _feed(self, tasks)
        self._local = {task: Stack() for task in tasks}

    patch.setattr(Intake, "feed", feed)


def edges_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Rows are handed over without what tracks them."""
    hand_over = Intake.hand_over

    def untracked(self: Any, task: Any, src: int, runs: Any, rows: Any, tracked: Any) -> None:
        hand_over(self, task, src, runs, rows, None)

    patch.setattr(Intake, "hand_over", untracked)


@pytest.mark.parametrize(
    ("mutate", "check"),
    [
        (credits_at_once, lambda: check_dying(7)),
        (settling_without_values, check_living),
        (newest_first, check_living),
        (edges_forgotten, check_living),
    ],
)
def test_a_rule_that_is_taken_away_is_missed(
    mutate: Callable[[pytest.MonkeyPatch], None],
    check: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        mutate(patch)
        with pytest.raises(AssertionError):
            check()
    check()
