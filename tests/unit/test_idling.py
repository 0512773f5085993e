"""How long a spout with nothing to emit is left alone."""

from __future__ import annotations

from storm_py.engine.idling import EAGER_ROUNDS, Idling


def test_waits_begin_short_and_double_up_to_the_limit() -> None:
    idling = Idling(0.05)
    assert [idling.next() for _ in range(EAGER_ROUNDS)] == [0.001] * EAGER_ROUNDS
    assert [idling.next() for _ in range(8)] == [0.002, 0.004, 0.008, 0.016, 0.032, *[0.05] * 3]


def test_the_first_tuple_begins_anew() -> None:
    idling = Idling(0.05)
    for _ in range(100):
        idling.next()
    assert idling.next() == 0.05
    idling.emitted()
    assert idling.next() == 0.001


def test_a_limit_below_the_shortest_wait_holds() -> None:
    assert Idling(0.0005).next() == 0.0005


def test_a_descriptor_is_waited_on_without_end() -> None:
    idling = Idling(0.05)
    idling.wait_on([7])
    for _ in range(100):
        assert idling.next() is None
        idling.woken([3])


def test_a_descriptor_that_is_readable_in_vain_is_left_alone_until_something_comes() -> None:
    idling = Idling(0.05)
    idling.wait_on([7])
    for _ in range(EAGER_ROUNDS):
        assert idling.next() is None
        idling.woken([7])
    assert idling.next() == 0.002
    idling.emitted()
    assert idling.next() is None


def test_all_spouts_of_an_instance_must_offer_one() -> None:
    idling = Idling(0.05)
    idling.wait_on([7, None])
    assert idling.fds == frozenset()
    assert idling.next() == 0.001
    idling.wait_on([7, 9])
    assert idling.fds == {7, 9}
    idling.wait_on([])
    assert idling.next() == 0.001
