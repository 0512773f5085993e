"""ClusterState: the records of a cluster, typed, over any storage (Storm's IStormClusterState).

Who reads gets records or None, never bytes; who writes what somebody else may write too says what
it has read. Nothing is decided here, and nothing is remembered: each call is a look at the storage.
Every method raises ConnectionLost when there is no connection, and InvalidRecord, which names the
path, for what cannot be read. Paths are in `storm_py.cluster.paths`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from storm_py.errors import NodeExists, NoNode, VersionMismatch

from . import paths
from .base import Cancel, ConnectionState, Listener, Watcher
from .latch import LeaderLatch
from .records import (
    Assignment,
    ErrorInfo,
    LogConfig,
    NimbusSummary,
    NodePort,
    StormBase,
    SupervisorInfo,
    WorkerHeartbeat,
)
from .registrations import Registrations

__all__ = ["MAX_ERRORS", "MAX_ERROR_CHARS", "ClusterState"]

#: How many errors of a component are kept, as in Storm.
MAX_ERRORS = 10
#: How much of the text of an error: ZooKeeper ends the connection of who sends it a megabyte.
MAX_ERROR_CHARS = 20_000


class ClusterState(Registrations):
    """All that the processes of a cluster share; several may be made of one storage."""

    # ---- connection ----------------------------------------------------------------------------

    @property
    def connection(self) -> ConnectionState:
        """The connection right now."""
        return self._storage.state

    def listen(self, listener: Listener) -> Cancel:
        """Tell of each change of the connection; see `storm_py.cluster.base`."""
        return self._storage.listen(listener)

    # ---- topologies ----------------------------------------------------------------------------

    def storms(self) -> tuple[str, ...]:
        """The ids of all topologies."""
        return self._storage.children(paths.STORMS)

    def storm_base(self, storm_id: str) -> StormBase | None:
        """A topology, None if there is no such one."""
        return self._get(StormBase, paths.storm(storm_id))

    def activate_storm(self, storm_id: str, base: StormBase) -> None:
        """Add a topology; NodeExists if there is one of this id."""
        self._storage.create(paths.storm(storm_id), base.to_bytes())

    def update_storm(self, storm_id: str, change: Callable[[StormBase], StormBase]) -> StormBase:
        """Change a topology and return what it is now; NoNode if there is no such one.

        `change` is called again, with what is there then, if somebody else was faster.
        """
        path = paths.storm(storm_id)
        while True:
            node = self._storage.read(path)
            if node is None:
                raise NoNode(f"{path} does not exist: there is no topology {storm_id}")
            base = change(StormBase.from_bytes(node.data, path))
            try:
                self._storage.write(path, base.to_bytes(), node.version)
            except VersionMismatch:
                continue
            return base

    def remove_storm(self, storm_id: str) -> None:
        """Remove a topology with its assignment, its credentials and what was set for it.

        Heartbeats and errors stay until they are torn down.
        """
        for path in (
            paths.assignment(storm_id),
            paths.credentials(storm_id),
            paths.logconfig(storm_id),
            paths.profilerconfigs(storm_id),
            paths.storm_registrations(storm_id),
            paths.storm(storm_id),
        ):
            self._storage.delete(path)

    def watch_storms(self, watcher: Watcher) -> Cancel:
        """Tell of topologies that come and go."""
        return self._storage.watch_children(paths.STORMS, watcher)

    def watch_storm(self, storm_id: str, watcher: Watcher) -> Cancel:
        """Tell of changes of a topology."""
        return self._storage.watch(paths.storm(storm_id), watcher)

    # ---- assignments ---------------------------------------------------------------------------

    def assignments(self) -> tuple[str, ...]:
        """The ids of all topologies that are assigned."""
        return self._storage.children(paths.ASSIGNMENTS)

    def assignment(self, storm_id: str) -> Assignment | None:
        """The assignment of a topology."""
        return self._get(Assignment, paths.assignment(storm_id))

    def set_assignment(self, storm_id: str, assignment: Assignment) -> None:
        """Replace an assignment by one of a higher version.

        VersionMismatch if what is there is as new: another nimbus has assigned meanwhile.
        """
        path = paths.assignment(storm_id)
        node = self._storage.read(path)
        if node is None:
            try:
                self._storage.create(path, assignment.to_bytes())
            except NodeExists:
                raise VersionMismatch(f"{path} was created by somebody else meanwhile") from None
            return
        found = Assignment.from_bytes(node.data, path).version
        if assignment.version <= found:
            raise VersionMismatch(
                f"{path} has version {found}; expected one below {assignment.version}, which was "
                "to be written: somebody else has assigned this topology"
            )
        self._storage.write(path, assignment.to_bytes(), node.version)

    def remove_assignment(self, storm_id: str) -> None:
        """Remove an assignment: its workers stop."""
        self._storage.delete(paths.assignment(storm_id))

    def watch_assignments(self, watcher: Watcher) -> Cancel:
        """Tell of assignments that come and go."""
        return self._storage.watch_children(paths.ASSIGNMENTS, watcher)

    def watch_assignment(self, storm_id: str, watcher: Watcher) -> Cancel:
        """Tell of changes of an assignment."""
        return self._storage.watch(paths.assignment(storm_id), watcher)

    # ---- supervisors and workers ---------------------------------------------------------------

    def supervisors(self) -> tuple[str, ...]:
        """The ids of all supervisors that live."""
        return self._storage.children(paths.SUPERVISORS)

    def supervisor_info(self, supervisor_id: str) -> SupervisorInfo | None:
        """A supervisor, None if it does not live."""
        return self._get(SupervisorInfo, paths.supervisor(supervisor_id))

    def supervisor_heartbeat(self, supervisor_id: str, info: SupervisorInfo) -> None:
        """This process is that supervisor, and lives as long as its session."""
        self._storage.hold(paths.supervisor(supervisor_id), info.to_bytes())

    def watch_supervisors(self, watcher: Watcher) -> Cancel:
        """Tell of supervisors that come and go."""
        return self._storage.watch_children(paths.SUPERVISORS, watcher)

    def setup_heartbeats(self, storm_id: str) -> None:
        """Have a place for the heartbeats of a topology's workers."""
        self._ensure(paths.storm_workerbeats(storm_id))

    def teardown_heartbeats(self, storm_id: str) -> None:
        """Remove them all."""
        self._storage.delete(paths.storm_workerbeats(storm_id))

    def heartbeat_storms(self) -> tuple[str, ...]:
        """The ids of topologies that have such a place."""
        return self._storage.children(paths.WORKERBEATS)

    def worker_heartbeat(self, slot: NodePort, heartbeat: WorkerHeartbeat) -> None:
        """A worker lives; for one whose supervisor does not say so."""
        self._put(paths.workerbeat(heartbeat.storm_id, *slot), heartbeat)

    def worker_heartbeats(self, storm_id: str) -> dict[NodePort, WorkerHeartbeat]:
        """The newest heartbeat of each worker of a topology that wrote one itself."""
        found = {}
        for name in self._storage.children(paths.storm_workerbeats(storm_id)):
            slot = paths.slot_of(name)
            if slot is not None:
                heartbeat = self._get(WorkerHeartbeat, paths.workerbeat(storm_id, *slot))
                if heartbeat is not None:
                    found[slot] = heartbeat
        return found

    def remove_worker_heartbeat(self, storm_id: str, slot: NodePort) -> None:
        """That worker is no more."""
        self._storage.delete(paths.workerbeat(storm_id, *slot))

    # ---- errors --------------------------------------------------------------------------------

    def setup_errors(self, storm_id: str) -> None:
        """Have a place for the errors of a topology."""
        self._ensure(paths.storm_errors(storm_id))

    def teardown_errors(self, storm_id: str) -> None:
        """Remove them all."""
        self._storage.delete(paths.storm_errors(storm_id))

    def error_storms(self) -> tuple[str, ...]:
        """The ids of topologies that have such a place."""
        return self._storage.children(paths.ERRORS)

    def report_error(self, storm_id: str, component_id: str, error: ErrorInfo) -> None:
        """Add an error of a component; the oldest ones above `MAX_ERRORS` go.

        Of a text above `MAX_ERROR_CHARS` the middle is left out; what is no text in it, half a
        surrogate pair, becomes its escape, as nobody could be told of it.
        NoNode if there is no place for it: the topology is gone, and nothing of it may come back.
        """
        if self._storage.read(paths.storm_errors(storm_id)) is None:
            raise NoNode(
                f"{paths.storm_errors(storm_id)} does not exist: there is no topology {storm_id}, "
                f"to take an error of {component_id!r}"
            )
        error = replace(error, error=_presentable(error.error))
        self._put(paths.last_error(storm_id, component_id), error)
        self._storage.create(paths.error(storm_id, component_id), error.to_bytes(), sequence=True)
        parent = paths.component_errors(storm_id, component_id)
        for name in self._storage.children(parent)[:-MAX_ERRORS]:
            self._storage.delete(f"{parent}/{name}")

    def errors(self, storm_id: str, component_id: str) -> list[ErrorInfo]:
        """The errors of a component, newest first."""
        parent = paths.component_errors(storm_id, component_id)
        names = reversed(self._storage.children(parent))
        found = (self._get(ErrorInfo, f"{parent}/{name}") for name in names)
        return [error for error in found if error is not None]

    def last_error(self, storm_id: str, component_id: str) -> ErrorInfo | None:
        """The newest error of a component."""
        return self._get(ErrorInfo, paths.last_error(storm_id, component_id))

    # ---- levels of loggers ---------------------------------------------------------------------

    def topology_log_config(self, storm_id: str) -> LogConfig:
        """The levels that are set for a topology; none is as good as an empty one."""
        return self._get(LogConfig, paths.logconfig(storm_id)) or LogConfig()

    def set_topology_log_config(self, storm_id: str, config: LogConfig) -> None:
        """Set them."""
        self._put(paths.logconfig(storm_id), config)

    def watch_topology_log_config(self, storm_id: str, watcher: Watcher) -> Cancel:
        """Tell of changes of them."""
        return self._storage.watch(paths.logconfig(storm_id), watcher)

    # ---- nimbuses ------------------------------------------------------------------------------

    def nimbuses(self) -> tuple[NimbusSummary, ...]:
        """All nimbuses that live, by their ids."""
        ids = self._storage.children(paths.NIMBUSES)
        found = (self._get(NimbusSummary, paths.nimbus(nimbus_id)) for nimbus_id in ids)
        return tuple(summary for summary in found if summary is not None)

    def add_nimbus(self, summary: NimbusSummary) -> None:
        """This process is that nimbus, and lives as long as its session."""
        self._storage.hold(paths.nimbus(summary.nimbus_id), summary.to_bytes())

    def remove_nimbus(self, nimbus_id: str) -> None:
        """That nimbus is no more."""
        self._storage.delete(paths.nimbus(nimbus_id))

    def leader_info(self) -> NimbusSummary | None:
        """The nimbus that leads, as it says itself."""
        return self._get(NimbusSummary, paths.LEADER_INFO)

    def set_leader_info(self, summary: NimbusSummary) -> None:
        """This process leads, at most as long as its session."""
        self._storage.hold(paths.LEADER_INFO, summary.to_bytes())

    def leader_latch(self, participant: str, listener: Callable[[bool], None]) -> LeaderLatch:
        """A participant, host:port, of the election of nimbuses; start it."""
        return LeaderLatch(self._storage, paths.LEADER_LOCK, participant, listener)


def _presentable(text: str) -> str:
    text = text.encode(errors="backslashreplace").decode()
    left_out, half = len(text) - MAX_ERROR_CHARS, MAX_ERROR_CHARS // 2
    if left_out <= 0:
        return text
    return f"{text[:half]}\n... {left_out} characters ...\n{text[-half:]}"
