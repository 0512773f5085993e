"""How a stream is shared out among the tasks of a bolt, as plain values.

Nothing is routed here: the builder records a ``Grouping``, ``storm_py.core.routing`` and the
generated emit of ``storm_py.engine`` act on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .tuples import Fields

__all__ = ["Grouping", "GroupingKind"]


class GroupingKind(StrEnum):
    """Storm's ways to pick destination tasks; the value is the name used on wires."""

    #: Evenly, each tuple to one task.
    SHUFFLE = "SHUFFLE"
    #: Equal values of the chosen fields go to the same task.
    FIELDS = "FIELDS"
    #: As FIELDS, but each key is balanced over two tasks.
    PARTIAL_KEY = "PARTIAL_KEY"
    #: A copy to every task.
    ALL = "ALL"
    #: Everything to the task with the lowest id.
    GLOBAL = "GLOBAL"
    #: The user does not care.
    NONE = "NONE"
    #: The producer names the task with ``emit_direct``.
    DIRECT = "DIRECT"
    #: As SHUFFLE, among the tasks of the same worker if there are any.
    LOCAL_OR_SHUFFLE = "LOCAL_OR_SHUFFLE"
    #: The user's own class decides.
    CUSTOM = "CUSTOM"


@dataclass(frozen=True, slots=True)
class Grouping:
    """One bolt's choice for one stream: the kind and, for keyed kinds, the key's fields."""

    kind: GroupingKind
    #: Names of the fields that make the key; None for kinds without a key.
    fields: Fields | None = None

    def __str__(self) -> str:
        """Return the kind in lower case with its fields, e.g. ``fields(word)``."""
        key = f"({', '.join(self.fields)})" if self.fields is not None else ""
        return f"{self.kind.lower()}{key}"
