"""Port: what an instance core needs of its driver while user code runs. Pure.

The drivers are `storm_py.runtime.instance`, in a process, and `storm_py.single`, in memory.
"""

from __future__ import annotations

from typing import Protocol

from storm_py.wire.control import ErrorReport


class Port(Protocol):
    """The time, and a way to send and to tell; the driver implements it."""

    def clock(self) -> float:
        """Monotonic seconds."""

    def stamp(self) -> int:
        """Microseconds since the Unix epoch, for `sent_at`."""

    def send(self, data: bool, message: bytes) -> None:
        """Send to the stream manager, on the data or the control socket; may wait."""

    def report(self, error: ErrorReport) -> None:
        """Tell the operator about an exception."""

    def log(self, text: str) -> None:
        """Write a line to the log of this instance, at INFO."""

    def ended(self, executor: int, wave: int, failed: bool) -> None:
        """Every task of this executor of the instance has ended under this wave."""


class Watch:
    """What a driver may want to hear besides; each method does nothing unless it is overridden."""

    def wake(self) -> None:
        """Another thread wants something: call `tick` soon. Called on that thread."""

    def entered(
        self, what: str, task: int, source: int = 0, stream: str = "", first: int = 0, last: int = 0
    ) -> None:
        """User code of a task runs from here on: `what` names the method.

        For execute, `source` and `stream` say where its rows come from, `first` and `last` which
        rows of their run they are.
        """
