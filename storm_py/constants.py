"""Names that Storm fixes and that appear on wires, in logs and in users' code.

Only constants live here: no behaviour, no imports, nothing that a user may configure (that is
``storm_py.config``). Spelling is Storm's, because existing clients and topologies rely on it.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "DEFAULT_STREAM_ID",
    "METRICS_COMPONENT_ID_PREFIX",
    "METRICS_STREAM_ID",
    "RESERVED_PREFIX",
    "SYSTEM_COMPONENT_ID",
    "SYSTEM_TASK_ID",
    "SYSTEM_TICK_STREAM_ID",
    "VERSION",
]

#: Of storm_py; setup.cfg has it too.
VERSION: Final = "0.1.0.dev0"

#: Stream that is meant wherever a stream id is left out.
DEFAULT_STREAM_ID: Final = "default"

#: Component that system tuples (ticks) come from; it runs no user code.
SYSTEM_COMPONENT_ID: Final = "__system"

#: Task id of the system component. Real tasks are numbered from 1.
SYSTEM_TASK_ID: Final = -1

#: Stream of tick tuples; their only value is the interval in seconds.
SYSTEM_TICK_STREAM_ID: Final = "__tick"

#: Components that hear of metrics: this, an underscore and the class of the consumer.
METRICS_COMPONENT_ID_PREFIX: Final = "__metrics"

#: Stream of a task's metrics, to those components.
METRICS_STREAM_ID: Final = "__metrics"

#: Component and stream ids that begin like this belong to the system and are refused in topologies.
RESERVED_PREFIX: Final = "__"
