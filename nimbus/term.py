"""Term: one time of leadership: the lives of all topologies, rounds, and what is left of the dead.

Theory of operation. A term begins with what is stored: each topology gets its `TopologyLifecycle`,
which begins its waits anew. What an event of a user's leads to is stored before it counts as done,
and everything is stored in an order that a successor can go on from at any point:

- a submission is its blobs, and then the StormBase: without the latter it never was;
- a rebalance is first a StormBase that says so, then one with the new numbers, then an assignment,
  and then the status that was before: spouts go on when everybody knows the new places;
- a removal ends with the StormBase: while that is there the next leader begins the removal again.

What is there without a StormBase is nobody's, and is swept; blobs by `storm_py.nimbus.orphans`.

A term that could not store something does not know what is stored: it is `stale`, and its owner
begins another one. Used by one thread, the loop of `storm_py.nimbus.service`; time is an argument
of what has to do with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from storm_py.cluster.records import StormBase, TopologyStatus
from storm_py.config import Config
from storm_py.errors import (
    AlreadyAliveException,
    ConnectionLost,
    NotALeader,
    StormPyError,
)

from .data import NimbusData, not_alive
from .lifecycle import (
    Action,
    DoRebalance,
    KillOptions,
    RebalanceOptions,
    Remove,
    Schedule,
    SetStatus,
    TopologyLifecycle,
    TopologyState,
)
from .names import make_topology_id
from .rebalance import check_request, plan_rebalance
from .rounds import Rounds
from .stored import parallelism_of, state_of, with_parallelism, with_state

__all__ = ["Term"]

_LOG = logging.getLogger("storm_py.nimbus")


@dataclass(slots=True)
class _Life:
    """A topology that is alive."""

    name: str
    cycle: TopologyLifecycle
    #: Whether it is killed once its input has ended.
    kill_on_end: bool


class Term:
    """What a leader does; `may_act` says whether this is its term still."""

    def __init__(self, data: NimbusData, may_act: Callable[[], bool]) -> None:
        self._data = data
        self._may_act = may_act
        self._rounds = Rounds(data, may_act)
        self._lives: dict[str, _Life] = {}
        #: Names and ids of submissions that are under way.
        self._reserved: dict[str, str] = {}
        self._round_due = 0.0
        self.stale = False

    def begin(self, now: float) -> None:
        """Take over what is stored. ConnectionLost if that came to no end: begin another term."""
        state = self._data.state
        for id_ in state.storms():
            try:
                self._take_over(id_, now)
            except ConnectionLost:
                raise
            except (StormPyError, ValueError) as error:
                _LOG.error("%s cannot be managed: %s", id_, error)
        self._sweep(now)
        self._round_due = now

    def _take_over(self, topology_id: str, now: float) -> None:
        base = self._data.state.storm_base(topology_id)
        if base is None:
            return
        self._lives[topology_id] = self._life(topology_id, base)
        assignment = self._data.state.assignment(topology_id)
        if assignment is not None:
            self._rounds.prune(topology_id, assignment)
        self._act(topology_id, self._lives[topology_id].cycle.gain_leadership(now))

    # ---- what users ask for --------------------------------------------------------------------

    def reserve(self, name: str) -> str:
        """Begin a submission; the id that it gets. AlreadyAliveException if the name is taken."""
        self._check_acting()
        if name in self._reserved or name in self._names:
            raise AlreadyAliveException(
                f"Topology with name {name!r} already exists on the cluster: kill it first, or "
                "choose another name"
            )
        number = 1
        wall = self._data.wall()
        taken = self._data.ids_given | self._data.blobs.topologies()
        while (id_ := make_topology_id(name, number, wall)) in taken:
            number += 1
        self._data.ids_given.add(id_)
        self._reserved[name] = id_
        return id_

    def start(self, topology_id: str, base: StormBase) -> None:
        """End a submission: its blobs are there, and from now on the topology is."""
        self._check_acting()
        if self._reserved.get(base.name) != topology_id:
            raise NotALeader(
                f"{base.name} was not submitted: another nimbus led meanwhile; submit it again"
            )
        life = self._life(topology_id, base)  # what cannot be managed is not stored
        with self._storing():
            self._data.state.activate_storm(topology_id, base)
        del self._reserved[base.name]
        self._lives[topology_id] = life
        _LOG.info("%s was submitted by %s: %s", topology_id, base.owner, base.status)
        self.request_round(0.0)

    def give_up(self, name: str) -> None:
        """A submission has failed; who began it removes its blobs."""
        self._reserved.pop(name, None)

    def kill(self, name: str, options: KillOptions, now: float) -> None:
        """Remove a topology after a wait."""
        id_ = self._id(name)
        self._act(id_, self._lives[id_].cycle.kill(options, now))

    def activate(self, name: str, now: float) -> None:
        """Let its spouts emit."""
        id_ = self._id(name)
        self._act(id_, self._lives[id_].cycle.activate(now))

    def deactivate(self, name: str, now: float) -> None:
        """Let its spouts emit nothing."""
        id_ = self._id(name)
        self._act(id_, self._lives[id_].cycle.inactivate(now))

    def rebalance(self, name: str, options: RebalanceOptions, now: float) -> None:
        """Change workers and executors after a wait."""
        id_ = self._id(name)
        base = self._data.base(id_)
        check_request(id_, base.component_executors, options)
        self._act(id_, self._lives[id_].cycle.rebalance(options, now))

    def complaint(self, topology_id: str) -> str | None:
        """What a topology lacks."""
        return self._rounds.complaint(topology_id)

    # ---- what time brings ----------------------------------------------------------------------

    def request_round(self, at: float) -> None:
        """Have a round then, at the latest."""
        self._round_due = min(self._round_due, at)

    def next_timeout(self) -> float:
        """When `tick` should be called next."""
        due = [life.cycle.next_timeout() for life in self._lives.values()]
        due += [self._data.beats.next_timeout(), self._round_due]
        return min(at for at in due if at is not None)

    def tick(self, now: float) -> None:
        """Do what is due. ConnectionLost if that came to no end."""
        for id_, life in list(self._lives.items()):
            self._act(id_, life.cycle.tick(now))
        if self._data.beats.tick(now):
            self._round_due = now
        if now >= self._round_due:
            self._round_due = now + self._data.conf[Config.NIMBUS_MONITOR_FREQ_SECS]
            with self._storing():
                self._sweep(now)
                self._rounds.run(now)
            self._kill_ended(now)

    def _kill_ended(self, now: float) -> None:
        for id_, life in list(self._lives.items()):
            active = life.cycle.state.status is TopologyStatus.ACTIVE
            if life.kill_on_end and active and self._has_ended(id_):
                _LOG.info("the input of %s has ended, and all of it is processed", id_)
                self._act(id_, life.cycle.kill(KillOptions(0), now))

    def _has_ended(self, topology_id: str) -> bool:
        """Whether all workers have passed the END wave of now, with all that they run now."""
        state = self._data.state
        assignment, wave = state.assignment(topology_id), state.wave(topology_id)
        if assignment is None:
            return False
        found = [state.registration(topology_id, n) for n in assignment.worker_numbers.values()]
        return all(
            one is not None
            and one.assignment_version >= assignment.version
            and one.ended_wave >= wave
            for one in found
        )

    # ---- how -----------------------------------------------------------------------------------

    @property
    def _names(self) -> dict[str, str]:
        return {life.name: id_ for id_, life in self._lives.items()}

    def _id(self, name: str) -> str:
        self._check_acting()
        found = self._names.get(name)
        if found is None:
            raise not_alive(name, list(self._names))
        return found

    def _life(self, topology_id: str, base: StormBase) -> _Life:
        conf: dict[str, Any] = dict(self._data.catalogue.get(topology_id).conf)
        timeout_secs = conf[Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS]
        cycle = TopologyLifecycle(topology_id, state_of(base), timeout_secs)
        return _Life(base.name, cycle, conf[Config.STORM_PY_KILL_ON_END])

    def _act(self, topology_id: str, actions: list[Action]) -> None:
        """Carry out what a lifecycle says; what a StormBase holds of it is stored at once."""
        with self._storing():
            for action in actions:
                match action:
                    case DoRebalance(options):
                        self._rebalance(topology_id, options)
                    case SetStatus(state):
                        self._set(topology_id, state)
                    case Schedule(at, what):
                        secs = max(0.0, at - self._data.clock())
                        _LOG.info("%s: %s in %.0f s", topology_id, what, secs)
                    case Remove():
                        self._check_acting()
                        self._remove(topology_id)

    def _set(self, topology_id: str, state: TopologyState) -> None:
        self._check_acting()
        self._data.state.update_storm(topology_id, lambda base: with_state(base, state))
        _LOG.info("%s is %s", topology_id, state.status)

    def _rebalance(self, topology_id: str, options: RebalanceOptions) -> None:
        self._check_acting()
        submitted = self._data.catalogue.get(topology_id)

        def change(base: StormBase) -> StormBase:
            plan = plan_rebalance(
                topology_id, submitted.tasks, parallelism_of(base), options, submitted.heads
            )
            for component_id, asked in plan.capped.items():
                _LOG.warning(
                    "%s: %s was asked to have %d executors and gets %d, one for each task",
                    *(topology_id, component_id, asked, plan.after.num_executors[component_id]),
                )
            return with_parallelism(base, plan.after)

        self._data.state.update_storm(topology_id, change)
        self._rounds.run(self._data.clock(), topology_id)

    def _remove(self, topology_id: str) -> None:
        state = self._data.state
        state.remove_storm(topology_id)
        self._lives.pop(topology_id)
        self._rounds.forget(topology_id)
        self._data.beats.forget(topology_id)
        state.teardown_errors(topology_id)
        state.teardown_heartbeats(topology_id)
        _LOG.info("%s is removed", topology_id)
        self.request_round(0.0)  # others may have waited for its slots

    def _sweep(self, now: float) -> None:
        """Remove what is nobody's."""
        state = self._data.state
        alive = {*state.storms(), *self._reserved.values()}
        for id_ in set(state.assignments()) - alive:
            state.remove_assignment(id_)
        for id_ in set(state.error_storms()) - alive:
            state.teardown_errors(id_)
        for id_ in set(state.heartbeat_storms()) - alive:
            state.teardown_heartbeats(id_)
        for id_ in set(state.registration_storms()) - alive:
            state.teardown_registrations(id_)
        self._data.orphans.sweep(alive, now)

    def _check_acting(self) -> None:
        if self.stale or not self._may_act():
            raise NotALeader(
                f"nimbus at {self._data.me.nimbus_id} is not a leader right now: its connection to "
                "ZooKeeper broke; try again in a moment"
            )

    @contextmanager
    def _storing(self) -> Iterator[None]:
        """A block that stores something: if it fails nobody knows how far it came."""
        try:
            yield
        except StormPyError:
            self.stale = True
            raise
