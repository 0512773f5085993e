"""NimbusService: the loop of a nimbus: it takes part in the election, and leads when it is elected.

Theory of operation. One thread runs `run`; it alone owns the term of `storm_py.nimbus.term`. All
else comes to it as messages: what the connection and the election say, supervisors that come and
go, and what clients want done, who wait for the outcome. Whether this nimbus may act is known to
`storm_py.nimbus.candidate` the moment that something is heard: the loop looks there before it
writes, so that it stops between two steps, and no write of a session that is over is done in the
next one.

A lost connection is a state: calls are refused until it is back, and a term that could not store
something begins anew. Whoever is elected without the blobs of all topologies fetches them from
another nimbus, or stands back and tries again later.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from storm_py.cluster.base import Cancel, ConnectionState, StateStorage
from storm_py.cluster.leader import Action, Lead, Pause, StepDown
from storm_py.config import Config
from storm_py.errors import ClusterStateError, ConnectionLost, NotALeader, StormPyError

from .candidate import Candidate
from .data import NimbusData
from .replication import missing_blobs, replicate
from .term import Term

__all__ = ["NimbusService"]

_LOG = logging.getLogger("storm_py.nimbus")

T = TypeVar("T")

#: Wait before something is tried again that failed for want of a connection, or of blobs.
_AGAIN_SECS: Final = 1.0
#: What a call that changes something waits for the loop.
_PATIENCE_SECS: Final = 120.0


class NimbusService:
    """One nimbus but for its server; `storage` is that of `data.state`, and connected."""

    def __init__(self, data: NimbusData, storage: StateStorage) -> None:
        self._data = data
        self._storage = storage
        #: What the loop is to do, and whether somebody waits for the outcome.
        self._messages: queue.SimpleQueue[tuple[Callable[[], None], bool]] = queue.SimpleQueue()
        self._candidate = Candidate(data.me.nimbus_id, data.state, storage, self._told)
        self._term: Term | None = None
        #: Which of the candidate's terms that is.
        self._terms = 0
        self._cancels: list[Cancel] = []
        self._stopping = False
        #: When to take over, and when to take part again; None if it is not to be done.
        self._elected_at: float | None = None
        self._rejoin_at: float | None = None
        self._missing: list[str] = []
        self._housekeeping_due = 0.0
        self._expiry_due = 0.0

    # ---- for other threads ---------------------------------------------------------------------

    def stop(self) -> None:
        """Have the loop end; for signal handlers too."""
        self._stopping = True
        self._post(lambda: None)

    @property
    def stopping(self) -> bool:
        """Whether it was told to end."""
        return self._stopping

    def lead(self, do: Callable[[Term], T]) -> T:
        """Have the loop do this as the leader, and give its result; NotALeader if it is none."""
        self.check_leads()
        done: Future[T] = Future()

        def message() -> None:
            if done.set_running_or_notify_cancel():
                try:
                    if self._term is None or self._term.stale:
                        raise self._not_a_leader()
                    done.set_result(do(self._term))
                except BaseException as error:  # noqa: BLE001 - whatever it is, the caller hears it
                    done.set_exception(error)

        self._messages.put((message, True))
        try:
            return done.result(_PATIENCE_SECS)
        except TimeoutError:
            if done.cancel():
                raise NotALeader(f"nimbus at {self._data.me.nimbus_id} is too busy") from None
            return done.result()

    def check_leads(self) -> None:
        """NotALeader, which names the leader, if this nimbus does not lead."""
        if self._stopping or not self.leads:
            raise self._not_a_leader()

    def check_listens(self) -> None:
        """The same, but a leader that lost its connection a moment ago will do."""
        if self._stopping or self._term is None:
            raise self._not_a_leader()

    def request_round(self) -> None:
        """Have what runs where looked at soon."""
        self._post(self._request_round)

    def complaint(self, topology_id: str) -> str | None:
        """What a topology lacked when slots were given out last; only a leader knows."""
        term = self._term
        return None if term is None else term.complaint(topology_id)

    @property
    def leads(self) -> bool:
        """Whether it has taken over and may act."""
        return self._term is not None and self._candidate.leads

    def _not_a_leader(self) -> NotALeader:
        me, connection = self._data.me.nimbus_id, self._data.state.connection
        if connection != ConnectionState.CONNECTED:  # do not wait for it: the caller may go on
            return NotALeader(
                f"nimbus at {me} does not lead: its connection to ZooKeeper is {connection}; "
                "see that ZooKeeper runs, and try again in a moment"
            )
        try:
            leader = self._data.state.leader_info()
        except ClusterStateError as error:
            return NotALeader(f"nimbus at {me} does not lead: {error}; try again in a moment")
        if leader is None or leader.nimbus_id == me:
            return NotALeader(f"nimbus at {me} does not lead yet; try again in a moment")
        return NotALeader(
            f"nimbus at {me} is not a leader, current leader is {leader.nimbus_id}: ask that one"
        )

    def _post(self, do: Callable[[], None]) -> None:
        self._messages.put((do, False))

    # ---- the loop ------------------------------------------------------------------------------

    def run(self) -> None:
        """Take part until `stop`; then leave the election in order."""
        self._join()
        try:
            while not self._stopping:
                self._wait()
                self._work()
        finally:
            self._leave()

    def _join(self) -> None:
        state = self._data.state
        self._cancels += [
            self._storage.listen(self._connection),
            state.watch_supervisors(self.request_round),
            state.watch_storms(lambda: self._post(self._keep)),
        ]
        self._post(self._register)
        self._candidate.begin()

    def _leave(self) -> None:
        self._stopping = True
        for cancel in self._cancels:
            cancel()
        self._term = None
        while not self._messages.empty():
            message, awaited = self._messages.get()
            if awaited:
                message()  # which says that nobody leads here any more
        self._candidate.leave()

    def _wait(self) -> None:
        """Take messages until something is due."""
        secs = max(0.0, self._next_timeout() - self._data.clock())
        try:
            self._messages.get(timeout=secs)[0]()
            while True:
                self._messages.get_nowait()[0]()
        except queue.Empty:
            return

    def _next_timeout(self) -> float:
        due = [self._housekeeping_due, self._expiry_due, self._elected_at, self._rejoin_at]
        if self._elected_at is None and self._term is not None and self._candidate.leads:
            due.append(self._term.next_timeout())
        return min(at for at in due if at is not None)

    def _work(self) -> None:
        """Do what is due."""
        now = self._data.clock()
        try:
            if self._rejoin_at is not None and now >= self._rejoin_at:
                self._rejoin_at = now + _AGAIN_SECS
                self._candidate.stand()
                self._rejoin_at = None
            if self._elected_at is not None and now >= self._elected_at:
                self._take_over(now)
            elif self._elected_at is None and self._term is not None and self._candidate.leads:
                self._term.tick(now)
        except StormPyError as error:
            _LOG.warning("what was due came to no end: %s", error)
        if self._term is not None and self._term.stale and self._elected_at is None:
            self._elected_at = now + _AGAIN_SECS
        if now >= self._housekeeping_due:
            self._keep()
        if now >= self._expiry_due:
            self._expire(now)

    # ---- the election --------------------------------------------------------------------------

    def _connection(self, state: ConnectionState) -> None:
        if state == ConnectionState.CONNECTED:
            self._post(self._register)

    def _told(self, action: Action, term: int) -> None:
        match action:
            case Lead():
                self._post(lambda: self._elected(term))
            case Pause():
                self._post(lambda: _LOG.warning("the connection to ZooKeeper broke"))
            case StepDown():
                self._post(self._step_down)

    def _elected(self, term: int) -> None:
        """Lead from now on, or go on with it."""
        if self._term is not None and term == self._terms:
            _LOG.info("the connection to ZooKeeper is back")
            self._data.beats.pardon(self._data.clock())  # what was said meanwhile was not heard
            return
        self._terms = term
        self._elected_at = self._data.clock()

    def _step_down(self) -> None:
        self._elected_at = None
        if self._term is not None:
            self._term = None
            self._data.beats.reset()
            _LOG.warning("nimbus at %s leads no more", self._data.me.nimbus_id)

    def _register(self) -> None:
        """Say that this nimbus is there, for as long as the session."""
        try:
            self._data.state.add_nimbus(self._data.me)
            if self.leads:
                self._data.state.set_leader_info(self._data.me)
        except ConnectionLost as error:
            _LOG.info("%s", error)  # it is called again when there is a connection

    def _take_over(self, now: float) -> None:
        """Become the leader if everything is here that one needs."""
        self._elected_at = now + _AGAIN_SECS
        if not self._candidate.leads:
            return
        replicate(self._data)
        missing = missing_blobs(self._data)
        if missing:
            self._complain(missing)
            self._rejoin_at = now + _AGAIN_SECS
            self._candidate.stand_back()
            return
        self._begin_term(now)
        self._elected_at = None

    def _complain(self, missing: list[str]) -> None:
        """Say once of which topologies there are no blobs."""
        if missing != self._missing:
            _LOG.error(
                "nimbus at %s cannot lead: the blobs of %s are not in %s, and no other nimbus has "
                "them; bring that folder back, or remove the topology's node below /storms in "
                "ZooKeeper",
                *(self._data.me.nimbus_id, ", ".join(missing), self._data.blobs.folder),
            )
        self._missing = missing

    def _begin_term(self, now: float) -> None:
        number, candidate = self._terms, self._candidate
        term = Term(self._data, lambda: candidate.leads and candidate.terms == number)
        term.begin(now)
        self._data.state.set_leader_info(self._data.me)
        led, self._term = self._term, term
        if led is None:
            _LOG.info("nimbus at %s leads", self._data.me.nimbus_id)

    # ---- what every nimbus does ----------------------------------------------------------------

    def _request_round(self) -> None:
        if self._term is not None:
            self._term.request_round(0.0)

    def _keep(self) -> None:
        """Have what a leader would need, and nothing besides."""
        self._housekeeping_due = (
            self._data.clock() + self._data.conf[Config.NIMBUS_MONITOR_FREQ_SECS]
        )
        self._data.downloads.expire(self._data.clock())
        if self._term is None and self._storage.state == ConnectionState.CONNECTED:
            try:
                replicate(self._data)
                self._data.orphans.sweep(set(self._data.state.storms()), self._data.clock())
            except StormPyError as error:
                _LOG.warning("blobs cannot be fetched: %s", error)

    def _expire(self, now: float) -> None:
        conf = self._data.conf
        self._expiry_due = now + conf[Config.NIMBUS_CLEANUP_INBOX_FREQ_SECS]
        oldest = self._data.wall() - conf[Config.NIMBUS_INBOX_JAR_EXPIRATION_SECS]
        for location in self._data.inbox.expire(oldest):
            _LOG.info("the upload %s is too old: removed", location)
