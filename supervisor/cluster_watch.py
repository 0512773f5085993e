"""ClusterWatch: a supervisor's view of ZooKeeper, and its sign of life there.

Theory of operation. One thread connects, and does all that may have to wait for ZooKeeper: it reads
the assignments that have changed, and holds the node that says that this supervisor lives. Watchers
and the connection's listener only note what is due. What could not be done stays due, and is tried
again soon, or when there is a connection again; then ZooKeeper's watchers are all called, so that
everything is read once more. Until it is, those who follow hear nothing: no connection is no reason
to end a worker.

Claims are told when all assignments have been read, so that a topology that was not looked at yet
is not taken for one that is gone. One whose assignment cannot be understood is told as such.

What the claims mean is in `storm_py.supervisor.claims`; what is done about them in
`storm_py.supervisor.slots`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from storm_py.cluster.base import Cancel, ConnectionState, StateStorage
from storm_py.cluster.records import SupervisorInfo
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.errors import ConnectionLost, InvalidRecord, StormPyError

from .assignment import LocalAssignment
from .claims import Claims, claims_of

_log = logging.getLogger(__name__)

#: Pause before what ZooKeeper did not do is tried again, or a connection that was not made.
_RETRY_SECS: Final = 1.0
#: How long a supervisor that stops waits for the thread, which may try to connect.
_STOP_SECS: Final = 1.0
#: Signs of life that are remembered: any of them may be what an attempt that failed has written.
_SAID: Final = 16


class ClusterWatch:
    """The thread; what it tells it tells by calling, on that thread."""

    def __init__(
        self,
        supervisor_id: str,
        storages: Callable[[], StateStorage],
        *,
        connected: Callable[[ClusterState], None],
        away: Callable[[ConnectionLost], None],
        claimed: Callable[[Claims], None],
        broken: Callable[[BaseException], None],
    ) -> None:
        """`storages` makes one for each attempt to connect, not started.

        `connected` is called once, with the cluster; `away` for each attempt to connect that failed
        before; `claimed` with what the supervisor has to run, again when that has changed; `broken`
        when the thread ends by an error that is ours.
        """
        self._supervisor_id = supervisor_id
        self._storages = storages
        self._connected = connected
        self._away = away
        self._claimed = claimed
        self._broken = broken
        self._closing = threading.Event()
        self._storage: StateStorage | None = None
        self._thread = threading.Thread(target=self._run, name="cluster-watch", daemon=True)

        self._woken = threading.Event()
        self._lock = threading.Lock()  # of the next three, which say what is due
        #: topologies to read; None for the list of them
        self._due: set[str | None] = {None}
        self._info: SupervisorInfo | None = None
        self._beat_due = False

        #: The last signs of life, written or perhaps written.
        self._said: deque[SupervisorInfo] = deque(maxlen=_SAID)
        self._has_twin = False

        self._watches: dict[str, Cancel] = {}
        self._wanted: dict[str, dict[int, LocalAssignment]] = {}
        self._unreadable: set[str] = set()
        self._told: Claims | None = None

    def start(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def close(self) -> None:
        """End the session, and with it the sign of life.

        An attempt to connect is not interrupted: a storage that begins cannot be closed. It gives
        up by itself, or the process is gone before.
        """
        self._closing.set()
        self._woken.set()
        if self._storage is not None:
            self._storage.close()
        self._thread.join(_STOP_SECS)

    def heartbeat(self, info: SupervisorInfo) -> None:
        """Write this sign of life, now and for each new session; does not wait."""
        with self._lock:
            self._info = info
            self._beat_due = True
        self._woken.set()

    # ---- told by the storage: note it, no more -------------------------------------------------

    def _changed(self, topology_id: str | None) -> None:
        with self._lock:
            self._due.add(topology_id)
        self._woken.set()

    def _state_changed(self, state: ConnectionState) -> None:
        if self._closing.is_set():
            return
        if state is ConnectionState.CONNECTED:
            with self._lock:
                self._beat_due = True
            self._woken.set()
        _log.log(
            logging.INFO if state is ConnectionState.CONNECTED else logging.WARNING,
            "the connection to ZooKeeper is %s%s",
            state,
            "" if state is ConnectionState.CONNECTED else "; workers go on with what they have",
        )

    # ---- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            state = self._connect()
            while state is not None and not self._closing.is_set():
                self._woken.clear()
                if state.connection is ConnectionState.CONNECTED and not self._work(state):
                    self._closing.wait(_RETRY_SECS)
                    continue
                self._woken.wait()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the supervisor has to know
            self._broken(error)

    def _connect(self) -> ClusterState | None:
        while not self._closing.is_set():
            storage = self._storages()
            try:
                storage.start()
            except ConnectionLost as error:
                if not self._closing.is_set():
                    self._away(error)
                self._closing.wait(_RETRY_SECS)
                continue
            self._storage = storage
            if self._closing.is_set():
                storage.close()  # `close` may have come before there was one
                break
            state = ClusterState(storage)
            state.listen(self._state_changed)
            state.watch_assignments(partial(self._changed, None))
            self._connected(state)
            return state
        return None

    def _work(self, state: ClusterState) -> bool:
        """Do what is due; False if some of it has to be tried again."""
        try:
            self._beat(state)
            self._read(state)
        except ConnectionLost as error:
            _log.debug("ZooKeeper: %s", error)
            return False
        except StormPyError as error:
            if not self._closing.is_set():
                _log.error("ZooKeeper: %s; it is tried again", error)
            return False
        return True

    def _beat(self, state: ClusterState) -> None:
        with self._lock:
            info = self._info
            due, self._beat_due = self._beat_due, False
        if info is None or not due:
            return
        try:
            self._look_for_a_twin(state, info.hostname)
            self._said.append(info)
            state.supervisor_heartbeat(self._supervisor_id, info)
        except StormPyError:
            with self._lock:
                self._beat_due = True
            raise

    def _look_for_a_twin(self, state: ClusterState, host: str) -> None:
        """Say so if another supervisor that lives has this one's id, and its work with that."""
        if not self._said:
            return  # what is there may be of an earlier life
        try:
            found = state.supervisor_info(self._supervisor_id)
        except InvalidRecord:
            found = None  # it is written anew now
        is_twin = found is not None and found not in self._said
        if found is not None and is_twin and not self._has_twin:
            _log.error(
                "another supervisor, on %s, has the id of this one, %s on %s: both start the same "
                "workers, which end each other. Its storm.local.dir is a copy: stop one of them, "
                "and remove the folder supervisor in its storm.local.dir",
                *(found.hostname, self._supervisor_id, host),
            )
        self._has_twin = is_twin

    def _read(self, state: ClusterState) -> None:
        with self._lock:
            due, self._due = self._due, set()
        try:
            if None in due:
                due |= self._list(state)
            for topology_id in sorted(due - {None}, key=str):
                assert topology_id is not None
                self._read_one(state, topology_id)
        except StormPyError:
            with self._lock:
                self._due |= due
            raise
        claims = Claims(
            {topology_id: dict(wanted) for topology_id, wanted in self._wanted.items()},
            frozenset(self._unreadable),
        )
        if claims != self._told:
            self._told = claims
            self._claimed(claims)

    def _list(self, state: ClusterState) -> set[str]:
        """Watch all that are assigned, and no others; the new ones."""
        there = set(state.assignments())
        for gone in self._watches.keys() - there:
            self._watches.pop(gone)()
            self._forget(gone)
        new = there - self._watches.keys()
        for topology_id in new:
            watcher = partial(self._changed, topology_id)
            self._watches[topology_id] = state.watch_assignment(topology_id, watcher)
        return new

    def _read_one(self, state: ClusterState, topology_id: str) -> None:
        try:
            assignment = state.assignment(topology_id)
        except InvalidRecord as error:
            _log.error("%s; what runs of this topology goes on", error)
            self._forget(topology_id)
            self._unreadable.add(topology_id)
            return
        self._forget(topology_id)
        if assignment is not None:
            wanted = claims_of(topology_id, assignment, self._supervisor_id)
            if wanted:
                self._wanted[topology_id] = wanted

    def _forget(self, topology_id: str) -> None:
        self._wanted.pop(topology_id, None)
        self._unreadable.discard(topology_id)
