"""LeaderLatch: who of several processes leads, by ephemeral nodes (as Curator's LeaderLatch).

Theory of operation. Each participant holds an ephemeral node with a number under one path; the
lowest leads. Its listener is told True once it is the lowest, and False once it is not or its
session is lost; a suspended connection changes nothing, as the node and with it the others' waiting
live as long as the session. Names are drawn anew for each session, so that a node of the last one,
which a server that lags may still show, is not taken for one of this; and a node whose creation was
lost on the way is found by its name.

The listener is called at once on the thread that found out; it may not block, use the storage or
withdraw. What an election is worth while there is no connection is for
`storm_py.cluster.leader.LeaderPolicy` to say.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable

from storm_py.errors import ConnectionLost

from .base import Cancel, ConnectionState, StateStorage

__all__ = ["LeaderLatch"]

_DIGITS = 10


class LeaderLatch:
    """One participant of one election."""

    def __init__(
        self,
        storage: StateStorage,
        path: str,
        participant: str,
        listener: Callable[[bool], None],
    ) -> None:
        """`participant` is what the others see of this one, host:port for a nimbus."""
        self._storage = storage
        self._path = path
        self._participant = participant
        self._listener = listener
        self._elected = False
        self._withdrawn = False
        #: Of each session so far, the last one being this one's.
        self._names = [_new_name()]
        self._cancels: list[Cancel] = []
        # Held while the nodes are looked at and made: one look at a time.
        self._looking = threading.RLock()
        # Held while the state below changes and is told; never during an operation.
        self._telling = threading.Lock()

    def start(self) -> None:
        """Take part; without a connection, as soon as there is one."""
        self._cancels.append(self._storage.listen(self._connection_changed))
        self._cancels.append(self._storage.watch_children(self._path, self._look))
        self._look()

    def withdraw(self) -> None:
        """Take no part any more; ConnectionLost if the node stays until the session is over."""
        with self._telling:
            self._withdrawn = True
            self._tell(False)
        for cancel in self._cancels:
            cancel()
        with self._looking:
            self._delete(self._names)

    @property
    def is_leader(self) -> bool:
        """Whether this participant leads, and is connected so that it would know if not."""
        return self._elected and self._storage.state == ConnectionState.CONNECTED

    def participants(self) -> tuple[str, ...]:
        """All participants, in the order in which they come to lead."""
        names = sorted(self._storage.children(self._path), key=_number)
        found = (self._storage.read(f"{self._path}/{name}") for name in names)
        return tuple(node.data.decode() for node in found if node is not None)

    def leader(self) -> str | None:
        """The participant that leads, None if there is none at all."""
        return next(iter(self.participants()), None)

    def _look(self) -> None:
        """See who is there, and be there."""
        with self._looking:
            *old, name = self._names
            try:
                leads = self._leads(name, old)
            except ConnectionLost:
                return  # the storage calls again once there is a connection
            with self._telling:
                if name == self._names[-1] and not self._withdrawn:
                    self._tell(leads)

    def _leads(self, name: str, old: list[str]) -> bool:
        if self._withdrawn:
            return False
        if old:
            # A look that began in an old session may have ended in this one: its node would stay,
            # and nobody would be behind it.
            self._delete(old)
        found = self._storage.children(self._path)
        if not any(one.startswith(name) for one in found):
            path = f"{self._path}/{name}"
            self._storage.create(path, self._participant.encode(), ephemeral=True, sequence=True)
            found = self._storage.children(self._path)
        return min(found, key=_number, default="").startswith(name)

    def _delete(self, names: list[str]) -> None:
        for found in self._storage.children(self._path):
            if found.startswith(tuple(names)):
                self._storage.delete(f"{self._path}/{found}")

    def _connection_changed(self, state: ConnectionState) -> None:
        if state == ConnectionState.LOST:
            with self._telling:
                self._names.append(_new_name())
                self._tell(False)

    def _tell(self, leads: bool) -> None:
        if leads != self._elected:
            self._elected = leads
            self._listener(leads)


def _new_name() -> str:
    return f"{uuid.uuid4().hex}-latch-"


def _number(name: str) -> int:
    return int(name[-_DIGITS:])
