"""Records of a cluster for tests: whole ones, with what does not matter filled in."""

from __future__ import annotations

from storm_py.cluster.records import (
    Assignment,
    ErrorInfo,
    NimbusSummary,
    StormBase,
    SupervisorInfo,
    TopologyStatus,
    WorkerHeartbeat,
)


def storm_base(name: str = "words", status: TopologyStatus = TopologyStatus.ACTIVE) -> StormBase:
    return StormBase(
        name=name,
        status=status,
        launch_time_secs=1_700_000_000,
        num_workers=2,
        component_executors={"lines": 1, "count": 4},
        owner="alice",
        topology_version=None,
        storm_py_version="0.1",
    )


def assignment(version: int = 1) -> Assignment:
    return Assignment(
        version=version,
        owner="alice",
        master_code_dir="/srv/words",
        code_checksum="00ff",
        node_host={"s1": "here"},
        executor_node_port={(1, 1): ("s1", 6700), (2, 5): ("s1", 6701)},
        executor_start_time_secs={(1, 1): 5, (2, 5): 6},
        worker_numbers={("s1", 6700): 1, ("s1", 6701): 2},
        next_worker_number=3,
    )


def worker_heartbeat(storm_id: str = "words-1-2", time_secs: int = 7) -> WorkerHeartbeat:
    return WorkerHeartbeat(
        storm_id=storm_id,
        assignment_version=1,
        executors=((1, 1), (2, 5)),
        time_secs=time_secs,
        uptime_secs=3,
    )


def supervisor_info(supervisor_id: str = "s1", uptime_secs: int = 1) -> SupervisorInfo:
    return SupervisorInfo(
        time_secs=9,
        hostname="here",
        assignment_id=supervisor_id,
        used_ports=(6700,),
        meta=(6700, 6701),
        uptime_secs=uptime_secs,
        version="0.1",
        worker_heartbeats={6700: worker_heartbeat()},
    )


def error_info(number: int = 0) -> ErrorInfo:
    return ErrorInfo(error=f"error {number}", error_time_secs=number, host="here", port=6700)


def nimbus_summary(host: str = "here") -> NimbusSummary:
    return NimbusSummary(host=host, port=6627, start_time_secs=4, version="0.1")
