"""SupervisorSettings: what a node says of itself, and how patient its supervisor is.

Values only; the keys are in ``storm_py.config``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from storm_py.config import Config

from .slot_actions import SlotTimeouts

#: What runs a worker; the path of its specification is appended.
WORKER_COMMAND: Final = (sys.executable, "-P", "-m", "storm_py.runtime.cluster_worker")


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """Of one supervisor; times are seconds."""

    host: str
    ports: tuple[int, ...]
    timeouts: SlotTimeouts
    #: Between two looks at a worker from which nothing is awaited.
    monitor_secs: float
    #: Between two signs of life of the supervisor.
    heartbeat_secs: float
    #: Between two reports to nimbus of what workers do.
    statistics_secs: float
    #: The whole configuration of the node, which its workers get.
    conf: Mapping[str, Any]
    #: Of this process; its workers get it as well.
    environment: Mapping[str, str]
    command: tuple[str, ...]

    @classmethod
    def from_conf(
        cls,
        conf: Mapping[str, Any],
        environment: Mapping[str, str],
        command: Sequence[str] = WORKER_COMMAND,
    ) -> SupervisorSettings:
        """What a checked configuration with all defaults says."""
        return cls(
            host=conf[Config.STORM_LOCAL_HOSTNAME],
            ports=tuple(conf[Config.SUPERVISOR_SLOTS_PORTS]),
            timeouts=SlotTimeouts(
                start_secs=conf[Config.SUPERVISOR_WORKER_START_TIMEOUT_SECS],
                worker_secs=conf[Config.SUPERVISOR_WORKER_TIMEOUT_SECS],
                shutdown_secs=conf[Config.SUPERVISOR_WORKER_SHUTDOWN_SLEEP_SECS],
            ),
            monitor_secs=conf[Config.SUPERVISOR_MONITOR_FREQUENCY_SECS],
            heartbeat_secs=conf[Config.SUPERVISOR_HEARTBEAT_FREQUENCY_SECS],
            statistics_secs=conf[Config.WORKER_HEARTBEAT_FREQUENCY_SECS],
            conf=conf,
            environment=environment,
            command=tuple(command),
        )

    @property
    def look_secs(self) -> float:
        """`monitor_secs`, or less where a worker could be taken for silent between two looks."""
        return min(self.monitor_secs, self.timeouts.worker_secs / 3)
