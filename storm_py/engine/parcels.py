"""Parcels: small frames to one peer that leave a stream manager together, a little later.

Where many processes share few processors, waking one of them costs more than the rows that it is
woken for. So what is for a peer leaves at once if nothing has left for it for as long as the linger
time, or once it is large; else it waits for that time, and for company. Without a linger time every
frame leaves at once. Pure: time is an argument; how instances linger is in
`storm_py.engine.outflow`, for how long in `storm_py.engine.lingering`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .links import OutboundLink, Send

#: A parcel of this size is worth a wake.
FULL_BYTES: Final = 16 * 1024


class Parcels:
    """Towards all peers of one stream manager, whose `links` are known by name."""

    def __init__(self, links: Mapping[str, OutboundLink]) -> None:
        #: how long what is small waits, in seconds
        self.linger_secs = 0.0
        self._links = links
        self._waiting: dict[str, list[bytes]] = {}
        self._bytes: dict[str, int] = {}
        self._left_at: dict[str, float] = {}

    def ship(
        self, peer: str, link: OutboundLink, frame: bytes, sends: list[Send], now: float
    ) -> None:
        """Take a frame for a peer, whose link is open: add to `sends` what leaves for it now."""
        if not self.linger_secs and not self._waiting:
            sends.append((True, peer, link.data(frame)))
        elif peer in self._waiting:
            self._waiting[peer].append(frame)
            self._bytes[peer] += len(frame)
            if self._bytes[peer] >= FULL_BYTES:
                sends.append(self._leave(peer, now))
        elif now - self._left_at.get(peer, -self.linger_secs) < self.linger_secs:
            self._waiting[peer] = [frame]
            self._bytes[peer] = len(frame)
        else:
            self._left_at[peer] = now
            sends.append((True, peer, link.data(frame)))

    def _leave(self, peer: str, now: float) -> Send:
        self._left_at[peer] = now
        del self._bytes[peer]
        return True, peer, self._links[peer].data(*self._waiting.pop(peer))

    def due(self, now: float) -> list[Send]:
        """What has waited for long enough leaves."""
        waiting = [p for p in self._waiting if now >= self._left_at[p] + self.linger_secs]
        return [self._leave(peer, now) for peer in waiting]

    def next(self) -> float | None:
        """When something will be due, None while nothing waits."""
        return min((self._left_at[p] + self.linger_secs for p in self._waiting), default=None)

    def drop(self, peer: str) -> None:
        """The session to a peer is over, and with it what waits for it."""
        self._waiting.pop(peer, None)
        self._bytes.pop(peer, None)
        self._left_at.pop(peer, None)

    def check(self) -> None:
        """Assert that what is counted is what waits, for links that are open."""
        assert self._waiting.keys() == self._bytes.keys() <= self._left_at.keys()
        for peer, parts in self._waiting.items():
            assert self._links[peer].open
            assert self._bytes[peer] == sum(map(len, parts))
