"""Parcels: what a stream manager holds back and for how long; nothing is lost or overtaken."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from storm_py.engine.links import Beats, OutboundLink, Send
from storm_py.engine.parcels import FULL_BYTES, Parcels
from storm_py.wire.frames import MESSAGE_HEADER, read_message_header
from tests.builders import Numbers, hello


def open_link(peer: str) -> OutboundLink:
    link = OutboundLink(peer, Numbers(100), hello("s0"), Beats())
    assert link.welcomed(link.session)
    return link


def content(send: Send) -> tuple[str, bytes]:
    data, peer, message = send
    assert data
    return peer, message[MESSAGE_HEADER.size :]


class Way:
    """Parcels towards peers a and b."""

    def __init__(self, linger_secs: float) -> None:
        self.links = {peer: open_link(peer) for peer in "ab"}
        self.parcels = Parcels(self.links)
        self.parcels.linger_secs = linger_secs

    def ship(self, peer: str, frame: bytes, now: float) -> list[tuple[str, bytes]]:
        sends: list[Send] = []
        self.parcels.ship(peer, self.links[peer], frame, sends, now)
        self.parcels.check()
        return [content(send) for send in sends]

    def due(self, now: float) -> list[tuple[str, bytes]]:
        return [content(send) for send in self.parcels.due(now)]


def test_without_a_linger_time_everything_leaves_at_once() -> None:
    way = Way(0)
    assert [way.ship("a", bytes([n]), 1.0) for n in range(3)] == [
        [("a", bytes([n]))] for n in range(3)
    ]
    assert way.parcels.next() is None


def test_after_a_silence_as_well_and_what_follows_waits_for_company() -> None:
    way = Way(0.5)
    assert way.ship("a", b"1", 1.0) == [("a", b"1")]
    assert way.ship("a", b"2", 1.1) == []
    assert way.ship("a", b"3", 1.4) == []
    assert way.parcels.next() == 1.5
    assert way.due(1.49) == []
    assert way.due(1.5) == [("a", b"23")]
    assert way.parcels.next() is None
    assert way.ship("a", b"4", 1.9) == []
    assert way.due(2.0) == [("a", b"4")]
    assert way.ship("a", b"5", 2.5) == [("a", b"5")]


def test_one_peer_does_not_wait_for_another() -> None:
    way = Way(0.5)
    assert way.ship("a", b"1", 1.0) == [("a", b"1")]
    assert way.ship("b", b"2", 1.1) == [("b", b"2")]
    assert way.ship("a", b"3", 1.2) == []
    assert way.ship("b", b"4", 1.2) == []
    assert way.due(1.5) == [("a", b"3")]
    assert way.due(1.6) == [("b", b"4")]


def test_a_large_one_does_not_wait() -> None:
    way = Way(0.5)
    way.ship("a", b"", 1.0)
    half = bytes(FULL_BYTES // 2)
    assert way.ship("a", half, 1.1) == []
    assert way.ship("a", half, 1.2) == [("a", 2 * half)]


def test_with_the_session_goes_what_waits_in_it() -> None:
    way = Way(0.5)
    way.ship("a", b"1", 1.0)
    way.ship("a", b"2", 1.1)
    way.parcels.drop("a")
    assert way.parcels.next() is None
    assert way.due(9.0) == []
    assert way.ship("a", b"3", 1.2) == [("a", b"3")]


class ParcelsMachine(RuleBasedStateMachine):
    """Any use: each peer gets every frame once, in order, and none is held for too long."""

    def __init__(self) -> None:
        super().__init__()
        self.links = {peer: open_link(peer) for peer in "ab"}
        self.parcels = Parcels(self.links)
        self.now = 1.0
        self.count = 0
        self.waiting: dict[str, list[tuple[bytes, float]]] = {"a": [], "b": []}
        self.seqs = {"a": 0, "b": 0}
        self.longest = 0.0

    def left(self, sends: list[Send]) -> None:
        for send in sends:
            peer, frames = content(send)
            expected = b"".join(frame for frame, _ in self.waiting[peer])
            assert frames == expected
            assert frames
            self.waiting[peer] = []
            self.seqs[peer] += 1
            assert read_message_header(send[2]) == (self.links[peer].session, self.seqs[peer])

    @rule(peer=st.sampled_from("ab"), size=st.sampled_from([4, 100, FULL_BYTES // 3]))
    def ship(self, peer: str, size: int) -> None:
        self.count += 1
        frame = b"%0*d" % (size, self.count)
        self.waiting[peer].append((frame, self.now))
        sends: list[Send] = []
        self.parcels.ship(peer, self.links[peer], frame, sends, self.now)
        assert {send[1] for send in sends} <= {peer}
        self.left(sends)

    @rule(secs=st.sampled_from([0.01, 0.1, 0.3]))
    def time_passes(self, secs: float) -> None:
        due_at = self.parcels.next()
        self.now += secs if due_at is None else min(secs, max(0.0, due_at - self.now))
        self.left(self.parcels.due(self.now))

    @rule(secs=st.sampled_from([0.0, 0.1, 0.25]))
    def linger(self, secs: float) -> None:
        self.parcels.linger_secs = secs
        self.longest = max(self.longest, secs)

    @precondition(lambda self: any(self.waiting.values()))
    @rule()
    def lose(self) -> None:
        peer = next(peer for peer, frames in self.waiting.items() if frames)
        self.parcels.drop(peer)
        self.waiting[peer] = []

    @invariant()
    def holds(self) -> None:
        self.parcels.check()
        for frames in self.waiting.values():
            for _, since in frames:
                assert self.now - since <= self.longest + 1e-9
        due_at = self.parcels.next()
        assert (due_at is not None) == any(self.waiting.values())


TestParcelsMachine = ParcelsMachine.TestCase
TestParcelsMachine.settings = settings(max_examples=80, stateful_step_count=40)
