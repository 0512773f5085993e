"""StreamManagerCore: dialogues with instances and with other stream managers."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.engine.links import BEAT_SECS, QUIET_BEAT_SECS
from storm_py.errors import ProtocolError
from storm_py.wire import frames
from storm_py.wire.acks import AckRecords, encode_acks
from storm_py.wire.control import (
    Control,
    Credit,
    Hello,
    LinkBroken,
    Pressure,
    Stop,
    Wave,
    Welcome,
)
from tests.builders import (
    End,
    all_in_words,
    control_message,
    data_message,
    frame_bytes,
    frame_size,
    hello,
)
from tests.manager import HIGH, ONE_WORKER, Manager, data, linked, ours, said, words
from tests.strategies import damaged


class TestHandshake:
    def test_we_speak_first(self) -> None:
        manager = Manager(ONE_WORKER)
        assert manager.connect("i1") == [said("i1", 101, ours())]
        assert manager.hears(11, hello("i1")) == [said("i1", 101, Welcome(11))]
        assert not manager.core.linked(["i1"])
        assert manager.hears(11, Welcome(101)) == []
        assert manager.core.linked(["i1"])
        assert not manager.core.linked(["i1", "i2"])

    def test_they_speak_first(self) -> None:
        manager = Manager(ONE_WORKER)
        assert manager.hears(11, hello("i1")) == []
        assert manager.connect("i1") == [
            said("i1", 101, ours()),
            said("i1", 101, Welcome(11)),
        ]
        assert manager.hears(11, Welcome(101)) == []
        assert manager.core.linked(["i1"])

    def test_repeats_change_nothing(self) -> None:
        manager = linked()
        assert manager.hears(11, hello("i1")) == [said("i1", 101, Welcome(11))]
        assert manager.hears(11, Welcome(101)) == []
        assert manager.core.linked(["i1", "i2"])

    def test_a_welcome_of_another_session_opens_nothing_but_repeats_the_greeting(self) -> None:
        """Our Hello of before came behind this one's, on the socket that this one replaced."""
        manager = Manager(ONE_WORKER)
        manager.connect("i1")
        manager.hears(11, hello("i1"))
        greeting = [said("i1", 101, ours()), said("i1", 101, Welcome(11))]
        assert manager.hears(11, Welcome(99)) == greeting
        assert manager.hears(12, Welcome(101)) == []  # nobody has introduced session 12
        assert not manager.core.linked(["i1"])
        manager.hears(11, Welcome(101))
        assert manager.hears(11, Welcome(99)) == greeting
        assert manager.core.linked(["i1"])

    @pytest.mark.parametrize(
        "stranger",
        [hello("i1", topology_id="words-2"), hello("i1", version=0), hello("i9"), hello("s0")],
        ids=["another topology", "an older owner", "no peer of ours", "ourselves"],
    )
    def test_strangers_are_refused(self, stranger: Hello) -> None:
        manager = linked()
        assert manager.hears(33, stranger) == []
        assert manager.hears(33, Welcome(101)) == []
        assert manager.gets(33, 1, words()) == []

    def test_an_older_incarnation_is_refused(self) -> None:
        manager = linked()
        assert manager.hears(12, hello("i1", incarnation=2)) == [said("i1", 101, Welcome(12))]
        assert manager.hears(11, hello("i1", incarnation=1)) == []
        assert manager.gets(11, 1, words()) == []
        assert manager.core.statistics().refused == 2

    def test_only_peers_can_be_connected_to(self) -> None:
        with pytest.raises(ProtocolError, match="s7 is no peer of this stream manager"):
            Manager(ONE_WORKER).connect("s7")

    @pytest.mark.parametrize("record", [Stop(), Wave(1, False)])
    def test_orders_do_not_belong_on_a_link(self, record: Control) -> None:
        with pytest.raises(ProtocolError, match="does not belong on a link"):
            linked().hears(11, record)


class TestData:
    def test_frames_go_to_their_tasks(self) -> None:
        manager = linked()
        assert manager.gets(22, 1, words(n=3)) == [data("i1", 101, 1, words(n=3))]
        assert manager.gets(22, 2, words(), End(2, 1, 1)) == [
            data("i1", 101, 2, words()),
            data("i1", 101, 3, End(2, 1, 1)),
        ]

    def test_what_is_in_them_is_nobodys_business(self) -> None:
        """Rows and columns travel as they are: a stream manager unpacks no value of a user."""
        manager = linked()
        body = b"".join(frames.encode_data(1, 2, 1, 7, [(0, 2)], [b"\xc1", b"\xff no msgpack"]))
        message = frames.message_header(22, 1) + body
        assert manager.core.on_data(message, 0.0) == [
            (True, "i1", frames.message_header(101, 1) + body)
        ]

    def test_nothing_before_the_hello(self) -> None:
        manager = Manager(ONE_WORKER)
        manager.link("i1", 11, 101)
        manager.connect("i2")
        assert manager.gets(22, 1, words()) == []
        assert manager.core.statistics().refused == 1
        manager.hears(22, hello("i2"))
        assert manager.gets(22, 1, words()) == [data("i1", 101, 1, words())]

    def test_repeats_are_dropped(self) -> None:
        manager = linked()
        assert len(manager.gets(22, 1, words())) == 1
        assert manager.gets(22, 1, words()) == []
        assert len(manager.gets(22, 2, words())) == 1

    def test_frames_for_an_instance_that_is_not_there_wait(self) -> None:
        manager = Manager(ONE_WORKER)
        manager.link("i2", 22, 101)
        for n in (1, 2):
            assert manager.gets(22, n, words(n=n)) == []
        manager.connect("i1")
        assert manager.gets(22, 3, words(n=3)) == []
        manager.hears(11, hello("i1"))
        assert manager.hears(11, Welcome(102)) == [
            data("i1", 102, n, words(n=n)) for n in (1, 2, 3)
        ]

    def test_tasks_that_do_not_exist_are_counted(self) -> None:
        manager = linked()
        assert manager.gets(22, 1, words(dest=77), words()) == [data("i1", 101, 1, words())]
        assert (manager.core.statistics().unroutable, manager.core.statistics().frames) == (1, 2)

    def test_results_for_a_spout_that_is_not_here_are_counted_and_dropped(self) -> None:
        """Of a topology of before, say: nobody here could make anything of them."""
        manager = linked()
        root = 77 << 46 | 5
        records = AckRecords([root], [9], [root], [9])
        message = frames.message_header(11, 1) + encode_acks(1, 1, 2, 7, records)
        assert manager.core.on_data(message, 0.0) == []
        assert manager.core.statistics().unroutable == 1

    def test_a_message_that_breaks_off_is_refused_whole(self) -> None:
        manager = linked()
        broken = data_message(22, 1, words()) + frame_bytes(words())[:-1]
        with pytest.raises(ProtocolError, match="claims 32"):
            manager.core.on_data(broken, 0.0)
        manager.core.check()
        assert manager.gets(22, 2, words()) == [data("i1", 101, 1, words())]


class TestBrokenLinks:
    def test_a_gap_breaks_their_link(self) -> None:
        manager = linked()
        manager.gets(22, 1, words())
        assert manager.gets(22, 3, words()) == [said("i2", 102, LinkBroken(22))]
        assert manager.gets(22, 2, words()) == []  # that session is over
        assert manager.gets(22, 4, words()) == []
        assert manager.hears(23, hello("i2")) == [said("i2", 102, Welcome(23))]
        assert manager.gets(23, 1, words()) == [data("i1", 101, 2, words())]

    def test_a_gap_on_their_side_breaks_ours(self) -> None:
        manager = linked()
        manager.gets(22, 1, words(n=HIGH))
        manager.gets(22, 2, words(n=5))  # waits: the window is full
        assert manager.hears(11, LinkBroken(101)) == [
            said("i1", 103, ours()),
            said("i1", 103, Welcome(11)),
        ]
        assert manager.core.statistics().lost_rows == HIGH
        assert manager.hears(11, LinkBroken(101)) == []  # said twice: of a session that is over
        assert manager.hears(11, Credit(1, HIGH, frame_size(words(n=HIGH)))) == []
        assert manager.hears(11, Welcome(103)) == [data("i1", 103, 1, words(n=5))]

    def test_that_theirs_broke_is_said_again_with_a_new_session_of_ours(self) -> None:
        """What was said before went into a socket that is closed by now."""
        manager = linked()
        assert manager.gets(22, 2) == [said("i2", 102, LinkBroken(22))]
        manager.disconnect("i2", gone=0)  # the news of an older death, late
        assert manager.connect("i2") == [said("i2", 103, ours()), said("i2", 103, LinkBroken(22))]
        assert manager.hears(23, hello("i2")) == [said("i2", 103, Welcome(23))]
        assert manager.connect("i2") == [said("i2", 104, ours()), said("i2", 104, Welcome(23))]

    def test_what_broke_is_no_news_to_the_successor_of_the_dead(self) -> None:
        manager = linked()
        assert manager.gets(22, 2) == [said("i2", 102, LinkBroken(22))]
        manager.disconnect("i2", gone=1)
        assert manager.connect("i2") == [said("i2", 103, ours())]

    def test_both_directions_may_break_at_once(self) -> None:
        """They say so in the session that the other one does not accept any more."""
        manager = linked()
        assert manager.gets(22, 2) == [said("i2", 102, LinkBroken(22))]
        assert manager.hears(22, Welcome(102)) == []
        assert manager.hears(22, LinkBroken(102)) == [
            said("i2", 103, ours()),
            said("i2", 103, LinkBroken(22)),
        ]
        assert manager.hears(23, hello("i2")) == [said("i2", 103, Welcome(23))]
        assert manager.hears(23, LinkBroken(102)) == []

    def test_a_restarted_instance(self) -> None:
        manager = linked()
        manager.gets(22, 1, words(n=HIGH))
        manager.gets(22, 2, words(n=5))
        assert manager.disconnect("i1") == []
        assert manager.gets(11, 1, words(dest=2, src=1)) == []  # the dead are not heard
        assert manager.gets(22, 3, words(n=6)) == []
        assert manager.core.statistics().lost_rows == HIGH
        manager.connect("i1")
        manager.hears(12, hello("i1", incarnation=2))
        assert manager.hears(12, Welcome(103)) == [
            data("i1", 103, 1, words(n=5)),
            data("i1", 103, 2, words(n=6)),
        ]

    def test_connecting_again_replaces_the_link(self) -> None:
        manager = linked()
        manager.gets(22, 1, words())
        assert manager.connect("i1") == [
            said("i1", 103, ours()),
            said("i1", 103, Welcome(11)),
        ]
        assert manager.gets(22, 2, words(n=2)) == []  # not welcome yet
        assert manager.core.statistics().lost_rows == 1
        assert manager.hears(11, Welcome(103)) == [data("i1", 103, 1, words(n=2))]


SIZE_40 = frame_size(words(n=40))


class TestBeats:
    """Empty messages: who waits for a word sends nothing else, and a loss shows all the same."""

    def test_every_open_link_gets_one(self) -> None:
        manager = linked()
        manager.connect("i2")
        assert manager.core.next_beat(now=5.0) == 5.0 + BEAT_SECS
        assert manager.beats(now=6.9) == []
        assert manager.beats(now=7.0) == [data("i1", 101, 1)]
        manager.gets(22, 1, words())
        assert manager.core.next_beat(now=7.5) == 7.0 + BEAT_SECS
        assert manager.beats(now=9.0) == [data("i1", 101, 3)]

    def test_they_become_rare_where_nothing_else_is_sent_until_something_is(self) -> None:
        manager = linked()
        now, apart = 0.0, []
        for _ in range(6):
            apart.append(manager.core.next_beat(now) - now)
            now = manager.core.next_beat(now)
            assert len(manager.beats(now)) == 2
        assert apart == [BEAT_SECS, BEAT_SECS, 4.0, 8.0, QUIET_BEAT_SECS, QUIET_BEAT_SECS]
        manager.gets(22, 1)  # a beat of the other end is no data
        assert manager.core.next_beat(now + 1.0) == now + QUIET_BEAT_SECS
        manager.gets(22, 2, words())
        assert manager.core.next_beat(now + 1.0) == now + 1.0 + BEAT_SECS

    def test_what_is_missing_before_one_is_a_gap(self) -> None:
        manager = linked()
        assert manager.gets(22, 1) == []
        assert manager.gets(22, 3) == [said("i2", 102, LinkBroken(22))]


class TestCredits:
    def test_what_exceeds_the_window_waits_for_them(self) -> None:
        manager = linked()
        assert len(manager.gets(22, 1, words(n=40))) == 1
        assert manager.gets(22, 2, words(n=40)) == []
        manager.now = 1.0
        assert manager.hears(11, Credit(1, 40, SIZE_40)) == [data("i1", 101, 2, words(n=40))]
        assert manager.core.statistics().queues[1].outstanding_rows == 40

    def test_one_that_waits_dies_with_its_session(self) -> None:
        manager = linked()
        manager.gets(22, 1, words(n=4))
        size = frame_size(words(n=4))
        assert manager.hears(11, Credit(1, 4, size, seq=1)) == []
        manager.hears(11, LinkBroken(101))
        manager.hears(11, Welcome(103))
        manager.gets(22, 2, words(n=4))
        assert manager.gets(11, 1) == []  # the output that it was for
        assert manager.core.statistics().queues[1].outstanding_rows == 4

    @pytest.mark.parametrize("how", ["a gap", "a new session"])
    def test_one_that_waits_dies_with_the_session_it_came_in(self, how: str) -> None:
        """Nothing is kept of it: what it waits for never comes."""
        manager = linked()
        manager.gets(22, 1, words(n=4))
        credit = Credit(1, 4, frame_size(words(n=4)), seq=1)
        assert manager.hears(11, credit) == []
        if how == "a gap":
            assert manager.gets(11, 3) == [said("i1", 101, LinkBroken(11))]
        assert manager.hears(12, hello("i1")) == [said("i1", 101, Welcome(12))]
        assert manager.gets(12, 1) == []
        assert manager.core.statistics().queues[1].outstanding_rows == 4
        assert manager.hears(12, credit) == []
        assert manager.core.statistics().queues[1].outstanding_rows == 0

    def test_one_that_overtook_its_outputs_waits_for_them(self) -> None:
        """They travel on different sockets; the outputs may die with their sender."""
        manager = linked()
        assert len(manager.gets(22, 1, words(n=40))) == 1
        assert manager.gets(22, 2, words(n=40)) == []
        manager.now = 0.05  # not long enough to be called stalled
        assert manager.hears(11, Credit(1, 40, SIZE_40, seq=1)) == []
        assert manager.core.statistics().queues[1].outstanding_rows == 40
        sent = manager.gets(11, 1, End(1, 9, 1))
        assert sent == [data("i1", 101, 2, words(n=40))]
        assert manager.core.statistics().queues[1].outstanding_rows == 40

    @pytest.mark.parametrize(
        ("session", "credit"),
        [
            (22, Credit(1, 40, SIZE_40)),  # of somebody else's task
            (11, Credit(2, 40, SIZE_40)),
            (11, Credit(77, 40, SIZE_40)),
            (11, Credit(1, 40, 10**9)),
            (11, Credit(1, 10**9, 1000)),
            (11, Credit(1, -1, -1)),
            (33, Credit(1, 40, SIZE_40)),
        ],
    )
    def test_those_that_cannot_be_are_ignored(self, session: int, credit: Credit) -> None:
        manager = linked()
        manager.gets(22, 1, words(n=40))
        manager.gets(22, 2, words(n=40))
        before = manager.core.statistics()
        assert manager.hears(session, credit) == []
        assert manager.core.statistics() == before


messages = st.one_of(
    damaged(data_message(22, 1, words(n=2), End(2, 1, 1), words(dest=77))),
    damaged(control_message(11, Credit(1, 40, 1000))),
    st.builds(
        control_message,
        st.sampled_from([11, 22, 33]),
        st.one_of(
            st.builds(hello, st.sampled_from(["i1", "i2", "s0"]), st.integers(0, 3)),
            st.builds(Welcome, st.integers(100, 104)),
            st.builds(LinkBroken, st.integers(100, 104)),
            st.builds(Credit, st.integers(0, 3), st.integers(-9, 99), st.integers(-9, 999)),
            st.builds(Pressure, st.integers(0, 3), st.booleans(), st.integers(-9, 2**40)),
        ),
    ),
    st.builds(data_message, st.sampled_from([11, 22, 33]), st.integers(0, 4), st.just(words(n=70))),
    st.binary(max_size=60),
)


@settings(max_examples=100)
@given(st.lists(st.tuples(messages, st.integers(0, 9)), max_size=12))
def test_whatever_arrives(arrived: list[tuple[bytes, int]]) -> None:
    """Any bytes, on either socket, give actions or ProtocolError; the invariants hold."""
    manager = linked()
    for message, step in arrived:
        manager.now += step
        for receive in (manager.core.on_data, manager.core.on_control):
            with suppress(ProtocolError):
                all_in_words(receive(message, manager.now))
            manager.core.check()
