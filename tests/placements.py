"""What the tests of Nimbus' scheduler are made of: groups, supervisors and assignments, in short.

A slot is written `a:1`, supervisors `a:1 a:2 b:1`, an executor `x1` or `x1-4`: the component x, and
the tasks that it runs. Groups are separated by spaces, the executors of one group by `+`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from storm_py.nimbus.executors import (
    ExecutorDetails,
    Group,
    compute_executors,
    make_groups,
    number_tasks,
)
from storm_py.nimbus.scheduler import (
    SchedulerAssignment,
    SupervisorDetails,
    TopologyDetails,
    WorkerSlot,
    schedule,
)


def executor(text: str) -> ExecutorDetails:
    match = re.fullmatch(r"([a-z]+)(\d+)(?:-(\d+))?", text)
    assert match, text
    component_id, start, end = match.groups()
    return ExecutorDetails(int(start), int(end or start), component_id)


def groups(text: str) -> tuple[Group, ...]:
    return tuple(tuple(map(executor, group.split("+"))) for group in text.split())


def slot(text: str) -> WorkerSlot:
    node_id, _, port = text.partition(":")
    return WorkerSlot(node_id, int(port))


def supervisors(text: str) -> list[SupervisorDetails]:
    """Each on a host of its own."""
    ports: dict[str, set[int]] = {}
    for one in map(slot, text.split()):
        ports.setdefault(one.node_id, set()).add(one.port)
    return [SupervisorDetails(id_, f"host-{id_}", frozenset(own)) for id_, own in ports.items()]


def assigned(**slots: str) -> dict[ExecutorDetails, WorkerSlot]:
    """`a_1="x1 x3"`: slot a:1 runs the executors x1 and x3."""
    return {
        one: slot(name.replace("_", ":"))
        for name, text in slots.items()
        for group in groups(text)
        for one in group
    }


def shown(assignment: SchedulerAssignment) -> dict[str, str]:
    """By slot what it runs: `{"a:1": "x1 x3"}`."""
    held: dict[WorkerSlot, list[str]] = {}
    for one, place in sorted(assignment.executor_to_slot.items()):
        tasks = f"{one.start_task}" + (f"-{one.end_task}" if len(one.tasks) > 1 else "")
        held.setdefault(place, []).append(f"{one.component_id}{tasks}")
    return {str(place): " ".join(names) for place, names in sorted(held.items())}


def topology(text: str, workers: int, id_: str = "t-1-0", **slots: str) -> TopologyDetails:
    return TopologyDetails(id_, workers, groups(text), assigned(**slots))


def placed(one: TopologyDetails, text: str) -> dict[str, str]:
    """Where a topology that is alone in a cluster is placed."""
    return shown(schedule([one], supervisors(text))[one.id])


def after(one: TopologyDetails, found: Mapping[str, SchedulerAssignment]) -> TopologyDetails:
    """The topology as of its new assignment, with nothing dead."""
    return replace(one, assigned=found[one.id].executor_to_slot, dead=frozenset())


def sizes(one: TopologyDetails, assignment: Mapping[ExecutorDetails, WorkerSlot]) -> list[int]:
    """How many groups each slot holds, the fullest first."""
    heads = [assignment.get(group[0]) for group in one.groups]
    return sorted((heads.count(place) for place in {*heads} - {None}), reverse=True)


def on(node_id: str, assignment: Mapping[ExecutorDetails, WorkerSlot]) -> set[ExecutorDetails]:
    """The executors on one supervisor."""
    return {one for one, place in assignment.items() if place.node_id == node_id}


def slots_of(found: Iterable[SupervisorDetails]) -> set[WorkerSlot]:
    return {WorkerSlot(one.id, port) for one in found for port in one.ports}


clusters = st.lists(st.frozensets(st.integers(1, 4), max_size=4), min_size=1, max_size=4).map(
    lambda offered: [
        SupervisorDetails("abcd"[i], f"host-{i}", ports) for i, ports in enumerate(offered)
    ]
)


@st.composite
def topologies(draw: st.DrawFn, id_: str = "t-1-0", fused: bool = True) -> TopologyDetails:
    """One to four components; some of them run in the processes of the first, if `fused`."""
    names = "wxyz"[: draw(st.integers(1, 4))]
    num_tasks = {name: draw(st.integers(1, 5)) for name in names}
    parallelism = {name: draw(st.integers(1, number)) for name, number in num_tasks.items()}
    heads = {
        name: names[0]
        for name in names[1:]
        if fused and parallelism[name] == parallelism[names[0]] and draw(st.booleans())
    }
    executors = compute_executors(number_tasks(num_tasks), parallelism)
    workers = draw(st.integers(1, 6))
    launched = draw(st.integers(0, 2))
    return TopologyDetails(id_, workers, make_groups(executors, heads), launch_time_secs=launched)


@st.composite
def several(draw: st.DrawFn) -> list[TopologyDetails]:
    """One to three topologies that nothing is assigned to."""
    return [draw(topologies(f"t-{i}-0")) for i in range(draw(st.integers(1, 3)))]
