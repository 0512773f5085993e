"""Statistics: what the cores say about themselves, as frozen snapshots.

User interfaces, metrics and tests read these and nothing else. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from storm_py.core.acker import AckStatistics
from storm_py.core.pressure import QueueStatistics


@dataclass(frozen=True, slots=True)
class InstanceStatistics:
    """Counters of an instance since its start."""

    executed: int
    emitted: int
    transferred: int
    queued: int


@dataclass(frozen=True, slots=True)
class StreamManagerStatistics:
    """Counters of a stream manager and the queues of its tasks."""

    frames: int
    refused: int
    unroutable: int
    lost_rows: int
    acks: AckStatistics
    queues: dict[int, QueueStatistics]
