"""What a simulated run shows of itself: a report at its end, the state of all if it fails.

Only public statistics of the cores are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .instances import Instance
from .managers import Manager
from .network import Network


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """What happened in a run that broke no promise."""

    seed: int
    steps: int
    #: on the virtual clock
    secs: float
    #: how many of each kind of fault there were, lost tails and stray links included
    faults: Mapping[str, int]
    emitted: int
    received: int
    acked: int
    failed: int
    restarts: int
    #: by component, the most rows that waited for one of its tasks or in front of it
    most_rows: Mapping[str, int]
    #: how often each kind of user code was entered, `execute` once for a slice of rows
    entered: Mapping[str, int]
    #: sends of instances that had to wait for room
    waits: int


def state_of(network: Network) -> Iterator[str]:
    """One line for each instance and stream manager."""
    for process in network.processes.values():
        if isinstance(process, Instance):
            core = process.core
            found = core.statistics()
            names = " + ".join(dict.fromkeys(task.component_id for task in core.tasks))
            yield (
                f"  {process} {names}: linked={core.linked} paused={core.paused} "
                f"queued={found.queued} waves={[(t.task, t.wave, t.ended) for t in core.tasks]}"
                f"{'' if process.blocked is None else ', a send waits'}"
            )
        elif isinstance(process, Manager):
            queues = process.core.statistics().queues
            busy = {t: q for t, q in queues.items() if q.backlog_rows or q.outstanding_bytes}
            yield f"  {process}: {busy}"
