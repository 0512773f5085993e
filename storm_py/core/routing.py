"""Router: which tasks a tuple goes to, one rule per grouping.

The plain statement of what Storm's groupings mean. Instances run a faster, generated form of it
(`storm_py.engine.emitters`), and the tests hold the two against each other. Pure; the only state is
the cursor of each shuffle, and what each partial key grouping has sent to whom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storm_py.api.grouping import KEYED, CustomStreamGrouping, GroupingKind

from .keys import PLAIN, Keys, task_index


@dataclass(frozen=True, slots=True)
class Target:
    """One subscription to a stream: the consuming component, its tasks, how to choose among them.

    `key` are the positions of the grouping fields in the stream's rows. `local` are those of the
    tasks that run in the producer's worker, for LOCAL_OR_SHUFFLE only. `custom` is the producing
    task's own copy of the user's object, for CUSTOM only.
    """

    component_id: str
    kind: GroupingKind
    tasks: tuple[int, ...]
    key: tuple[int, ...] = ()
    local: tuple[int, ...] = ()
    custom: CustomStreamGrouping | None = None

    @property
    def candidates(self) -> tuple[int, ...]:
        """The tasks that a row may go to at all: the local ones if there are any, else all."""
        return self.local or self.tasks


def owner(values: Sequence[object], target: Target, key_groups: int, keys: Keys = PLAIN) -> int:
    """The task that owns a row's key under fields grouping."""
    group = keys.group_of([values[i] for i in target.key], key_groups)
    return target.tasks[task_index(group, len(target.tasks), key_groups)]


def owners(
    values: Sequence[object], target: Target, key_groups: int, keys: Keys = PLAIN
) -> tuple[int, int]:
    """The two tasks that share a row's key under partial key grouping.

    The first is the one of fields grouping, the second any other with equal chances; they are the
    same where there is only one task.
    """
    first = owner(values, target, key_groups, keys)
    others = [task for task in target.tasks if task != first]
    if not others:
        return first, first
    group = keys.second_hash([values[i] for i in target.key]) % key_groups
    return first, others[task_index(group, len(others), key_groups)]


def receive_several(targets: Mapping[str, Sequence[Target]]) -> set[int]:
    """The tasks that may receive more than one of these streams, of one producer."""
    seen: dict[int, str] = {}
    several: set[int] = set()
    for stream, found in targets.items():
        for target in found:
            for task in target.candidates:
                if seen.setdefault(task, stream) != stream:
                    several.add(task)
    return several


class Router:
    """Routes the rows of one task.

    Each shuffle begins at the consumer that the id of the producing `task` says, so that many
    producers do not all start at the same one.
    """

    def __init__(self, targets: Mapping[str, Sequence[Target]], key_groups: int, task: int) -> None:
        self._targets = {stream: tuple(found) for stream, found in targets.items()}
        self._key_groups = key_groups
        self._task = task
        every = [(stream, i) for stream, found in self._targets.items() for i in range(len(found))]
        self._cursor = dict.fromkeys(every, task)
        self._sent = {each: Counter[int]() for each in every}

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
            case GroupingKind.SHUFFLE | GroupingKind.NONE | GroupingKind.LOCAL_OR_SHUFFLE:
                turn = self._cursor[stream, i]
                self._cursor[stream, i] = turn + 1
                return (target.candidates[turn % len(target.candidates)],)
            case GroupingKind.FIELDS:
                return (owner(values, target, self._key_groups),)
            case GroupingKind.PARTIAL_KEY:
                sent = self._sent[stream, i]
                first, second = owners(values, target, self._key_groups)
                task = second if sent[second] < sent[first] else first
                sent[task] += 1
                return (task,)
            case GroupingKind.ALL:
                return target.tasks
            case GroupingKind.GLOBAL:
                return (min(target.tasks),)
            case GroupingKind.CUSTOM if target.custom is not None:
                return tuple(target.custom.choose_tasks(self._task, list(values)))
            case _:
                return ()

    def check(self) -> None:
        """Assert that every target can be reached."""
        for stream, targets in self._targets.items():
            for target in targets:
                assert target.tasks, f"{target.component_id} on {stream} has no task"
                assert list(target.tasks) == sorted(target.tasks)
                assert (target.kind in KEYED) == bool(target.key)
                assert set(target.local) <= set(target.tasks)
                assert target.kind is GroupingKind.LOCAL_OR_SHUFFLE or not target.local
                assert (target.kind is GroupingKind.CUSTOM) == (target.custom is not None)
