"""Allowances: who has been told to wait, or has used up a grant, stops its sender."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storm_py.core.pressure import START_ROWS
from storm_py.engine.allowances import Allowances

TASKS = (4, 5, 6)


class TestWords:
    def test_a_session_begins_with_a_grant(self) -> None:
        allowances = Allowances(TASKS)
        assert not allowances.paused
        assert not allowances.sent(4, START_ROWS - 1)
        assert allowances.sent(4, 1)
        assert allowances.paused

    def test_a_grant_replaces_the_one_before(self) -> None:
        allowances = Allowances(TASKS)
        allowances.grant(4, 10)
        allowances.grant(4, 2)
        assert not allowances.sent(4, 1)
        assert allowances.sent(4, 5)  # a frame may exceed it
        allowances.grant(4, 1)
        assert not allowances.paused

    def test_what_is_left_of_a_grant(self) -> None:
        allowances = Allowances(TASKS)
        assert allowances.left(4) == START_ROWS
        allowances.grant(4, 10)
        allowances.sent(4, 7)
        assert allowances.left(4) == 3
        allowances.sent(4, 5)
        assert allowances.left(4) == 0
        allowances.grant(4, -1)
        assert allowances.left(4) == 0
        allowances.grant(4, 10)
        allowances.pressure(4, on=False)
        assert allowances.left(4) == 0  # there is no grant
        assert allowances.left(7) == 0  # not heeded

    def test_off_lifts_the_limit_and_on_stops(self) -> None:
        allowances = Allowances(TASKS)
        allowances.pressure(4, on=False)
        assert not allowances.sent(4, 10**9)
        allowances.pressure(4, on=True)
        assert allowances.paused
        assert not allowances.sent(4, 1)  # it was stopped before
        allowances.pressure(4, on=False)
        assert not allowances.paused

    def test_one_task_stops_all_until_it_is_heard_of(self) -> None:
        allowances = Allowances(TASKS)
        allowances.pressure(4, on=True)
        for task in (5, 6):
            allowances.pressure(task, on=False)
        assert allowances.paused
        allowances.grant(4, 1)
        assert not allowances.paused

    def test_others_are_not_heeded(self) -> None:
        allowances = Allowances(TASKS)
        allowances.pressure(7, on=True)
        allowances.grant(8, 0)
        assert not allowances.sent(9, 10**9)
        assert not allowances.paused

    def test_a_new_session_forgets_everything(self) -> None:
        allowances = Allowances(TASKS)
        allowances.pressure(4, on=True)
        allowances.pressure(5, on=False)
        allowances.reset()
        assert not allowances.paused
        assert allowances.sent(5, START_ROWS)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("on"), st.integers(3, 7), st.just(0)),
        st.tuples(st.just("off"), st.integers(3, 7), st.just(0)),
        st.tuples(st.just("grant"), st.integers(3, 7), st.integers(0, 9)),
        st.tuples(st.just("sent"), st.integers(3, 7), st.integers(1, 9)),
        st.tuples(st.just("reset"), st.just(0), st.just(0)),
    )
)


@given(EVENTS)
def test_paused_means_that_the_last_word_of_some_task_is_used_up(
    events: list[tuple[str, int, int]],
) -> None:
    allowances = Allowances(TASKS)
    left: dict[int, float] = dict.fromkeys(TASKS, START_ROWS)
    for event, task, rows in events:
        match event:
            case "on" | "off":
                allowances.pressure(task, event == "on")
                left[task] = 0 if event == "on" else float("inf")
            case "grant":
                allowances.grant(task, rows)
                left[task] = rows
            case "sent":
                before = left.get(task, 0)
                left[task] = max(0, before - rows)
                used_up = allowances.sent(task, rows)
                assert not used_up or left[task] == 0
                if task in TASKS and before > 0:
                    assert used_up == (left[task] == 0)
            case _:
                allowances.reset()
                left = dict.fromkeys(TASKS, START_ROWS)
        allowances.check()
        assert allowances.paused == any(left[heeded] <= 0 for heeded in TASKS)
