"""The calls that change something: only the leader answers them.

They run on the server's threads and hand what has to do with the lives of topologies to the loop
of `storm_py.nimbus.service`, by `Leadership.lead`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol, TypeVar

from storm_py.cluster.records import LogConfig, LogLevel
from storm_py.errors import (
    ConfigError,
    ConnectionLost,
    InvalidTopologyException,
    NotALeader,
)
from storm_py.heartbeat import load_statistics
from storm_py.rpc import definitions

from .beats import Beat
from .data import NimbusData
from .lifecycle import KillOptions, RebalanceOptions
from .names import validate_topology_name
from .submission import check_submission
from .term import Term

__all__ = ["Commands", "Leadership"]

T = TypeVar("T")

_ACTIVE: Final = definitions.TopologyInitialStatus.ACTIVE
_LEVELS: Final = definitions.LogLevelAction


class Leadership(Protocol):
    """Whether this nimbus leads, and its loop."""

    def lead(self, do: Callable[[Term], T]) -> T:
        """Have the loop do this as the leader, and give its result; NotALeader if it is none."""
        ...

    def check_leads(self) -> None:
        """NotALeader, which names the leader, if this nimbus does not lead."""
        ...

    def check_listens(self) -> None:
        """The same, but a leader that lost its connection a moment ago will do."""
        ...

    def request_round(self) -> None:
        """Have what runs where looked at soon."""
        ...


class Commands:
    """Submit, kill, activate, deactivate, rebalance; heartbeats; levels of loggers."""

    def __init__(self, data: NimbusData, leadership: Leadership) -> None:
        self._data = data
        self._leadership = leadership

    def submitTopology(
        self,
        name: str,
        uploadedJarLocation: str,
        jsonConf: str,
        topology: definitions.StormTopology,
    ) -> None:
        """Start a topology, active."""
        options = definitions.SubmitOptions(initial_status=_ACTIVE)
        self.submitTopologyWithOpts(name, uploadedJarLocation, jsonConf, topology, options)

    def submitTopologyWithOpts(
        self,
        name: str,
        uploadedJarLocation: str,
        jsonConf: str,
        topology: definitions.StormTopology,
        options: definitions.SubmitOptions,
    ) -> None:
        """Start a topology: its blobs first, so that there is none without them."""
        self._leadership.check_leads()
        archive = self._data.inbox.finished(uploadedJarLocation)
        try:
            validate_topology_name(name)
            id_ = self._leadership.lead(lambda term: term.reserve(name))
            try:
                active = options.initial_status == _ACTIVE
                found = check_submission(self._data, id_, name, archive, jsonConf, topology, active)
                found.store(self._data)
                self._leadership.lead(lambda term: term.start(id_, found.base))
            except ConnectionLost:
                raise  # it may exist now: if it does not, the next sweep removes the blobs
            except BaseException:
                try:
                    self._data.blobs.delete_topology(id_)
                finally:
                    with suppress(NotALeader):  # then nobody has reserved anything any more
                        self._leadership.lead(lambda term: term.give_up(name))
                raise
        finally:
            archive.unlink(missing_ok=True)

    def killTopology(self, name: str) -> None:
        """Remove a topology after its message timeout."""
        self.killTopologyWithOpts(name, definitions.KillOptions())

    def killTopologyWithOpts(self, name: str, options: definitions.KillOptions) -> None:
        """Remove a topology after a wait."""
        now = self._data.clock()
        asked = KillOptions(options.wait_secs)
        self._leadership.lead(lambda term: term.kill(name, asked, now))

    def activate(self, name: str) -> None:
        """Have its spouts emit."""
        now = self._data.clock()
        self._leadership.lead(lambda term: term.activate(name, now))

    def deactivate(self, name: str) -> None:
        """Have its spouts emit no more."""
        now = self._data.clock()
        self._leadership.lead(lambda term: term.deactivate(name, now))

    def rebalance(self, name: str, options: definitions.RebalanceOptions) -> None:
        """Change workers and executors after a wait."""
        if options.topology_conf_overrides or options.topology_resources_overrides:
            raise InvalidTopologyException(
                f"rebalance of {name!r}: a rebalance changes the number of workers and of "
                "executors; kill the topology and submit it again to change its configuration"
            )
        now = self._data.clock()
        asked = RebalanceOptions(
            options.wait_secs, options.num_workers, dict(options.num_executors or {})
        )
        self._leadership.lead(lambda term: term.rebalance(name, asked, now))

    # ---- heartbeats ----------------------------------------------------------------------------

    def sendSupervisorWorkerHeartbeats(
        self, heartbeats: definitions.SupervisorWorkerHeartbeats
    ) -> None:
        """All workers of a supervisor live."""
        self._leadership.check_listens()
        for beat in heartbeats.worker_heartbeats:
            self._hear("thrift", beat, heartbeats.supervisor_id)

    def sendSupervisorWorkerHeartbeat(
        self, heatbeat: definitions.SupervisorWorkerHeartbeat
    ) -> None:
        """A worker lives whose supervisor does not answer. NotAliveException: it is to stop."""
        self._leadership.check_listens()
        if not self._data.beats.knows(heatbeat.storm_id):
            self._data.base(heatbeat.storm_id)  # a new leader may not know of it yet
        self._hear("worker", heatbeat, None)

    def _hear(
        self, way: str, beat: definitions.SupervisorWorkerHeartbeat, node: str | None
    ) -> None:
        heard = Beat(
            topology_id=beat.storm_id,
            executors=tuple((one.task_start, one.task_end) for one in beat.executors),
            stamp=beat.time_secs,
            node=node,
            statistics=load_statistics(beat.statistics) if beat.statistics else (),
        )
        if self._data.beats.hear(way, heard, self._data.clock()):
            self._leadership.request_round()

    # ---- levels of loggers ---------------------------------------------------------------------

    def setLogConfig(self, name: str, config: definitions.LogConfig) -> None:
        """Change levels of loggers of a topology, by its id; the others stay."""
        self._leadership.check_leads()
        self._data.base(name)
        levels = dict(self._data.state.topology_log_config(name).named_logger_level)
        for logger, level in (config.named_logger_level or {}).items():
            if level.action == _LEVELS.REMOVE:
                levels.pop(logger, None)
            elif level.action == _LEVELS.UPDATE:
                levels[logger] = self._level(logger, level)
        self._data.state.set_topology_log_config(name, LogConfig(levels))

    def getLogConfig(self, name: str) -> definitions.LogConfig:
        """The levels that are set for a topology, by its id."""
        self._data.base(name)
        found = self._data.state.topology_log_config(name).named_logger_level
        levels = {
            logger: definitions.LogLevel(
                action=_LEVELS.UNCHANGED,
                target_log_level=level.target_log_level,
                reset_log_level_timeout_secs=level.reset_log_level_timeout_secs,
                reset_log_level_timeout_epoch=level.reset_log_level_timeout_epoch,
                reset_log_level=level.reset_log_level,
            )
            for logger, level in found.items()
        }
        return definitions.LogConfig(named_logger_level=levels)

    def _level(self, logger: str, level: definitions.LogLevel) -> LogLevel:
        if not level.target_log_level:
            raise ConfigError(
                f"the logger {logger!r} is to change without a level; name one, as in DEBUG"
            )
        secs = max(0, level.reset_log_level_timeout_secs or 0)
        epoch = int(self._data.wall()) + secs if secs else 0
        return LogLevel(level.target_log_level, secs, epoch, level.reset_log_level)
