"""PendingTuples: what a spout task has emitted with a message id and not heard of again.

The one place that fails a tree for time: an entry is failed between one and two message timeouts
after its emit, or after its last renewal, as in Storm (two buckets, rotated once per timeout).
Every message id is answered exactly once; what arrives later for the same root is ignored. Pure:
`storm_py.engine.tasks` calls the spout with the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class PendingTuples:
    """The pending trees of one spout task.

    `limit` is `topology.max.spout.pending`, None for no bound; `timeout_secs` the message timeout,
    None when timeouts are off.
    """

    def __init__(self, limit: int | None, timeout_secs: float | None, now: float) -> None:
        self._limit = limit
        self._timeout_secs = timeout_secs
        self._rotate_at = None if timeout_secs is None else now + timeout_secs
        #: newer and older; emits write into the newer one
        self.newer: dict[int, object] = {}
        self._older: dict[int, object] = {}

    def __len__(self) -> int:
        return len(self.newer) + len(self._older)

    def columns(self) -> tuple[Mapping[int, object], Mapping[int, object], float]:
        """The two parts, newer first, and what they must not hold together for another emit.

        For a loop that looks often: they are the same objects until the next `tick`.
        """
        return self.newer, self._older, float("inf") if self._limit is None else self._limit

    def emitted(self, root: int, msg_id: object) -> None:
        """A tree begins."""
        self.newer[root] = msg_id

    def answered(self, roots: Iterable[int]) -> list[object]:
        """The message ids of trees that were completed or failed, those still pending only."""
        ids: list[object] = []
        newer, older = self.newer, self._older
        for root in roots:
            if root in newer:
                ids.append(newer.pop(root))
            elif root in older:
                ids.append(older.pop(root))
        return ids

    def renewed(self, roots: Iterable[int]) -> None:
        """The timeouts of these trees start anew."""
        for root in roots:
            if root in self._older:
                self.newer[root] = self._older.pop(root)

    def tick(self, now: float) -> list[object]:
        """The message ids whose time is over."""
        if self._rotate_at is None or self._timeout_secs is None or now < self._rotate_at:
            return []
        self._rotate_at = now + self._timeout_secs
        expired = list(self._older.values())
        self._older = dict(self.newer)
        self.newer.clear()
        return expired

    def fail_all(self) -> list[object]:
        """Every message id that is pending: their trees are lost."""
        ids = [*self._older.values(), *self.newer.values()]
        self._older.clear()
        self.newer.clear()
        return ids

    def message_ids(self) -> list[object]:
        """The message ids that are pending, in the order of their emits or renewals."""
        return [*self._older.values(), *self.newer.values()]

    def find(self, msg_id: object) -> int | None:
        """The oldest pending tree with this message id, None if there is none."""
        for root, pending in (*self._older.items(), *self.newer.items()):
            if pending == msg_id:
                return root
        return None

    def next_timeout(self) -> float | None:
        """When `tick` has something to do at the earliest."""
        return self._rotate_at

    def check(self) -> None:
        """Assert that no tree is pending twice and the limit was heeded up to one burst."""
        assert not self.newer.keys() & self._older.keys()
