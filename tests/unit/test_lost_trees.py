"""A loss between two stream managers: what fails at once, and what is left to the timeout."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from storm_py.core.roots import Roots
from storm_py.engine.stream_manager_core import Send, StreamManagerCore
from storm_py.wire.acks import AckRecords, AckResults, decode_acks, encode_acks
from storm_py.wire.control import LinkBroken, Welcome
from storm_py.wire.frames import frames, message_header
from tests.builders import Numbers, bolt, control_message, data_message, hello, plan_of, spout
from tests.manager import LIMITS

#: words is task 4 of i4 on worker 0, 5 of i5 on worker 1, 6 of i6 on worker 2
THREE_WORKERS = plan_of(spout("words", "word", tasks=3), bolt("count", "words", tasks=3), workers=3)
Loss: TypeAlias = Callable[[StreamManagerCore], list[Send]]
ROOT = Roots(4, Numbers()).next()


def with_an_open_tree() -> StreamManagerCore:
    """Worker 0, linked to its spout (11 in) and to the others (71 and 72 in); ROOT is open."""
    core = StreamManagerCore(THREE_WORKERS, 0, 1, Numbers(100), LIMITS)
    for peer, theirs, ours in (("i4", 11, 101), ("s1", 71, 102), ("s2", 72, 103)):
        core.connect(peer)
        core.on_control(control_message(theirs, hello(peer)), 0.0)
        core.on_control(control_message(theirs, Welcome(ours)), 0.0)
    record = encode_acks(1, 4, 4, 7, AckRecords(init_roots=[ROOT], init_values=[5]))
    assert core.on_data(message_header(11, 1) + record, 0.0) == []
    assert core.statistics().acks.open == 1
    return core


def they_lost(core: StreamManagerCore) -> list[Send]:
    """s1 says that something of ours is missing."""
    return core.on_control(control_message(71, LinkBroken(102)), 0.0)


def we_lost(core: StreamManagerCore) -> list[Send]:
    """The first message of s1 is missing: this is its second."""
    return core.on_data(data_message(71, 2), 0.0)


@pytest.mark.parametrize("loss", [they_lost, we_lost])
def test_the_open_trees_of_the_two_fail_at_once(loss: Loss) -> None:
    core = with_an_open_tree()
    (answer,) = (message for data, peer, message in loss(core) if data and peer == "i4")
    (frame,) = frames(answer)
    assert decode_acks(answer, frame) == AckResults([], [ROOT], [])
    assert core.statistics().acks.open == 0


@pytest.mark.parametrize("loss", [they_lost, we_lost])
def test_those_of_a_third_are_left_to_their_timeout(loss: Loss) -> None:
    """It hears nothing of the loss, in which tuples of its spouts may have been."""
    assert {peer for _, peer, _ in loss(with_an_open_tree())} == {"i4", "s1"}
