"""Routes: where the rows of a batch go under one grouping, chosen for all of them at once.

`storm_py.core.routing.Router` is the oracle here as well. A route only chooses; what may refuse a
row does so before anything was appended anywhere. Pure.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, TypeAlias, overload

from storm_py.api.grouping import GroupingKind
from storm_py.core.batching import OpenBatch
from storm_py.core.keys import Keys
from storm_py.core.routing import Target

from .custom import chooser
from .emit_source import SHUFFLES
from .keyed import KeyCache, checked, to_owner, to_owners

Rows: TypeAlias = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Part:
    """Copies of rows: those at the positions `picked`, to one batch or to one batch each."""

    dests: OpenBatch | list[OpenBatch]
    picked: Sequence[int]


@dataclass(frozen=True, slots=True)
class Choice:
    """Where all rows of an emit go under one grouping; `answer` gives the tasks of one row.

    `handed` says that all of these tasks are in the emitting instance, which hands rows over.
    """

    parts: Sequence[Part]
    answer: Callable[[int], tuple[int, ...]]
    handed: bool = False


class Receivers(Sequence[tuple[int, ...]]):
    """What emit_batch answers: the tasks of each row, put together for who asks."""

    __slots__ = ("_choices", "_count")

    def __init__(self, choices: Sequence[Choice], count: int) -> None:
        self._choices = choices
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, ...]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, ...] | list[tuple[int, ...]]:
        places = range(self._count)[index]
        if isinstance(places, range):
            return [self[n] for n in places]
        return tuple(task for choice in self._choices for task in choice.answer(places))

    def __repr__(self) -> str:
        return repr(list(self))


Route: TypeAlias = Callable[[Rows], Choice]


def route_of(
    target: Target,
    batches: Mapping[int, OpenBatch],
    fields: Sequence[str],
    where: str,
    task: int,
    key_groups: int,
    keys: Keys,
) -> Route:
    """The route of a target of the producing `task`, whose candidates have these open batches.

    `fields` are the stream's, `where` names component and stream in errors.
    """
    several = len(batches) > 1
    match target.kind:
        case GroupingKind.FIELDS:
            find = checked(to_owner(target, batches, key_groups, keys), target, fields, where)
            return _by_key(find, target)
        case GroupingKind.PARTIAL_KEY if several:
            pair = checked(to_owners(target, batches, key_groups, keys), target, fields, where)
            return _by_two(pair, target)
        case GroupingKind.ALL:
            return _to_all(tuple(batches.values()), target.tasks)
        case GroupingKind.CUSTOM:
            return _custom(chooser(target, where, task, batches))
        case kind if kind in SHUFFLES and several:
            return _in_turn(list(batches.values()), task % len(batches))
        case _:
            return _to_one(batches[min(batches)])


def handing(route: Route) -> Route:
    """The same to tasks of the emitting instance."""
    return lambda rows: replace(route(rows), handed=True)


def _to_one(batch: OpenBatch) -> Route:
    return lambda rows: Choice([Part(batch, range(len(rows)))], lambda n: batch.answer)


def _to_all(batches: Sequence[OpenBatch], tasks: tuple[int, ...]) -> Route:
    return lambda rows: Choice([Part(b, range(len(rows))) for b in batches], lambda n: tasks)


def _in_turn(batches: list[OpenBatch], start: int) -> Route:
    turns = itertools.cycle(batches[start:] + batches[:start])
    return lambda rows: _one_each(list(itertools.islice(turns, len(rows))))


def _one_each(dests: list[OpenBatch]) -> Choice:
    return Choice([Part(dests, range(len(dests)))], lambda n: dests[n].answer)


def _by_key(find: Callable[[Any], Any], target: Target) -> Route:
    found = _finder(find, target)
    return lambda rows: _one_each(found(rows))


def _by_two(find: Callable[[Any], Any], target: Target) -> Route:
    found = _finder(find, target)

    def route(rows: Rows) -> Choice:
        dests = []
        for share, second in found(rows):
            if second.sent < share.sent:
                share = second
            share.sent += 1
            dests.append(share.batch)
        return _one_each(dests)

    return route


def _finder(find: Callable[[Any], Any], target: Target) -> Callable[[Rows], list[Any]]:
    """What finds something for the key of each row, in a cache where keys can be hashed."""
    cache, key_of = KeyCache(find, target), itemgetter(*target.key)

    def found(rows: Rows) -> list[Any]:
        try:
            return [cache[key] for key in map(key_of, rows)]
        except Exception:  # noqa: BLE001 - whatever hashing a key raises; `find` names what is none
            return list(map(find, rows))

    return found


def _custom(choose: Callable[[list[Any]], tuple[Sequence[OpenBatch], tuple[int, ...]]]) -> Route:
    def route(rows: Rows) -> Choice:
        chosen = [choose(row) for row in rows]
        dests = [batch for batches, _ in chosen for batch in batches]
        picked = [n for n, (batches, _) in enumerate(chosen) for _ in batches]
        return Choice([Part(dests, picked)], lambda n: chosen[n][1])

    return route
