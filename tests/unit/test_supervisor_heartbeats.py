"""What a supervisor says of itself, and its settings."""

from __future__ import annotations

import pytest

from storm_py.cluster.records import SupervisorInfo, WorkerHeartbeat
from storm_py.config import defaults
from storm_py.supervisor.heartbeats import SupervisorReport, WorkerReport
from storm_py.supervisor.settings import WORKER_COMMAND, SupervisorSettings
from storm_py.supervisor.slot_actions import SlotTimeouts

WORKER = WorkerReport(
    port=6700,
    topology_id="words-1-1",
    version=3,
    executors=((1, 1), (2, 5)),
    time_secs=1000,
    uptime_secs=7,
    statistics="[]",
)


def report(
    uptime_secs: int = 60, workers: tuple[WorkerReport, ...] = (WORKER,)
) -> SupervisorReport:
    return SupervisorReport(
        supervisor_id="s1",
        host="here",
        ports=(6700, 6701),
        used_ports=(6700,),
        time_secs=1001,
        uptime_secs=uptime_secs,
        version="0.1",
        workers=workers,
    )


def test_what_zookeeper_gets() -> None:
    assert report().info() == SupervisorInfo(
        time_secs=1001,
        hostname="here",
        assignment_id="s1",
        used_ports=(6700,),
        meta=(6700, 6701),
        uptime_secs=60,
        version="0.1",
        worker_heartbeats={6700: WorkerHeartbeat("words-1-1", 3, ((1, 1), (2, 5)), 1000, 7)},
    )


def test_what_nimbus_gets() -> None:
    heartbeats = report().heartbeats()
    assert heartbeats.supervisor_id == "s1"
    [worker] = heartbeats.worker_heartbeats
    assert (worker.storm_id, worker.time_secs, worker.statistics) == ("words-1-1", 1000, "[]")
    assert [(each.task_start, each.task_end) for each in worker.executors] == [(1, 1), (2, 5)]


def test_settings_are_those_of_the_configuration() -> None:
    conf = {
        **defaults(),
        "storm.local.hostname": "here",
        "supervisor.slots.ports": [1, 2],
        "supervisor.worker.start.timeout.secs": 3,
        "supervisor.worker.timeout.secs": 4,
        "supervisor.worker.shutdown.sleep.secs": 5,
        "supervisor.monitor.frequency.secs": 6,
        "supervisor.heartbeat.frequency.secs": 7,
    }
    settings = SupervisorSettings.from_conf(conf, {"A": "b"})
    assert settings == SupervisorSettings(
        host="here",
        ports=(1, 2),
        timeouts=SlotTimeouts(3, 4, 5),
        monitor_secs=6,
        heartbeat_secs=7,
        statistics_secs=1,
        conf=conf,
        environment={"A": "b"},
        command=WORKER_COMMAND,
    )
    assert settings.look_secs == pytest.approx(4 / 3)


def test_a_worker_that_may_be_silent_for_long_is_looked_at_as_configured() -> None:
    settings = SupervisorSettings.from_conf(defaults(), {})
    assert (settings.monitor_secs, settings.look_secs) == (3, 3)
