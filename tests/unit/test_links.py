"""OutboundLink: a session from Hello to the last numbered message."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.engine.links import (
    BEAT_SECS,
    QUIET_BEAT_SECS,
    Beats,
    OutboundLink,
    read_control,
)
from storm_py.errors import ProtocolError
from storm_py.wire import control
from tests.builders import (
    Data,
    End,
    Numbers,
    Said,
    control_message,
    frame_bytes,
    hello,
    in_words,
    rows,
)
from tests.strategies import damaged

ME = hello("i1")


def link(first: int = 100) -> OutboundLink:
    return OutboundLink("s0", Numbers(first), ME, Beats())


def test_a_dialogue() -> None:
    ours = link()
    assert (ours.peer, ours.session, ours.open) == ("s0", 101, False)
    assert in_words(False, ours.hello()) == Said(101, ME)
    assert ours.welcomed(100) is False  # an older session of ours
    assert ours.open is False
    assert ours.welcomed(101) is True
    assert ours.welcomed(101) is False  # a repeat opens nothing
    assert ours.open is True
    word = rows(1, 2, ["storm"])
    end = End(1, 2, wave=1)
    assert in_words(True, ours.data(frame_bytes(word))) == Data(101, 1, [word])
    credit = control.Credit(1, 5, 500)
    assert in_words(False, ours.control(credit)) == Said(101, credit)
    both = ours.data(frame_bytes(word), frame_bytes(end))
    assert in_words(True, both) == Data(101, 2, [word, end])


@given(st.integers(0, 2**63 - 1))
def test_any_session_fits_the_wire(bits: int) -> None:
    ours = link(bits)
    assert ours.session == bits + 1
    assert read_control(ours.hello()) == (bits + 1, ME)


class TestBeats:
    def test_soon_behind_data_and_rarely_in_silence(self) -> None:
        beats = Beats()
        assert [at for at in range(100) if beats.due(at)] == [2, 4, 8, 16, 32, 48, 64, 80, 96]
        assert beats.next(101) == 112
        beats.sent = True
        assert beats.next(101) == 103
        assert beats.next(102) == 103  # from when it was noticed on
        assert [at for at in range(102, 150) if beats.due(at)] == [103, 105, 109, 117, 133, 149]

    def test_a_beat_of_a_link_is_no_data(self) -> None:
        beats = Beats()
        ours = OutboundLink("s0", Numbers(100), ME, beats)
        beats.next(0.0)
        assert in_words(True, ours.beat()) == Data(101, 1, [])
        ours.hello()
        assert not beats.sent
        assert in_words(True, ours.data()) == Data(101, 2, [])
        assert beats.sent

    @given(st.lists(st.tuples(st.floats(0.001, 40.0), st.booleans()), max_size=60))
    def test_laws(self, steps: list[tuple[float, bool]]) -> None:
        """Who asks whenever one is due beats within two seconds of data, and 16 of anything."""
        beats = Beats()
        now = last = 0.0
        unconfirmed: float | None = 0.0  # the first data without a beat behind it
        for secs, sends in steps:
            until = now + secs
            while (due := beats.next(now)) <= until:
                now = due
                assert beats.due(now)
                assert unconfirmed is None or now <= unconfirmed + BEAT_SECS
                assert now <= last + QUIET_BEAT_SECS
                last, unconfirmed = now, None
                assert not beats.due(now)
            now = until
            if sends:
                beats.sent = True
                unconfirmed = now if unconfirmed is None else unconfirmed
                beats.next(now)


class TestReadControl:
    @pytest.mark.parametrize("size", range(24))
    def test_too_short(self, size: int) -> None:
        with pytest.raises(ProtocolError, match="shorter than its header"):
            read_control(control_message(5, ME)[:size])

    def test_truncated_at_every_byte(self) -> None:
        whole = control_message(5, ME)
        for size in range(24, len(whole)):
            with pytest.raises(ProtocolError, match="does not unpack"):
                read_control(whole[:size])

    @settings(max_examples=200)
    @given(st.one_of(st.binary(max_size=50), damaged(control_message(5, ME))))
    def test_any_bytes(self, message: bytes) -> None:
        with suppress(ProtocolError):
            session, _ = read_control(message)
            assert session >= 0
