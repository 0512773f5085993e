"""Stored: typed access to the nodes of a storage, for those who know what is where."""

from __future__ import annotations

from typing import TypeVar

from storm_py.errors import NodeExists, NoNode

from .base import StateStorage
from .encoding import Record

R = TypeVar("R", bound=Record)


class Stored:
    """Records over a storage."""

    def __init__(self, storage: StateStorage) -> None:
        self._storage = storage

    def _get(self, record: type[R], path: str) -> R | None:
        node = self._storage.read(path)
        return None if node is None else record.from_bytes(node.data, path)

    def _put(self, path: str, record: Record) -> None:
        """Write a node that is there or not, whoever wrote it before."""
        data = record.to_bytes()
        while True:
            try:
                self._storage.write(path, data)
                return
            except NoNode:
                pass
            try:
                self._storage.create(path, data)
                return
            except NodeExists:
                continue

    def _ensure(self, path: str) -> None:
        try:
            self._storage.create(path)
        except NodeExists:
            pass
