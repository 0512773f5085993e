"""How long a spout with nothing to emit is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.engine.idling import DOUBLED_SECS, EAGER_ROUNDS, SHARE, Idling

LIMITS = st.floats(0.0005, 60.0)


def waits(idling: Idling, secs: float, began: float = 0.0) -> list[tuple[float, float]]:
    """When each wait of a silence of so many seconds began, and how long it was."""
    found = []
    now = began
    while now < began + secs:
        wait = idling.next(now)
        assert wait is not None
        found.append((now, wait))
        now += wait
    return found


def test_waits_begin_short_and_double() -> None:
    found = [wait for _, wait in waits(Idling(1.0), 0.1)]
    assert found == [0.001] * EAGER_ROUNDS + [0.002, 0.004, 0.008, 0.016, 0.032, 0.05]


def test_then_they_are_a_share_of_the_silence_up_to_the_limit() -> None:
    found = waits(Idling(1.0), 100.0)
    at_50_ms = [now for now, wait in found if wait == DOUBLED_SECS]
    assert at_50_ms[-1] == pytest.approx(1.0, abs=DOUBLED_SECS)
    assert {wait for now, wait in found if now >= 20.0} == {1.0}
    assert len(found) < 200


@given(LIMITS, st.lists(st.floats(0.0, 5.0), max_size=100))
def test_no_wait_is_longer_than_the_limit_or_its_share_of_the_silence(
    limit: float, slept: list[float]
) -> None:
    """Whatever ends the waits, and when."""
    idling = Idling(limit)
    now = before = 100.0
    rest = 0.0
    for secs in slept:
        wait = idling.next(now)
        assert wait is not None
        assert wait <= limit
        assert wait <= max(DOUBLED_SECS, SHARE * (now - 100.0))
        assert wait >= min(limit, rest) or now < before  # they never shrink
        now, before, rest = now + secs, now, wait


@given(st.floats(0.0005, DOUBLED_SECS))
def test_with_a_limit_below_that_they_double_only(limit: float) -> None:
    found = [wait for _, wait in waits(Idling(limit), 5.0)]
    doubled = [0.001] * EAGER_ROUNDS + [0.001 * 2**n for n in range(1, 6)]
    expected = [min(limit, wait) for wait in doubled]
    assert found[: len(expected)] == expected
    assert set(found[len(expected) :]) <= {limit}


@given(LIMITS, st.floats(0.0, 200.0))
def test_the_first_tuple_begins_anew(limit: float, secs: float) -> None:
    idling = Idling(limit)
    if secs:
        waits(idling, secs)
    idling.reset()
    assert waits(idling, 2.0, began=300.0) == waits(Idling(limit), 2.0, began=300.0)


def test_a_descriptor_is_waited_on_without_end() -> None:
    idling = Idling(0.05)
    idling.wait_on([7])
    for now in range(100):
        assert idling.next(now) is None
        idling.woken([3])


def test_a_descriptor_that_is_readable_in_vain_is_left_alone_until_something_comes() -> None:
    idling = Idling(0.05)
    idling.wait_on([7])
    for _ in range(EAGER_ROUNDS):
        assert idling.next(0.0) is None
        idling.woken([7])
    assert idling.next(0.0) == 0.002
    idling.reset()
    assert idling.next(0.0) is None


def test_all_spouts_of_an_instance_must_offer_one() -> None:
    idling = Idling(0.05)
    idling.wait_on([7, None])
    assert idling.fds == frozenset()
    assert idling.next(0.0) == 0.001
    idling.wait_on([7, 9])
    assert idling.fds == {7, 9}
    idling.wait_on([])
    assert idling.next(0.0) == 0.001
