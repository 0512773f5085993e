"""Classes that a configuration names: ``package.module:Class`` or ``package.module.Class``.

A configuration is plain data that travels between processes, so it holds names; the classes are
found where they are used.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from storm_py.config import Config
from storm_py.errors import ConfigError, a_type, did_you_mean

from .hooks import BaseTaskHook
from .metrics import MetricsConsumer

__all__ = ["check_imports", "find_class"]


def find_class(path: str, base: type, key: str) -> type:
    """Return the class at ``path``, a subclass of ``base``; ``key`` is where the name stands.

    Raises ConfigError that names key, path and what was found instead. What the module raises while
    it is imported passes through.
    """
    module_name, colon, qualified = path.partition(":")
    if not colon:
        module_name, _, qualified = path.rpartition(".")
    if not module_name or not qualified:
        raise ConfigError(f"{key} names {path!r}; expected package.module:Class")
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there: what it imports is not
        raise ConfigError(
            f"{key} names {path!r}, but there is no module {error.name!r}; it must be importable "
            "where the topology runs"
        ) from error
    for name in qualified.split("."):
        if not hasattr(found, name):
            raise ConfigError(
                f"{key} names {path!r}, but {module_name} has no {name!r}"
                f"{did_you_mean(name, vars(found))}"
            )
        found = getattr(found, name)
    if not isinstance(found, type) or not issubclass(found, base):
        raise ConfigError(f"{key} names {path!r}, {a_type(found)}; expected a {base.__name__}")
    return found


def check_imports(conf: Mapping[str, Any]) -> None:
    """Find every class that a whole, valid configuration names; raises ConfigError as above.

    For whoever starts a topology: what is misspelt shows before any process runs.
    """
    key = Config.TOPOLOGY_AUTO_TASK_HOOKS
    for path in conf[key] or ():
        find_class(path, BaseTaskHook, key)
    key = Config.TOPOLOGY_METRICS_CONSUMER_REGISTER
    for consumer in conf[key] or ():
        find_class(consumer["class"], MetricsConsumer, key)
