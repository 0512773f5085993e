"""PhysicalPlan: which tasks exist, in which executor and worker, and who sends to whom.

The static half of what every process of a topology knows: made once per assignment, written to a
file, read by workers, stream managers and instances. Addresses and incarnations, which change with
every restart, travel as control messages instead. Pure; objects of the user's, components and
custom groupings, are not in here, so that a stream manager never loads user code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from storm_py.api.grouping import CustomStreamGrouping, Grouping, GroupingKind
from storm_py.api.topology import ComponentSpec, StormTopology, StreamInfo
from storm_py.api.tuples import Fields, GlobalStreamId
from storm_py.constants import RESERVED_PREFIX

from .fusion import fused
from .routing import Target

#: Custom groupings of the streams of one component: by stream and consuming component.
CustomGroupings: TypeAlias = Mapping[tuple[str, str], CustomStreamGrouping]
NO_CUSTOM: Final[CustomGroupings] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ExecutorPlan:
    """One executor: `tasks` of one component, run by one process on worker `worker`.

    That process, the instance, bears the id of its first executor; as a rule it has no other.
    """

    id: int
    component_id: str
    tasks: tuple[int, ...]
    worker: int
    instance: int


@dataclass(frozen=True)
class PhysicalPlan:
    """A topology laid out on workers; `version` is the assignment's."""

    topology_id: str
    version: int
    topology: StormTopology
    conf: Mapping[str, object]
    executors: tuple[ExecutorPlan, ...]
    task_to_component: Mapping[int, str] = field(init=False)
    #: by the id of the instance, its executors: one, or a fused chain from its beginning
    instances: Mapping[int, tuple[ExecutorPlan, ...]] = field(init=False)
    _worker_of: Mapping[int, int] = field(init=False)
    _by_id: Mapping[int, ExecutorPlan] = field(init=False)

    def __post_init__(self) -> None:
        components = {t: e.component_id for e in self.executors for t in e.tasks}
        object.__setattr__(self, "task_to_component", dict(sorted(components.items())))
        workers = {t: e.worker for e in self.executors for t in e.tasks}
        object.__setattr__(self, "_worker_of", workers)
        object.__setattr__(self, "_by_id", {e.id: e for e in self.executors})
        instances: dict[int, list[ExecutorPlan]] = {}
        for executor in self.executors:
            instances.setdefault(executor.instance, []).append(executor)
        members = {id_: self._in_chain(found) for id_, found in sorted(instances.items())}
        object.__setattr__(self, "instances", members)

    def _in_chain(self, executors: list[ExecutorPlan]) -> tuple[ExecutorPlan, ...]:
        """The executors of one instance, each behind the one that it reads from."""
        waiting = {e.component_id: e for e in executors if e.id != e.instance}
        found = [e for e in executors if e.id == e.instance]
        for executor in found:  # grows
            for below in self.downstream(executor.component_id):
                if below in waiting:
                    found.append(waiting.pop(below))
        return tuple(found)

    @property
    def workers(self) -> tuple[int, ...]:
        """The workers that host at least one executor."""
        return tuple(sorted({e.worker for e in self.executors}))

    def on_worker(self, worker: int) -> tuple[ExecutorPlan, ...]:
        """The executors of one worker."""
        return tuple(e for e in self.executors if e.worker == worker)

    def instances_on(self, worker: int) -> tuple[int, ...]:
        """The instances of one worker."""
        return tuple(id_ for id_, members in self.instances.items() if members[0].worker == worker)

    def label(self, instance: int) -> str:
        """How to call an instance: its components and first tasks, as in `words (task 3)`."""
        members = self.instances[instance]
        tasks = ", ".join(str(member.tasks[0]) for member in members)
        names = " + ".join(member.component_id for member in members)
        return f"{names} ({'task' if len(members) == 1 else 'tasks'} {tasks})"

    def executor(self, executor_id: int) -> ExecutorPlan:
        """The executor with this id: an id that a plan has given is never given to other tasks."""
        if executor_id not in self._by_id:
            raise IndexError(f"no executor {executor_id}; there are {sorted(self._by_id)}")
        return self._by_id[executor_id]

    def executor_of(self, task: int) -> ExecutorPlan:
        """The executor of a task."""
        return next(e for e in self.executors if task in e.tasks)

    def worker_of(self, task: int) -> int:
        """The worker that hosts a task."""
        return self._worker_of[task]

    def tasks_of(self, component_id: str) -> tuple[int, ...]:
        """The tasks of a component, ascending."""
        return tuple(t for t, c in self.task_to_component.items() if c == component_id)

    def targets(
        self,
        component_id: str,
        executor: ExecutorPlan | None = None,
        custom: CustomGroupings = NO_CUSTOM,
    ) -> dict[str, tuple[Target, ...]]:
        """Per declared stream of a component: who consumes it, and how.

        `executor` is the one of the producing task: without it no task counts as local. `custom`
        are that task's copies of the user's groupings.
        """
        spec = self.topology.components[component_id]
        found: dict[str, tuple[Target, ...]] = {}
        for name, info in spec.streams.items():
            targets = []
            for consumer, grouping in self.topology.consumers(component_id, name):
                tasks = self.tasks_of(consumer)
                near = grouping.kind is GroupingKind.LOCAL_OR_SHUFFLE
                local = self._near(executor, tasks) if near and executor is not None else ()
                targets.append(
                    Target(
                        consumer,
                        grouping.kind,
                        tasks,
                        tuple(info.fields.index(f) for f in grouping.fields or ()),
                        local,
                        custom.get((name, consumer)),
                    )
                )
            found[name] = tuple(targets)
        return found

    def _near(self, executor: ExecutorPlan, tasks: Sequence[int]) -> tuple[int, ...]:
        """Those of the tasks that are local to an executor: fused with it, else in its worker."""
        behind = self.handed(executor)
        fused = tuple(task for task in tasks if task in behind)
        return fused or tuple(task for task in tasks if self._worker_of[task] == executor.worker)

    def tasks_in(self, instance: int) -> tuple[int, ...]:
        """The tasks of an instance, in the order of its executors."""
        return tuple(task for member in self.instances[instance] for task in member.tasks)

    def handed(self, executor: ExecutorPlan) -> tuple[int, ...]:
        """The tasks that an executor hands its rows to: those fused behind it, in its instance.

        What goes back to the head of the chain, round a cycle, is sent as if it were far away.
        """
        return tuple(
            task
            for member in self.instances[executor.instance][1:]
            if executor.component_id in self.upstream(member.component_id)
            for task in member.tasks
        )

    def receivers(self, executor: ExecutorPlan) -> frozenset[int]:
        """The tasks that a row of this executor may be sent to; what is handed over is not."""
        found = {
            task
            for targets in self.targets(executor.component_id, executor).values()
            for target in targets
            for task in target.candidates
        }
        return frozenset(found.difference(self.handed(executor)))

    def runs_alike(self, instance: int, other: PhysicalPlan) -> bool:
        """Whether the process of an instance may go on under another version of this plan.

        It may if it is in both, on the same worker, with the same tasks, and if the same tasks are
        near to it; who hosts those that are not does not matter to it.
        """
        ours, theirs = self.instances.get(instance), other.instances.get(instance)
        return ours == theirs and all(
            self.targets(member.component_id, member) == other.targets(member.component_id, member)
            for member in ours or ()
        )

    def downstream(self, component_id: str) -> tuple[str, ...]:
        """The components that consume a stream of this one."""
        return tuple(
            c.id
            for c in self.topology.components.values()
            if any(source.component_id == component_id for source in c.inputs)
        )

    def upstream(self, component_id: str) -> tuple[str, ...]:
        """The components of which this one consumes a stream."""
        inputs = self.topology.components[component_id].inputs
        return tuple(dict.fromkeys(source.component_id for source in inputs))

    def downstream_tasks(self, component_id: str) -> tuple[int, ...]:
        """Every task that this component may send to."""
        return tuple(sorted(t for c in self.downstream(component_id) for t in self.tasks_of(c)))

    def upstream_tasks(self, component_id: str) -> tuple[int, ...]:
        """Every task that may send to this component: one channel each."""
        return tuple(sorted(t for c in self.upstream(component_id) for t in self.tasks_of(c)))

    def in_cycle(self, upstream: str, downstream: str) -> bool:
        """Whether the edge from `upstream` to `downstream` lies on a cycle of the graph."""
        seen: set[str] = set()
        todo = [downstream]
        while todo:
            component = todo.pop()
            if component == upstream:
                return True
            if component not in seen:
                seen.add(component)
                todo.extend(self.downstream(component))
        return False

    def cyclic_components(self) -> tuple[str, ...]:
        """The components that lie on a cycle, sorted."""
        ids = self.topology.components
        return tuple(
            sorted(c for c in ids if any(self.in_cycle(c, next_) for next_ in self.downstream(c)))
        )


def make_plan(
    topology_id: str, topology: StormTopology, conf: Mapping[str, object], workers: int
) -> PhysicalPlan:
    """Number tasks and executors as Storm does and deal the executors out to the workers.

    Components are sorted by name, task ids start at 1 and are contiguous per component, executors
    are contiguous ranges of tasks. Instances go round the workers in turn, so that each component
    is spread as evenly as can be. `conf` is the topology's whole configuration.
    """
    executors: list[ExecutorPlan] = []
    heads = fused(topology, conf)
    #: the ids of the executors of each component
    ids: dict[str, list[int]] = {}
    for component_id, own in number_tasks(topology).items():
        ids[component_id] = []
        for tasks in split_evenly(own, topology.components[component_id].parallelism):
            number = len(executors) + 1
            ids[component_id].append(number)
            executors.append(ExecutorPlan(number, component_id, tuple(tasks), 0, number))
    processes = [e.id for e in executors if e.component_id not in heads]
    worker_of = {id_: i % workers for i, id_ in enumerate(processes)}
    for i, executor in enumerate(executors):
        position = ids[executor.component_id].index(executor.id)
        head = ids[heads.get(executor.component_id, executor.component_id)][position]
        executors[i] = replace(executor, worker=worker_of[head], instance=head)
    bare = {c.id: without_objects(c) for c in topology.components.values()}
    return PhysicalPlan(topology_id, 1, StormTopology(bare), dict(conf), tuple(executors))


def number_tasks(topology: StormTopology) -> dict[str, range]:
    """The tasks of each component, in the order of their numbers: for good, whatever is laid out.

    The system's own come last, so that they change nobody's task ids.
    """
    found: dict[str, range] = {}
    next_task = 1
    for spec in sorted(
        topology.components.values(), key=lambda c: (c.id.startswith(RESERVED_PREFIX), c.id)
    ):
        found[spec.id] = range(next_task, next_task + spec.num_tasks)
        next_task += spec.num_tasks
    return found


def without_objects(spec: ComponentSpec) -> ComponentSpec:
    """The component without what only user code can read."""
    inputs = {source: replace(how, custom=None) for source, how in spec.inputs.items()}
    return replace(spec, component=None, inputs=inputs)


def split_evenly(items: Sequence[int], parts: int) -> list[Sequence[int]]:
    """Contiguous ranges whose sizes differ by at most one, the larger ones first."""
    size, larger = divmod(len(items), parts)
    ranges: list[Sequence[int]] = []
    start = 0
    for i in range(parts):
        end = start + size + (1 if i < larger else 0)
        ranges.append(items[start:end])
        start = end
    return ranges


def dump_plan(plan: PhysicalPlan) -> bytes:
    """The plan as bytes for a file: JSON, for a human who looks into a run folder."""
    plain = {
        "format": 1,
        "topology_id": plan.topology_id,
        "version": plan.version,
        "conf": dict(plan.conf),
        "executors": [
            [e.id, e.component_id, list(e.tasks), e.worker, e.instance] for e in plan.executors
        ],
        "components": [_plain_component(c) for c in plan.topology.components.values()],
    }
    return json.dumps(plain, indent=1).encode()


def _plain_component(spec: ComponentSpec) -> list[object]:
    return [
        spec.id,
        spec.kind,
        spec.parallelism,
        spec.num_tasks,
        [[name, info.fields.to_list(), info.direct] for name, info in spec.streams.items()],
        [
            [s.component_id, s.stream_id, str(g.kind), g.fields.to_list() if g.fields else None]
            for s, g in spec.inputs.items()
        ],
        dict(spec.config),
    ]


def load_plan(data: bytes) -> PhysicalPlan:
    """The plan in these bytes, written by `dump_plan` of the same version."""
    plain = json.loads(data)
    components = {c[0]: _component(c) for c in plain["components"]}
    return PhysicalPlan(
        plain["topology_id"],
        plain["version"],
        StormTopology(components),
        plain["conf"],
        tuple(ExecutorPlan(i, c, tuple(tasks), w, p) for i, c, tasks, w, p in plain["executors"]),
    )


def _component(plain: list[object]) -> ComponentSpec:
    component_id, kind, parallelism, num_tasks, streams, inputs, config = plain
    return ComponentSpec(
        id=component_id,  # type: ignore[arg-type]
        kind=kind,  # type: ignore[arg-type]
        component=None,
        parallelism=parallelism,  # type: ignore[arg-type]
        num_tasks=num_tasks,  # type: ignore[arg-type]
        streams={n: StreamInfo(Fields(f), d) for n, f, d in streams},  # type: ignore[attr-defined]
        inputs={
            GlobalStreamId(c, s): Grouping(GroupingKind(k), Fields(f) if f else None)
            for c, s, k, f in inputs  # type: ignore[attr-defined]
        },
        config=config,  # type: ignore[arg-type]
    )
