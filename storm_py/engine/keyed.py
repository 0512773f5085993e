"""Grouping by key: the task of a row's key, or the two that share it, found once and remembered.

`storm_py.core.routing` decides; a generated emit looks into the cache and calls `miss` for what is
not there. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from storm_py.core.batching import OpenBatch
from storm_py.core.keys import CACHE_KEYS, Keys, UnhashableKey
from storm_py.core.routing import Target, owner, owners
from storm_py.errors import EmitError

#: What a key leads to: a batch, or those of two tasks.
Found = TypeVar("Found")


class Share:
    """A task under one partial key grouping: its batch, and how many rows were sent to it."""

    __slots__ = ("batch", "sent")

    def __init__(self, batch: OpenBatch) -> None:
        self.batch = batch
        self.sent = 0


def to_owner(
    target: Target, batches: Mapping[int, OpenBatch], key_groups: int, keys: Keys
) -> Callable[[Sequence[object]], OpenBatch]:
    """Finds the batch of a row under fields grouping."""
    return lambda values: batches[owner(values, target, key_groups, keys)]


def to_owners(
    target: Target, batches: Mapping[int, OpenBatch], key_groups: int, keys: Keys
) -> Callable[[Sequence[object]], tuple[Share, Share]]:
    """Finds the two shares of a row under partial key grouping."""
    shares = {task: Share(batch) for task, batch in batches.items()}

    def find(values: Sequence[object]) -> tuple[Share, Share]:
        first, second = owners(values, target, key_groups, keys)
        return shares[first], shares[second]

    return find


def checked(
    find: Callable[[Sequence[object]], Found], target: Target, fields: Sequence[str], where: str
) -> Callable[[Sequence[object]], Found]:
    """`find` with the EmitError for a value that cannot be a key.

    `fields` are the stream's, `where` names component and stream.
    """

    def found(values: Sequence[object]) -> Found:
        try:
            return find(values)
        except UnhashableKey as error:
            names = ", ".join(fields[position] for position in target.key)
            raise EmitError(
                f"{where}: grouping field(s) {names} hold a value of "
                f"type {error}, which cannot be a key"
            ) from None

    return found


def cached(
    find: Callable[[Sequence[object]], Found],
    target: Target,
    fields: Sequence[str],
    where: str,
) -> tuple[dict[Any, Found], Callable[[Sequence[object]], Found]]:
    """A bounded cache by key, and what finds a key that is not in it and remembers it if it can.

    `fields` and `where` as for `checked`.
    """
    cache: dict[Any, Found] = {}
    look = checked(find, target, fields, where)

    def miss(values: Sequence[object]) -> Found:
        found = look(values)
        key = [values[position] for position in target.key]
        if len(cache) >= CACHE_KEYS:
            cache.clear()
        try:
            cache[key[0] if len(key) == 1 else tuple(key)] = found
        except Exception:  # noqa: BLE001 - whatever its __hash__ raises
            pass  # a list, say: equal keys still find the same task, only more slowly
        return found

    return cache, miss


class KeyCache(dict[Any, Any]):
    """A bounded cache by key that finds what is not there by itself, for many rows at a time.

    A key is one value, or a tuple of them if the grouping has several fields.
    """

    __slots__ = ("_find", "_positions")

    def __init__(self, find: Callable[[Any], object], target: Target) -> None:
        self._find = find
        self._positions = target.key

    def __missing__(self, key: Any) -> Any:
        parts = (key,) if len(self._positions) == 1 else key
        found = self._find(dict(zip(self._positions, parts, strict=True)))
        if len(self) >= CACHE_KEYS:
            self.clear()
        self[key] = found
        return found
