"""A nimbus for tests of its clients: it keeps topologies in memory and is served as a real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from storm_py import __version__
from storm_py.cli import main
from storm_py.errors import NotAliveException
from storm_py.rpc.definitions import (
    ExecutorInfo,
    GetInfoOptions,
    KillOptions,
    LogConfig,
    RebalanceOptions,
    StormTopology,
    SubmitOptions,
)
from storm_py.rpc.server import ThriftServer
from storm_py.rpc.summaries import (
    ErrorInfo,
    ExecutorSpecificStats,
    ExecutorStats,
    ExecutorSummary,
    NimbusSummary,
    SpoutStats,
    TopologyInfo,
    TopologySummary,
)

HOST = "127.0.0.1"


def summary(name: str, status: str = "ACTIVE", number: int = 1) -> TopologySummary:
    """A topology of five executors in two workers, up for a minute."""
    return TopologySummary(
        id=f"{name}-{number}-1700000000",
        name=name,
        num_tasks=8,
        num_executors=5,
        num_workers=2,
        uptime_secs=60,
        status=status,
        owner="ann",
    )


def executor(
    component: str, task: int, port: int, emitted: int = 0, host: str = HOST, uptime_secs: int = 9
) -> ExecutorSummary:
    """An executor of one task that emitted so many tuples and transferred twice as many."""
    stats = ExecutorStats(
        emitted={":all-time": {"default": emitted}},
        transferred={":all-time": {"default": 2 * emitted}},
        specific=ExecutorSpecificStats(spout=SpoutStats(acked={}, failed={}, complete_ms_avg={})),
        rate=1.0,
    )
    return ExecutorSummary(
        executor_info=ExecutorInfo(task_start=task, task_end=task),
        component_id=component,
        host=host,
        port=port,
        uptime_secs=uptime_secs,
        stats=stats,
    )


@dataclass
class FakeNimbus:
    """The calls that the command line makes; those that change something are written down."""

    leader: tuple[str, int] = (HOST, 0)
    version: str = __version__
    topologies: dict[str, TopologySummary] = field(default_factory=dict)
    executors: list[ExecutorSummary] = field(default_factory=list)
    errors: dict[str, list[ErrorInfo]] = field(default_factory=dict)
    log_config: LogConfig = field(default_factory=LogConfig)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    uploads: dict[str, bytearray] = field(default_factory=dict)
    #: What a call does before all else, by its name.
    before: dict[str, Callable[[], object]] = field(default_factory=dict)

    def running(self, *names: str) -> None:
        """Let topologies of these names run."""
        for name in names:
            self.topologies[name] = summary(name)

    def failing(self, call: str, error: Exception) -> None:
        """Let a call raise this."""

        def fail() -> None:
            raise error

        self.before[call] = fail

    def _begin(self, call: str) -> None:
        self.before.get(call, lambda: None)()

    def _alive(self, name: str) -> TopologySummary:
        if name not in self.topologies:
            raise NotAliveException(f"{name} is not alive")
        return self.topologies[name]

    def getLeader(self) -> NimbusSummary:
        self._begin("getLeader")
        host, port = self.leader
        return NimbusSummary(
            host=host, port=port, uptime_secs=1, isLeader=True, version=self.version
        )

    def isTopologyNameAllowed(self, name: str) -> bool:
        return name not in self.topologies and name != "forbidden"

    def getTopologySummaries(self) -> list[TopologySummary]:
        self._begin("getTopologySummaries")
        return list(self.topologies.values())

    def getTopologySummaryByName(self, name: str) -> TopologySummary:
        self._begin("getTopologySummaryByName")
        return self._alive(name)

    def getTopologyInfoByNameWithOpts(self, name: str, options: GetInfoOptions) -> TopologyInfo:
        self._begin("getTopologyInfoByNameWithOpts")
        found = self._alive(name)
        return TopologyInfo(
            id=found.id,
            name=found.name,
            uptime_secs=found.uptime_secs,
            executors=self.executors,
            status=found.status,
            errors=self.errors,
        )

    def killTopologyWithOpts(self, name: str, options: KillOptions) -> None:
        self._begin("killTopologyWithOpts")
        self._alive(name)
        self.calls.append(("kill", name, options.wait_secs))

    def activate(self, name: str) -> None:
        self._alive(name)
        self.calls.append(("activate", name))

    def deactivate(self, name: str) -> None:
        self._alive(name)
        self.calls.append(("deactivate", name))

    def rebalance(self, name: str, options: RebalanceOptions) -> None:
        self._begin("rebalance")
        self._alive(name)
        asked = (options.wait_secs, options.num_workers, options.num_executors)
        self.calls.append(("rebalance", name, *asked))

    def setLogConfig(self, name: str, config: LogConfig) -> None:
        self.calls.append(("setLogConfig", name, config))

    def getLogConfig(self, name: str) -> LogConfig:
        return self.log_config

    def beginFileUpload(self) -> str:
        self._begin("beginFileUpload")
        location = f"/inbox/{len(self.uploads)}"
        self.uploads[location] = bytearray()
        return location

    def uploadChunk(self, location: str, chunk: bytes) -> None:
        self._begin("uploadChunk")
        self.uploads[location] += chunk

    def finishFileUpload(self, location: str) -> None:
        self.calls.append(("finishFileUpload", location))

    def submitTopologyWithOpts(
        self,
        name: str,
        uploadedJarLocation: str,
        jsonConf: str,
        topology: StormTopology,
        options: SubmitOptions,
    ) -> None:
        self._begin("submitTopologyWithOpts")
        conf = json.loads(jsonConf)
        self.topologies[name] = summary(name)
        self.calls.append(("submit", name, uploadedJarLocation, conf, topology, options))


class Cluster:
    """A fake nimbus, served, and the command line of somebody whose storm.yaml names it."""

    def __init__(self, nimbus: FakeNimbus, port: int, folder: Path) -> None:
        self.nimbus = nimbus
        self.port = port
        self.local_dir = folder / "local"
        self.storm_yaml = folder / "storm.yaml"
        self.storm_yaml.write_text(
            f"nimbus.seeds: ['{HOST}']\n"
            f"nimbus.thrift.port: {port}\n"
            f"storm.local.dir: {self.local_dir}\n"
            f"storm.local.hostname: {HOST}\n"
        )

    def run(self, *args: str) -> Result:
        """Give a command."""
        return CliRunner().invoke(main, args)

    def done(self, *args: str) -> str:
        """What a command prints that succeeds."""
        result = self.run(*args)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout

    def error(self, code: int, *args: str) -> str:
        """What a command says that fails with this exit code; it prints nothing else."""
        result = self.run(*args)
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        return result.stderr


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster with nothing in it, for whoever has this storm.yaml."""
    nimbus = FakeNimbus()
    with ThriftServer(nimbus, HOST) as server:
        port = server.address[1]
        nimbus.leader = (HOST, port)
        home = tmp_path / "home"
        (home / ".storm").mkdir(parents=True)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.delenv("STORM_CONF_DIR", raising=False)
        yield Cluster(nimbus, port, home / ".storm")
