"""Arguments of a simulation: each is checked before anything is made of it.

An error names the argument, its value, what was expected and what to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from storm_py.errors import a_type, did_you_mean

#: Classes of exceptions, as `isinstance` takes them.
ErrorClasses: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]


def checked_int(name: str, value: object, least: int, advice: str) -> int:
    """Return an int of at least `least`; TypeError or ValueError, ending in `advice`, if not."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {shown(value)}; expected an int of at least {least}, {advice}")
    if value < least:
        raise ValueError(f"{name} is {value}; expected at least {least}, {advice}")
    return value


def checked_number(
    name: str, value: object, advice: str, least: float = 0.0, most: float = math.inf
) -> float:
    """Return a finite number in these bounds; TypeError or ValueError if not."""
    bounds = f"of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{name} is {shown(value)}; expected a number {bounds}, {advice}")
    if not least <= value <= most or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}; expected a number {bounds}, {advice}")
    return value


def checked_mapping(name: str, value: object, advice: str) -> Mapping[str, object]:
    """Return a dict, an empty one for None; TypeError for anything else."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} is {shown(value)}; expected a dict, {advice}")
    return value or {}


def checked_row_secs(given: object, components: Iterable[str]) -> Mapping[str, float]:
    """Return the seconds of a row by component; ValueError for one that there is not."""
    known = list(components)
    found: dict[str, float] = {}
    for id_, secs in checked_mapping("row_secs", given, "component to seconds").items():
        if id_ not in known:
            raise ValueError(
                f"row_secs names {id_!r}, which is no component; there are: "
                f"{', '.join(known)}{did_you_mean(id_, known)}"
            )
        found[id_] = checked_number(f"row_secs of {id_!r}", secs, "the seconds that a row takes")
    return found


def checked_errors(name: str, value: object) -> tuple[type[BaseException], ...]:
    """Return classes of exceptions as a tuple; TypeError if one is something else."""
    found = value if isinstance(value, tuple) else (value,)
    for each in found:
        if not isinstance(each, type) or not issubclass(each, BaseException):
            raise TypeError(
                f"{name} holds {shown(each)}; expected classes of exceptions that user code may "
                "raise, as in (ValueError, KeyError)"
            )
    return found


def shown(value: object) -> str:
    """A value in the words of an error, with what kind of thing it is."""
    return (
        a_type(value) if value is None or isinstance(value, type) else f"{value!r}, {a_type(value)}"
    )
