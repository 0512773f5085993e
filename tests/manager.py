"""A stream manager core in the hands of a test: bytes in and out become words."""

from __future__ import annotations

from storm_py.core.plan import PhysicalPlan
from storm_py.core.pressure import INITIAL_ROWS, Limits
from storm_py.engine.links import Send
from storm_py.engine.stream_manager_core import StreamManagerCore
from storm_py.wire.control import Control, Hello, Pressure, Welcome
from tests.builders import (
    Data,
    End,
    Numbers,
    Rows,
    Said,
    Sent,
    all_in_words,
    bolt,
    control_message,
    data_message,
    hello,
    plan_of,
    rows,
    spout,
)

LIMITS = Limits(window_secs=0.5, high_bytes=1 << 20, low_ratio=0.5, frame_rows=256, free_rows=0)

#: count is task 1 of i1, words task 2 of i2
ONE_WORKER = plan_of(spout("words", "word"), bolt("count", "words"))
#: count is task 1 of i1 and task 2 of i2, words task 3 of i3; i2 is on worker 1
TWO_WORKERS = plan_of(spout("words", "word"), bolt("count", "words", tasks=2), workers=2)
HIGH = INITIAL_ROWS  # rows of backlog above which a task that has finished nothing is pressured


class Manager:
    """A stream manager in the hands of a test; its sessions are 101, 102, ..."""

    def __init__(self, plan: PhysicalPlan, worker: int = 0, limits: Limits = LIMITS) -> None:
        self.core = StreamManagerCore(plan, worker, 1, Numbers(100), limits)
        self.now = 0.0

    def _checked(self, sends: list[Send]) -> list[Sent]:
        self.core.check()
        return all_in_words(sends)

    def connect(self, peer: str) -> list[Sent]:
        return self._checked(self.core.connect(peer))

    def disconnect(self, peer: str, gone: int | None = None) -> list[Sent]:
        return self._checked(self.core.disconnect(peer, gone))

    def hears(self, session: int, record: Control) -> list[Sent]:
        return self._checked(self.core.on_control(control_message(session, record), self.now))

    def gets(self, session: int, seq: int, *content: Rows | End) -> list[Sent]:
        return self._checked(self.core.on_data(data_message(session, seq, *content), self.now))

    def egress(self, peer: str, congested: bool) -> list[Sent]:
        return self._checked(self.core.egress(peer, congested))

    def beats(self, now: float) -> list[Sent]:
        return self._checked(self.core.beat(now))

    def link(self, peer: str, theirs: int, ours: int) -> list[Sent]:
        """Open the link both ways: their session, ours; what the last step brought."""
        self.connect(peer)
        self.hears(theirs, hello(peer))
        return self.hears(theirs, Welcome(ours))


def said(peer: str, session: int, record: Control) -> Sent:
    return Sent(peer, Said(session, record))


def data(peer: str, session: int, seq: int, *content: Rows | End) -> Sent:
    return Sent(peer, Data(session, seq, list(content)))


def ours(incarnation: int = 1, worker: int = 0) -> Hello:
    return hello(f"s{worker}", incarnation)


def words(dest: int = 1, src: int = 2, n: int = 1) -> Rows:
    return rows(src, dest, *([f"word {i}"] for i in range(n)))


def linked() -> Manager:
    """The one worker, linked to count (11 in, 101 out) and words (22 in, 102 out)."""
    manager = Manager(ONE_WORKER)
    assert manager.link("i1", 11, 101) == []
    assert manager.link("i2", 22, 102) == [said("i2", 102, Pressure(1, False, 16))]
    return manager
