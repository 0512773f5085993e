"""What flows through a topology: ``Tuple``, and the small values that describe it.

``Fields``, ``Values`` and ``GlobalStreamId`` mirror Storm's classes of the same names. ``Tuple``
is on the hot path: one is made per row that a bolt receives, so it is a plain two-slot object;
everything that a batch of rows shares sits in one ``TupleContext``. This module does no I/O,
routes nothing and never serialises: routing lives in ``storm_py.core.routing``, bytes in
``storm_py.wire``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

from storm_py.constants import (
    DEFAULT_STREAM_ID,
    SYSTEM_COMPONENT_ID,
    SYSTEM_TICK_STREAM_ID,
)
from storm_py.errors import did_you_mean

__all__ = ["Fields", "GlobalStreamId", "Tuple", "TupleContext", "Value", "Values"]

#: A value inside a tuple. Its type is the topology's business: a stream declares names, not types,
#: so a checker that insisted on ``object`` would only force a cast onto every line of user code.
Value: TypeAlias = Any


class Fields(Sequence[str]):
    """The ordered, distinct names of the values of a stream's tuples (Storm's ``Fields``).

    ``Fields("word", "count")`` and ``Fields(["word", "count"])`` mean the same. Immutable,
    hashable, equal by names and order. No names at all is allowed: tuples of that stream are
    empty and serve as signals.

    Raises TypeError for a name that is not a str, ValueError for an empty or repeated name.
    """

    __slots__ = ("_index", "_names")

    _names: tuple[str, ...]
    _index: dict[str, int]

    def __init__(self, *names: str | Iterable[str]) -> None:
        """Take the names one by one or as a single iterable (another ``Fields`` included)."""
        flat: tuple[object, ...] = names
        if len(names) == 1 and not isinstance(names[0], str) and isinstance(names[0], Iterable):
            flat = tuple(names[0])
        checked: list[str] = []
        for name in flat:
            if not isinstance(name, str):
                raise TypeError(
                    f'{name!r} is no field name; names are str, as in Fields("word", "count")'
                )
            if not name:
                raise ValueError("a field name is empty; give every field a name")
            if name in checked:
                raise ValueError(
                    f"field {name!r} appears twice in {list(flat)!r}; names are distinct"
                )
            checked.append(name)
        self._names = tuple(checked)
        self._index = {name: index for index, name in enumerate(checked)}

    def index(self, value: str, start: int = 0, stop: int | None = None) -> int:
        """Return the position of the field named ``value``, counted from 0.

        Raises ValueError that lists the names there are. ``start`` and ``stop`` limit the search
        as for any sequence.
        """
        position = self._index.get(value)
        if position is None or position not in range(len(self._names))[start:stop]:
            raise ValueError(
                f"no field {value!r} in {list(self._names)!r}{did_you_mean(value, self._names)}"
            )
        return position

    def to_list(self) -> list[str]:
        """Return the names as a new list."""
        return list(self._names)

    def contains(self, name: str) -> bool:
        """Say whether a field has this name; same as ``name in fields``."""
        return name in self._index

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self._names[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fields):
            return NotImplemented
        return self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return f"Fields({', '.join(map(repr, self._names))})"


class Values(list[Any]):
    """A list built from its arguments: ``Values("word", 1)`` is ``["word", 1]`` (as in Storm).

    Collectors accept any sequence; this one only reads well in an emit.
    """

    __slots__ = ()

    def __init__(self, *values: Value) -> None:
        """Take the values in the order of the stream's fields."""
        super().__init__(values)


@dataclass(frozen=True, slots=True, order=True)
class GlobalStreamId:
    """One stream of one component: what a bolt subscribes to (Storm's ``GlobalStreamId``)."""

    component_id: str
    stream_id: str = DEFAULT_STREAM_ID

    def __str__(self) -> str:
        return f"{self.component_id}:{self.stream_id}"


class TupleContext:
    """What all tuples of one incoming run share: where they come from and how they are named.

    One object serves a whole run of rows, so that a row costs no more than its own values.
    """

    __slots__ = ("fields", "source_component", "source_stream_id", "source_task")

    def __init__(
        self, source_component: str, source_stream_id: str, source_task: int, fields: Fields
    ) -> None:
        """Describe rows of ``source_stream_id`` emitted by task ``source_task``."""
        self.source_component = source_component
        self.source_stream_id = source_stream_id
        self.source_task = source_task
        self.fields = fields

    def unknown_field(self, name: object) -> str:
        """Word the error for a field that tuples of this run do not have."""
        tick = "; it is a tick of the system: ask tup.is_tick first" if self.is_tick else ""
        return (
            f"tuple of stream {self.source_stream_id!r} of {self.source_component!r} has no field "
            f"{name!r}; declared fields: {', '.join(self.fields) or 'none'}"
            f"{tick or did_you_mean(name, self.fields)}"
        )

    @property
    def is_tick(self) -> bool:
        """Whether the rows are ticks of the system."""
        return (
            self.source_component == SYSTEM_COMPONENT_ID
            and self.source_stream_id == SYSTEM_TICK_STREAM_ID
        )

    def __repr__(self) -> str:
        return (
            f"TupleContext({self.source_component!r}, {self.source_stream_id!r}, "
            f"{self.source_task}, {self.fields!r})"
        )


class Sourced:
    """What comes from one stream of one task, as ``context`` says: a tuple, or a batch of them."""

    __slots__ = ()

    context: TupleContext

    @property
    def fields(self) -> Fields:
        """Names of the values, in order, as the emitting component declared them."""
        return self.context.fields

    @property
    def source_component(self) -> str:
        """Id of the component that emitted this."""
        return self.context.source_component

    @property
    def source_stream_id(self) -> str:
        """Id of the stream that this was emitted on."""
        return self.context.source_stream_id

    @property
    def source_task(self) -> int:
        """Id of the task that emitted this; -1 for the system."""
        return self.context.source_task

    @property
    def source_global_stream_id(self) -> GlobalStreamId:
        """Component and stream that this came from, as one value."""
        return GlobalStreamId(self.context.source_component, self.context.source_stream_id)

    @property
    def is_tick(self) -> bool:
        """Whether this is a tick of the system rather than data (Storm's ``TupleUtils.isTick``)."""
        return self.context.is_tick


class Tuple(Sourced):
    """One row that a bolt receives: values by position or by field name (Storm's ``Tuple``).

    ``values`` is the list of values in field order, ``context`` the description it shares with its
    run. Tuples compare by identity, as in Storm: two rows with equal values are two tuples. Asking
    for a field that does not exist raises ValueError (Storm: IllegalArgumentException) and never
    KeyError, whose text Python would show in quotes.
    """

    __slots__ = ("context", "values")

    def __init__(self, values: list[Value], context: TupleContext) -> None:
        """Wrap ``values``; the list is not copied."""
        self.values = values
        self.context = context

    @property
    def message_id(self) -> object:
        """What this tuple is tracked by: a mapping of root ids to edge ids, empty if by nothing."""
        return {}

    def get_value(self, index: int) -> Value:
        """Return the value at position ``index``; raises IndexError outside of the tuple."""
        return self.values[index]

    def get_value_by_field(self, name: str) -> Value:
        """Return the value of field ``name``; raises ValueError with the declared ones."""
        return self.values[self._position(name)]

    def field_index(self, name: str) -> int:
        """Return the position of field ``name``; raises ValueError with the declared ones."""
        return self._position(name)

    def contains(self, name: str) -> bool:
        """Say whether the tuple has a field ``name``."""
        return name in self.context.fields

    def select(self, fields: Iterable[str]) -> Values:
        """Return the values of ``fields``, in the order asked for; ValueError if one is missing."""
        names = (fields,) if isinstance(fields, str) else fields
        return Values(*[self.values[self._position(name)] for name in names])

    def __getitem__(self, key: int | str) -> Value:
        if isinstance(key, str):
            return self.values[self._position(key)]
        return self.values[key]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.values)

    def __repr__(self) -> str:
        context = self.context
        return (
            f"Tuple(source={context.source_component}:{context.source_stream_id}"
            f"[{context.source_task}], values={self.values!r})"
        )

    def _position(self, name: str) -> int:
        try:
            return self.context.fields.index(name)
        except ValueError:
            raise ValueError(self.context.unknown_field(name)) from None


class TrackedTuple(Tuple):
    """A ``Tuple`` where acking is on; user code sees no difference.

    ``root`` is the id of its tree, 0 if it belongs to none, (root, edge) pairs if it belongs to
    several, None once it was acked or failed. ``xor`` is what its ack will tell the tracker: its
    own edge, unless ``root`` brings the edges, and those of the tuples anchored to it.
    """

    __slots__ = ("root", "xor")

    def __init__(
        self,
        values: list[Value],
        context: TupleContext,
        root: int | tuple[tuple[int, int], ...] | None,
        xor: int,
    ) -> None:
        """Wrap ``values``; the list is not copied."""
        self.values = values
        self.context = context
        self.root = root
        self.xor = xor

    @property
    def message_id(self) -> object:
        """What this tuple is tracked by: a mapping of root ids to edge ids, empty if by nothing."""
        if not self.root:
            return {}
        return {self.root: self.xor} if isinstance(self.root, int) else dict(self.root)
