"""What the nodes in ZooKeeper hold, as frozen dataclasses: Storm's records, less what is not used.

Field names are Storm's, in the spelling of its Thrift. Times are whole seconds since 1970. An
executor is its first and its last task; a slot is the id of a supervisor, Storm's node id, and a
port. How a record becomes bytes is `storm_py.cluster.encoding`, where it is stored
`storm_py.cluster.paths`.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import TypeAlias

from .encoding import Record

__all__ = [
    "Assignment",
    "ErrorInfo",
    "Executor",
    "LogConfig",
    "LogLevel",
    "NimbusSummary",
    "NodePort",
    "StormBase",
    "SupervisorInfo",
    "TopologyActionOptions",
    "TopologyStatus",
    "TopologyWave",
    "WorkerHeartbeat",
    "WorkerRegistration",
]

#: First and last task, both included.
Executor: TypeAlias = tuple[int, int]
#: Id of the supervisor, and port.
NodePort: TypeAlias = tuple[str, int]


class TopologyStatus(enum.StrEnum):
    """Storm's words for the state of a topology."""

    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"
    REBALANCING = "REBALANCING"
    KILLED = "KILLED"


@dataclasses.dataclass(frozen=True, slots=True)
class TopologyActionOptions(Record):
    """What a kill or a rebalance waits for and then does; which of the two, the status says."""

    #: Time from the command to the deed, in seconds; a new leader waits it anew.
    wait_secs: int
    #: Workers after a rebalance; None leaves them as they are.
    num_workers: int | None = None
    #: Executors after a rebalance, of the components that are to change.
    num_executors: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class StormBase(Record):
    """A topology that was submitted, for as long as nimbus knows it."""

    name: str
    status: TopologyStatus
    launch_time_secs: int
    num_workers: int
    #: Executors of each component.
    component_executors: Mapping[str, int]
    owner: str
    #: What the submitter called this version of the program, if anything.
    topology_version: str | None
    #: The version of storm-py that submitted it.
    storm_py_version: str
    #: Of the kill or the rebalance that is under way.
    topology_action_options: TopologyActionOptions | None = None
    #: What a rebalance returns to.
    prev_status: TopologyStatus | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Assignment(Record):
    """Which executor of a topology runs in which slot."""

    #: Grows with each change; whoever holds a lower one gives way.
    version: int
    owner: str
    #: Where nimbus keeps the code.
    master_code_dir: str
    #: Of the code that is to run, in hexadecimal.
    code_checksum: str
    #: Host of each node that is used.
    node_host: Mapping[str, str]
    executor_node_port: Mapping[Executor, NodePort]
    #: When each executor was put where it is.
    executor_start_time_secs: Mapping[Executor, int]
    #: The number of the worker in each slot: what workers call each other. A slot that is used
    #: again after it was not has another one.
    worker_numbers: Mapping[NodePort, int]
    #: Above all numbers that workers of this topology ever had.
    next_worker_number: int


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerRegistration(Record):
    """Where the stream manager of a worker listens; it stays when the worker dies.

    Without addresses the stream manager is down. What it means to other workers is said in
    `storm_py.engine.membership`.
    """

    worker: int
    #: Of the worker; each start of it has a higher one.
    incarnation: int
    #: Of the stream manager; 0 until there is one.
    stream_manager_incarnation: int = 0
    data: str = ""
    control: str = ""
    #: How far the end of the input has come here, see `storm_py.engine.cluster_waves`.
    ended_wave: int = 0
    spouts_ended: bool = False
    #: Of the assignment that this is said under: a later one may give the worker more to run.
    assignment_version: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class TopologyWave(Record):
    """The number of the END wave of a topology, above all registrations; it only grows."""

    wave: int


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerHeartbeat(Record):
    """That a worker lives (Storm's ClusterWorkerHeartbeat); statistics travel by Thrift instead."""

    storm_id: str
    #: Of the assignment that it runs.
    assignment_version: int
    #: Executors that live in it.
    executors: tuple[Executor, ...]
    time_secs: int
    uptime_secs: int


@dataclasses.dataclass(frozen=True, slots=True)
class SupervisorInfo(Record):
    """A supervisor, and all that nimbus has to know of its workers: one write for all of them."""

    time_secs: int
    hostname: str
    #: The id of the supervisor: the node of its slots.
    assignment_id: str
    #: Ports on which a worker runs.
    used_ports: tuple[int, ...]
    #: All ports that workers may be given.
    meta: tuple[int, ...]
    uptime_secs: int
    #: Of storm-py.
    version: str
    #: Where it listens, None if it does not.
    server_port: int | None = None
    scheduler_meta: Mapping[str, str] = dataclasses.field(default_factory=dict)
    resources_map: Mapping[str, float] = dataclasses.field(default_factory=dict)
    #: The newest heartbeat of each worker, by port.
    worker_heartbeats: Mapping[int, WorkerHeartbeat] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorInfo(Record):
    """An error of a component, as its user is to see it."""

    #: Its traceback, or what there is instead.
    error: str
    error_time_secs: int
    #: Where it happened; empty and 0 if nobody knows.
    host: str = ""
    port: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class LogLevel(Record):
    """The level of a logger, for a time or for good."""

    target_log_level: str
    #: Time from the command on for which it holds; 0 for good.
    reset_log_level_timeout_secs: int = 0
    #: When that time is over; 0 if it never is.
    reset_log_level_timeout_epoch: int = 0
    #: What holds after it; None for what held before.
    reset_log_level: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class LogConfig(Record):
    """The levels of loggers of a topology's workers, by the names of the loggers."""

    named_logger_level: Mapping[str, LogLevel] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class NimbusSummary(Record):
    """A nimbus that runs; who of them leads is for the leader lock to say."""

    host: str
    port: int
    #: When it was started: readers make Storm's uptime of it.
    start_time_secs: int
    #: Of storm-py.
    version: str

    @property
    def nimbus_id(self) -> str:
        """What it is called in the layout: host:port."""
        return f"{self.host}:{self.port}"
