"""Stream managers of a simulated topology: a `StreamManagerCore` each, with links for sockets.

What its driver `storm_py.runtime.stream_manager` does: it never waits. What finds the link to
another stream manager full is kept, and above a mark those who send there are told.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from storm_py.engine.links import Send
from storm_py.engine.settings import max_timeout_secs
from storm_py.engine.stream_manager_core import StreamManagerCore
from storm_py.engine.tasks import UserError
from storm_py.wire import control

from .processes import Linked, Parent, Stage

#: Seconds after which a link that was full is tried again.
RETRY_SECS: Final = 0.001


class Manager(Linked):
    """A worker's stream manager: a `StreamManagerCore`."""

    def __init__(self, stage: Stage, worker: Parent, incarnation: int) -> None:
        super().__init__(stage, f"s{worker.number}", worker, 0)
        self.incarnation = incarnation
        plan = stage.plan
        self.limits = stage.limits()
        self.core = StreamManagerCore(
            plan, worker.number, incarnation, self.network.rng, self.limits
        )
        #: what waits for room on the way to a peer, and the peers for which that is too much
        self.kept: dict[str, deque[bytes]] = {}
        self.congested: set[str] = set()
        self._timeout_secs = max_timeout_secs(plan)
        self._rotate_at = self.network.now + self._timeout_secs
        self.guarded(self.register, "stream-manager")

    def receive(self, data: bool, message: bytes) -> None:
        core, now = self.core, self.network.now
        self._transmit(core.on_data(message, now) if data else core.on_control(message, now))

    def run(self) -> None:
        self.guarded(self._round)
        now = self.network.now
        retry_at = now + RETRY_SECS if self.kept else self._rotate_at
        self.wake_at = min(self._rotate_at, self.core.next_beat(now), retry_at)

    def _round(self) -> None:
        for peer in list(self.kept):
            self._send_kept(peer)
        if self.network.now >= self._rotate_at:
            self._rotate_at = self.network.now + self._timeout_secs
            self.core.rotate()
        self._transmit(self.core.beat(self.network.now))

    def _transmit(self, sends: list[Send]) -> None:
        kept: dict[str, None] = {}
        for data, peer, message in sends:
            if data and peer.startswith("s") and (peer in self.kept or self.is_full(peer)):
                self.kept.setdefault(peer, deque()).append(message)
                kept[peer] = None
            else:
                self.send(data, peer, message)
        # Behind the last word of the list: the core has decided all of it before it hears of this.
        for peer in kept:
            self._look_at_kept(peer)

    def _send_kept(self, peer: str) -> None:
        queue = self.kept[peer]
        while queue and not self.is_full(peer):
            self.send(True, peer, queue.popleft())
        self._look_at_kept(peer)
        if not queue:
            del self.kept[peer]

    def _look_at_kept(self, peer: str) -> None:
        """Tell the core when too much waits for a peer, and when it does no more."""
        nbytes, high = sum(map(len, self.kept[peer])), self.limits.high_bytes
        if nbytes > high:
            self.congested.add(peer)
            self._transmit(self.core.egress(peer, congested=True))
        elif nbytes <= high // 2:
            self.congested.discard(peer)
            self._transmit(self.core.egress(peer, congested=False))

    def obey(self, order: control.Control) -> None:
        match order:
            case control.Connect(peer=peer, incarnation=incarnation, data=address):
                self._close(peer, incarnation - 1)
                self.open_outlet(peer, address)
                self._transmit(self.core.connect(peer))
            case control.Disconnect(peer=peer, incarnation=incarnation):
                self._close(peer, incarnation)

    def _close(self, peer: str, gone: int) -> None:
        if self.close_outlet(peer):
            self.kept.pop(peer, None)
            self.congested.discard(peer)
            self._transmit(self.core.disconnect(peer, gone))

    def give_up(self, error: UserError) -> None:
        raise AssertionError("a stream manager runs no user code") from error

    def check(self) -> None:
        self.core.check()
