"""A round: who lives, what runs where from now on, and the assignments that say so.

Nothing is remembered from one round to the next but who is heard of (`storm_py.nimbus.beats`), and
which supervisors are: each begins with what is stored. So it does not matter how often rounds are,
or whose they are. Topologies that are being killed or rebalanced keep their places and are not
looked at. What is wrong with one topology is logged, and does not keep others from being assigned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from storm_py.cluster.records import Assignment, StormBase, SupervisorInfo, TopologyStatus
from storm_py.config import Config
from storm_py.errors import ConnectionLost, StormPyError

from .assigning import CodeOrigin, frozen, next_assignment, placed
from .beats import Beat
from .catalogue import Submitted
from .data import NimbusData
from .liveness import Liveness, Timeouts, executor_timeouts
from .scheduler import SchedulerAssignment, SupervisorDetails, TopologyDetails, schedule

__all__ = ["Rounds"]

_LOG = logging.getLogger("storm_py.nimbus")

T = TypeVar("T")

_RUNNING = (TopologyStatus.ACTIVE, TopologyStatus.INACTIVE)
#: Storm's key and default; no topology's own timeout may be longer.
_WORKER_TIMEOUT, _WORKER_MAX_TIMEOUT = "topology.worker.timeout.secs", "worker.max.timeout.secs"
_WORKER_MAX_TIMEOUT_SECS = 600


@dataclass(frozen=True, slots=True)
class _Topology:
    """What a round knows of one topology."""

    id: str
    base: StormBase
    submitted: Submitted
    assignment: Assignment | None
    #: Whether it is given its places although spouts of it pause for that.
    rebalanced: bool

    @property
    def runs(self) -> bool:
        return self.rebalanced or self.base.status in _RUNNING


class Rounds:
    """The scheduling of one leader; `may_act` says whether it is one still."""

    def __init__(self, data: NimbusData, may_act: Callable[[], bool]) -> None:
        self._data = data
        self._may_act = may_act
        self._supervisors: Liveness[str] = Liveness()
        self._known_supervisors: frozenset[str] = frozenset()
        self._complaints: dict[str, str] = {}

    def complaint(self, topology_id: str) -> str | None:
        """What a topology lacked in the last round."""
        return self._complaints.get(topology_id)

    def forget(self, topology_id: str) -> None:
        """The topology is no more."""
        self._complaints.pop(topology_id, None)

    def run(self, now: float, rebalanced: str | None = None) -> None:
        """Assign what has to be assigned, the topology that is being rebalanced just now included.

        ConnectionLost if that came to no end.
        """
        supervisors = self._living(now)
        found = [
            read
            for id_ in self._data.state.storms()
            if (read := self._topology(id_, id_ == rebalanced))
        ]
        for topology in found:
            if topology.assignment is not None:
                self._expect(topology, topology.assignment, now)
        for supervisor_id, info in supervisors.items():
            self._hear(supervisor_id, info, now)
        for topology in found:
            self._hear_workers(topology.id, now)
        details = [seen for topology in found if (seen := self._details(topology))]
        schedules = schedule(
            details,
            [SupervisorDetails(i, s.hostname, frozenset(s.meta)) for i, s in supervisors.items()],
        )
        hosts = {id_: info.hostname for id_, info in supervisors.items()}
        for topology in found:
            if topology.runs and self._may_act():
                self._one(
                    topology.id, partial(self._assign, topology, schedules[topology.id], hosts, now)
                )

    # ---- who is there --------------------------------------------------------------------------

    def _living(self, now: float) -> dict[str, SupervisorInfo]:
        """The supervisors that have said something new within their time."""
        state, timeout = self._data.state, self._data.conf[Config.NIMBUS_SUPERVISOR_TIMEOUT_SECS]
        found = {}
        for id_ in state.supervisors():
            info = self._one(id_, partial(state.supervisor_info, id_))
            if info is not None:
                found[id_] = info
                self._supervisors.expect(id_, Timeouts(timeout, timeout), now)
                self._supervisors.beat(id_, info.time_secs, now)
        for gone in self._known_supervisors - found.keys():
            self._supervisors.forget(gone)
            _LOG.info("supervisor %s is gone", gone)
        for new in found.keys() - self._known_supervisors:
            _LOG.info("supervisor %s on %s offers %s", new, found[new].hostname, found[new].meta)
        self._known_supervisors = frozenset(found)
        self._supervisors.tick(now)
        return {id_: info for id_, info in found.items() if id_ not in self._supervisors.dead}

    def _hear(self, supervisor_id: str, info: SupervisorInfo, now: float) -> None:
        for beat in info.worker_heartbeats.values():
            heard = Beat(beat.storm_id, beat.executors, beat.time_secs, supervisor_id)
            self._data.beats.hear("supervisors", heard, now)

    def _hear_workers(self, topology_id: str, now: float) -> None:
        found = self._data.state.worker_heartbeats(topology_id)
        for (node, _), beat in found.items():
            heard = Beat(topology_id, beat.executors, beat.time_secs, node)
            self._data.beats.hear("workerbeats", heard, now)

    # ---- what there is -------------------------------------------------------------------------

    def _topology(self, topology_id: str, rebalanced: bool) -> _Topology | None:
        def read() -> _Topology | None:
            base = self._data.state.storm_base(topology_id)
            if base is None:
                return None
            submitted = self._data.catalogue.get(topology_id)
            assignment = self._data.state.assignment(topology_id)
            return _Topology(topology_id, base, submitted, assignment, rebalanced)

        return self._one(topology_id, read)

    def _expect(self, topology: _Topology, assignment: Assignment, now: float) -> None:
        conf, own = self._data.conf, topology.submitted.conf.get(_WORKER_TIMEOUT)
        most = conf.get(_WORKER_MAX_TIMEOUT, _WORKER_MAX_TIMEOUT_SECS)
        timeouts = executor_timeouts(
            conf[Config.NIMBUS_TASK_TIMEOUT_SECS],
            conf[Config.NIMBUS_TASK_LAUNCH_SECS],
            own if isinstance(own, int) else None,
            most if isinstance(most, int) else _WORKER_MAX_TIMEOUT_SECS,
        )
        self._data.beats.expect(topology.id, assignment, timeouts, now)

    def _details(self, topology: _Topology) -> TopologyDetails | None:
        base, where = topology.base, placed(topology.assignment, topology.submitted.tasks)
        if not topology.runs:
            return frozen(topology.id, where, base.launch_time_secs) if where else None
        dead = self._data.beats.dead(topology.id)
        return TopologyDetails(
            id=topology.id,
            num_workers=base.num_workers,
            groups=topology.submitted.groups(base.component_executors),
            assigned=where,
            dead=frozenset(e for e in where if (e.start_task, e.end_task) in dead),
            launch_time_secs=base.launch_time_secs,
        )

    # ---- what is written -----------------------------------------------------------------------

    def _assign(
        self, topology: _Topology, found: SchedulerAssignment, hosts: Mapping[str, str], now: float
    ) -> None:
        self._complain(topology.id, found.complaint)
        state, id_ = self._data.state, topology.id
        origin = CodeOrigin(
            topology.base.owner, str(self._data.blobs.folder), topology.submitted.checksum
        )
        wall = int(self._data.wall())
        after = next_assignment(topology.assignment, found, hosts, origin, wall)
        if after is None:
            return
        if topology.assignment is None:
            state.setup_registrations(id_)
            state.setup_errors(id_)
            state.setup_heartbeats(id_)
        state.set_assignment(id_, after)
        slots = ", ".join(str(slot) for slot in found.slots)
        executors = len(after.executor_node_port)
        _LOG.info("%s: assignment %d: %d executors on %s", id_, after.version, executors, slots)
        self._expect(topology, after, now)
        self.prune(id_, after)

    def prune(self, topology_id: str, assignment: Assignment) -> None:
        """Remove the registrations of workers that are no longer assigned."""
        numbers = set(assignment.worker_numbers.values())
        for number in self._data.state.registered_workers(topology_id):
            if number not in numbers:
                self._data.state.remove_registration(topology_id, number)

    def _complain(self, topology_id: str, complaint: str | None) -> None:
        before = self._complaints.get(topology_id)
        if complaint is None:
            self._complaints.pop(topology_id, None)
            if before is not None:
                _LOG.info("%s has all that it needs", topology_id)
        elif complaint != before:
            self._complaints[topology_id] = complaint
            _LOG.warning("%s", complaint)

    def _one(self, what: str, do: Callable[[], T]) -> T | None:
        """Do something about one topology or supervisor, of which nothing else may depend."""
        try:
            return do()
        except ConnectionLost:
            raise
        except StormPyError as error:
            _LOG.error("%s is left out of this round: %s", what, error)
            return None
