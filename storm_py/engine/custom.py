"""Custom groupings: the user's object is asked at each emit, and its answer held to the rules.

`chooser` makes the function that a generated emit calls; `preparations` are the calls that come
before all others of a task. The object itself is the producing task's own copy: drivers bring it
(`storm_py.components`), and `storm_py.core.plan` hands it over in a `Target`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from storm_py.api.context import TopologyContext
from storm_py.api.tuples import GlobalStreamId, Value
from storm_py.core.batching import OpenBatch
from storm_py.core.routing import Target
from storm_py.errors import EmitError, FailedException, a_type

#: The batches of the tasks that one tuple goes to, and the ids of these tasks.
Chosen: TypeAlias = tuple[Sequence[OpenBatch], tuple[int, ...]]


def chooser(
    target: Target, where: str, task: int, batches: Mapping[int, OpenBatch]
) -> Callable[[list[Value]], Chosen]:
    """Ask the target's grouping on behalf of the producing `task`; EmitError for a wrong answer.

    `where` names component and stream. An exception of the user's becomes the cause of an
    EmitError, but for FailedException, which fails the tuple of a basic bolt as it would anywhere.
    """
    grouping = target.custom
    if grouping is None:
        raise ValueError(
            f"{where}: no object for the custom grouping of {target.component_id!r}; hand in what "
            "storm_py.components unpacked"
        )
    choose_tasks = grouping.choose_tasks
    kind = type(grouping).__name__
    who = f"{where}: choose_tasks of custom grouping {kind} for {target.component_id!r}"
    known = f"task ids out of {', '.join(map(str, target.tasks))}"

    def choose(values: list[Value]) -> Chosen:
        try:
            answer = choose_tasks(task, values)
        except FailedException:
            raise
        except Exception as error:
            raise EmitError(
                f"{who} raised {type(error).__name__}: {error} (emitting task {task})"
            ) from error
        if not isinstance(answer, (list, tuple)) and not _is_sequence(answer):
            forgot = "; did it forget to return them?" if answer is None else ""
            raise EmitError(
                f"{who} returned {a_type(answer)}; expected a list of {known}, empty for nobody"
                f"{forgot}"
            )
        chosen: list[OpenBatch] = []
        for each in answer:
            if each.__class__ is not int:  # True would find task 1, and 1.0 as well
                raise EmitError(f"{who} returned {each!r}, {a_type(each)}; expected {known}")
            batch = batches.get(each)
            if batch is None:
                raise EmitError(
                    f"{who} returned {each}, which is none of its tasks; expected {known}"
                )
            chosen.append(batch)
        return chosen, tuple(answer)

    return choose


def _is_sequence(answer: object) -> bool:
    return isinstance(answer, Sequence) and not isinstance(answer, (str, bytes, bytearray))


def preparations(
    component: str, targets: Mapping[str, Sequence[Target]], context: TopologyContext
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Per custom grouping of a task: what an error calls the call, and the call of its prepare."""
    for stream, found in targets.items():
        for target in found:
            if target.custom is not None:
                source = GlobalStreamId(component, stream)
                where = f"{type(target.custom).__name__}.prepare for {target.component_id!r}"
                yield where, partial(target.custom.prepare, context, source, list(target.tasks))
