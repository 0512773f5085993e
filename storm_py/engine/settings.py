"""Engine settings: the numbers that cores take from a topology's configuration.

One place that knows which key feeds which bound; units are in the names. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from storm_py.config import Config
from storm_py.core.plan import PhysicalPlan
from storm_py.core.pressure import Limits
from storm_py.errors import ConfigError
from storm_py.imports import NotImportable, resolve_serializer
from storm_py.wire.values import PLAIN, Codec, Serializer

#: The least time between two credits for a few rows each.
CREDIT_SECS: Final = 0.02


@dataclass(frozen=True, slots=True)
class Settings:
    """What an instance takes from the topology's configuration."""

    conf: Mapping[str, Any]
    batch_rows: int
    batch_bytes: int
    batch_delay_secs: float
    max_frame_bytes: int
    key_groups: int
    spout_wait_secs: float
    acking: bool
    worker_port: int
    #: credits for few rows, and for bytes fewer than these, wait for others for so long
    credit_secs: float
    credit_bytes: int
    codec: Codec = PLAIN
    epoch: int = 1

    @classmethod
    def of(cls, conf: Mapping[str, Any], worker_port: int) -> Settings:
        """The settings in a validated configuration with all defaults.

        Raises ConfigError if a registered serializer is not found.
        """
        return cls(
            conf=conf,
            batch_rows=conf[Config.STORM_PY_BATCH_ROWS],
            batch_bytes=conf[Config.STORM_PY_BATCH_BYTES],
            batch_delay_secs=conf[Config.STORM_PY_BATCH_DELAY_MS] / 1000,
            max_frame_bytes=conf[Config.STORM_PY_FRAME_MAX_BYTES],
            key_groups=conf[Config.STORM_PY_KEY_GROUPS],
            spout_wait_secs=conf[Config.STORM_PY_SPOUT_WAIT_MS] / 1000,
            acking=conf[Config.TOPOLOGY_ACKER_EXECUTORS] != 0,
            worker_port=worker_port,
            credit_secs=CREDIT_SECS,
            credit_bytes=conf[Config.STORM_PY_BACKPRESSURE_HIGH_BYTES] // 4,
            codec=codec_of(conf),
        )


def codec_of(conf: Mapping[str, Any]) -> Codec:
    """What values a topology may exchange; imports its registered classes and their functions."""
    key = Config.STORM_PY_SERIALIZERS
    try:
        found = [Serializer(*resolve_serializer(paths)) for paths in conf[key]]
    except NotImportable as error:
        raise ConfigError(f"{key}: {error}") from error
    return Codec(found, conf[Config.STORM_PY_FALL_BACK_ON_PICKLE])


def limits(conf: Mapping[str, Any]) -> Limits:
    """The bounds of a stream manager's queues."""
    return Limits(
        window_secs=conf[Config.STORM_PY_BACKPRESSURE_WINDOW_SECS],
        high_bytes=conf[Config.STORM_PY_BACKPRESSURE_HIGH_BYTES],
        low_ratio=conf[Config.STORM_PY_BACKPRESSURE_LOW_RATIO],
        frame_rows=conf[Config.STORM_PY_BATCH_ROWS],
    )


def max_timeout_secs(plan: PhysicalPlan) -> float:
    """The longest message timeout of any spout of the topology (Storm's maxTopologyMessageTimeout).

    A tracker that forgets by this period never forgets a tree before its spout fails it.
    """
    key = Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS
    spouts = plan.topology.spouts.values()
    found: list[Any] = [spout.config.get(key, plan.conf[key]) for spout in spouts]
    return float(max(found))


def linger_secs(conf: Mapping[str, Any]) -> float | None:
    """For how long small frames are held back; None for as long as the machine asks for."""
    given: Any = conf[Config.STORM_PY_BATCH_LINGER_MS]
    return None if given is None else float(given) / 1000
