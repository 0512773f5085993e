"""Sessions: which messages of which sender a process accepts, in which order.

Each link has a random 64-bit session, drawn by its sender for one incarnation of one connection and
made known by a Hello. Data of an unknown session is refused - a process restarted at a used address
receives the old session's frames, and a reused port must let nobody in. Within a session messages
are numbered from 1: a repeat is dropped, a gap means that the link is broken. A session that its
owner calls broken is over as well, but remembered until the peer begins another one or dies: the
peer does not know before it is told, and may have the same to say in it. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from storm_py.wire.control import Hello


class Verdict(Enum):
    """What to do with a message."""

    ACCEPT = 1
    REPEAT = 2
    GAP = 3
    STRANGER = 4


@dataclass(slots=True)
class _Inbound:
    hello: Hello
    expected_data: int = 1


class Sessions:
    """The inbound sessions of one process: at most one for each peer, the newest wins."""

    def __init__(self, topology_id: str, assignment_version: int) -> None:
        self._topology_id = topology_id
        self._assignment_version = assignment_version
        self._by_session: dict[int, _Inbound] = {}
        self._by_peer: dict[str, int] = {}
        #: by peer, the session in which something was missing, and who spoke in it
        self._broken: dict[str, tuple[int, Hello]] = {}
        self._refused = 0

    def replan(self, assignment_version: int) -> None:
        """Who belongs to an older assignment is refused from now on."""
        self._assignment_version = assignment_version

    def hello(self, session: int, hello: Hello) -> bool:
        """Let a peer in; False for another topology, an older owner, an older incarnation of the
        peer, a session that is broken, or one that is another peer's.
        """
        if hello.topology_id != self._topology_id:
            self._refused += 1
            return False
        if hello.assignment_version < self._assignment_version:
            self._refused += 1
            return False
        owner = self.peer(session)
        if owner is not None and owner.peer != hello.peer:
            self._refused += 1
            return False
        over, last = self._broken.get(hello.peer, (0, hello))
        if over == session or last.incarnation > hello.incarnation:
            self._refused += 1
            return False
        current = self._by_peer.get(hello.peer)
        if current is not None:
            if self._by_session[current].hello.incarnation > hello.incarnation:
                self._refused += 1
                return False
            if current == session:
                return True
            del self._by_session[current]
        self._broken.pop(hello.peer, None)
        self._by_peer[hello.peer] = session
        self._by_session[session] = _Inbound(hello)
        return True

    def data(self, session: int, seq: int) -> Verdict:
        """Judge a data message by its header."""
        inbound = self._by_session.get(session)
        if inbound is None:
            self._refused += 1
            return Verdict.STRANGER
        if seq == inbound.expected_data:
            inbound.expected_data = seq + 1
            return Verdict.ACCEPT
        return Verdict.REPEAT if seq < inbound.expected_data else Verdict.GAP

    def received(self, session: int) -> int:
        """Number of the last data message accepted in a session; 0 for none, or for a stranger."""
        inbound = self._by_session.get(session)
        return 0 if inbound is None else inbound.expected_data - 1

    def peer(self, session: int) -> Hello | None:
        """Who speaks in a session, or None for a stranger."""
        inbound = self._by_session.get(session)
        return None if inbound is None else inbound.hello

    def forget(self, peer: str, gone: int | None = None) -> bool:
        """Close the peer's session: what still arrives of it is refused. True if there was one.

        With `gone` only a session of that incarnation or an older one: the news of a death may
        arrive behind the Hello of the successor, on another socket. The same goes for what is
        remembered of a broken one.
        """
        if peer in self._broken and (gone is None or self._broken[peer][1].incarnation <= gone):
            del self._broken[peer]
        session = self._by_peer.get(peer)
        if session is None:
            return False
        if gone is not None and self._by_session[session].hello.incarnation > gone:
            return False
        del self._by_peer[peer], self._by_session[session]
        return True

    def broke(self, session: int) -> Hello | None:
        """Something of a session is missing: it is over. Whose it was, None for a stranger's."""
        hello = self.peer(session)
        if hello is not None:
            del self._by_peer[hello.peer], self._by_session[session]
            self._broken[hello.peer] = session, hello
        return hello

    def broken(self, peer: str) -> int | None:
        """The peer's session that broke, if it has begun no other one since."""
        return self._broken[peer][0] if peer in self._broken else None

    def peer_of_broken(self, session: int) -> Hello | None:
        """Who speaks in a session that broke and was not replaced yet, None if that is unknown."""
        for broken, hello in self._broken.values():
            if broken == session:
                return hello
        return None

    def peers(self) -> tuple[str, ...]:
        """The peers that have a session."""
        return tuple(self._by_peer)

    @property
    def refused(self) -> int:
        """Messages and hellos refused so far."""
        return self._refused

    def check(self) -> None:
        """Assert that the tables mirror each other, and that who has a session has none broken."""
        assert not self._broken.keys() & self._by_peer.keys()
        assert len(self._by_peer) == len(self._by_session)
        for peer, session in self._by_peer.items():
            assert self._by_session[session].hello.peer == peer
