"""The clock of a test: time passes only when the test says so."""

from __future__ import annotations

from .shared import Shared

__all__ = ["FakeClock"]


class FakeClock(Shared):
    """A clock that gives seconds when it is called, as `time.monotonic` does.

    A component that takes its clock as an argument can be given this one, and the driver as well
    (``TopologyDriver(..., clock=clock)``): its copies share it, so `driver.advance` moves it for
    all of them.
    """

    label = "FakeClock"

    def __init__(self, start: float = 0.0) -> None:
        """Begin at `start` seconds."""
        super().__init__()
        self.now = float(start)

    def __call__(self) -> float:
        return self.now

    def advance(self, secs: float) -> None:
        """Let time pass; a clock never goes back, so ValueError for less than 0 seconds."""
        self.now += checked_secs(secs)


def checked_secs(secs: float) -> float:
    """Return ``secs`` if time can pass by that much; ValueError if not."""
    if not 0 <= secs < float("inf"):
        raise ValueError(f"cannot advance by {secs!r} seconds; expected a number of at least 0")
    return secs
