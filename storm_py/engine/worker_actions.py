"""What `WorkerCore` wants done; `storm_py.runtime.worker` does it. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from storm_py.wire import control


@dataclass(frozen=True, slots=True)
class StartStreamManager:
    """Start the stream manager."""

    incarnation: int


@dataclass(frozen=True, slots=True)
class StartInstance:
    """Start the instance of an executor."""

    executor: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class KillInstance:
    """Kill the process of an instance that does not leave, registered or not."""

    executor: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Adopt:
    """This version of the plan holds from now on."""

    version: int


@dataclass(frozen=True, slots=True)
class ReplanStreamManager:
    """Have the stream manager go on under this version, as that incarnation."""

    incarnation: int
    version: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a record to a process of this worker ("sm" or "i<executor>")."""

    identity: str
    record: control.Control


@dataclass(frozen=True, slots=True)
class TellParent:
    """Send a record to whoever runs this worker."""

    record: control.Control


@dataclass(frozen=True, slots=True)
class CannotStart:
    """Report that the instance of an executor dies each time before it is up; it said nothing."""

    executor: int
    reason: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Everything has stopped: the worker may exit."""


Action = (
    StartStreamManager
    | StartInstance
    | KillInstance
    | Adopt
    | ReplanStreamManager
    | Tell
    | TellParent
    | CannotStart
    | Leave
)
