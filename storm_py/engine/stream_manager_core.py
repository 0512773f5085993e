"""StreamManagerCore: everything a stream manager decides, without sockets.

One per worker. It routes frames by their destination task: to an instance of its own worker, within
that task's window, or to the stream manager of the worker that hosts it. It announces pressure and
grants to those who send to a task and relays what other stream managers announce; it tracks the
trees of its worker's spouts. It opens no payload and knows no user value. Every event returns the
messages to send, as `Send` tuples, in order; the ZeroMQ driver is
`storm_py.runtime.stream_manager`, `--inline` and the tests drive it in memory.

A peer is named `i<instance id>` (an instance) or `s<worker id>` (a stream manager).
"""

from __future__ import annotations

from collections.abc import Sequence

from storm_py.core.plan import PhysicalPlan
from storm_py.core.pressure import Drain, Limits, TaskQueue
from storm_py.core.roots import RandomBits
from storm_py.errors import ProtocolError
from storm_py.wire import control, frames
from storm_py.wire.acks import decode_records, encode_acks

from .announcements import Announcements
from .answers import Answers
from .links import Beats, OutboundLink, Send, instance_peer, read_control, stream_manager_peer
from .parcels import Parcels
from .sessions import Sessions, Verdict
from .statistics import StreamManagerStatistics
from .trees import Trees


class StreamManagerCore:
    """The stream manager of one worker of a plan."""

    def __init__(
        self, plan: PhysicalPlan, worker: int, incarnation: int, rng: RandomBits, limits: Limits
    ) -> None:
        self._rng = rng
        self._me = control.Hello(
            stream_manager_peer(worker), plan.topology_id, incarnation, plan.version, []
        )
        self._sessions = Sessions(plan.topology_id, plan.version)
        self._links: dict[str, OutboundLink] = {}
        self.parcels = Parcels(self._links)
        self._beats = Beats()
        self._inbound: dict[str, int] = {}
        #: per session, credits whose data has not arrived yet
        self._early: dict[int, list[control.Credit]] = {}
        self._queues: dict[int, TaskQueue] = {}
        self._route: dict[int, str] = {}
        #: frames for stream managers whose link is not open
        self._held: dict[str, list[bytes]] = {}
        self._congested: set[str] = set()
        self._frames = self._unroutable = 0
        kin = {executor.component_id: Drain() for executor in plan.executors}
        for executor in plan.executors:
            peer = stream_manager_peer(executor.worker)
            local = executor.worker == worker
            for task in executor.tasks:
                self._route[task] = instance_peer(executor.instance) if local else peer
                if local:
                    self._queues[task] = TaskQueue(limits, kin[executor.component_id])
                else:
                    self._held.setdefault(peer, [])
        self._trees = Trees(plan, worker)
        self._answers = Answers(self._route, self._links)
        self._words = Announcements(
            plan, worker, self._queues, self._route, limits.frame_rows, self._reachable
        )

    # ---- links ---------------------------------------------------------------------------------

    def connect(self, peer: str) -> list[Send]:
        """The driver has opened sockets to a peer: greet it, and welcome it if it spoke first.

        This ends the session that there was; what it had not credited is lost.
        """
        if not self._is_known(peer):
            raise ProtocolError(f"{peer} is no peer of this stream manager")
        sends = self._close(peer)
        link = OutboundLink(peer, self._rng, self._me, self._beats)
        self._links[peer] = link
        return sends + self._greet(peer, link)

    def _greet(self, peer: str, link: OutboundLink) -> list[Send]:
        """Open our session, and welcome the peer's, or say that it broke.

        Also once more, when it welcomes an older one: that one's Hello came behind, on a socket
        that is closed by now, and what we had said since was refused.
        """
        sends: list[Send] = [(False, peer, link.hello())]
        session = self._inbound.get(peer)
        if session is not None:
            sends.append((False, peer, link.control(control.Welcome(session))))
        broken = self._sessions.broken(peer)
        if broken is not None:
            sends.append((False, peer, link.control(control.LinkBroken(broken))))
        return sends

    def _is_known(self, peer: str) -> bool:
        return peer in self._held or peer in self._route.values()

    def disconnect(self, peer: str, gone: int | None = None) -> list[Send]:
        """A peer died: forget its sessions.

        What waits for an instance stays; the trees of what it had not finished fail at once. When a
        stream manager dies nobody knows which trees went through it, so every open one fails.
        `gone` is the incarnation of the dead: a session that its successor has opened stays.
        """
        sends = self._close(peer)
        self._answers.gone(peer)
        forgotten = self._sessions.forget(peer, gone)
        if forgotten:
            self._inbound_ended(peer)
        self._congested.discard(peer)
        sends += self._fail_unknown(peer)
        tasks = self._words.host_is_new(peer) if forgotten else self._words.hosted(peer)
        return sends + self._announce(*tasks)

    def on_control(self, message: bytes, now: float) -> list[Send]:
        """A control message from a link."""
        session, record = read_control(message)
        if isinstance(record, control.Hello):
            return self._on_hello(session, record)
        peer = self._sessions.peer(session)
        if peer is None and isinstance(record, control.LinkBroken):
            # Its own broke as well: if neither heard the other, both would be deaf for ever.
            peer = self._sessions.peer_of_broken(session)
        if peer is None:
            return []
        match record:
            case control.Welcome(session=ours):
                return self._on_welcome(peer, ours, now)
            case control.Credit():
                return self._on_credit(session, peer, record, now)
            case control.Pressure() | control.Grant():
                heard = self._words.heard(peer.peer, record)
                return self._announce(record.task) if heard else []
            case control.LinkBroken(session=ours):
                return self._on_broken(peer, ours)
            case _:
                raise ProtocolError(f"{type(record).__name__} does not belong on a link")

    def _on_hello(self, session: int, hello: control.Hello) -> list[Send]:
        broken = self._sessions.broken(hello.peer)
        if not self._is_known(hello.peer) or not self._sessions.hello(session, hello):
            return []
        sends: list[Send] = []
        link = self._links.get(hello.peer)
        if link is not None:
            sends.append((False, hello.peer, link.control(control.Welcome(session))))
        if self._inbound.get(hello.peer) != session:
            self._inbound_ended(hello.peer)
            self._inbound[hello.peer] = session
            sends += self._announce(*self._words.host_is_new(hello.peer))
            if broken is not None:
                sends += self._fail_unknown(hello.peer)
                sends += self._announce(*self._words.may_have_used(hello.peer))
        return sends

    def _on_welcome(self, hello: control.Hello, session: int, now: float) -> list[Send]:
        peer, link = hello.peer, self._links.get(hello.peer)
        if link is None:
            return []
        if not link.welcomed(session):
            if session == link.session:
                return []
            greeting = self._greet(peer, link)
            return greeting + self._announce(*self._words.may_not_have_heard(peer))
        sends = self._answers.welcomed(peer)
        for task in self._queues:
            if self._route[task] == peer:
                ready = self._queues[task].connect(now)
                sends += [(True, peer, link.data(frame)) for frame in ready]
                sends += self._turn(task, now, news=True)
        if peer in self._held:
            sends += [(True, peer, link.data(frame)) for frame in self._held[peer]]
            self._held[peer] = []
            sends += self._announce(*self._words.hosted(peer))
        # A new session starts from a clean slate: tell it how the tasks fare now.
        return sends + self._announce(*self._words.tasks_heard_by(peer))

    def _on_broken(self, hello: control.Hello, session: int) -> list[Send]:
        link = self._links.get(hello.peer)
        if link is None or link.session != session:
            return []
        return [*self.connect(hello.peer), *self._fail_unknown(hello.peer)]

    def _close(self, peer: str) -> list[Send]:
        """End our own session to a peer: what it has not credited is lost."""
        self._links.pop(peer, None)
        self.parcels.drop(peer)
        self._words.forget(peer)
        self._words.sent_in_vain(peer)
        self._early.pop(self._inbound.get(peer, 0), None)
        sends: list[Send] = []
        for task, queue in self._queues.items():
            if self._route[task] == peer:
                sends += self._fail_lost(task, queue.disconnect())
        return sends

    def _inbound_ended(self, peer: str) -> None:
        """A peer's session is over, and with it the data that credits in it waited for."""
        self._early.pop(self._inbound.pop(peer, 0), None)

    # ---- data ----------------------------------------------------------------------------------

    def on_data(self, message: bytes, now: float) -> list[Send]:
        """A data message: route each of its frames."""
        session, seq = frames.read_message_header(message)
        verdict = self._sessions.data(session, seq)
        if verdict is not Verdict.ACCEPT:
            return self._gap(session) if verdict is Verdict.GAP else []
        sends: list[Send] = []
        limited = self._words.limited
        # The whole message is checked first: what was numbered for a peer must be sent.
        for frame in list(frames.frames(message)):
            self._frames += 1
            dest = frame.dest
            if frame.kind == frames.FrameKind.ACK and dest in self._queues:
                results = self._trees.track(decode_records(message, frame))
                for spout, data in self._answers.tell(results):
                    self.parcels.ship(spout, self._links[spout], data, sends, now)
                continue
            peer = self._route.get(dest)
            if peer is None:
                self._unroutable += 1
                continue
            data = message[frame.start : frame.end]
            if dest in limited and frame.rows:
                self._words.used(dest, frame.src)
            link = self._links.get(peer)
            queue = self._queues.get(dest)
            if queue is None:
                if link is not None and link.open:
                    self.parcels.ship(peer, link, data, sends, now)
                else:
                    sends += self._hold(peer, data, dest)
            elif queue.offer(data, frame.rows, now):
                if link is None:
                    raise AssertionError(f"queue of task {dest} sends without a link")
                self.parcels.ship(peer, link, data, sends, now)
                if dest in limited or queue.stalled(now):
                    sends += self._turn(dest, now, dest in limited)
            elif not queue.pressured:
                sends += self._turn(dest, now, dest in limited)
        if session in self._early:
            sends += self._on_early_credits(session, now)
        return sends

    def _hold(self, peer: str, data: bytes, dest: int) -> list[Send]:
        """Keep a frame for a stream manager until the link to it is open."""
        self._held[peer].append(data)
        return self._announce(dest)

    def _gap(self, session: int) -> list[Send]:
        hello = self._sessions.broke(session)
        if hello is None:
            return []
        self._inbound_ended(hello.peer)
        sends = self._fail_unknown(hello.peer)
        if link := self._links.get(hello.peer):
            sends.append((False, hello.peer, link.control(control.LinkBroken(session))))
        return sends

    def _on_credit(
        self, session: int, hello: control.Hello, credit: control.Credit, now: float
    ) -> list[Send]:
        task = credit.task
        queue = self._queues.get(task)
        link = self._links.get(hello.peer)
        if queue is None or link is None or self._route[task] != hello.peer or not link.open:
            return []
        if credit.seq > self._sessions.received(session):
            self._early[session] = [*self._early.get(session, []), credit]
            return []
        ready = queue.credit(credit.rows, credit.bytes, now, credit.busy_us / 1e6)
        news = self._words.measured(task)
        sends: list[Send] = []
        for frame in ready:
            self.parcels.ship(hello.peer, link, frame, sends, now)
        return sends + self._turn(task, now, news)

    def _on_early_credits(self, session: int, now: float) -> list[Send]:
        """Data has arrived in a session: credits that waited for it may count now."""
        hello, early = self._sessions.peer(session), self._early.pop(session)
        if hello is None:
            return []
        return [send for one in early for send in self._on_credit(session, hello, one, now)]

    # ---- acking --------------------------------------------------------------------------------

    def _fail_lost(self, task: int, lost: Sequence[bytes]) -> list[Send]:
        """Frames died with the process of `task`: fail their trees, here and elsewhere."""
        results, elsewhere = self._trees.lost(lost)
        sends = self._answers.send(results)
        for dest, records in elsewhere.items():
            data = encode_acks(0, task, dest, 0, records)
            peer = self._route[dest]
            if self._is_open(peer):
                sends.append((True, peer, self._links[peer].data(data)))
            else:
                sends += self._hold(peer, data, dest)
        return sends

    def _fail_unknown(self, peer: str) -> list[Send]:
        """Messages to or from a peer are lost: fail what may have been in them.

        Nobody knows which trees went through another stream manager. Of those that went through an
        instance only the outputs of what it has not credited can be lost.
        """
        if peer in self._held:
            return self._answers.fail_pending(self._trees.fail_all())
        return [
            send
            for task, queue in self._queues.items()
            if self._route[task] == peer
            for send in self._fail_lost(task, queue.unfinished)
        ]

    def beat(self, now: float) -> list[Send]:
        """Let every peer notice what it has not received, if it is time for that."""
        links = self._links.items() if self._beats.due(now) else ()
        return [(True, peer, link.beat()) for peer, link in links if link.open]

    def next_beat(self, now: float) -> float:
        """When `beat` has something to send while nothing else happens."""
        return self._beats.next(now)

    def rotate(self) -> None:
        """A message timeout has passed: forget trees that nobody will finish."""
        self._trees.rotate()
        self._answers.rotate()

    # ---- pressure ------------------------------------------------------------------------------

    def egress(self, peer: str, congested: bool) -> list[Send]:
        """The driver's queue to a stream manager is over (or again under) its mark."""
        if congested == (peer in self._congested):
            return []
        (self._congested.add if congested else self._congested.discard)(peer)
        return self._announce(*self._words.hosted(peer))

    def _reachable(self, peer: str) -> bool:
        return self._is_open(peer) and peer not in self._congested

    def _is_open(self, peer: str) -> bool:
        link = self._links.get(peer)
        return link is not None and link.open

    def _turn(self, task: int, now: float, news: bool) -> list[Send]:
        """A task's queue has changed, which may be `news` in itself: tell those who should know."""
        turned = self._queues[task].turned(now)
        return self._announce(task) if news or turned is not None else []

    def _announce(self, *tasks: int) -> list[Send]:
        """Tell every sender what it does not know yet of these tasks."""
        return [
            (False, peer, self._links[peer].control(record))
            for task in tasks
            for peer, record in self._words.news(task, self._is_open)
        ]

    # ---- looking in ----------------------------------------------------------------------------

    def statistics(self) -> StreamManagerStatistics:
        """Counters since the start and a snapshot of every queue."""
        return StreamManagerStatistics(
            self._frames,
            self._sessions.refused,
            self._unroutable + self._answers.dropped + self._trees.stray,
            self._trees.lost_rows,
            self._trees.statistics(),
            {task: queue.statistics() for task, queue in self._queues.items()},
        )

    @property
    def frames(self) -> int:
        """Frames routed since the start; cheaper than all `statistics`."""
        return self._frames

    def linked(self, peers: Sequence[str]) -> bool:
        """Whether the links to all these peers are open."""
        return all(peer in self._links and self._links[peer].open for peer in peers)

    def check(self) -> None:
        """Assert the invariants of every part."""
        self._sessions.check()
        self._trees.check()
        self._answers.check()
        self.parcels.check()
        self._words.check()
        for queue in self._queues.values():
            queue.check()
        for peer, session in self._inbound.items():
            hello = self._sessions.peer(session)
            assert hello is not None
            assert hello.peer == peer
        assert self._early.keys() <= set(self._inbound.values())
