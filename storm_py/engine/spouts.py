"""Spouts: the spout tasks of one instance, who may emit and whose turn it is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .port import Watch
from .tasks import RunningTask, SpoutTask
from .waves import Waves


class Spouts:
    """Those among the tasks of an instance, none if it runs bolts only."""

    def __init__(
        self,
        tasks: Iterable[RunningTask],
        waves: Waves,
        clock: Callable[[], float],
        watch: Watch,
    ) -> None:
        self._spouts = [task for task in tasks if isinstance(task, SpoutTask)]
        self._waves = waves
        self._clock = clock
        self._watch = watch
        self._turn = 0
        self.active = False
        #: messages were lost, nobody knows which, and the spouts have not been told
        self.lost = False

    def activate(self) -> None:
        """They may emit from now on; they are told when the state turns."""
        if not self.active:
            self.active = True
            for spout in self._spouts:
                self._watch.entered("activate", spout.task)
                spout.activate()

    def deactivate(self) -> None:
        """They may not emit until the next activate; answers still reach them."""
        if self.active:
            self.active = False
            for spout in self._spouts:
                self._watch.entered("deactivate", spout.task)
                spout.deactivate()

    @property
    def emitting(self) -> bool:
        """Whether one of them is active and has not ended."""
        return self.active and any(not spout.ended for spout in self._spouts)

    def halt(self) -> None:
        """Nothing may be emitted for now: the burst that goes on ends behind this call."""
        for spout in self._spouts:
            spout.halt()

    def burst(self, go_on: Callable[[], bool]) -> bool:
        """Each in its turn calls next_tuple for a slice of time, while `go_on` says so before it.

        Returns whether anything was emitted.
        """
        emitted = False
        for _ in self._spouts:
            if not self.active or not go_on():
                break
            spout = self._spouts[self._turn]
            self._turn = (self._turn + 1) % len(self._spouts)
            if not spout.ended:
                self._watch.entered("next_tuple", spout.task)
                emitted |= spout.burst(self._clock)
            self._waves.end(spout)  # ended in this burst, or in open or activate already
        return emitted

    def tick(self, now: float) -> None:
        """Fail what has been pending too long; end the input of those that waited for answers."""
        for spout in self._spouts:
            spout.tick(now)
            self._waves.end(spout)

    def tell_lost(self) -> None:
        """Nobody knows what became of what they have emitted before a loss: that fails."""
        if self.lost:
            self.lost = False  # the answers may emit, and hear of the next one
            for spout in self._spouts:
                self._watch.entered("ack or fail", spout.task)
                spout.fail_pending()

    def wave(self, wave: int, drain: bool) -> None:
        """A new END wave: those that have ended send it; with `drain` all end where they are."""
        self._waves.begin(wave)
        for spout in self._spouts:
            if drain:
                spout.drain()
            self._waves.end(spout)
