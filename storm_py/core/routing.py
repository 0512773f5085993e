"""Router: which tasks a tuple goes to, one rule per grouping.

The plain statement of what Storm's groupings mean. Instances run a faster, generated form of it
(`storm_py.engine.emitters`), and the tests hold the two against each other. Pure; the only state is
the cursor of each shuffle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storm_py.api.grouping import GroupingKind

from .keys import PLAIN, Keys, task_index


@dataclass(frozen=True, slots=True)
class Target:
    """One subscription to a stream: the consuming component, its tasks, how to choose among them.

    `key` are the positions of the grouping fields in the stream's rows.
    """

    component_id: str
    kind: GroupingKind
    tasks: tuple[int, ...]
    key: tuple[int, ...] = ()


def owner(values: Sequence[object], target: Target, key_groups: int, keys: Keys = PLAIN) -> int:
    """The task that owns a row's key under fields grouping."""
    group = keys.group_of([values[i] for i in target.key], key_groups)
    return target.tasks[task_index(group, len(target.tasks), key_groups)]


class Router:
    """Routes the rows of one task.

    `start` shifts where each shuffle begins, so that many producers do not all start at the same
    consumer.
    """

    def __init__(
        self, targets: Mapping[str, Sequence[Target]], key_groups: int, start: int
    ) -> None:
        self._targets = {stream: tuple(found) for stream, found in targets.items()}
        self._key_groups = key_groups
        self._cursor = {
            (stream, i): start for stream, found in self._targets.items() for i in range(len(found))
        }

    def route(self, stream: str, values: Sequence[object]) -> tuple[int, ...]:
        """The destination tasks of one row of a regular stream, in subscription order."""
        chosen: list[int] = []
        for i, target in enumerate(self._targets[stream]):
            chosen.extend(self._choose(stream, i, target, values))
        return tuple(chosen)

    def _choose(
        self, stream: str, i: int, target: Target, values: Sequence[object]
    ) -> tuple[int, ...]:
        match target.kind:
            case GroupingKind.SHUFFLE:
                turn = self._cursor[stream, i]
                self._cursor[stream, i] = turn + 1
                return (target.tasks[turn % len(target.tasks)],)
            case GroupingKind.FIELDS:
                return (owner(values, target, self._key_groups),)
            case GroupingKind.ALL:
                return target.tasks
            case GroupingKind.GLOBAL:
                return (min(target.tasks),)
            case _:
                return ()

    def check(self) -> None:
        """Assert that every target can be reached."""
        for stream, targets in self._targets.items():
            for target in targets:
                assert target.tasks, f"{target.component_id} on {stream} has no task"
                assert list(target.tasks) == sorted(target.tasks)
                assert (target.kind is GroupingKind.FIELDS) == bool(target.key)
