"""Sessions: who is let in, and each message of theirs at most once and in order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.engine.sessions import Sessions, Verdict
from tests.builders import TOPOLOGY_ID, hello

ACCEPT, REPEAT, GAP, STRANGER = Verdict.ACCEPT, Verdict.REPEAT, Verdict.GAP, Verdict.STRANGER


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    made = Sessions(TOPOLOGY_ID, assignment_version=3)
    yield made
    made.check()


class TestHello:
    def test_let_in(self, sessions: Sessions) -> None:
        first = hello("i1", version=3)
        assert sessions.hello(11, first)
        assert sessions.hello(11, first)  # a repeat changes nothing
        assert sessions.hello(12, hello("i2", version=4))
        assert (sessions.peer(11), sessions.peer(99)) == (first, None)
        assert sessions.peers() == ("i1", "i2")
        assert sessions.refused == 0

    @pytest.mark.parametrize(
        "stranger",
        [hello("i1", version=3, topology_id="words-2"), hello("i1", version=2)],
        ids=["another topology", "an older owner"],
    )
    def test_refused(self, sessions: Sessions, stranger: object) -> None:
        assert not sessions.hello(11, stranger)  # type: ignore[arg-type]
        assert sessions.data(11, 1) is STRANGER
        assert (sessions.peers(), sessions.refused) == ((), 2)

    def test_another_assignment_keeps_out_who_belongs_to_an_older_one(
        self, sessions: Sessions
    ) -> None:
        assert sessions.hello(11, hello("i1", version=3))
        sessions.replan(4)
        assert sessions.data(11, 1) is ACCEPT  # it was let in, and stays until its link is closed
        assert not sessions.hello(12, hello("i1", version=3))
        assert sessions.hello(13, hello("i1", version=4))

    def test_a_later_incarnation_replaces_an_earlier_one_for_good(self, sessions: Sessions) -> None:
        assert sessions.hello(11, hello("i1", 1, 3))
        assert sessions.hello(12, hello("i1", 2, 3))
        assert not sessions.hello(11, hello("i1", 1, 3))
        assert (sessions.data(11, 1), sessions.data(12, 1)) == (STRANGER, ACCEPT)

    def test_a_new_session_of_an_incarnation_starts_from_one(self, sessions: Sessions) -> None:
        assert sessions.hello(11, hello("i1", 1, 3))
        assert sessions.data(11, 1) is ACCEPT
        assert sessions.hello(12, hello("i1", 1, 3))
        assert sessions.data(12, 1) is ACCEPT

    def test_a_session_of_somebody_else_cannot_be_taken_over(self, sessions: Sessions) -> None:
        assert sessions.hello(11, hello("i1", 1, 3))
        assert not sessions.hello(11, hello("i2", 1, 3))
        sessions.check()
        assert sessions.hello(12, hello("i2", 1, 3))
        assert not sessions.hello(11, hello("i2", 2, 3))
        assert sessions.peers() == ("i1", "i2")


class TestData:
    def test_a_dialogue(self, sessions: Sessions) -> None:
        assert sessions.data(11, 1) is STRANGER
        sessions.hello(11, hello("i1", 1, 3))
        assert [sessions.data(11, seq) for seq in (1, 2, 2, 1, 4, 3, 4)] == [
            *(ACCEPT, ACCEPT, REPEAT, REPEAT),
            *(GAP, ACCEPT, ACCEPT),
        ]
        sessions.forget("i1")
        assert sessions.data(11, 5) is STRANGER
        assert sessions.refused == 2

    def test_forgetting_nobody(self, sessions: Sessions) -> None:
        assert sessions.forget("i1") is False
        assert sessions.peers() == ()

    def test_late_news_of_a_death_does_not_end_the_successor(self, sessions: Sessions) -> None:
        sessions.hello(11, hello("i1", 2, 3))
        assert sessions.forget("i1", gone=1) is False
        assert sessions.data(11, 1) is ACCEPT
        assert sessions.forget("i1", gone=2) is True
        assert sessions.data(11, 2) is STRANGER


class TestBroken:
    """Something of a session is missing: it is over, and remembered until there is another one."""

    def test_nothing_of_it_is_accepted(self, sessions: Sessions) -> None:
        sessions.hello(11, hello("i1", 1, 3))
        assert sessions.broken("i1") is None
        assert sessions.broke(11) == hello("i1", 1, 3)
        assert (sessions.peer(11), sessions.peers()) == (None, ())
        assert sessions.data(11, 1) is STRANGER
        assert sessions.broken("i1") == 11
        assert sessions.peer_of_broken(11) == hello("i1", 1, 3)
        assert sessions.peer_of_broken(12) is None

    def test_a_stranger_has_nothing_to_break(self, sessions: Sessions) -> None:
        assert sessions.broke(11) is None
        assert sessions.peer_of_broken(11) is None

    def test_the_next_session_ends_that(self, sessions: Sessions) -> None:
        sessions.hello(11, hello("i1", 1, 3))
        sessions.broke(11)
        assert not sessions.hello(12, hello("i1", 1, 2))  # an older owner
        assert sessions.broken("i1") == 11
        assert sessions.hello(12, hello("i1", 1, 3))
        assert (sessions.broken("i1"), sessions.peer_of_broken(11)) == (None, None)

    def test_only_the_death_of_its_own_process_ends_that(self, sessions: Sessions) -> None:
        sessions.hello(11, hello("i1", 2, 3))
        sessions.broke(11)
        assert sessions.forget("i1", gone=1) is False
        assert sessions.broken("i1") == 11
        assert sessions.forget("i1", gone=2) is False
        assert sessions.broken("i1") is None

    def test_an_older_incarnation_stays_out(self, sessions: Sessions) -> None:
        sessions.hello(11, hello("i1", 2, 3))
        sessions.broke(11)
        assert not sessions.hello(12, hello("i1", 1, 3))
        assert sessions.broken("i1") == 11


numbers = st.integers(1, 4)
steps = st.one_of(
    st.tuples(st.just("hello"), numbers, st.sampled_from(["a", "b", "c"]), numbers),
    st.tuples(st.just("data"), numbers, st.just(""), numbers),
    st.tuples(st.just("forget"), numbers, st.sampled_from(["a", "b", "c"]), numbers),
    st.tuples(st.just("broke"), numbers, st.just(""), numbers),
)


@settings(max_examples=100)
@given(st.lists(steps, max_size=40))
def test_any_history(history: list[tuple[str, int, str, int]]) -> None:
    """Whatever comes: the tables agree, and a session's messages are accepted once, in order."""
    sessions = Sessions(TOPOLOGY_ID, 1)
    accepted: dict[int, list[int]] = {}
    owner: dict[int, str] = {}
    for step, session, peer, number in history:
        if step == "hello":
            before = sessions.peer(session)
            if sessions.hello(session, hello(peer, incarnation=number)):
                owner[session] = peer
                if before is None:
                    accepted[session] = []
                now = sessions.peer(session)
                assert now is not None
                assert now.peer == peer
        elif step == "data":
            verdict = sessions.data(session, number)
            assert (verdict is STRANGER) == (sessions.peer(session) is None)
            if verdict is ACCEPT:
                accepted[session].append(number)
        elif step == "broke":
            whose = sessions.peer(session)
            assert sessions.broke(session) == whose
            assert whose is None or sessions.broken(whose.peer) == session
        else:
            sessions.forget(peer)
            assert peer not in sessions.peers()
        sessions.check()
        for session_, seqs in accepted.items():
            assert seqs == list(range(1, len(seqs) + 1)), session_
