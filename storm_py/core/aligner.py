"""Aligner: END waves - when has a task received all it will ever receive?

A wave is a marker with an id on every (producer task, consumer task) channel, behind the rows sent
before it. A task aligned on a wave has heard it from every task upstream. A death starts a new wave
with a higher id, so markers of an older wave are dropped and a higher one starts the count anew.
Pure; the instance core asks it, `storm_py.engine.instance_core`.
"""

from __future__ import annotations

from collections.abc import Iterable


class Aligner:
    """The inbound channels of one task."""

    def __init__(self, channels: Iterable[int]) -> None:
        self._channels = frozenset(channels)
        self._wave = 0
        self._heard: set[int] = set()
        self._aligned = 0

    def marker(self, src: int, wave: int) -> bool:
        """A marker of `wave` came from `src`; True when that completes the wave (once per wave)."""
        if wave < self._wave or src not in self._channels:
            return False
        if wave > self._wave:
            self._wave = wave
            self._heard.clear()
        self._heard.add(src)
        if self._heard == self._channels and self._aligned < wave:
            self._aligned = wave
            return True
        return False

    @property
    def aligned(self) -> int:
        """The newest complete wave, 0 for none."""
        return self._aligned

    def missing(self) -> frozenset[int]:
        """The channels that the current wave has not been heard from."""
        return self._channels - self._heard

    def check(self) -> None:
        """Assert that only known channels were heard and no wave runs ahead."""
        assert self._heard <= self._channels
        assert self._aligned <= self._wave
