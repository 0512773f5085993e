"""Task hooks and metrics consumers that a configuration names: their classes, found by path.

A configuration is plain data that travels between processes, so it holds paths as
`storm_py.imports` knows them; the classes are found where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storm_py.config import Config
from storm_py.imports import find_class

from .hooks import BaseTaskHook
from .metrics import MetricsConsumer

__all__ = ["check_registered", "consumer_class", "hook_class"]


def hook_class(path: str) -> type[BaseTaskHook]:
    """Return the hook at ``path`` in ``topology.auto.task.hooks``; ConfigError if it is none."""
    return find_class(path, BaseTaskHook, Config.TOPOLOGY_AUTO_TASK_HOOKS)


def consumer_class(path: str) -> type[MetricsConsumer]:
    """Return the consumer at ``path`` in ``topology.metrics.consumer.register``; ConfigError."""
    return find_class(path, MetricsConsumer, Config.TOPOLOGY_METRICS_CONSUMER_REGISTER)


def check_registered(conf: Mapping[str, Any]) -> None:
    """Find every hook and consumer that a whole, valid configuration names; raises ConfigError.

    For whoever starts a topology: what is misspelt shows before any process runs.
    """
    for path in conf[Config.TOPOLOGY_AUTO_TASK_HOOKS] or ():
        hook_class(path)
    for consumer in conf[Config.TOPOLOGY_METRICS_CONSUMER_REGISTER] or ():
        consumer_class(consumer["class"])
