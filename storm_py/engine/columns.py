"""Columns: rows as pyarrow or numpy holds them, for batch bolts that ask for it.

Both packages are optional and loaded only for a bolt that names one in `columns`; what such a bolt
emits is recognised where a program has imported the package already. On the wire rows are rows, so
a batch is turned once on its way in and once on its way out. Pure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from storm_py.api.tuples import Fields
from storm_py.errors import EmitError

Rows = list[list[Any]]


def is_columns(rows: object) -> bool:
    """Whether these are rows in columns: a RecordBatch, or a dict of arrays."""
    arrow = sys.modules.get("pyarrow")
    return isinstance(rows, dict) or (arrow is not None and isinstance(rows, arrow.RecordBatch))


def rows_of(columns: Any, fields: Fields, where: str) -> Rows:
    """The rows of columns with the names of these fields, in any order.

    Raises EmitError, which `where` begins, for columns of other names or of different lengths.
    """
    names = list(columns) if isinstance(columns, dict) else columns.schema.names
    if sorted(map(str, names)) != sorted(fields):
        raise EmitError(
            f"{where}: emit_batch got the columns {', '.join(map(str, names)) or 'none'}; expected "
            f"{', '.join(fields)}"
        )
    if not isinstance(columns, dict):
        return _turned([columns.column(name).to_pylist() for name in fields], columns.num_rows)
    found = {name: _values_of(columns[name]) for name in fields}
    lengths = {name: len(values) for name, values in found.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise EmitError(f"{where}: emit_batch got columns of different lengths: {told}")
    return _turned(list(found.values()), max(lengths.values(), default=0))


def _values_of(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _turned(columns: Sequence[Sequence[Any]], count: int) -> Rows:
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[]] * count


def handing_over(columns: str | None) -> Callable[[Rows, Fields], Any]:
    """What turns rows into the form that a bolt asks for; ImportError if its package is missing.

    TypeError names a field whose values have no such form.
    """
    if columns == "arrow":
        return _arrow()
    if columns == "numpy":
        return _numpy()
    return lambda rows, fields: rows[:]  # the bolt may keep and change its list


def _arrow() -> Callable[[Rows, Fields], Any]:
    import pyarrow as pa

    def hand_over(rows: Rows, fields: Fields) -> Any:
        arrays = []
        for name, column in zip(fields, _columns(rows, fields), strict=True):
            try:
                arrays.append(pa.array(column))
            except (pa.ArrowException, OverflowError) as error:
                raise TypeError(
                    f"field {name!r} holds values that have no common arrow type: {error}; use "
                    "rows (columns = None), or emit values of one type"
                ) from error
        return pa.RecordBatch.from_arrays(arrays, names=list(fields))

    return hand_over


def _numpy() -> Callable[[Rows, Fields], Any]:
    import numpy as np

    def array(column: list[Any]) -> Any:
        kinds = set(map(type, column))
        if kinds <= {int, float, bool} and len(kinds) == 1:
            try:
                found = np.array(column)
            except OverflowError:
                found = None
            if found is not None and found.dtype != object:
                return found
        found = np.empty(len(column), dtype=object)
        found[:] = column
        return found

    def hand_over(rows: Rows, fields: Fields) -> Any:
        columns = _columns(rows, fields)
        return {name: array(column) for name, column in zip(fields, columns, strict=True)}

    return hand_over


def _columns(rows: Rows, fields: Fields) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in fields]
