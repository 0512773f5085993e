"""The numbers of workers: what workers of a topology call each other, and never a second one.

Pure. A slot that stays in use keeps the number of its worker; one that is newly used, or used again
after it was not, gets a number that none ever had: so nobody takes a worker for its predecessor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from storm_py.cluster.records import NodePort


@dataclass(frozen=True, slots=True)
class WorkerNumbers:
    """The number of the worker in each slot of a topology."""

    numbers: Mapping[NodePort, int] = field(default_factory=dict)
    #: Above all that there ever were.
    next_number: int = 1

    def renumber(self, slots: Iterable[NodePort]) -> WorkerNumbers:
        """The numbers when these slots are used; new ones are given out in the slots' order."""
        numbers = {}
        next_number = self.next_number
        for slot in sorted(set(slots)):
            if slot in self.numbers:
                numbers[slot] = self.numbers[slot]
            else:
                numbers[slot] = next_number
                next_number += 1
        return WorkerNumbers(numbers, next_number)
