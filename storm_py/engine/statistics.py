"""Statistics: what the cores say about themselves, as frozen snapshots.

User interfaces, metrics and tests read these and nothing else. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from storm_py.core.acker import AckStatistics
from storm_py.core.pressure import QueueStatistics


@dataclass(frozen=True, slots=True)
class InstanceStatistics:
    """Counters of an instance since its start; `queued` are rows that wait in it now.

    `acked` and `failed` are message ids that its spouts were told of; a bolt counts neither.
    """

    executed: int
    emitted: int
    transferred: int
    queued: int
    acked: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class StreamManagerStatistics:
    """Counters of a stream manager and the queues of its tasks."""

    frames: int
    refused: int
    unroutable: int
    lost_rows: int
    acks: AckStatistics
    queues: dict[int, QueueStatistics]
