"""PendingTuples: each message id is answered once, in time, whatever order the news come in."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from storm_py.core.pending import PendingTuples

TIMEOUT_SECS = 10.0


def may_emit(pending: PendingTuples) -> bool:
    """Whether fewer than the limit are pending."""
    newer, older, most = pending.columns()
    return len(newer) + len(older) < most


class PendingMachine(RuleBasedStateMachine):
    """A spout task's life; the oracle remembers when each tree was emitted or renewed last.

    Time advances in steps of a quarter of the timeout and `tick` follows each, so an entry fails
    between one and two timeouts, to the step.
    """

    roots = Bundle("roots")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.limit: int | None = None
        self.timeout: float | None = None
        self.next_root = 1
        self.open: dict[int, float] = {}
        self.answers: list[object] = []

    @initialize(limit=st.none() | st.integers(1, 4), timeout=st.sampled_from([None, TIMEOUT_SECS]))
    def begin(self, limit: int | None, timeout: float | None) -> None:
        self.limit, self.timeout = limit, timeout
        self.pending = PendingTuples(limit, timeout, self.now)

    @rule(target=roots, directly=st.booleans())
    def emit(self, directly: bool) -> int:
        root = self.next_root
        self.next_root += 1
        if directly:  # as the generated emit does
            self.pending.newer[root] = f"id{root}"
        else:
            self.pending.emitted(root, f"id{root}")
        self.open[root] = self.now
        return root

    @rule(found=st.lists(roots, max_size=4))
    def answer(self, found: list[int]) -> None:
        expected = [f"id{root}" for root in dict.fromkeys(found) if root in self.open]
        answers = self.pending.answered(found)
        assert answers == expected
        self.answers += answers
        for root in found:
            self.open.pop(root, None)

    @rule(root=consumes(roots))
    def answer_twice(self, root: int) -> None:
        self.answer([root, root])
        assert self.pending.answered([root]) == []

    @rule(found=st.lists(roots, max_size=3))
    def renew(self, found: list[int]) -> None:
        self.pending.renewed(found)
        for root in found:
            if root in self.open:
                self.open[root] = self.now

    @rule(quarters=st.integers(1, 3))
    def time_passes(self, quarters: int) -> None:
        for _ in range(quarters):
            self.now += TIMEOUT_SECS / 4
            expired = self.pending.tick(self.now)
            assert len(set(expired)) == len(expired)
            for msg_id in expired:
                age = self.now - self.open.pop(int(str(msg_id)[2:]))
                assert self.timeout is not None
                assert self.timeout <= age <= 2 * self.timeout
            self.answers += expired
        if self.timeout is not None:
            assert all(self.now - at < 2 * self.timeout for at in self.open.values())

    @rule()
    def fail_all(self) -> None:
        ids = self.pending.fail_all()
        assert sorted(map(str, ids)) == sorted(f"id{root}" for root in self.open)
        self.answers += ids
        self.open.clear()

    @precondition(lambda self: hasattr(self, "pending"))
    @invariant()
    def agrees(self) -> None:
        self.pending.check()
        assert len(self.pending) == len(self.open)
        assert may_emit(self.pending) == (self.limit is None or len(self.open) < self.limit)
        assert len(set(self.answers)) == len(self.answers)
        assert len(self.answers) + len(self.open) == self.next_root - 1

    def teardown(self) -> None:
        if hasattr(self, "pending"):
            self.fail_all()
            assert len(self.answers) == self.next_root - 1


TestPendingMachine = PendingMachine.TestCase


def test_a_late_answer_after_the_failure_is_ignored() -> None:
    pending = PendingTuples(None, TIMEOUT_SECS, 0.0)
    pending.emitted(7, "seven")
    assert pending.tick(10.0) == []
    assert pending.tick(20.0) == ["seven"]
    assert pending.answered([7]) == []
    pending.renewed([7])
    assert len(pending) == 0


def test_it_fails_between_one_and_two_timeouts() -> None:
    pending = PendingTuples(None, TIMEOUT_SECS, 0.0)
    pending.emitted(1, "early")
    pending.tick(9.9)
    pending.emitted(2, "late")
    assert pending.tick(10.0) == []
    assert pending.tick(19.9) == []
    assert pending.tick(20.0) == ["early", "late"]


@given(late=st.floats(0, 1000))
def test_a_late_tick_shortens_no_timeout(late: float) -> None:
    pending = PendingTuples(None, TIMEOUT_SECS, 0.0)
    now = 10.0 + late
    pending.emitted(1, "new")
    assert pending.tick(now) == []
    assert pending.tick(math.nextafter(now + 10.0, 0)) == []
    assert pending.tick(now + 10.0) == ["new"]


def test_without_timeout_nothing_fails() -> None:
    pending = PendingTuples(None, None, 0.0)
    pending.emitted(1, "one")
    assert pending.next_timeout() is None
    assert pending.tick(1e9) == []
    assert pending.answered([1]) == ["one"]


def test_next_timeout_is_when_tick_has_something_to_do() -> None:
    pending = PendingTuples(None, TIMEOUT_SECS, 5.0)
    assert pending.next_timeout() == 15.0
    pending.tick(14.9)
    assert pending.next_timeout() == 15.0
    pending.tick(16.0)
    assert pending.next_timeout() == 26.0


def test_none_is_no_message_id_but_false_and_zero_are() -> None:
    pending = PendingTuples(2, None, 0.0)
    pending.emitted(1, 0)
    pending.emitted(2, False)
    assert not may_emit(pending)
    assert pending.answered([2, 1]) == [False, 0]
    assert may_emit(pending)


@pytest.mark.parametrize(("limit", "may"), [(None, True), (1, False), (2, True)])
def test_the_limit_counts_both_halves(limit: int | None, may: bool) -> None:
    pending = PendingTuples(limit, TIMEOUT_SECS, 0.0)
    pending.emitted(1, "one")
    pending.tick(10.0)
    assert may_emit(pending) is may
    pending.emitted(2, "two")
    assert may_emit(pending) is (limit is None)


def test_message_ids_are_listed_and_found_in_the_order_of_their_emits() -> None:
    pending = PendingTuples(None, TIMEOUT_SECS, 0.0)
    for root, msg_id in enumerate(["old", ["unhashable"], "twice"], start=1):
        pending.emitted(root, msg_id)
    pending.tick(10.0)
    pending.emitted(4, "twice")
    assert pending.message_ids() == ["old", ["unhashable"], "twice", "twice"]
    assert [pending.find(msg_id) for msg_id in ("twice", ["unhashable"], "nobody")] == [3, 2, None]
    pending.answered([3])
    assert pending.find("twice") == 4
    assert pending.message_ids() == ["old", ["unhashable"], "twice"]
