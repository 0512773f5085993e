"""Views: one topology with all that is known of it, and the numbers that summaries are made of.

Statistics are counted since a worker was started, so the window ":all-time" is all there is of
them; averages of times are not measured yet, and where the interface insists on one it is 0. Pure:
functions of records and of what workers said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from storm_py.api.spec import ComponentSpec, StormTopology
from storm_py.bundle import StormCode
from storm_py.cluster.records import Assignment, Executor, NodePort, StormBase
from storm_py.constants import DEFAULT_STREAM_ID, RESERVED_PREFIX
from storm_py.heartbeat import ExecutorStatistics
from storm_py.rpc import definitions, summaries

from .catalogue import Submitted

__all__ = ["ALL_TIME", "TopologyView", "aggregate", "is_system", "users_part"]

#: Storm's name of the window that begins with the topology.
ALL_TIME: Final = ":all-time"


@dataclass(frozen=True, slots=True)
class TopologyView:
    """A topology, when `now_secs` it is."""

    id: str
    base: StormBase
    submitted: Submitted
    assignment: Assignment | None
    statistics: Mapping[Executor, ExecutorStatistics]
    complaint: str | None
    now_secs: int

    @property
    def uptime_secs(self) -> int:
        """Since it was submitted."""
        return max(0, self.now_secs - self.base.launch_time_secs)

    @property
    def executors(self) -> Mapping[Executor, NodePort]:
        """Where the executors are."""
        return {} if self.assignment is None else self.assignment.executor_node_port

    @property
    def slots(self) -> list[NodePort]:
        """The slots that it uses, sorted."""
        return sorted(set(self.executors.values()))

    def host(self, slot: NodePort) -> str:
        """The host of a slot that it uses."""
        return "" if self.assignment is None else self.assignment.node_host.get(slot[0], "")

    def of(self, component_id: str) -> list[Executor]:
        """The executors of a component that have a place, sorted."""
        tasks = self.submitted.tasks[component_id]
        return sorted(executor for executor in self.executors if executor[0] in tasks)

    def components(self, with_system: bool) -> list[ComponentSpec]:
        """The components, with or without those of the system."""
        found = self.submitted.topology.components.values()
        return [spec for spec in found if with_system or not is_system(spec.id)]

    # ---- for the interface ---------------------------------------------------------------------

    def summary(self) -> summaries.TopologySummary:
        """The topology in short."""
        return summaries.TopologySummary(
            id=self.id,
            name=self.base.name,
            num_tasks=sum(len(tasks) for tasks in self.submitted.tasks.values()),
            num_executors=sum(self.base.component_executors.values()),
            num_workers=len(self.slots),
            uptime_secs=self.uptime_secs,
            status=str(self.base.status),
            storm_version=self.base.storm_py_version,
            topology_version=self.base.topology_version,
            sched_status=self.complaint,
            owner=self.base.owner,
            replication_count=1,
        )

    def executor_summary(self, executor: Executor) -> summaries.ExecutorSummary:
        """One executor and what it has done."""
        slot = self.executors[executor]
        found = self.statistics.get(executor)
        id_ = self.submitted.component_of(executor[0])
        return summaries.ExecutorSummary(
            executor_info=definitions.ExecutorInfo(task_start=executor[0], task_end=executor[1]),
            component_id=id_,
            host=self.host(slot),
            port=slot[1],
            uptime_secs=0 if found is None else found.uptime_secs,
            stats=None if found is None else _stats(self._spec(id_), found),
        )

    def worker_summaries(self) -> list[summaries.WorkerSummary]:
        """Its workers, by their slots."""
        return [self._worker(slot) for slot in self.slots]

    def _worker(self, slot: NodePort) -> summaries.WorkerSummary:
        executors = [executor for executor, place in self.executors.items() if place == slot]
        tasks: dict[str, int] = {}
        for first, last in executors:
            id_ = self.submitted.component_of(first)
            tasks[id_] = tasks.get(id_, 0) + last - first + 1
        uptimes = [self.statistics[e].uptime_secs for e in executors if e in self.statistics]
        return summaries.WorkerSummary(
            supervisor_id=slot[0],
            host=self.host(slot),
            port=slot[1],
            topology_id=self.id,
            topology_name=self.base.name,
            num_executors=len(executors),
            component_to_num_tasks=tasks,
            time_secs=self.now_secs,
            uptime_secs=max(uptimes, default=0),
            owner=self.base.owner,
        )

    def component_stats(
        self, spec: ComponentSpec, error: summaries.ErrorInfo | None
    ) -> summaries.ComponentAggregateStats:
        """A component and what all of its executors have done."""
        own = self.of(spec.id)
        found = [self.statistics[executor] for executor in own if executor in self.statistics]
        return aggregate(spec, found, self.base.component_executors[spec.id], spec.num_tasks, error)

    def totals(self) -> summaries.TopologyStats:
        """What the topology as a whole has done; acked and failed are those of its spouts."""
        spouts = self.submitted.topology.spouts
        own = [(self.submitted.component_of(e[0]), one) for e, one in self.statistics.items()]
        users = [one for id_, one in own if not is_system(id_)]
        ends = [one for id_, one in own if id_ in spouts]
        return summaries.TopologyStats(
            window_to_emitted={ALL_TIME: sum(one.emitted for one in users)},
            window_to_transferred={ALL_TIME: sum(one.transferred for one in users)},
            window_to_complete_latencies_ms={},
            window_to_acked={ALL_TIME: sum(one.acked for one in ends)},
            window_to_failed={ALL_TIME: sum(one.failed for one in ends)},
        )

    def _spec(self, component_id: str) -> ComponentSpec:
        return self.submitted.topology.components[component_id]


def users_part(code: StormCode) -> StormCode:
    """What the user built of a topology, without what the system added to it."""
    specs = {
        id_: replace(
            spec, streams={name: info for name, info in spec.streams.items() if not is_system(name)}
        )
        for id_, spec in code.topology.components.items()
        if not is_system(id_)
    }
    return StormCode(StormTopology(specs), {id_: code.components[id_] for id_ in specs})


def is_system(component_id: str) -> bool:
    """Whether a component, or a stream, was added by the system."""
    return component_id.startswith(RESERVED_PREFIX)


def aggregate(
    spec: ComponentSpec,
    found: Iterable[ExecutorStatistics],
    executors: int,
    tasks: int,
    error: summaries.ErrorInfo | None = None,
) -> summaries.ComponentAggregateStats:
    """What executors of a component have done, all in all."""
    counted = list(found)
    common = summaries.CommonAggregateStats(
        num_executors=executors,
        num_tasks=tasks,
        emitted=sum(one.emitted for one in counted),
        transferred=sum(one.transferred for one in counted),
        acked=sum(one.acked for one in counted),
        failed=sum(one.failed for one in counted),
    )
    if spec.kind == "spout":
        kind, specific = (
            summaries.ComponentType.SPOUT,
            summaries.SpecificAggregateStats(spout=summaries.SpoutAggregateStats()),
        )
    else:
        executed = sum(one.executed for one in counted)
        kind, specific = (
            summaries.ComponentType.BOLT,
            summaries.SpecificAggregateStats(bolt=summaries.BoltAggregateStats(executed=executed)),
        )
    return summaries.ComponentAggregateStats(
        type=kind, common_stats=common, specific_stats=specific, last_error=error
    )


def _stats(spec: ComponentSpec, found: ExecutorStatistics) -> summaries.ExecutorStats:
    """The counters of one executor. They are not kept by stream: each stands at the first one."""
    emits = {ALL_TIME: {next(iter(spec.streams), DEFAULT_STREAM_ID): found.emitted}}
    transfers = {ALL_TIME: {next(iter(spec.streams), DEFAULT_STREAM_ID): found.transferred}}
    if spec.kind == "spout":
        own = next(iter(spec.streams), DEFAULT_STREAM_ID)
        specific = summaries.ExecutorSpecificStats(
            spout=summaries.SpoutStats(
                acked={ALL_TIME: {own: found.acked}},
                failed={ALL_TIME: {own: found.failed}},
                complete_ms_avg={},
            )
        )
    else:
        source = _first_input(spec)
        specific = summaries.ExecutorSpecificStats(
            bolt=summaries.BoltStats(
                acked={ALL_TIME: {source: found.acked}},
                failed={ALL_TIME: {source: found.failed}},
                process_ms_avg={},
                executed={ALL_TIME: {source: found.executed}},
                execute_ms_avg={},
            )
        )
    return summaries.ExecutorStats(
        emitted=emits, transferred=transfers, specific=specific, rate=1.0
    )


def _first_input(spec: ComponentSpec) -> definitions.GlobalStreamId:
    source = next(iter(spec.inputs))
    return definitions.GlobalStreamId(componentId=source.component_id, streamId=source.stream_id)
