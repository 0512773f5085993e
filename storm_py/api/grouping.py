"""How a stream is shared out among the tasks of a bolt, as plain values.

Nothing is routed here: the builder records a ``Grouping``, ``storm_py.core.routing`` and the
generated emit of ``storm_py.engine`` act on it. ``CustomStreamGrouping`` is the one grouping that
holds behaviour, the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from .tuples import Fields, GlobalStreamId, Value

if TYPE_CHECKING:  # a context tells of groupings, a grouping is told of its context
    from .context import TopologyContext

__all__ = ["KEYED", "CustomStreamGrouping", "Grouping", "GroupingKind"]


class GroupingKind(StrEnum):
    """Storm's ways to pick destination tasks; the value is the name used on wires."""

    #: Evenly, each tuple to one task.
    SHUFFLE = "SHUFFLE"
    #: Equal values of the chosen fields go to the same task.
    FIELDS = "FIELDS"
    #: As FIELDS, but each key is shared by two tasks, whichever was sent less.
    PARTIAL_KEY = "PARTIAL_KEY"
    #: A copy to every task.
    ALL = "ALL"
    #: Everything to the task with the lowest id.
    GLOBAL = "GLOBAL"
    #: The user does not care; today that is SHUFFLE, as in Storm.
    NONE = "NONE"
    #: The producer names the task with ``emit_direct``.
    DIRECT = "DIRECT"
    #: As SHUFFLE, among the tasks of the same worker if there are any.
    LOCAL_OR_SHUFFLE = "LOCAL_OR_SHUFFLE"
    #: The user's own class decides.
    CUSTOM = "CUSTOM"

    @property
    def words(self) -> str:
        """The kind as messages write it, e.g. ``partial key``."""
        return self.lower().replace("_", " ")


#: The kinds that choose by a key made of some of the stream's fields.
KEYED = frozenset({GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY})


class CustomStreamGrouping:
    """A grouping of the user's own (Storm's ``CustomStreamGrouping``); define ``choose_tasks``.

    Given to ``custom_grouping``. Every task that emits on the stream asks a copy of its own, in its
    process, on the thread of its component; a restarted task begins with a fresh copy. So
    ``__init__`` keeps plain settings, as that of a component does.
    """

    def prepare(
        self, context: TopologyContext, stream: GlobalStreamId, target_tasks: list[int]
    ) -> None:
        """Get ready: called once, before ``open`` or ``prepare`` of the emitting component.

        ``context`` is that of the emitting task, ``stream`` what it emits on, ``target_tasks`` the
        ids of the bolt's tasks, ascending: out of these ``choose_tasks`` chooses.
        """

    def choose_tasks(self, task_id: int, values: list[Value]) -> Sequence[int]:
        """Return the ids of the tasks that this tuple goes to, an empty list for none.

        Called for every tuple that ``task_id``, the emitting task, emits. ``values`` are in the
        order of the stream's fields and are not to be changed. A task that is named twice receives
        the tuple twice. What is no task of the bolt makes the emit raise EmitError.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not define choose_tasks(self, task_id, values)"
        )


@dataclass(frozen=True, slots=True)
class Grouping:
    """One bolt's choice for one stream: the kind and what that kind needs."""

    kind: GroupingKind
    #: Names of the fields that make the key; None for kinds without a key.
    fields: Fields | None = None
    #: The user's object of a custom grouping; each emitting task gets a copy. None for other kinds,
    #: and where a topology is read by processes that run no user code.
    custom: CustomStreamGrouping | None = field(default=None, hash=False)

    def __str__(self) -> str:
        """Return the kind in words with its fields or class, e.g. ``fields(word)``."""
        what = None if self.fields is None else ", ".join(self.fields)
        if self.custom is not None:
            what = type(self.custom).__name__
        return self.kind.words if what is None else f"{self.kind.words}({what})"
