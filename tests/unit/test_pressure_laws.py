"""TaskQueue, whatever happens to it: nothing lost, order kept, the window heeded."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storm_py.core.pressure import Limits, QueueStatistics, TaskQueue


class QueueMachine(RuleBasedStateMachine):
    """A queue between a sender and a consumer that says the truth, late, twice, or lies."""

    @initialize(
        high_bytes=st.sampled_from([60, 300, 10_000]), low_ratio=st.sampled_from([0.0, 0.5, 0.95])
    )
    def start(self, high_bytes: int, low_ratio: float) -> None:
        self.limits = Limits(0.5, high_bytes, low_ratio, 8)
        self.queue = TaskQueue(self.limits)
        self.now = 5.0
        self.offered = 0
        self.backlog: list[tuple[bytes, int]] = []
        self.outstanding: list[tuple[bytes, int]] = []
        self.connected = False
        self.credited = (0, 0)
        self.older: list[tuple[int, int]] = []
        self.pressured = False

    def sent(self, frames: Sequence[bytes]) -> None:
        """The queue sends these: the oldest that wait, and no more than the window holds."""
        assert self.connected or not frames
        for frame in frames:
            waiting, rows = self.backlog.pop(0)
            assert frame == waiting
            if self.outstanding:
                assert self.outstanding_rows + rows <= self.queue.window_rows
                assert self.outstanding_bytes + len(frame) <= self.limits.high_bytes
            self.outstanding.append((waiting, rows))

    @property
    def outstanding_rows(self) -> int:
        return sum(rows for _, rows in self.outstanding)

    @property
    def outstanding_bytes(self) -> int:
        return sum(len(frame) for frame, _ in self.outstanding)

    @rule(rows=st.sampled_from([0, 1, 1, 3, 8, 60]), size=st.sampled_from([3, 20, 100]))
    def offer(self, rows: int, size: int) -> None:
        self.offered += 1
        frame = b"%0*d" % (size, self.offered)
        self.backlog.append((frame, rows))
        if self.queue.offer(frame, rows, self.now):
            assert len(self.backlog) == 1
            self.sent([frame])

    @precondition(lambda self: self.outstanding)
    @rule(count=st.integers(1, 4), secs=st.sampled_from([0.0, 0.001, 0.1, 2.0]))
    def finish(self, count: int, secs: float) -> None:
        self.now += secs
        done, self.outstanding = self.outstanding[:count], self.outstanding[count:]
        self.older.append(self.credited)
        self.credited = (
            self.credited[0] + sum(rows for _, rows in done),
            self.credited[1] + sum(len(frame) for frame, _ in done),
        )
        self.sent(self.queue.credit(*self.credited, self.now))

    @rule(rows=st.integers(-5, 500), nbytes=st.integers(-5, 500), secs=st.sampled_from([0, 9]))
    def lie(self, rows: int, nbytes: int, secs: int) -> None:
        """Credit more than was sent, or less than was credited already."""
        if 0 < nbytes <= self.outstanding_bytes and 0 <= rows <= self.outstanding_rows:
            rows, nbytes = self.outstanding_rows + 1, self.outstanding_bytes
        before = self.queue.statistics()
        credited = self.credited[0] + rows, self.credited[1] + nbytes
        assert not self.queue.credit(*credited, self.now + secs)
        assert self.queue.statistics() == before

    @rule(data=st.data(), secs=st.sampled_from([0, 9]))
    def repeat(self, data: st.DataObject, secs: int) -> None:
        credit = data.draw(st.sampled_from([*self.older, self.credited]))
        before = self.queue.statistics()
        if credit[1] <= self.credited[1]:
            assert not self.queue.credit(*credit, self.now + secs)
            assert self.queue.statistics() == before

    @rule()
    def connect(self) -> None:
        self.connected = True
        self._forget()
        self.sent(self.queue.connect(self.now))

    @rule()
    def disconnect(self) -> None:
        self.connected = False
        assert self.queue.statistics().outstanding_rows == self.outstanding_rows
        self.queue.disconnect()
        self._forget()

    def _forget(self) -> None:
        self.outstanding = []
        self.older.append(self.credited)
        self.credited = (0, 0)

    @rule()
    def look(self) -> None:
        rows, nbytes = (sum(values) for values in zip(*self.waiting(), strict=True))
        high_rows, high_bytes = self.queue.window_rows, self.limits.high_bytes
        turned = self.queue.turned(self.now)
        if turned is None:
            ratio = self.limits.low_ratio
            over = rows > high_rows * ratio or nbytes > high_bytes * ratio
            assert over if self.pressured else rows <= high_rows and nbytes <= high_bytes
        else:
            assert turned is not self.pressured
            self.pressured = turned
        assert self.queue.pressured is self.pressured
        assert self.queue.turned(self.now) is None

    def waiting(self) -> list[tuple[int, int]]:
        return [(0, 0), *((rows, len(frame)) for frame, rows in self.backlog)]

    @invariant()
    def agrees(self) -> None:
        self.queue.check()
        rows, nbytes = (sum(values) for values in zip(*self.waiting(), strict=True))
        assert self.queue.statistics() == QueueStatistics(
            rows,
            nbytes,
            self.outstanding_rows,
            self.outstanding_bytes,
            self.queue.rows_per_sec,
            self.pressured,
            self.queue.limited,
        )
        assert 1 <= self.queue.frame_rows <= self.limits.frame_rows
        if self.connected and not self.outstanding:
            assert not self.backlog, "it waits for a credit that nobody owes"


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40)
