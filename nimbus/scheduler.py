"""EvenScheduler: which slot runs which group of executors.

Theory of operation. A slot is a port of a supervisor; it holds one topology, and what it runs is a
worker. A topology asks for `num_workers` slots. Free slots are taken *interleaved*: supervisors
with the most free slots first, one slot of each in turn, lowest ports first. Groups that have no
place are dealt out in the order of their first tasks, each to the slot that holds the fewest: over
empty slots that is round robin. All of this is Storm's, and so is the outcome wherever every group
or none has a place to begin with, or a slot was lost and another one is found for it.

What has a place keeps it, and here Storm's DefaultScheduler is less careful: it empties every slot
that holds more or less than an even share once a topology can have more slots, or has lost any.
Here a slot gives up only what is over its share, and only if

- the topology gets more slots than it had, or has more than it asks for, or
- a worker would otherwise have nothing to run.

So nothing moves while nothing changes, what is lost with a supervisor is dealt out without touching
the rest, and more or fewer workers cost the fewest moves that make the slots even. With fewer
workers the fullest slots stay, spread over the supervisors. What a slot gives up is taken from the
components that it has most of, so that each component stays spread.

A slot with a dead executor is *dead*: its worker is not trusted, all that it held is dealt out
anew, and nobody gets it in this round (Storm's dead ports). What runs under a supervisor that is
gone or blacklisted stays as long as it lives: workers outlive their supervisors. But it gets
nothing new; a topology that has nowhere else to put something leaves its emptiest such slot for
another one.

Pure: a function of its arguments, whatever their order. A group, which is one process, is placed by
its head; fusion made it, see `storm_py.nimbus.executors`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import zip_longest

from .executors import ExecutorDetails, Group


@dataclass(frozen=True, slots=True, order=True)
class WorkerSlot:
    """A port of a supervisor, which `node_id` is the id of."""

    node_id: str
    port: int

    def __str__(self) -> str:
        return f"{self.node_id}:{self.port}"


@dataclass(frozen=True, slots=True)
class SupervisorDetails:
    """A supervisor that is there, and the ports that it offers, used ones included."""

    id: str
    host: str
    ports: frozenset[int]


@dataclass(frozen=True, slots=True)
class TopologyDetails:
    """What the scheduler has to know of one topology.

    `assigned` is its present assignment as a whole: executors that no longer exist may be in it.
    `dead` are those of its executors that Nimbus has not heard of for too long. Topologies are
    served in the order of their `launch_time_secs`.
    """

    id: str
    num_workers: int
    groups: tuple[Group, ...]
    assigned: Mapping[ExecutorDetails, WorkerSlot] = field(default_factory=dict)
    dead: frozenset[ExecutorDetails] = frozenset()
    launch_time_secs: int = 0

    def __post_init__(self) -> None:
        if self.num_workers < 1:
            raise ValueError(f"{self.id} asks for {self.num_workers} workers; 1 is the least")
        executors = Counter(executor for group in self.groups for executor in group)
        if twice := [str(executor) for executor, times in executors.items() if times > 1]:
            raise ValueError(f"{self.id} has executors in two groups: {', '.join(sorted(twice))}")

    @property
    def wanted_workers(self) -> int:
        """How many slots it can make use of: a worker runs at least one group."""
        return min(self.num_workers, len(self.groups))


@dataclass(frozen=True, slots=True)
class SchedulerAssignment:
    """Where the executors of one topology run from now on."""

    topology_id: str
    executor_to_slot: Mapping[ExecutorDetails, WorkerSlot]
    #: What no slot was found for; it is tried again whenever slots are scheduled.
    unassigned: tuple[ExecutorDetails, ...]
    wanted_workers: int

    @property
    def slots(self) -> tuple[WorkerSlot, ...]:
        """The slots that it uses."""
        return tuple(sorted(set(self.executor_to_slot.values())))

    @property
    def complaint(self) -> str | None:
        """What it lacks and what to do about that, in a sentence; None if it lacks nothing."""
        if not self.unassigned and len(self.slots) >= self.wanted_workers:
            return None
        waiting = f", {len(self.unassigned)} executors have none" if self.unassigned else ""
        return (
            f"{self.topology_id} wants {self.wanted_workers} slots and has {len(self.slots)}"
            f"{waiting}: start another supervisor, give one more supervisor.slots.ports, "
            "or kill a topology"
        )


def schedule(
    topologies: Iterable[TopologyDetails],
    supervisors: Iterable[SupervisorDetails],
    blacklisted_hosts: Set[str] = frozenset(),
) -> dict[str, SchedulerAssignment]:
    """The assignment of each topology, by its id; those that wait longest are served first."""
    in_turn = sorted(topologies, key=lambda topology: (topology.launch_time_secs, topology.id))
    dead = {t.assigned[executor] for t in in_turn for executor in t.dead if executor in t.assigned}
    assignable = {
        WorkerSlot(supervisor.id, port)
        for supervisor in supervisors
        if supervisor.host not in blacklisted_hosts
        for port in supervisor.ports
    } - dead
    taken = set(dead)
    layouts = []
    for topology in in_turn:
        layout = _Layout(topology, taken, assignable)
        taken.update(layout.slots)
        layouts.append(layout)
    for layout in layouts:  # all of them first: what one leaves, another may take in this round
        layout.shrink()
    free = assignable.difference(*(layout.slots for layout in layouts))
    found = {}
    for layout in layouts:
        found[layout.topology.id] = layout.spread(free)
        free.difference_update(layout.slots)
    return found


def interleaved(slots: Iterable[WorkerSlot]) -> list[WorkerSlot]:
    """One slot of each supervisor in turn, lowest ports first; those with the most slots first."""
    by_node: dict[str, list[WorkerSlot]] = {}
    for slot in sorted(slots):
        by_node.setdefault(slot.node_id, []).append(slot)
    columns = sorted(by_node.values(), key=len, reverse=True)
    return [slot for row in zip_longest(*columns) for slot in row if slot is not None]


class _Layout:
    """One topology while it is laid out: what its slots hold, and what has no place."""

    def __init__(
        self, topology: TopologyDetails, unusable: Set[WorkerSlot], assignable: Set[WorkerSlot]
    ) -> None:
        self.topology = topology
        self._assignable = assignable
        before = set(topology.assigned.values())
        self._slots_before = len(before)
        self._held: dict[WorkerSlot, list[Group]] = {s: [] for s in sorted(before - unusable)}
        self._homeless: list[Group] = []
        self._crowded = False
        for group in topology.groups:
            place = topology.assigned.get(group[0])
            held = self._held.get(place) if place else None
            (self._homeless if held is None else held).append(group)
        # A worker of which nothing is left goes on with what is new, if it can be told so.
        for slot in [s for s, held in self._held.items() if not held and s not in assignable]:
            del self._held[slot]

    @property
    def slots(self) -> Set[WorkerSlot]:
        """The slots that are the topology's."""
        return self._held.keys()

    def shrink(self) -> None:
        """Leave the slots that the topology no longer asks for."""
        excess = len(self._held) - self.topology.wanted_workers
        if excess <= 0 or not self._reachable:
            return
        self._crowded = True
        turn = {slot: i for i, slot in enumerate(interleaved(self._held))}
        best_first = sorted(
            self._held, key=lambda s: (s not in self._assignable, -len(self._held[s]), turn[s])
        )
        for slot in best_first[-excess:]:
            self._homeless += self._held.pop(slot)

    def spread(self, free: Set[WorkerSlot]) -> SchedulerAssignment:
        """Open slots, and give a place to all that has none."""
        wanted = self.topology.wanted_workers
        room = interleaved(free)
        while self._homeless and room and len(self._held) >= wanted and not self._reachable:
            self._homeless += self._held.pop(min(self._held, key=lambda s: (self._size(s), s)))
        new = room[: max(0, wanted - len(self._held))]
        workers = len(self._held) + len(new)
        filled = sum(map(bool, self._held.values())) + len(self._homeless)
        if workers and (self._crowded or workers > self._slots_before or filled < workers):
            self._thin_out(workers)
        self._deal(new)
        return SchedulerAssignment(
            self.topology.id,
            dict(sorted((e, s) for s, held in self._held.items() for g in held for e in g)),
            tuple(sorted(executor for group in self._homeless for executor in group)),
            wanted,
        )

    @property
    def _reachable(self) -> bool:
        """Whether one of its slots can be given something new."""
        return bool(self.slots & self._assignable)

    def _size(self, slot: WorkerSlot) -> int:
        return len(self._held[slot])

    def _thin_out(self, workers: int) -> None:
        """Take from each slot what is over its share, the larger shares being the fullest's."""
        share, larger = divmod(len(self.topology.groups), workers)
        fullest_first = sorted(self._held, key=lambda s: (-self._size(s), s))
        for i, slot in enumerate(fullest_first):
            held = self._held[slot]
            for _ in range(len(held) - share - (i < larger)):
                counts = Counter(group[0].component_id for group in held)
                given_up = max(held, key=lambda group: (counts[group[0].component_id], group))
                held.remove(given_up)
                self._homeless.append(given_up)

    def _deal(self, new: Sequence[WorkerSlot]) -> None:
        """Give each group a slot that holds the fewest, a new one first, then by component."""
        settled = {slot for slot, held in self._held.items() if held}
        targets = [s for s in self._held if s not in settled] + list(new)
        targets += [s for s in self._held if s in settled and s in self._assignable]
        if not targets:
            return
        for slot in new:
            self._held[slot] = []
        kin = Counter((s, g[0].component_id) for s, held in self._held.items() for g in held)
        for group in sorted(self._homeless):
            component_id = group[0].component_id
            rank = {s: (self._size(s), s in settled, kin[s, component_id]) for s in targets}
            slot = min(targets, key=rank.__getitem__)  # of equals the first
            self._held[slot].append(group)
            kin[slot, component_id] += 1
        self._homeless = []
