"""What emits leave behind and refer to: records that a task shares with its functions. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from storm_py.api.tuples import TrackedTuple


@dataclass(slots=True)
class Emissions:
    """What one task has emitted: written by the generated functions, read per burst or report."""

    emitted: int = 0
    ended: bool = False
    #: the burst of next_tuple calls that goes on is to end
    stop: bool = False


@dataclass(slots=True)
class Current:
    """The tuple that a basic bolt is executing: what its emits are anchored to."""

    tuple: TrackedTuple | None = None
