"""Tools to test topologies with; what they promise is in docs/testing.md.

Nothing in here is needed to run a topology, and ``import storm_py`` does not load it.
"""

from __future__ import annotations

from .bolts import CapturingBolt, HoldingBolt
from .clock import FakeClock
from .complete import complete_topology, read_tuples
from .driver import TopologyDriver
from .outcome import Outcome
from .simulation import Faults, Simulation, SimulationError, SimulationReport
from .spouts import FeederSpout, FixedTuple, FixedTupleSpout
from .spying import Emitted

__all__ = [  # noqa: RUF022 - grouped by purpose
    # a topology in the hands of a test
    "Emitted",
    "FakeClock",
    "Outcome",
    "TopologyDriver",
    # a topology from its beginning to its end
    "complete_topology",
    "read_tuples",
    # a topology that dies in every way, many times over
    "Faults",
    "Simulation",
    "SimulationError",
    "SimulationReport",
    # components for tests
    "CapturingBolt",
    "FeederSpout",
    "FixedTuple",
    "FixedTupleSpout",
    "HoldingBolt",
]
