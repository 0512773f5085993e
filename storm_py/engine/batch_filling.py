"""Filling: rows of one emit into the open batches that they go to, with their roots and edges.

Where rows are small and have one root at most, a frame's worth of them is appended at a time. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from storm_py.core.batching import Batcher, OpenBatch

from .acking import ROOT_BYTES
from .batch_acking import Columns

#: With more receiving tasks than this a look at each row's frame is cheaper than one at all frames.
_FEW_DESTS = 8


class Filling:
    """Fills the batches of one producing task; `flush(batch)` is called when one is due.

    Rows are given with one batch for all of them, or with one for each.
    """

    def __init__(self, batcher: Batcher, flush: Callable[[OpenBatch], None]) -> None:
        self._batcher = batcher
        self._flush = flush

    def lists(
        self,
        stream: int,
        dests: OpenBatch | list[OpenBatch],
        rows: list[list[Any]],
        columns: Columns | None,
    ) -> None:
        """Append rows that are handed over inside the instance: nothing is sent, none is large."""
        if not isinstance(dests, list):
            self._hand(stream, dests, rows, columns)
            return
        for dest in dict.fromkeys(dests):
            places = [n for n, each in enumerate(dests) if each is dest]
            own = columns and ([columns[0][n] for n in places], [columns[1][n] for n in places])
            self._hand(stream, dest, [rows[n] for n in places], own)

    def _hand(
        self, stream: int, dest: OpenBatch, rows: list[list[Any]], columns: Columns | None
    ) -> None:
        dest.switch(stream)
        if columns is not None:
            dest.align()
            dest.roots += columns[0]
            dest.edges += columns[1]
        dest.rows += rows
        if len(dest.rows) >= dest.cap:
            self._flush(dest)

    def packed(
        self,
        stream: int,
        dests: OpenBatch | list[OpenBatch],
        packed: list[bytes],
        columns: Columns | None,
        small: bool,
    ) -> None:
        """Append packed rows; `small` ones have one root at most and a size that does not count."""
        if not small:
            if not isinstance(dests, list):
                dests = [dests] * len(packed)
            self._one_by_one(stream, dests, packed, columns)
        elif not isinstance(dests, list):
            self._to_one(stream, dests, packed, columns)
        else:
            self._to_each(stream, dests, packed, columns)

    def _to_one(
        self, stream: int, dest: OpenBatch, packed: list[bytes], columns: Columns | None
    ) -> None:
        """Append small rows with one root each to one batch."""
        dest.switch(stream)
        start = 0
        while start < len(packed):
            end = start + max(1, dest.cap - len(dest.rows))
            if columns is not None:
                dest.align()
                dest.roots += columns[0][start:end]
                dest.edges += columns[1][start:end]
            dest.rows += packed[start:end]
            start = end
            if len(dest.rows) >= dest.cap:
                self._flush(dest)

    def _to_each(
        self, stream: int, dests: list[OpenBatch], packed: list[bytes], columns: Columns | None
    ) -> None:
        """Append small rows with one root each, every one to its batch.

        In pieces that no batch is too small for, so that nothing has to be counted per row.
        """
        found = set(dests)
        if len(found) > _FEW_DESTS:
            self._one_by_one(stream, dests, packed, columns)
            return
        for dest in found:
            dest.switch(stream)
        start = 0
        while start < len(packed):
            end = start + max(1, min(dest.cap - len(dest.rows) for dest in found))
            if columns is None:
                for dest, row in zip(dests[start:end], packed[start:end], strict=True):
                    dest.rows.append(row)
            else:
                for dest in found:
                    dest.align()
                part = zip(
                    dests[start:end],
                    packed[start:end],
                    columns[0][start:end],
                    columns[1][start:end],
                    strict=True,
                )
                for dest, row, root, edge in part:
                    dest.rows.append(row)
                    dest.roots.append(root)
                    dest.edges.append(edge)
            start = end
            for dest in found:
                # One that is nearly full would make the pieces that follow very small.
                if len(dest.rows) + (dest.cap >> 3) >= dest.cap and dest.rows:
                    self._flush(dest)

    def _one_by_one(
        self, stream: int, dests: list[OpenBatch], packed: list[bytes], columns: Columns | None
    ) -> None:
        """Append rows of any size with any number of roots."""
        small, limit = self._batcher.small, self._batcher.extra_limit
        for n, (dest, row) in enumerate(zip(dests, packed, strict=True)):
            dest.switch(stream)
            dest.rows.append(row)
            if columns is not None:
                root = columns[0][n]
                if root:
                    dest.track(root, columns[1][n])
                if not isinstance(root, int):
                    dest.extra_bytes += ROOT_BYTES * len(root)
            dest.extra_bytes += max(0, len(row) - small)
            if len(dest.rows) >= dest.cap or dest.extra_bytes >= limit:
                self._flush(dest)
