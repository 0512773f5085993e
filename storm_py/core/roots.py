"""Root ids: 62 bits that say which spout task a tuple tree belongs to.

    spout task 16 | random per incarnation 12 | counter 34

An ack record carries nothing but its root, so the root itself tells every stream manager where the
tree is tracked. The random part keeps late acks of a killed spout away from its successor's trees;
the counter starts at random and may wrap. Pure: the randomness is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from typing import Final, Protocol

_TASK_BITS: Final = 16
_RANDOM_BITS: Final = 12
_COUNTER_BITS: Final = 34

#: Bits of a root and of an edge id: what fits a signed 64-bit integer with two flags to spare.
ID_BITS: Final = _TASK_BITS + _RANDOM_BITS + _COUNTER_BITS
#: The highest task id that a root can name.
MAX_TASK: Final = (1 << _TASK_BITS) - 1


class RandomBits(Protocol):
    """A source of random bits; a driver's own generator, made after the fork."""

    def getrandbits(self, k: int, /) -> int:
        """A random integer of `k` bits."""


class Roots:
    """The root ids of one incarnation of one spout task; never 0."""

    def __init__(self, task: int, rng: RandomBits) -> None:
        if not 0 < task <= MAX_TASK:
            raise ValueError(f"task {task} does not fit a root id (1 to {MAX_TASK})")
        incarnation = rng.getrandbits(_RANDOM_BITS)
        base = (task << _RANDOM_BITS | incarnation) << _COUNTER_BITS
        end = base + (1 << _COUNTER_BITS)
        first = range(base + rng.getrandbits(_COUNTER_BITS) + 1, end)
        #: A root id that this incarnation has not used for 2**34 others; it is on the hot path.
        self.next: Callable[[], int] = chain(
            first, chain.from_iterable(repeat(range(base, end)))
        ).__next__


def spout_task(root: int) -> int:
    """The spout task that a root belongs to."""
    return root >> (_RANDOM_BITS + _COUNTER_BITS)
