"""When a process that watches others looks at them next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storm_py.engine.looks import Looks


def looked_at(looks: Looks, until: float) -> list[float]:
    """The looks of a time without news."""
    found = []
    while looks.at <= until:
        found.append(looks.at)
        looks.looked(looks.at, changed=False)
    return found


def test_ever_more_rarely_up_to_the_limit() -> None:
    assert looked_at(Looks(0.25, 4.0), 16.0) == [0.0, 0.25, 0.75, 1.75, 3.75, 7.75, 11.75, 15.75]


def test_a_change_brings_them_back() -> None:
    looks = Looks(0.25, 4.0)
    looked_at(looks, 16.0)
    looks.looked(19.75, changed=True)
    assert looked_at(looks, 22.0) == [20.0, 20.5, 21.5]


def test_news_brings_the_next_one_forward() -> None:
    looks = Looks(0.25, 4.0)
    looked_at(looks, 16.0)  # the last one at 15.75
    looks.news()
    assert looks.at == 16.0
    looks.looked(17.1, changed=False)
    assert looks.at == 17.35
    looks.news()
    assert looks.at == 17.35


def test_a_limit_below_the_shortest_is_none() -> None:
    assert looked_at(Looks(0.25, 0.1), 1.0) == [0.0, 0.25, 0.5, 0.75, 1.0]


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.booleans(), st.booleans())))
def test_laws(steps: list[tuple[float, bool, bool]]) -> None:
    """Never closer than the shortest, never further apart than the limit."""
    looks = Looks(0.25, 4.0)
    now = 0.0
    last: float | None = None
    for secs, news, changed in steps:
        now += secs
        if news:
            looks.news()
            assert last is None or looks.at == last + 0.25
        if now >= looks.at:
            assert last is None or now >= last + 0.25
            looks.looked(now, changed)
            last = now
            assert now + 0.25 <= looks.at <= now + 4.0
            assert not changed or looks.at == now + 0.25
