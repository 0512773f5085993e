"""What `WorkerCore` knows of the processes that it keeps alive, and of what is wanted of them.

State without behaviour: nobody but `storm_py.engine.worker_core` changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from storm_py.wire import control

STREAM_MANAGER: Final = "stream-manager"
INSTANCE: Final = "instance"


@dataclass(slots=True)
class Child:
    """One process that this worker keeps alive; executor 0 is the stream manager."""

    executor: int
    incarnation: int = 0
    addresses: control.Register | None = None
    ready: bool = False
    active: bool = False
    gone: bool = False
    leaving: bool = False
    restart_at: float | None = None
    started_at: float = 0.0
    failures: int = 0
    stillborn: int = 0
    reason: str = ""

    @property
    def identity(self) -> str:
        return f"i{self.executor}" if self.executor else "sm"

    @property
    def role(self) -> str:
        return INSTANCE if self.executor else STREAM_MANAGER


@dataclass(slots=True)
class Orders:
    """What the parent wants of processes that start later."""

    active: bool = False
    wave: control.Wave | None = None
    log_levels: control.LogLevels | None = None
    peers: dict[str, control.Connect] = field(default_factory=dict)
    stopping: bool = False


@dataclass(slots=True)
class NextPlan:
    """The version of the plan that holds once those that it does not keep have left."""

    version: int
    instances: tuple[int, ...]
    kill_at: float
