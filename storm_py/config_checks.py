"""What a configuration key is, and what its values may be: worded, checked, and hinted at.

The keys are in ``storm_py.config_keys``; ``storm_py.config`` makes an error of what is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from .errors import a_type, nearest
from .imports import is_path, name_serializers

__all__ = [
    "Check",
    "Key",
    "boolean",
    "consumers",
    "folder",
    "hosts",
    "integer",
    "number",
    "or_none",
    "paths",
    "ports",
    "serializers",
    "topology_name",
    "znode",
]

_CONSUMER_KEYS: Final = ("class", "argument", "parallelism.hint")


def _no_hint(value: object) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Check:
    """What a value must be."""

    #: Worded to follow "expected".
    expected: str
    #: Whether a value is that.
    accepts: Callable[[object], bool]
    #: What else to say of a value that is not, to end the message: ``"; ..."``, or nothing.
    hint: Callable[[object], str] = _no_hint


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key."""

    name: str
    default: object
    check: Check
    #: Unit of the value, empty if it has none.
    unit: str
    #: What the key does.
    doc: str
    #: Storm's default and why this one differs; empty for keys that Storm does not have.
    storm: str = ""

    @property
    def expected(self) -> str:
        """What a value must be, worded to follow "expected"."""
        return self.check.expected

    def accepts(self, value: object) -> bool:
        """Say whether a value is acceptable."""
        return self.check.accepts(value)


def boolean() -> Check:
    """True or False."""
    return Check("true or false", lambda value: isinstance(value, bool))


def integer(low: int, high: int | None = None) -> Check:
    """An int from ``low`` to ``high``, no bool."""

    def accepts(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and _within(value, low, high)

    return Check(f"an integer {_range(low, high)}", accepts)


def number(low: float, high: float | None = None) -> Check:
    """An int or a float from ``low`` to ``high``, finite, no bool."""

    def accepts(value: object) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and _within(value, low, high)

    return Check(f"a number {_range(low, high)}", accepts)


def or_none(check: Check) -> Check:
    """What the other check accepts, or None."""
    return Check(
        f"{check.expected}, or null",
        lambda value: value is None or check.accepts(value),
        check.hint,
    )


def topology_name() -> Check:
    """A name by Storm's rule: it becomes part of paths and of ids."""
    pattern = re.compile(r"[^/.:\\]+")

    def accepts(value: object) -> bool:
        return isinstance(value, str) and bool(value.strip()) and bool(pattern.fullmatch(value))

    return Check("a string that is not blank and holds none of / . : \\", accepts)


def folder() -> Check:
    """The path of a folder that does not depend on where a process was started."""

    def accepts(value: object) -> bool:
        return isinstance(value, str) and value.startswith(("/", "~/")) and "\0" not in value

    return Check("a path that begins with / or ~/", accepts)


def host() -> Check:
    """The name or address of a host, without a port."""
    pattern = re.compile(r"[^\s,:/]+")

    def accepts(value: object) -> bool:
        return isinstance(value, str) and pattern.fullmatch(value) is not None

    return Check("the name of a host, without a port", accepts)


def hosts() -> Check:
    """A list of names or addresses of hosts, without ports."""
    one = host()

    def accepts(value: object) -> bool:
        return isinstance(value, list) and bool(value) and all(map(one.accepts, value))

    def hint(value: object) -> str:
        return f"; put it into a list: [{value!r}]" if isinstance(value, str) else ""

    return Check("a list of host names, without ports", accepts, hint)


def ports() -> Check:
    """A list of ports, each once."""
    port = integer(1, 65535)

    def accepts(value: object) -> bool:
        if not isinstance(value, list) or not all(map(port.accepts, value)):
            return False
        return len(set(value)) == len(value)

    return Check("a list of ports from 1 to 65535, each once", accepts)


def znode() -> Check:
    """The path of a node in ZooKeeper."""
    pattern = re.compile(r"(/(?!\.{1,2}(/|$))[^/\0]+)+")

    def accepts(value: object) -> bool:
        return isinstance(value, str) and bool(pattern.fullmatch(value))

    return Check("a path as /storm, without a slash at its end", accepts)


def paths() -> Check:
    """A list of import paths."""

    def accepts(value: object) -> bool:
        return isinstance(value, list) and all(map(is_path, value))

    def hint(value: object) -> str:
        found = value if isinstance(value, list) else []
        return next((_path_hint(one) for one in found if not is_path(one)), "")

    return Check("a list of names, each package.module:Class", accepts, hint)


def _path_hint(value: object) -> str:
    """What is wrong with something that is no import path."""
    if not isinstance(value, str):
        return f"; {value!r} is {a_type(value)}"
    module, dot, name = value.rpartition(".")
    if dot and is_path(f"{module}:{name}"):
        return f"; {value!r} has no colon: did you mean '{module}:{name}'?"
    return f"; {value!r} is no such name"


def serializers() -> Check:
    """A list of registered serializers."""
    return Check(
        "a list of [class, dumps, loads], each a path as in package.module:Name, a class once",
        name_serializers,
    )


def consumers() -> Check:
    """A list of metrics consumers."""

    def is_consumer(value: object) -> bool:
        return isinstance(value, dict) and not _consumer_hint(value)

    def accepts(value: object) -> bool:
        return isinstance(value, list) and all(map(is_consumer, value))

    def hint(value: object) -> str:
        if isinstance(value, dict):
            return "; put it into a list"
        found = value if isinstance(value, list) else []
        return next((_consumer_hint(one) for one in found if not is_consumer(one)), "")

    return Check(
        'a list of {"class": "package.module:Class", "argument": ..., "parallelism.hint": 1}, the '
        "last two optional",
        accepts,
        hint,
    )


def _consumer_hint(value: object) -> str:
    """What is wrong with the description of a consumer; empty if nothing is."""
    if not isinstance(value, dict):
        return f"; {value!r} is {a_type(value)}"
    for key in value:
        if key not in _CONSUMER_KEYS:
            near = nearest(key, _CONSUMER_KEYS)
            hint = f"did you mean {near!r}?" if near else "which is no setting of a consumer"
            return f"; it has a {key!r}, {hint}"
    if "class" not in value:
        return f"; {value!r} has no 'class'"
    if not is_path(value["class"]):
        return _path_hint(value["class"])
    tasks = value.get("parallelism.hint", 1)
    return "" if type(tasks) is int and tasks >= 1 else f"; its 'parallelism.hint' is {tasks!r}"


def _range(low: float, high: float | None) -> str:
    return f"of at least {low:g}" if high is None else f"from {low} to {high}"


def _within(value: Any, low: float, high: float | None) -> bool:
    return bool(value >= low and value < float("inf") and (high is None or value <= high))
