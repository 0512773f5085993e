"""AckTracker: which tuple trees are complete - Storm's acker, in the spout's stream manager.

Theory of operation. A tree is a root id and the XOR of the edge ids of all its tuples: each edge is
XORed in once when its tuple is emitted and once when it is acked, so the value returns to zero when
every tuple emitted was acked, in whatever order the records arrive. The spout's init brings the
edges of its own emit; until it came the tree cannot be complete, which is kept as one flag in the
value itself, as is a failure that overtook the init. A second init for a root is ignored.

Entries that nobody finishes - late acks of a tree that was failed, say - are forgotten silently
after at least two periods: failing in time is the business of `storm_py.core.pending` alone.

Pure, and per batch: columns in, columns out. Time enters as `rotate`, once per message timeout.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from .roots import ID_BITS

_INIT: Final = 1 << ID_BITS
_FAILED: Final = 2 << ID_BITS
_BUCKETS: Final = 3


@dataclass(frozen=True, slots=True)
class AckStatistics:
    """Counters since the start, and how many trees are open."""

    open: int
    completed: int
    failed: int
    expired: int


class AckTracker:
    """The trees of the spouts of one stream manager."""

    def __init__(self) -> None:
        #: newest first; an entry is created or renewed in the newest and lives in exactly one
        self._buckets: list[dict[int, int]] = [{} for _ in range(_BUCKETS)]
        self._completed = self._failed = self._expired = 0

    def inits(self, roots: Iterable[int], values: Iterable[int]) -> tuple[list[int], list[int]]:
        """Spouts emitted: each tree's root and the XOR of its first edges; (complete, failed)."""
        complete: list[int] = []
        failed: list[int] = []
        newest, *older = self._buckets
        has_older = any(older)  # hardly ever, and not for long
        for root, value in zip(roots, values, strict=True):
            seen = newest.pop(root, None)
            if seen is None:
                seen = self._take_older(root) if has_older else 0
            if seen & _INIT:
                newest[root] = seen
                continue
            seen ^= value | _INIT
            if seen == _INIT or seen == _INIT | _FAILED:
                complete.append(root)
            elif seen & _FAILED:
                failed.append(root)
            else:
                newest[root] = seen
        self._completed += len(complete)
        self._failed += len(failed)
        return complete, failed

    def acks(self, roots: Iterable[int], values: Iterable[int]) -> list[int]:
        """Tuples were acked, merged to one value per root; returns the complete trees."""
        complete: list[int] = []
        newest, *older = self._buckets
        has_older, init, get = any(older), _INIT, newest.get
        for root, value in zip(roots, values, strict=True):
            seen = get(root)
            if seen is None:
                if not has_older:
                    newest[root] = value
                    continue
                bucket = self._bucket_of(root)
                seen = bucket.get(root, 0)
            else:
                bucket = newest
            seen ^= value
            if seen == init:
                del bucket[root]
                complete.append(root)
            else:
                bucket[root] = seen
        self._completed += len(complete)
        return complete

    def fails(self, roots: Iterable[int]) -> list[int]:
        """Tuples were failed: returns the trees that fail now; the others fail at their init."""
        failed: list[int] = []
        newest = self._buckets[0]
        for root in roots:
            seen = newest.pop(root, None)
            if seen is None:
                seen = self._take_older(root)
            if seen & _INIT:
                failed.append(root)
            else:
                newest[root] = seen | _FAILED
        self._failed += len(failed)
        return failed

    def resets(self, roots: Iterable[int]) -> list[int]:
        """Renew trees; returns those that are open here, whose spouts renew them as well."""
        renewed: list[int] = []
        newest = self._buckets[0]
        for root in roots:
            seen = newest.pop(root, None)
            if seen is None:
                seen = self._take_older(root)
            newest[root] = seen
            if seen & _INIT:
                renewed.append(root)
        return renewed

    def fail_all(self) -> None:
        """Fail every open tree: some of its tuples may be lost, and nobody knows whose.

        Their spouts fail all that is pending, also the trees that have not been heard of here.
        """
        for bucket in self._buckets:
            self._failed += sum(1 for seen in bucket.values() if seen & _INIT)
            bucket.clear()

    def rotate(self) -> None:
        """One message timeout has passed: forget what was not renewed for two more."""
        self._expired += len(self._buckets.pop())
        self._buckets.insert(0, {})

    def _take_older(self, root: int) -> int:
        for bucket in self._buckets[1:]:
            seen = bucket.pop(root, None)
            if seen is not None:
                return seen
        return 0

    def _bucket_of(self, root: int) -> dict[int, int]:
        for bucket in self._buckets[1:]:
            if root in bucket:
                return bucket
        return self._buckets[0]

    def statistics(self) -> AckStatistics:
        """How many trees are open, completed, failed, forgotten."""
        open_ = sum(1 for bucket in self._buckets for seen in bucket.values() if seen & _INIT)
        return AckStatistics(open_, self._completed, self._failed, self._expired)

    def check(self) -> None:
        """Assert that no tree is in two buckets, complete, or failed and known to its spout."""
        roots = [root for bucket in self._buckets for root in bucket]
        assert len(roots) == len(set(roots))
        for bucket in self._buckets:
            for seen in bucket.values():
                assert seen != _INIT
                assert not (seen & _INIT and seen & _FAILED)
