"""A loss between two stream managers: what fails at once, and what is left to the timeout."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from storm_py.core.roots import Roots
from storm_py.wire.acks import AckRecords, encode_acks
from storm_py.wire.control import FailPending, LinkBroken
from storm_py.wire.frames import message_header
from tests.builders import Numbers, Sent, bolt, plan_of, spout
from tests.manager import Manager, said

#: words is task 4 of i4 on worker 0, 5 of i5 on worker 1, 6 of i6 on worker 2
THREE_WORKERS = plan_of(spout("words", "word", tasks=3), bolt("count", "words", tasks=3), workers=3)
Loss: TypeAlias = Callable[[Manager], list[Sent]]


def with_an_open_tree() -> Manager:
    """Worker 0, linked to its spout (11 in) and to the others (71 and 72 in)."""
    manager = Manager(THREE_WORKERS)
    for peer, theirs, ours in (("i4", 11, 101), ("s1", 71, 102), ("s2", 72, 103)):
        manager.link(peer, theirs, ours)
    root = Roots(4, Numbers()).next()
    record = encode_acks(1, 4, 4, 7, AckRecords(init_roots=[root], init_values=[5]))
    assert manager.core.on_data(message_header(11, 1) + record, 0.0) == []
    assert manager.core.statistics().acks.open == 1
    return manager


def they_lost(manager: Manager) -> list[Sent]:
    """s1 says that something of ours is missing."""
    return manager.hears(71, LinkBroken(102))


def we_lost(manager: Manager) -> list[Sent]:
    """The first message of s1 is missing: this is its second."""
    return manager.gets(71, 2)


@pytest.mark.parametrize("loss", [they_lost, we_lost])
def test_all_that_is_pending_with_the_spouts_of_the_two_fails_at_once(loss: Loss) -> None:
    manager = with_an_open_tree()
    assert said("i4", 101, FailPending()) in loss(manager)
    assert manager.core.statistics().acks.open == 0


@pytest.mark.parametrize("loss", [they_lost, we_lost])
def test_trees_of_a_third_worker_are_left_to_their_timeout(loss: Loss) -> None:
    """It hears nothing of the loss, in which tuples of its spouts may have been."""
    assert {sent.peer for sent in loss(with_an_open_tree())} == {"i4", "s1"}
