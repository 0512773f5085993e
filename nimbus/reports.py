"""The calls that only tell: topologies, supervisors and nimbuses as they are stored.

Any nimbus answers them; what workers have done is known to the leader alone, whose answers so have
more in them. Nothing here waits for the loop. A topology of which something cannot be read is left
out of lists, and the log says so.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from storm_py.bundle import code_key, load_code
from storm_py.cluster.records import (
    ErrorInfo,
    NimbusSummary,
    StormBase,
    SupervisorInfo,
)
from storm_py.constants import SYSTEM_COMPONENT_ID
from storm_py.errors import ConnectionLost, NotALeader, StormPyError
from storm_py.rpc import definitions, summaries
from storm_py.thrift_topology import to_thrift

from .data import NimbusData
from .names import is_topology_name_allowed
from .views import TopologyView, users_part

__all__ = ["Reports"]

_LOG = logging.getLogger("storm_py.nimbus")

_CHOICE: Final = definitions.NumErrorsChoice


class Reports:
    """Clusters and topologies; pages are `storm_py.nimbus.pages`."""

    def __init__(self, data: NimbusData, complaint: Callable[[str], str | None]) -> None:
        """`complaint` says what a topology lacked when slots were given out last."""
        self._data = data
        self._complaint = complaint

    # ---- the cluster ---------------------------------------------------------------------------

    def getNimbusConf(self) -> str:
        """The configuration of nimbus, as JSON."""
        return json.dumps(dict(self._data.conf))

    def getLeader(self) -> summaries.NimbusSummary:
        """Which nimbus leads. NotALeader if none does."""
        found = self._data.state.leader_info()
        if found is None:
            raise NotALeader(
                f"no nimbus leads at the moment, as nimbus at {self._data.me.nimbus_id} sees it: "
                "try again in a moment, or look into the logs of the nimbuses"
            )
        return self._nimbus(found, found)

    def getClusterInfo(self) -> summaries.ClusterSummary:
        """Supervisors, topologies and nimbuses."""
        leader = self._data.state.leader_info()
        views = self._views()
        used = Counter(node for view in views for node, _ in view.slots)
        return summaries.ClusterSummary(
            supervisors=self._supervisors(used),
            topologies=[view.summary() for view in views],
            nimbuses=[self._nimbus(one, leader) for one in self._data.state.nimbuses()],
        )

    def isTopologyNameAllowed(self, name: str) -> bool:
        """Whether a topology may be submitted under this name."""
        taken = [base.name for base in self._data.bases().values()]
        return is_topology_name_allowed(name, taken)

    # ---- topologies ----------------------------------------------------------------------------

    def getTopologySummaries(self) -> list[summaries.TopologySummary]:
        """All topologies, in short."""
        return [view.summary() for view in self._views()]

    def getTopologySummaryByName(self, name: str) -> summaries.TopologySummary:
        """A topology, in short."""
        return self._view(*self._data.named(name)).summary()

    def getTopologySummary(self, id: str) -> summaries.TopologySummary:
        """A topology, in short."""
        return self._view(id, self._data.base(id)).summary()

    def getTopologyInfo(self, id: str) -> summaries.TopologyInfo:
        """Executors, statistics and errors of a topology."""
        return self._info(self._view(id, self._data.base(id)), _CHOICE.ALL)

    def getTopologyInfoByName(self, name: str) -> summaries.TopologyInfo:
        """Executors, statistics and errors of a topology."""
        return self._info(self._view(*self._data.named(name)), _CHOICE.ALL)

    def getTopologyInfoWithOpts(
        self, id: str, options: definitions.GetInfoOptions
    ) -> summaries.TopologyInfo:
        """The same with all errors, one for each component, or none."""
        return self._info(self._view(id, self._data.base(id)), options.num_err_choice)

    def getTopologyInfoByNameWithOpts(
        self, name: str, options: definitions.GetInfoOptions
    ) -> summaries.TopologyInfo:
        """The same with all errors, one for each component, or none."""
        return self._info(self._view(*self._data.named(name)), options.num_err_choice)

    def getTopologyConf(self, id: str) -> str:
        """The configuration of a topology, as JSON."""
        self._data.base(id)
        return json.dumps(dict(self._data.catalogue.get(id).conf))

    def getTopology(self, id: str) -> definitions.StormTopology:
        """A topology with what the system adds to it."""
        self._data.base(id)
        key = code_key(id)
        return to_thrift(load_code(self._data.blobs.read(key), key))

    def getUserTopology(self, id: str) -> definitions.StormTopology:
        """A topology as it was submitted."""
        self._data.base(id)
        key = code_key(id)
        return to_thrift(users_part(load_code(self._data.blobs.read(key), key)))

    # ---- how -----------------------------------------------------------------------------------

    def _views(self) -> list[TopologyView]:
        found = []
        for id_, base in sorted(self._data.bases().items()):
            try:
                found.append(self._view(id_, base))
            except ConnectionLost:
                raise
            except StormPyError as error:  # removed meanwhile, or its blobs are not here yet
                _LOG.warning("%s is left out: %s", id_, error)
        return found

    def _view(self, topology_id: str, base: StormBase) -> TopologyView:
        return TopologyView(
            id=topology_id,
            base=base,
            submitted=self._data.catalogue.get(topology_id),
            assignment=self._data.state.assignment(topology_id),
            statistics=self._data.beats.statistics(topology_id),
            complaint=self._complaint(topology_id),
            now_secs=int(self._data.wall()),
        )

    def _info(self, view: TopologyView, choice: int | None) -> summaries.TopologyInfo:
        errors = {}
        # Errors of the system are those of workers, which may have come to run no component at all.
        for id_ in [*(spec.id for spec in view.components(with_system=True)), SYSTEM_COMPONENT_ID]:
            found = self._errors(view.id, id_, _CHOICE.ALL if choice is None else choice)
            if found:
                errors[id_] = found
        return summaries.TopologyInfo(
            id=view.id,
            name=view.base.name,
            uptime_secs=view.uptime_secs,
            executors=[view.executor_summary(executor) for executor in sorted(view.executors)],
            status=str(view.base.status),
            errors=errors,
            component_debug={},
            storm_version=view.base.storm_py_version,
            sched_status=view.complaint,
            owner=view.base.owner,
            replication_count=1,
        )

    def _errors(
        self, topology_id: str, component_id: str, choice: int
    ) -> list[summaries.ErrorInfo]:
        """The errors of a component, newest first."""
        if choice == _CHOICE.NONE:
            return []
        if choice == _CHOICE.ONE:
            last = self._last_error(topology_id, component_id)
            return [] if last is None else [last]
        return [_error(one) for one in self._data.state.errors(topology_id, component_id)]

    def _last_error(self, topology_id: str, component_id: str) -> summaries.ErrorInfo | None:
        found = self._data.state.last_error(topology_id, component_id)
        return None if found is None else _error(found)

    def _supervisors(self, used: Mapping[str, int]) -> list[summaries.SupervisorSummary]:
        state = self._data.state
        found = {id_: state.supervisor_info(id_) for id_ in state.supervisors()}
        return [
            supervisor_summary(id_, info, used.get(id_, 0))
            for id_, info in found.items()
            if info is not None
        ]

    def _nimbus(self, one: NimbusSummary, leader: NimbusSummary | None) -> summaries.NimbusSummary:
        return summaries.NimbusSummary(
            host=one.host,
            port=one.port,
            uptime_secs=max(0, int(self._data.wall()) - one.start_time_secs),
            isLeader=leader is not None and leader.nimbus_id == one.nimbus_id,
            version=one.version,
        )


def _error(found: ErrorInfo) -> summaries.ErrorInfo:
    return summaries.ErrorInfo(
        error=found.error,
        error_time_secs=found.error_time_secs,
        host=found.host or None,
        port=found.port or None,
    )


def supervisor_summary(
    supervisor_id: str, info: SupervisorInfo, used: int
) -> summaries.SupervisorSummary:
    """A supervisor, so many slots of which are in use."""
    return summaries.SupervisorSummary(
        host=info.hostname,
        uptime_secs=info.uptime_secs,
        num_workers=len(info.meta),
        num_used_workers=used,
        supervisor_id=supervisor_id,
        version=info.version,
        blacklisted=False,
    )
