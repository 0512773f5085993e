"""Ticker and ErrorThrottle: due once however late anybody asks; counted, never swallowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storm_py.core.throttle import ErrorThrottle
from storm_py.core.ticker import Ticker

waits = st.lists(st.integers(0, 25), max_size=60)


class TestTicker:
    def test_it_is_due_once_per_period(self) -> None:
        ticker = Ticker(10, now=100)
        looks = (100, 109, 110, 111, 119, 120, 121, 130)
        assert [now for now in looks if ticker.due(now)] == [110, 120, 130]

    def test_what_was_missed_is_not_made_up_for(self) -> None:
        ticker = Ticker(10, now=0)
        assert [now for now in (35, 36, 44, 45, 46, 55) if ticker.due(now)] == [35, 45, 55]

    @given(waits)
    def test_never_more_often_than_the_period_nor_late_when_asked_in_time(
        self, gaps: list[int]
    ) -> None:
        now, fired, ticker = 0, 0, Ticker(10, 0)
        for gap in gaps:
            now += gap
            was_due = now >= ticker.next
            assert ticker.due(now) == was_due
            assert now < ticker.next <= now + 10
            fired += was_due
        assert fired <= now // 10


class TestErrorThrottle:
    def test_a_dialogue(self) -> None:
        throttle = ErrorThrottle(limit=2, interval_secs=10)
        assert throttle.next is None
        assert [throttle.admit(now) for now in (5, 6, 7, 8)] == [True, True, False, False]
        assert throttle.next == 15
        assert (throttle.over(14), throttle.over(15), throttle.over(16)) == (0, 2, 0)
        assert throttle.next is None
        assert throttle.admit(15) is True

    def test_an_interval_without_a_surplus_has_nothing_to_tell(self) -> None:
        throttle = ErrorThrottle(limit=2, interval_secs=10)
        assert throttle.admit(0)
        assert (throttle.next, throttle.over(10)) == (None, 0)
        assert [throttle.admit(now) for now in (19, 19.5)] == [True, True]

    @given(waits, st.integers(1, 4))
    def test_every_error_is_either_shown_or_counted(self, gaps: list[int], limit: int) -> None:
        throttle = ErrorThrottle(limit, 10)
        now = shown = told = 0
        for gap in gaps:
            now += gap
            told += throttle.over(now)
            shown += throttle.admit(now)
        assert shown + told + throttle.end() == len(gaps)
        assert shown <= limit * (now // 10 + 1)
