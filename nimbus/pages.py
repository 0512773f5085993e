"""The calls behind the pages of a user interface: one topology, one component, one supervisor.

A window that is not known counts as ":all-time", as nothing is kept by windows; what is not
measured is left out rather than made up. Errors and lists are as in `storm_py.nimbus.reports`.
"""

from __future__ import annotations

import json

from storm_py.cluster.records import SupervisorInfo
from storm_py.errors import NotAliveException, did_you_mean
from storm_py.rpc import definitions, summaries

from .reports import Reports, supervisor_summary
from .views import ALL_TIME, aggregate

__all__ = ["Pages"]

_ALL_ERRORS = definitions.NumErrorsChoice.ALL


class Pages(Reports):
    """Everything that nimbus tells."""

    def getTopologyPageInfo(
        self, id: str, window: str, is_include_sys: bool
    ) -> summaries.TopologyPageInfo:
        """A topology with its components and what they have done."""
        view = self._view(id, self._data.base(id))
        summary = view.summary()
        stats = {
            spec.id: view.component_stats(spec, self._last_error(id, spec.id))
            for spec in view.components(is_include_sys)
        }
        spouts = view.submitted.topology.spouts
        return summaries.TopologyPageInfo(
            id=id,
            name=view.base.name,
            uptime_secs=view.uptime_secs,
            status=str(view.base.status),
            num_tasks=summary.num_tasks,
            num_workers=summary.num_workers,
            num_executors=summary.num_executors,
            topology_conf=json.dumps(dict(view.submitted.conf)),
            id_to_spout_agg_stats={id_: one for id_, one in stats.items() if id_ in spouts},
            id_to_bolt_agg_stats={id_: one for id_, one in stats.items() if id_ not in spouts},
            sched_status=view.complaint,
            topology_stats=view.totals(),
            owner=view.base.owner,
            replication_count=1,
            workers=view.worker_summaries(),
            storm_version=view.base.storm_py_version,
            topology_version=view.base.topology_version,
        )

    def getComponentPageInfo(
        self, topology_id: str, component_id: str, window: str, is_include_sys: bool
    ) -> summaries.ComponentPageInfo:
        """A component with its executors and errors."""
        view = self._view(topology_id, self._data.base(topology_id))
        spec = view.submitted.topology.components.get(component_id)
        if spec is None:
            known = sorted(view.submitted.topology.components)
            raise NotAliveException(
                f"{topology_id} has no component {component_id!r}, only: {', '.join(known)}"
                f"{did_you_mean(component_id, known)}"
            )
        kinds = summaries.ComponentType
        return summaries.ComponentPageInfo(
            component_id=component_id,
            component_type=kinds.SPOUT if spec.kind == "spout" else kinds.BOLT,
            topology_id=topology_id,
            topology_name=view.base.name,
            num_executors=view.base.component_executors[component_id],
            num_tasks=spec.num_tasks,
            window_to_stats={ALL_TIME: view.component_stats(spec, None)},
            gsid_to_input_stats={},
            sid_to_output_stats={},
            exec_stats=[
                summaries.ExecutorAggregateStats(
                    exec_summary=view.executor_summary(executor),
                    stats=aggregate(
                        spec,
                        [view.statistics[executor]] if executor in view.statistics else [],
                        1,
                        executor[1] - executor[0] + 1,
                    ),
                )
                for executor in view.of(component_id)
            ],
            errors=self._errors(topology_id, component_id, _ALL_ERRORS),
            topology_status=str(view.base.status),
        )

    def getSupervisorPageInfo(
        self, id: str | None, host: str | None, is_include_sys: bool
    ) -> summaries.SupervisorPageInfo:
        """A supervisor by its id, or all of a host, and their workers."""
        state = self._data.state
        found: dict[str, SupervisorInfo] = {}
        for supervisor_id in state.supervisors():
            info = state.supervisor_info(supervisor_id)
            if info is not None and (supervisor_id == id if id else info.hostname == host):
                found[supervisor_id] = info
        workers = [
            worker
            for view in self._views()
            for worker in view.worker_summaries()
            if worker.supervisor_id in found
        ]
        used = [worker.supervisor_id for worker in workers]
        return summaries.SupervisorPageInfo(
            supervisor_summaries=[
                supervisor_summary(one, info, used.count(one)) for one, info in found.items()
            ],
            worker_summaries=workers,
        )
