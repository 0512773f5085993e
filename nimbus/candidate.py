"""Candidate: a nimbus in the election, and whether it may act as the leader right now.

Theory of operation. What the connection and the election say comes from several threads. It is put
to `storm_py.cluster.leader` at once, under a lock, and what that decides is told in its order, on
the thread that heard: so `leads` is true the moment that it is, and not a moment longer, whatever
the loop of nimbus is doing. Terms are counted: one that ended with its session is not taken for the
next one.

A nimbus that was killed is in the election until its session is over. Who has its address and port,
which are bound already, is its successor, and takes it out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from storm_py.cluster import paths
from storm_py.cluster.base import Cancel, ConnectionState, StateStorage
from storm_py.cluster.latch import LeaderLatch
from storm_py.cluster.leader import Action, LeaderPolicy
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.errors import ConnectionLost

__all__ = ["Candidate"]

_LOG = logging.getLogger("storm_py.nimbus")


class Candidate:
    """One nimbus, by its id; `tell` is called with each action, and the term that it is about."""

    def __init__(
        self,
        nimbus_id: str,
        state: ClusterState,
        storage: StateStorage,
        tell: Callable[[Action, int], None],
    ) -> None:
        self._id = nimbus_id
        self._state = state
        self._storage = storage
        self._tell = tell
        self._policy = LeaderPolicy()
        # Guards the policy, and that its actions are told in their order.
        self._deciding = threading.Lock()
        self._latch: LeaderLatch | None = None
        self._cancel: Cancel | None = None

    @property
    def leads(self) -> bool:
        """Whether it may act as the leader."""
        return self._policy.leads

    @property
    def terms(self) -> int:
        """How often it was elected."""
        return self._policy.statistics().terms

    def begin(self) -> None:
        """Listen to the connection, and stand for election."""
        self._cancel = self._storage.listen(self._connection)
        self._connection(self._storage.state)
        self._remove_predecessor()
        self.stand()

    def stand(self) -> None:
        """Stand for election, also again. ConnectionLost if it still has to withdraw before."""
        self.stand_back()
        self._latch = self._state.leader_latch(self._id, self._election)
        self._latch.start()

    def stand_back(self) -> None:
        """Let another one be elected. ConnectionLost if it has to be called again for that."""
        if self._latch is not None:
            self._latch.withdraw()
            self._latch = None

    def leave(self) -> None:
        """Stand back for good; without a connection that comes with the end of the session."""
        if self._cancel is not None:
            self._cancel()
        if self._storage.state != ConnectionState.CONNECTED:
            return
        try:
            if self.leads:
                self._storage.delete(paths.LEADER_INFO)
            self.stand_back()
            self._state.remove_nimbus(self._id)
        except ConnectionLost as error:
            _LOG.info("this nimbus is in the election until its session is over: %s", error)

    def _connection(self, state: ConnectionState) -> None:
        with self._deciding:
            match state:
                case ConnectionState.CONNECTED:
                    self._decided(self._policy.connected())
                case ConnectionState.SUSPENDED:
                    self._decided(self._policy.suspended())
                case ConnectionState.LOST:
                    self._decided(self._policy.lost())

    def _election(self, leads: bool) -> None:
        with self._deciding:
            self._decided(self._policy.elected() if leads else self._policy.deposed())

    def _decided(self, actions: list[Action]) -> None:
        for action in actions:
            self._tell(action, self.terms)

    def _remove_predecessor(self) -> None:
        """Take out of the election who had this address and port before."""
        try:
            for name in self._storage.children(paths.LEADER_LOCK):
                path = f"{paths.LEADER_LOCK}/{name}"
                node = self._storage.read(path)
                if node is not None and node.data.decode() == self._id:
                    _LOG.info(
                        "an earlier nimbus at %s did not end in order: it is taken out", self._id
                    )
                    self._storage.delete(path)
        except ConnectionLost as error:
            _LOG.info("an earlier nimbus leads until its session is over, if any: %s", error)
