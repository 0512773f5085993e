"""Leader: which nimbus leads, for the threads of a supervisor that call it.

Clients find the leader by asking nimbuses; a supervisor looks into ZooKeeper, where it says so
itself. While there is no connection the last one known is as good a guess as any.
"""

from __future__ import annotations

from storm_py.cluster.base import ConnectionState
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.errors import ConnectionLost, UnreachableError

Address = tuple[str, int]


class Leader:
    """Where it is; for any thread."""

    def __init__(self) -> None:
        self._state: ClusterState | None = None
        self._known: Address | None = None

    def use(self, state: ClusterState) -> None:
        """From now on look there."""
        self._state = state

    def address(self) -> Address:
        """Its host and port, as of now; UnreachableError if none leads or none is known."""
        state = self._state
        # Without a look at the connection this would wait for it to come back.
        if state is not None and state.connection is ConnectionState.CONNECTED:
            try:
                found = state.leader_info()
            except ConnectionLost:
                pass  # nobody knows: stay with the last one
            else:
                self._known = None if found is None else (found.host, found.port)
                if found is None:
                    raise UnreachableError(
                        "no nimbus leads: start one, or wait until the election is over"
                    )
        if self._known is None:
            raise UnreachableError(
                "there is no connection to ZooKeeper, which knows the nimbus that leads"
            )
        return self._known
