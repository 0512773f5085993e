"""The calls of Storm's nimbus, typed: what a handler implements and what a client offers.

Names, order and types are those of ``storm.thrift``, from which a test derives them again. A
handler that leaves out a call is served all the same; its clients are told. Exceptions are those of
`storm_py.errors`; where the IDL does not have one for a call, the client gets a RemoteError.

``name`` is a topology's name, ``id`` a topology id (name-number-seconds).
"""

from __future__ import annotations

from typing import Protocol

from .definitions import (
    BeginDownloadResult,
    GetInfoOptions,
    KillOptions,
    LogConfig,
    ReadableBlobMeta,
    RebalanceOptions,
    StormTopology,
    SubmitOptions,
    SupervisorWorkerHeartbeat,
    SupervisorWorkerHeartbeats,
)
from .summaries import (
    ClusterSummary,
    ComponentPageInfo,
    NimbusSummary,
    SupervisorPageInfo,
    TopologyInfo,
    TopologyPageInfo,
    TopologySummary,
)


class Nimbus(Protocol):
    """Storm's nimbus."""

    def submitTopology(
        self, name: str, uploadedJarLocation: str, jsonConf: str, topology: StormTopology
    ) -> None:
        """Start a topology whose code has been uploaded."""

    def submitTopologyWithOpts(
        self,
        name: str,
        uploadedJarLocation: str,
        jsonConf: str,
        topology: StormTopology,
        options: SubmitOptions,
    ) -> None:
        """Start a topology, active or inactive."""

    def killTopology(self, name: str) -> None:
        """Stop a topology for good, after its message timeout."""

    def killTopologyWithOpts(self, name: str, options: KillOptions) -> None:
        """Stop a topology for good, after a time."""

    def activate(self, name: str) -> None:
        """Have its spouts emit."""

    def deactivate(self, name: str) -> None:
        """Have its spouts emit no more."""

    def rebalance(self, name: str, options: RebalanceOptions) -> None:
        """Spread it over the cluster anew, with as many workers and executors as are given."""

    def setLogConfig(self, name: str, config: LogConfig) -> None:
        """Change levels of its loggers; ``name`` is a topology id, in spite of its name."""

    def getLogConfig(self, name: str) -> LogConfig:
        """The levels that are set; by topology id."""

    def beginFileUpload(self) -> str:
        """Begin to upload code; gives the location for the calls that follow."""

    def uploadChunk(self, location: str, chunk: bytes) -> None:
        """Append to an upload."""

    def finishFileUpload(self, location: str) -> None:
        """End an upload."""

    def beginFileDownload(self, file: str) -> str:
        """Begin to download a file; gives the id for `downloadChunk`. Storm 1.x only."""

    def downloadChunk(self, id: str) -> bytes:
        """The next piece, empty at the end."""

    def getBlobMeta(self, key: str) -> ReadableBlobMeta:
        """Version and access of a blob."""

    def beginBlobDownload(self, key: str) -> BeginDownloadResult:
        """Begin to download a blob; gives the session for `downloadBlobChunk`."""

    def downloadBlobChunk(self, session: str) -> bytes:
        """The next piece, empty at the end."""

    def getNimbusConf(self) -> str:
        """The configuration of nimbus, as JSON."""

    def getTopologyConf(self, id: str) -> str:
        """The configuration of a topology, as JSON."""

    def getClusterInfo(self) -> ClusterSummary:
        """Supervisors, topologies and nimbuses."""

    def getLeader(self) -> NimbusSummary:
        """Which nimbus leads."""

    def isTopologyNameAllowed(self, name: str) -> bool:
        """Whether a topology may be submitted under this name: it is well-formed and free."""

    def getTopologySummaries(self) -> list[TopologySummary]:
        """All topologies, in short."""

    def getTopologySummaryByName(self, name: str) -> TopologySummary:
        """A topology, in short."""

    def getTopologySummary(self, id: str) -> TopologySummary:
        """A topology, in short."""

    def getTopologyInfo(self, id: str) -> TopologyInfo:
        """Executors, statistics and errors of a topology."""

    def getTopologyInfoByName(self, name: str) -> TopologyInfo:
        """Executors, statistics and errors of a topology."""

    def getTopologyInfoWithOpts(self, id: str, options: GetInfoOptions) -> TopologyInfo:
        """The same with all errors, one for each component, or none."""

    def getTopologyInfoByNameWithOpts(self, name: str, options: GetInfoOptions) -> TopologyInfo:
        """The same with all errors, one for each component, or none."""

    def getTopologyPageInfo(self, id: str, window: str, is_include_sys: bool) -> TopologyPageInfo:
        """A topology with the statistics of a window, with or without system components."""

    def getSupervisorPageInfo(
        self, id: str | None, host: str | None, is_include_sys: bool
    ) -> SupervisorPageInfo:
        """A supervisor by its id, or all of a host, and their workers."""

    def getComponentPageInfo(
        self, topology_id: str, component_id: str, window: str, is_include_sys: bool
    ) -> ComponentPageInfo:
        """A component with its statistics, executors and errors."""

    def getTopology(self, id: str) -> StormTopology:
        """A topology with what the system adds to it."""

    def getUserTopology(self, id: str) -> StormTopology:
        """A topology as it was submitted."""

    def sendSupervisorWorkerHeartbeats(self, heartbeats: SupervisorWorkerHeartbeats) -> None:
        """All workers of a supervisor are alive."""

    def sendSupervisorWorkerHeartbeat(self, heatbeat: SupervisorWorkerHeartbeat) -> None:
        """A worker is alive and its supervisor does not answer."""
