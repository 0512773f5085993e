"""What the summary of a run says that a death took with it: no more than is true."""

from __future__ import annotations

import pytest

from storm_py.engine import losses

REPLAYED = "tracked ones failed, for their spouts to emit again"


@pytest.mark.parametrize(
    ("role", "is_spout", "tracked", "untracked"),
    [
        (
            "instance",
            False,
            f"its memory and untracked tuples sent to it are lost; {REPLAYED}",
            "its memory and the tuples sent to it are lost",
        ),
        (
            "stream-manager",
            False,
            f"untracked tuples on their way through it are lost; {REPLAYED}",
            "the tuples on their way through it are lost",
        ),
        (
            "instance",
            True,
            "its memory is lost, what it had pending included",
            "its memory is lost, what it had pending included",
        ),
    ],
)
def test_a_process(role: str, is_spout: bool, tracked: str, untracked: str) -> None:
    assert losses.of_process(role, is_spout, acking=True) == tracked
    assert losses.of_process(role, is_spout, acking=False) == untracked


def test_a_process_of_a_spout_and_what_is_fused_with_it() -> None:
    tracked = losses.of_process("instance", True, acking=True, fused=True)
    assert tracked == f"its memory and untracked tuples in it are lost; {REPLAYED}"
    untracked = losses.of_process("instance", True, acking=False, fused=True)
    assert untracked == "its memory and the tuples in it are lost"


def test_a_worker() -> None:
    memory = "the memory of its tasks and"
    assert losses.of_worker(True) == f"{memory} untracked tuples in it are lost; {REPLAYED}"
    assert losses.of_worker(False) == f"{memory} the tuples in it are lost"
