"""TaskQueue, case by case: the window, pressure with hysteresis, grants, sessions."""

from __future__ import annotations

import pytest

from storm_py.core.pressure import (
    INITIAL_ROWS,
    NEWCOMER_ROWS,
    PROVEN_ROWS,
    STALL_ROWS,
    STALL_SECS,
    START_ROWS,
    Drain,
    Limits,
    QueueStatistics,
    TaskQueue,
)

LIMITS = Limits(window_secs=0.5, high_bytes=10_000, low_ratio=0.5, frame_rows=256)


def connected(limits: Limits = LIMITS) -> TaskQueue:
    queue = TaskQueue(limits)
    assert queue.connect(0.0) == []
    return queue


class Consumer:
    """Finishes rows at a steady rate, one frame after the other; always has work."""

    def __init__(self, frame_rows: int, limits: Limits = LIMITS) -> None:
        self.queue = TaskQueue(limits)
        self.now = 0.0
        self.frame_rows = frame_rows
        self.rows = self.nbytes = 0
        self.longest_queue = 0
        for _ in range(3):
            self.queue.offer(b"x" * 10, frame_rows, self.now)
        self.queue.connect(self.now)

    def work(self, secs: float, rate: float) -> None:
        """Finish rows for a time; something always waits."""
        until = self.now + secs
        while self.now < until:
            self.now += self.frame_rows / rate
            self.rows += self.frame_rows
            self.nbytes += 10
            self.queue.credit(self.rows, self.nbytes, self.now)
            while self.queue.statistics().backlog_rows < self.frame_rows:
                self.queue.offer(b"x" * 10, self.frame_rows, self.now)
            self.longest_queue = max(self.longest_queue, self.queue.statistics().outstanding_rows)
            self.queue.check()


class TestTheWindowFollowsTheDrainRate:
    @pytest.mark.parametrize(
        ("rate", "frame_rows"), [(10, 1), (10, 8), (1000, 16), (1000, 256), (100_000, 256)]
    )
    def test_steady(self, rate: int, frame_rows: int) -> None:
        consumer = Consumer(frame_rows, Limits(0.5, 1 << 30, 0.5, 256))
        consumer.work(3, rate)
        consumer.longest_queue = 0
        consumer.work(2, rate)
        assert consumer.queue.rows_per_sec == pytest.approx(rate, rel=0.01)
        assert consumer.queue.window_rows == pytest.approx(rate * 0.5, rel=0.01, abs=1)
        assert consumer.longest_queue <= max(frame_rows, consumer.queue.window_rows)
        assert consumer.longest_queue >= min(frame_rows, rate * 0.25)
        assert consumer.queue.frame_rows == max(1, min(256, consumer.queue.window_rows // 4))

    def test_it_shrinks_soon_when_the_consumer_slows_down(self) -> None:
        consumer = Consumer(16)
        consumer.work(2, rate=10_000)
        assert consumer.queue.window_rows == pytest.approx(5000, rel=0.01)
        consumer.work(3, rate=100)
        assert consumer.queue.window_rows == pytest.approx(50, rel=0.2)
        consumer.work(0.5, rate=10_000)
        assert consumer.queue.window_rows > 2500

    def test_before_anything_is_known(self) -> None:
        queue = connected()
        assert (queue.window_rows, queue.rows_per_sec) == (INITIAL_ROWS, 0.0)
        assert queue.frame_rows == INITIAL_ROWS // 4

    def test_what_is_sent_meanwhile_does_not_shorten_the_work(self) -> None:
        queue = connected()
        queue.offer(b"x", 10, now=0.0)
        queue.offer(b"x", 10, now=0.2)
        queue.credit(10, 1, now=0.25)
        assert queue.rows_per_sec == 40

    def test_a_credit_without_time_tells_nothing(self) -> None:
        queue = connected()
        queue.offer(b"x", 5, 1.0)
        assert queue.credit(5, 1, 1.0) == []
        assert queue.window_rows == INITIAL_ROWS

    def test_a_clock_that_goes_back_is_harmless(self) -> None:
        queue = connected()
        for n in range(1, 5):
            queue.offer(b"x", 5, 10.0 - n)
            queue.credit(5 * n, n, 5.0 - n)
            queue.check()
        assert queue.window_rows == INITIAL_ROWS


class TestIdleIsNotSlow:
    def test_a_row_now_and_then(self) -> None:
        queue = connected()
        for n in range(1, 50):
            queue.offer(b"x", 1, now=float(n))
            queue.credit(n, n, now=n + 0.001)
        assert queue.rows_per_sec == pytest.approx(1000, rel=0.01)

    def test_credits_that_say_nothing_new(self) -> None:
        queue = connected()
        for n in range(1, 50):
            queue.offer(b"x", 1, now=float(n))
            queue.credit(n, n, now=n + 0.001)
            queue.credit(n, n, now=n + 0.9)
        assert queue.rows_per_sec == pytest.approx(1000, rel=0.01)

    @pytest.mark.parametrize(
        ("credited_after", "busy_secs"),
        [
            (0.5, 0.001),  # what the task says counts, however long its credits are on their way
            (0.001, 10.0),  # but not more than the time in which it had something
        ],
    )
    def test_a_task_that_says_how_long_it_was_busy(
        self, credited_after: float, busy_secs: float
    ) -> None:
        queue = connected()
        for n in range(1, 50):
            queue.offer(b"x", 1, now=float(n))
            queue.credit(n, n, now=n + credited_after, busy_secs=busy_secs * n)
        assert queue.rows_per_sec == pytest.approx(1000, rel=0.01)

    def test_busy_time_is_that_of_its_session(self) -> None:
        queue = connected()
        queue.offer(b"x", 100, 0.0)
        queue.credit(100, 1, 1.0, busy_secs=0.1)
        queue.connect(2.0)
        queue.offer(b"x", 100, 2.0)
        queue.credit(100, 1, 3.0, busy_secs=0.1)
        assert queue.rows_per_sec == pytest.approx(1000, rel=0.01)

    def test_waiting_without_a_connection(self) -> None:
        queue = connected()
        queue.offer(b"x", 100, 0.0)
        queue.credit(100, 1, 0.1)
        queue.disconnect()
        queue.offer(b"y", 100, 1.0)
        assert queue.connect(60.0) == [b"y"]
        queue.credit(100, 1, 60.1)
        assert queue.rows_per_sec == pytest.approx(1000, rel=0.01)


class TestOneFrameMayAlwaysBeOutstanding:
    def test_more_rows_than_the_window(self) -> None:
        queue = connected()
        assert queue.offer(b"large", 10_000, 0.0)
        assert not queue.offer(b"next", 1, 0.0)
        assert queue.credit(10_000, 5, 1.0) == [b"next"]

    def test_more_bytes_than_the_window(self) -> None:
        queue = connected()
        assert queue.offer(b"x" * 20_000, 1, 0.0)
        assert not queue.offer(b"y" * 20_000, 1, 0.0)
        assert queue.turned(0.0) is True
        assert queue.credit(1, 20_000, 0.001) == [b"y" * 20_000]
        assert queue.turned(0.0) is False


class TestHysteresis:
    def test_on_above_the_high_mark_off_at_the_low_one(self) -> None:
        queue = connected()
        for _ in range(INITIAL_ROWS):
            assert queue.offer(b"f", 1, 0.0)
        for _ in range(INITIAL_ROWS):
            assert not queue.offer(b"b", 1, 0.0)
            assert queue.turned(0.0) is None
        queue.offer(b"b", 1, 0.0)
        assert [queue.turned(0.0), queue.turned(0.0), queue.pressured] == [True, None, True]
        turns = []
        for n in range(1, 60):  # no time passes, so the window stays what it is
            queue.credit(n, n, 0.0)
            turns.append((queue.turned(0.0), queue.statistics().backlog_rows))
        assert [turn for turn in turns if turn[0] is not None] == [(False, INITIAL_ROWS // 2)]
        assert queue.pressured is False

    def test_no_flapping_between_the_marks(self) -> None:
        queue = connected()
        for _ in range(3 * INITIAL_ROWS):
            queue.offer(b"f", 1, 0.0)
        assert queue.turned(0.0) is True
        for n in range(1, 500):  # the sender keeps pace, a little below and above the high mark
            queue.credit(n, n, 0.0)
            if n > INITIAL_ROWS * 1.25:
                queue.offer(b"f", 1, 0.0)
            assert queue.turned(0.0) is None

    def test_it_stays_pressured_while_nobody_is_there(self) -> None:
        queue = connected()
        for _ in range(3 * INITIAL_ROWS):
            queue.offer(b"f", 1, 0.0)
        assert queue.turned(0.0) is True
        assert len(queue.disconnect()) == INITIAL_ROWS
        assert queue.turned(0.0) is None
        assert len(queue.connect(1.0)) == INITIAL_ROWS
        assert queue.turned(0.0) is None
        assert len(queue.credit(INITIAL_ROWS, INITIAL_ROWS, 1.0)) == INITIAL_ROWS
        assert queue.turned(0.0) is False


class TestStalled:
    def test_a_task_that_finishes_nothing_is_pressured_by_a_few_rows(self) -> None:
        consumer = Consumer(64)
        consumer.work(1, rate=100_000)
        queue, now = consumer.queue, consumer.now
        assert queue.turned(now) is None
        assert queue.turned(now + STALL_SECS * 0.99) is None
        assert queue.turned(now + STALL_SECS * 1.01) is True
        queue.credit(consumer.rows + 64, consumer.nbytes + 10, now + 1)
        assert queue.turned(now + 1) is False  # it goes on: the next rows were welcome

    @pytest.mark.parametrize(("rows", "stalled"), [(STALL_ROWS, False), (STALL_ROWS + 1, True)])
    def test_not_by_fewer(self, rows: int, stalled: bool) -> None:
        queue = connected()
        queue.offer(b"x", rows, 0.0)
        assert queue.stalled(10.0) is stalled

    def test_who_has_nothing_to_do_or_is_gone_is_not_stalled(self) -> None:
        queue = connected()
        queue.offer(b"x", 1000, 0.0)
        queue.offer(b"y", 1000, 0.0)
        queue.disconnect()
        assert not queue.stalled(10.0)
        queue.connect(20.0)
        assert not queue.stalled(20.0)
        assert queue.stalled(20.0 + STALL_SECS * 1.01)


class TestLimited:
    """A task whose senders live on grants, until it has shown how fast it is."""

    def test_grants_grow_by_what_it_has_finished(self) -> None:
        queue, grants, rows, now = connected(), [START_ROWS], 0, 0.0
        while queue.limited:
            queue.offer(b"x", grants[-1], now)
            assert queue.grant(1) == 0
            rows, now = rows + grants[-1], now + 0.0001
            queue.credit(rows, len(grants), now)
            grants.append(queue.grant(1))
        assert grants == [2, 4, 8, 16, 32, 64, 128, PROVEN_ROWS]

    @pytest.mark.parametrize("rate", [1, 10, 100, 1000])
    def test_a_slow_task_is_granted_what_it_finishes_in_its_window(self, rate: int) -> None:
        consumer = Consumer(1)
        consumer.work(2, rate)
        queue = consumer.queue
        assert queue.limited
        waiting = queue.statistics().outstanding_rows + queue.statistics().backlog_rows
        assert queue.grant(1) == max(0, queue.window_rows - waiting)

    def test_a_task_that_becomes_slow_is_limited_again(self) -> None:
        consumer = Consumer(16)
        consumer.work(1, rate=100_000)
        assert not consumer.queue.limited
        consumer.work(2, rate=100)
        assert consumer.queue.limited

    def test_senders_share_the_room_and_none_goes_without(self) -> None:
        queue = connected()
        for n, rows in enumerate((2, 4, 8, 56), 1):
            queue.offer(b"x", rows, n / 1000)
            queue.credit(queue._credited_rows + rows, n, n / 1000 + 0.0001)
        assert [queue.grant(senders) for senders in (1, 2, 5, 72, 100)] == [72, 36, 14, 1, 1]


class TestKin:
    """Tasks of one component: what they have finished speaks for one that has not yet."""

    def test_a_newcomer_is_granted_at_once_what_shows_its_own_speed(self) -> None:
        newcomer = TaskQueue(LIMITS, self.kin(rows=PROVEN_ROWS, rate=100_000))
        newcomer.connect(0.0)
        assert newcomer.grant(1) == newcomer.window_rows == NEWCOMER_ROWS
        newcomer.offer(b"x", NEWCOMER_ROWS, 0.0)
        assert (newcomer.grant(1), newcomer.limited) == (0, True)
        newcomer.credit(NEWCOMER_ROWS, 1, 0.01)
        assert not newcomer.limited

    def test_kin_that_have_finished_less_say_nothing(self) -> None:
        newcomer = TaskQueue(LIMITS, self.kin(rows=PROVEN_ROWS - 1, rate=100_000))
        assert (newcomer.grant(1), newcomer.window_rows) == (START_ROWS, INITIAL_ROWS)

    @pytest.mark.parametrize("rate", [1, 10, 100])
    def test_beside_slow_kin_it_gets_what_they_finish_in_their_window(self, rate: int) -> None:
        newcomer = TaskQueue(LIMITS, self.kin(rows=max(1, rate // 2), rate=rate))
        assert newcomer.grant(1) == newcomer.window_rows == max(1, rate // 2)

    def test_a_slow_one_among_fast_kin_is_soon_known_for_what_it_is(self) -> None:
        slow = TaskQueue(LIMITS, self.kin(rows=PROVEN_ROWS, rate=100_000))
        slow.connect(0.0)
        for _ in range(NEWCOMER_ROWS):
            slow.offer(b"x", 1, 0.0)
        for n in (1, 2, 3):
            slow.credit(n, n, n / 10)
        assert (slow.window_rows, slow.grant(1), slow.turned(0.3)) == (5, 0, None)
        slow.offer(b"x", 6, 0.3)
        assert slow.turned(0.3) is True

    def test_a_fast_one_among_slow_kin_too(self) -> None:
        kin = self.kin(rows=10, rate=10)
        fast = TaskQueue(LIMITS, kin)
        fast.connect(0.0)
        rows = n = 0
        while fast.limited:
            n, granted = n + 1, fast.grant(1)
            fast.offer(b"x", granted, n / 1000)
            rows += granted
            fast.credit(rows, n, n / 1000 + granted / 100_000)
        assert fast.window_rows > LIMITS.free_rows
        assert rows <= 3 * PROVEN_ROWS

    @staticmethod
    def kin(rows: int, rate: int) -> Drain:
        """A component of which one task has finished so many rows, at so many per second."""
        kin = Drain()
        other = TaskQueue(LIMITS, kin)
        other.connect(0.0)
        other.offer(b"x", rows, 0.0)
        other.credit(rows, 1, rows / rate)
        return kin


class TestSessions:
    def test_a_new_one_counts_afresh_and_gets_what_waited(self) -> None:
        queue = connected()
        queue.offer(b"one", 60, 0.0)
        queue.offer(b"two", 60, 0.0)
        assert queue.credit(60, 3, 1.0) == [b"two"]
        queue.offer(b"three", 60, 1.0)
        assert queue.disconnect() == [b"two"]  # lost
        assert not queue.offer(b"four", 1, 1.0)
        assert queue.credit(60, 3, 1.0) == ()
        assert queue.connect(2.0) == [b"three"]
        assert queue.credit(60, 5, 3.0) == [b"four"]

    def test_connecting_again_begins_anew(self) -> None:
        queue = connected()
        queue.offer(b"one", 60, 0.0)
        assert queue.connect(1.0) == []
        assert queue.statistics().outstanding_rows == 0
        assert queue.disconnect() == []
        assert queue.disconnect() == []


def test_statistics() -> None:
    queue = connected()
    assert queue.offer(b"xyz", 60, 0.0)
    assert not queue.offer(b"ab", 7, 0.0)
    assert queue.statistics() == QueueStatistics(7, 2, 60, 3, 0.0, False, True)
    assert queue.credit(60, 3, 2.0) == [b"ab"]
    assert queue.statistics() == QueueStatistics(0, 0, 7, 2, 30.0, False, True)
