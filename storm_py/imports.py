"""Import paths: classes and functions by the name under which another process finds them.

A path is `"package.module:Name"`, or `"package.module:Outer.Inner"` for what stands inside a class.
Values and configuration carry paths in place of code: who reads one imports the module as any
import statement would, with the module search path of its own process, and runs nothing else.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeGuard, TypeVar

from .errors import ConfigError, a_type, did_you_mean

_T = TypeVar("_T")

_PATTERN: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

#: Classes that msgpack packs by itself: a serializer for one of them would never be called.
_PACKED_NATIVELY: Final = frozenset(
    {type(None), bool, int, float, str, bytes, bytearray, memoryview, list, dict}
)


class NotImportable(ValueError):
    """Raised when something has no import path or a path leads nowhere; the text says why."""


def is_path(value: object) -> TypeGuard[str]:
    """Whether this is written as a path is; it may lead nowhere."""
    return isinstance(value, str) and _PATTERN.fullmatch(value) is not None


def path_of(thing: object) -> str:
    """The path of a class or function, under which `resolve` finds this very thing."""
    module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise NotImportable(f"{thing!r:.80} has no module and name of its own")
    if "<lambda>" in name:
        raise NotImportable(
            f"a lambda of {module} has no name to import it by; define it with def at the top "
            "level of a module"
        )
    if "<" in name:
        raise NotImportable(
            f"{module}.{name} is defined inside a function, where no other process can import it; "
            "define it at the top level of a module"
        )
    path = f"{module}:{name}"
    if resolve(path) != thing:
        raise NotImportable(f"{module}.{name} is another object than the one with this name")
    return path


def resolve(path: str) -> object:
    """What a path leads to, or NotImportable; imports its module if that is not loaded yet."""
    if not is_path(path):
        raise NotImportable(f"{path!r:.80} is no import path; expected package.module:Name")
    module, _, names = path.partition(":")
    if module == "__main__":
        raise NotImportable(
            f"{names} is defined in __main__, which is another program in every process; "
            "define it in a module that can be imported"
        )
    found: object = sys.modules.get(module)
    if found is None:
        try:
            found = importlib.import_module(module)
        except (Exception, SystemExit) as error:  # its code may raise anything, or call sys.exit
            problem = f"{type(error).__name__}: {error}"
            raise NotImportable(f"the module {module} cannot be imported ({problem})") from error
    for name in names.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            hint = did_you_mean(name, dir(found))
            raise NotImportable(f"the module {module} has no {names}{hint}") from None
    return found


def find_class(path: str, base: type[_T], key: str) -> type[_T]:
    """The class that a path leads to, a subclass of `base`; for the value of a configuration key.

    Raises ConfigError that names key, path and what is there instead.
    """
    try:
        found = resolve(path)
    except NotImportable as error:
        raise ConfigError(f"{key} names {path!r}, but {error}") from error
    if not isinstance(found, type) or not issubclass(found, base):
        raise ConfigError(f"{key} names {path!r}, {a_type(found)}; expected a {base.__name__}")
    return found


# ---- registered serializers --------------------------------------------------------------------


def name_serializers(value: object) -> bool:
    """Whether this is a list of [class, dumps, loads], all paths, with each class once."""
    if not isinstance(value, list):
        return False
    for paths in value:
        if not isinstance(paths, list) or len(paths) != 3:
            return False
        if not all(map(is_path, paths)):
            return False
    return len({paths[0] for paths in value}) == len(value)


def resolve_serializer(
    paths: Sequence[str],
) -> tuple[type, Callable[[Any], bytes], Callable[[bytes], object]]:
    """The class, dumps and loads behind [class, dumps, loads]; NotImportable if they are not."""
    kind, dumps, loads = map(resolve, paths)
    if not isinstance(kind, type):
        raise NotImportable(f"{paths[0]} is {a_type(kind)}; expected a class")
    if kind in _PACKED_NATIVELY:
        raise NotImportable(f"{kind.__name__} travels as it is; register a class of your own")
    for path, function in zip(paths[1:], (dumps, loads), strict=True):
        if not callable(function):
            raise NotImportable(f"{path} is {a_type(function)}; expected a function")
    return kind, dumps, loads  # type: ignore[return-value]
