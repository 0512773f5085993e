"""StreamManagerCore under pressure: who is told, when and how often; and what lies between two."""

from __future__ import annotations

import dataclasses

import pytest

from storm_py.core.pressure import START_FRAME_ROWS, START_ROWS
from storm_py.wire.control import Credit, FailPending, Grant, LinkBroken, Pressure, Welcome
from tests.builders import LOCAL, End, bolt, frame_size, hello, plan_of, spout
from tests.manager import (
    HIGH,
    LIMITS,
    ONE_WORKER,
    TWO_WORKERS,
    Manager,
    data,
    linked,
    ours,
    said,
    words,
)

FULL = words(n=HIGH)


def pressured() -> Manager:
    """One worker whose task 1 is pressured, as its sender i2 (22 in, 102 out) knows."""
    manager = linked()
    assert manager.gets(22, 1, FULL) == [data("i1", 101, 1, FULL)]
    assert manager.gets(22, 2, words(n=HIGH)) == []
    assert manager.gets(22, 3, words()) == [said("i2", 102, Pressure(1, True, 16))]
    return manager


class TestOneWorker:
    def test_on_is_said_once_and_off_is_said_once(self) -> None:
        manager = pressured()
        assert manager.gets(22, 4, words(n=99)) == []
        manager.now = 1.0
        size = frame_size(FULL)
        assert manager.hears(11, Credit(1, HIGH, size)) == [data("i1", 101, 2, FULL)]
        manager.now = 1.1  # it has become ten times as fast
        assert manager.hears(11, Credit(1, 2 * HIGH, 2 * size)) == [
            data("i1", 101, 3, words()),
            data("i1", 101, 4, words(n=99)),
            said("i2", 102, Pressure(1, False, 28)),
        ]

    def test_a_new_session_is_told_what_is_pressured_now(self) -> None:
        manager = pressured()
        manager.disconnect("i2")
        manager.connect("i2")
        assert manager.hears(23, hello("i2", 2)) == [said("i2", 103, Welcome(23))]
        assert manager.hears(23, Welcome(103)) == [said("i2", 103, Pressure(1, True, 16))]

    def test_a_session_of_ours_that_broke_is_told_again(self) -> None:
        manager = pressured()
        manager.hears(22, LinkBroken(102))
        assert manager.hears(22, Welcome(103)) == [said("i2", 103, Pressure(1, True, 16))]

    def test_what_has_turned_off_meanwhile_is_off(self) -> None:
        manager = pressured()
        manager.hears(22, LinkBroken(102))
        manager.now = 0.001
        assert manager.hears(11, Credit(1, HIGH, frame_size(FULL))) == [
            data("i1", 101, 2, FULL),
            data("i1", 101, 3, words()),
        ]
        assert manager.hears(22, Welcome(103)) == [said("i2", 103, Pressure(1, False, 256))]

    def test_a_dead_consumer_keeps_up_the_pressure(self) -> None:
        manager = pressured()
        assert manager.disconnect("i1") == []
        manager.connect("i1")
        manager.hears(12, hello("i1", incarnation=2))
        assert manager.hears(12, Welcome(103)) == [
            data("i1", 103, 1, words(n=HIGH)),
            said("i2", 102, Pressure(1, False, 16)),
        ]

    def test_only_those_upstream_are_told(self) -> None:
        #: a=task 1, b=2 and 3, c=4, d=5 and 6 (sources), e=7 hears b
        manager = Manager(
            plan_of(
                bolt("a", "b d", "value"),
                spout("b", tasks=2),
                bolt("c", "d"),
                spout("d", tasks=2, executors=1),
                bolt("e", "a b"),
            )
        )
        for executor in range(1, 7):
            manager.link(f"i{executor}", executor * 11, 100 + executor)
        manager.gets(22, 1, words(dest=1, n=HIGH))
        assert manager.gets(22, 2, words(dest=1, n=HIGH + 1)) == [
            said("i2", 102, Pressure(1, True, 16)),
            said("i3", 103, Pressure(1, True, 16)),
            said("i5", 105, Pressure(1, True, 16)),
        ]
        manager.gets(22, 3, words(dest=7, n=HIGH))
        assert manager.gets(22, 4, words(dest=7, n=HIGH + 1)) == [
            said("i1", 101, Pressure(7, True, 16)),
            said("i2", 102, Pressure(7, True, 16)),
            said("i3", 103, Pressure(7, True, 16)),
        ]


def home() -> Manager:
    """Worker 0 of two: count (i1, task 1) and words (i3, task 3, 33 in); s1 (77 in) has task 2."""
    manager = Manager(TWO_WORKERS)
    assert manager.link("i1", 11, 101) == []
    assert manager.link("i3", 33, 102) == [
        said("i3", 102, Pressure(1, False, 16)),
        said("i3", 102, Pressure(2, True, START_FRAME_ROWS)),
    ]
    assert manager.link("s1", 77, 103) == [said("i3", 102, Grant(2, START_ROWS, START_FRAME_ROWS))]
    return manager


class TestTwoWorkers:
    def test_frames_wait_for_a_link_in_order(self) -> None:
        manager = Manager(TWO_WORKERS)
        manager.link("i3", 33, 101)
        assert manager.gets(33, 1, words(2, 3, n=1)) == []
        manager.connect("s1")
        assert manager.gets(33, 2, words(2, 3, n=2), End(3, 2, 1)) == []
        assert manager.hears(77, hello("s1")) == [said("s1", 102, Welcome(77))]
        assert manager.hears(77, Welcome(102)) == [
            data("s1", 102, 1, words(2, 3, n=1)),
            data("s1", 102, 2, words(2, 3, n=2)),
            data("s1", 102, 3, End(3, 2, 1)),
            said("i3", 101, Grant(2, START_ROWS, START_FRAME_ROWS)),
        ]
        assert manager.gets(33, 3, words(2, 3)) == [data("s1", 102, 4, words(2, 3))]

    def test_frames_between_workers_have_no_window(self) -> None:
        manager = home()
        for n in range(1, 20):
            sent = manager.gets(33, n, words(2, 3, n=HIGH))
            assert sent == [data("s1", 103, n, words(2, 3, n=HIGH))]

    def test_our_pressure_is_told_to_the_workers_that_send(self) -> None:
        away = Manager(TWO_WORKERS, worker=1)
        away.link("i2", 22, 101)
        assert away.link("s0", 66, 102) == [said("s0", 102, Pressure(2, False, 16))]
        away.gets(66, 1, words(2, 3, n=HIGH))
        assert away.gets(66, 2, words(2, 3, n=HIGH + 1)) == [said("s0", 102, Pressure(2, True, 16))]
        away.now = 0.1
        assert away.hears(22, Credit(2, HIGH, frame_size(words(2, 3, n=HIGH)))) == [
            data("i2", 101, 2, words(2, 3, n=HIGH + 1)),
            said("s0", 102, Pressure(2, False, 80)),
        ]

    def test_our_pressure_is_not_told_to_the_others(self) -> None:
        manager = home()
        manager.gets(33, 1, words(1, 3, n=HIGH))
        assert manager.gets(33, 2, words(1, 3, n=HIGH + 1)) == [
            said("i3", 102, Pressure(1, True, 16))
        ]

    def test_theirs_is_relayed_to_our_senders_only_and_once(self) -> None:
        manager = home()
        assert manager.hears(77, Pressure(2, True, 16)) == [said("i3", 102, Pressure(2, True, 16))]
        assert manager.hears(77, Pressure(2, True, 8)) == []
        assert manager.hears(77, Pressure(2, False, 8)) == [said("i3", 102, Pressure(2, False, 8))]
        assert manager.hears(77, Pressure(2, False, 8)) == []

    def test_theirs_is_not_told_to_other_workers(self) -> None:
        #: count is tasks 1 and 2, words tasks 3 and 4, each with one on each worker
        plan = plan_of(spout("words", "word", tasks=2), bolt("count", "words", tasks=2), workers=2)
        manager = Manager(plan)
        manager.link("i3", 33, 101)
        manager.link("s1", 77, 102)
        assert manager.hears(77, Pressure(2, True, 16)) == [said("i3", 101, Pressure(2, True, 16))]
        manager.gets(33, 1, words(1, 3, n=HIGH))  # i1 is not there: ours is told to both
        assert manager.gets(33, 2, words(1, 3)) == [
            said("i3", 101, Pressure(1, True, 16)),
            said("s1", 102, Pressure(1, True, 16)),
        ]

    @pytest.mark.parametrize(
        ("session", "task"), [(77, 1), (77, 3), (77, 99), (11, 2), (11, 1), (33, 2), (99, 2)]
    )
    def test_nobody_speaks_for_a_task_of_another(self, session: int, task: int) -> None:
        manager = home()
        assert manager.hears(session, Pressure(task, True, 16)) == []
        assert manager.gets(33, 1, words(2, 3)) == [data("s1", 103, 1, words(2, 3))]

    def test_theirs_dies_with_their_session(self) -> None:
        manager = home()
        manager.hears(77, Pressure(2, True, 16))
        # Their link broke. If the pressure was off before the new one was up, they do not say so.
        assert manager.hears(78, hello("s1")) == [
            said("s1", 103, Welcome(78)),
            said("i3", 102, Grant(2, START_ROWS, START_FRAME_ROWS)),
        ]
        assert manager.hears(78, hello("s1")) == [said("s1", 103, Welcome(78))]
        assert manager.hears(78, Pressure(2, True, 16)) == [said("i3", 102, Pressure(2, True, 16))]

    def test_a_dead_worker(self) -> None:
        manager = home()
        assert manager.disconnect("s1") == [
            said("i3", 102, FailPending()),
            said("i3", 102, Pressure(2, True, START_FRAME_ROWS)),
        ]
        assert manager.gets(33, 1, words(2, 3)) == []
        assert manager.connect("s1") == [said("s1", 104, ours())]
        manager.hears(78, hello("s1", 1))
        assert manager.hears(78, Welcome(104)) == [
            data("s1", 104, 1, words(2, 3)),
            said("i3", 102, Grant(2, START_ROWS, START_FRAME_ROWS)),
        ]

    def test_a_dead_worker_that_was_pressured_comes_back_unknown(self) -> None:
        manager = home()
        manager.hears(77, Pressure(2, True, 16))
        assert manager.disconnect("s1") == [said("i3", 102, FailPending())]
        manager.connect("s1")
        manager.hears(78, hello("s1"))
        assert manager.hears(78, Welcome(104)) == [
            said("i3", 102, Grant(2, START_ROWS, START_FRAME_ROWS))
        ]

    def test_the_late_news_of_a_death_does_not_end_the_successor(self) -> None:
        manager = home()
        manager.disconnect("s1", gone=1)
        manager.connect("s1")
        manager.hears(78, hello("s1", incarnation=2))
        manager.hears(78, Welcome(104))
        manager.hears(78, Pressure(2, True, 16))
        assert manager.disconnect("s1", gone=1) == [said("i3", 102, FailPending())]
        manager.connect("s1")
        assert manager.hears(78, Welcome(105)) == []  # it is pressured still
        assert manager.hears(78, Pressure(2, False, 16)) == [
            said("i3", 102, Pressure(2, False, 16))
        ]

    def test_a_broken_link_holds_frames_and_senders(self) -> None:
        manager = home()
        assert manager.hears(77, LinkBroken(103)) == [
            said("s1", 104, ours()),
            said("s1", 104, Welcome(77)),
            said("i3", 102, FailPending()),
        ]
        assert manager.gets(33, 1, words(2, 3)) == [
            said("i3", 102, Pressure(2, True, START_FRAME_ROWS))
        ]
        assert manager.gets(33, 2, words(2, 3, n=2)) == []
        assert manager.hears(77, Welcome(104)) == [
            data("s1", 104, 1, words(2, 3)),
            data("s1", 104, 2, words(2, 3, n=2)),
            said("i3", 102, Grant(2, START_ROWS, START_FRAME_ROWS)),
        ]

    def test_a_socket_that_is_full(self) -> None:
        manager = home()
        assert manager.egress("s1", congested=True) == [
            said("i3", 102, Pressure(2, True, START_FRAME_ROWS))
        ]
        assert manager.egress("s1", congested=True) == []
        assert manager.hears(77, Pressure(2, True, 16)) == []  # they knew
        assert manager.egress("s1", congested=False) == []  # there is another cause
        assert manager.hears(77, Pressure(2, False, 16)) == [
            said("i3", 102, Pressure(2, False, 16))
        ]
        assert manager.egress("i1", congested=True) == []

    def test_congestion_ends_with_the_peer(self) -> None:
        manager = home()
        manager.egress("s1", congested=True)
        manager.disconnect("s1")
        assert manager.link("s1", 78, 104) == [
            said("i3", 102, Grant(2, START_ROWS, START_FRAME_ROWS))
        ]


LIMITED = dataclasses.replace(LIMITS, free_rows=100)


def limited() -> Manager:
    """One worker whose task 1 has to show first how fast it is; sessions as `linked`."""
    manager = Manager(ONE_WORKER, limits=LIMITED)
    assert manager.link("i1", 11, 101) == []
    assert manager.link("i2", 22, 102) == []  # a session begins with a grant that nobody says
    return manager


def finish(manager: Manager, *frames: int) -> list[object]:
    """Task 1 finishes the frames of so many rows, of all since its session began."""
    size = sum(frame_size(words(n=n)) for n in frames)
    return list(manager.hears(11, Credit(1, sum(frames), size)))


def slowed_down() -> Manager:
    """Task 1 has shown that it is fast, and was sent two more frames of 60 rows without a limit."""
    manager = limited()
    for n in range(1, 6):
        manager.gets(22, n, words(n=60))
        manager.now = n / 1000
        finish(manager, *[60] * n)
    for n in (6, 7):
        assert manager.gets(22, n, words(n=60)) == [data("i1", 101, n, words(n=60))]
    return manager


class TestGrants:
    def test_a_new_one_follows_what_was_finished_and_at_last_the_limit_is_lifted(self) -> None:
        manager = limited()
        frames: list[int] = []
        for n, rows in enumerate((2, 4, 8, 16, 32), 1):
            frame_rows = 250 if n == 1 else 256  # a quarter of what it finishes in half a second
            manager.gets(22, n, words(n=rows))
            frames.append(rows)
            manager.now = n / 1000
            assert finish(manager, *frames) == [said("i2", 102, Grant(1, 2 * rows, frame_rows))]
        manager.gets(22, 6, words(n=64))
        manager.now = 0.006
        assert finish(manager, *frames, 64) == [said("i2", 102, Pressure(1, False, 256))]
        assert manager.gets(22, 7, words(n=9)) == [data("i1", 101, 7, words(n=9))]

    def test_what_is_left_of_the_room_is_granted_at_once(self) -> None:
        manager = limited()
        assert manager.gets(22, 1, words(n=1)) == [
            data("i1", 101, 1, words(n=1)),
            said("i2", 102, Grant(1, 1, START_FRAME_ROWS)),
        ]

    def test_who_has_used_nothing_is_granted_nothing_new(self) -> None:
        manager = limited()
        manager.gets(22, 1, words(n=2))
        manager.now = 0.001
        finish(manager, 2)
        assert manager.gets(22, 2, End(2, 1, 1)) == [data("i1", 101, 2, End(2, 1, 1))]

    def test_a_slow_task_is_granted_one_by_one(self) -> None:
        manager = limited()
        manager.gets(22, 1, words(n=2))
        manager.now = 2.0  # two rows a second: a window of one
        assert finish(manager, 2) == [said("i2", 102, Grant(1, 1, 1))]
        manager.gets(22, 2, words(n=1))
        manager.now = 2.5
        assert finish(manager, 2, 1) == [said("i2", 102, Grant(1, 1, 1))]

    def test_a_task_that_slows_down_stops_its_senders_until_there_is_room(self) -> None:
        manager = slowed_down()
        manager.now = 6.0
        assert finish(manager, *[60] * 6) == [said("i2", 102, Pressure(1, True, 7))]
        manager.now = 12.0
        assert finish(manager, *[60] * 7) == [said("i2", 102, Grant(1, 6, 1))]

    def test_a_restarted_sender_begins_anew(self) -> None:
        manager = limited()
        manager.gets(22, 1, words(n=2))
        manager.disconnect("i2", gone=1)
        manager.connect("i2")
        manager.hears(23, hello("i2", 2))
        assert manager.hears(23, Welcome(103)) == []
        manager.now = 0.001
        assert finish(manager, 2) == []  # it has used nothing yet
        assert manager.gets(23, 1, words(n=2)) == [
            data("i1", 101, 2, words(n=2)),
            said("i2", 103, Grant(1, 2, 250)),
        ]

    def test_a_grant_that_was_used_for_what_is_lost_is_renewed(self) -> None:
        manager = limited()
        assert manager.gets(22, 2) == [said("i2", 102, LinkBroken(22))]
        assert manager.hears(23, hello("i2")) == [
            said("i2", 102, Welcome(23)),
            said("i2", 102, Grant(1, 2, START_FRAME_ROWS)),
        ]

    def test_so_it_is_if_the_news_of_an_older_death_comes_in_between(self) -> None:
        manager = limited()
        assert manager.gets(22, 2) == [said("i2", 102, LinkBroken(22))]
        manager.disconnect("i2", gone=0)
        manager.connect("i2")
        manager.hears(23, hello("i2"))
        assert manager.hears(23, Welcome(103)) == [said("i2", 103, Grant(1, 2, START_FRAME_ROWS))]

    def test_a_sender_whose_link_is_not_open_yet_hears_of_it_then(self) -> None:
        manager = Manager(TWO_WORKERS, limits=LIMITED)
        manager.link("s1", 55, 101)
        manager.connect("i3")
        manager.hears(33, hello("i3"))
        manager.gets(33, 2, words(2, 3, n=2))  # its grant for task 2 went into number 1
        manager.hears(33, Welcome(102))  # too late
        manager.hears(34, hello("i3"))
        assert manager.hears(34, Welcome(102))[-1] == said(
            "i3", 102, Grant(2, START_ROWS, START_FRAME_ROWS)
        )

    def test_so_does_one_that_welcomed_an_older_session_first(self) -> None:
        """The late news of a death has closed that one; s0 goes on sending in its own session."""
        manager = Manager(TWO_WORKERS, worker=1, limits=LIMITED)
        manager.link("i2", 22, 101)
        manager.connect("s0")
        manager.hears(66, hello("s0"))
        manager.disconnect("s0", gone=0)
        manager.connect("s0")
        manager.gets(66, 1, words(2, 3, n=2))
        manager.now = 0.001
        assert manager.hears(22, Credit(2, 2, frame_size(words(2, 3, n=2)))) == []
        assert manager.hears(66, Welcome(102)) == [
            said("s0", 103, ours(worker=1)),
            said("s0", 103, Welcome(66)),
        ]
        assert manager.hears(66, Welcome(103)) == [said("s0", 103, Grant(2, 4, 250))]

    def test_who_welcomes_an_older_session_is_told_all_that_holds(self) -> None:
        """It may have refused what was said, or not: it is granted whatever it has left."""
        manager = limited()
        greeting = [said("i2", 102, ours()), said("i2", 102, Welcome(22))]
        assert manager.hears(22, Welcome(99)) == [
            *greeting,
            said("i2", 102, Grant(1, START_ROWS, START_FRAME_ROWS)),
        ]
        manager.gets(22, 1, words(n=2))  # no room is left, and so nothing to say
        assert manager.hears(22, Welcome(99)) == greeting
        manager.now = 0.001
        assert finish(manager, 2) == [said("i2", 102, Grant(1, 4, 250))]

    def test_who_waits_when_it_welcomes_an_older_session_hears_of_the_next_room(self) -> None:
        manager = slowed_down()
        manager.now = 6.0
        assert finish(manager, *[60] * 6) == [said("i2", 102, Pressure(1, True, 7))]
        manager.hears(22, Welcome(99))
        manager.now = 12.0
        assert finish(manager, *[60] * 7) == [said("i2", 102, Grant(1, 6, 1))]

    def test_what_a_sender_used_while_there_was_no_limit_counts_when_there_is_one(self) -> None:
        """Its session is new: it has a grant, and has not heard that it needs none."""
        manager = slowed_down()
        manager.disconnect("i2", gone=0)
        manager.connect("i2")
        manager.gets(22, 8, words(n=2))
        manager.now = 6.0
        finish(manager, *[60] * 6)
        manager.now = 12.0
        assert finish(manager, *[60] * 7, 2) == []
        assert manager.hears(22, Welcome(103)) == [said("i2", 103, Grant(1, 6, 1))]

    def test_so_it_does_if_the_task_is_of_another_worker(self) -> None:
        manager = home()
        manager.hears(77, Pressure(2, False, 256))
        manager.hears(33, LinkBroken(102))
        manager.gets(33, 1, words(2, 3, n=2))
        assert manager.hears(77, Grant(2, 9, 5)) == []
        assert said("i3", 104, Grant(2, 9, 5)) in manager.hears(33, Welcome(104))

    def test_so_it_does_if_the_limit_comes_with_a_new_session_of_that_worker(self) -> None:
        manager = home()
        manager.hears(77, Pressure(2, False, 256))
        manager.hears(33, LinkBroken(102))
        manager.gets(33, 1, words(2, 3, n=2))
        assert manager.hears(78, hello("s1")) == [said("s1", 103, Welcome(78))]
        assert manager.hears(33, Welcome(104))[-1] == said(
            "i3", 104, Grant(2, START_ROWS, START_FRAME_ROWS)
        )

    def test_a_grant_used_for_what_a_closed_link_held_is_renewed(self) -> None:
        """The host has not died, so nothing that it said is void."""
        manager = Manager(TWO_WORKERS)
        manager.link("s1", 77, 101)
        manager.connect("i3")
        manager.hears(33, hello("i3"))
        assert manager.gets(33, 1, words(2, 3, n=2)) == [data("s1", 101, 1, words(2, 3, n=2))]
        manager.disconnect("s1", gone=0)
        manager.connect("s1")
        assert manager.hears(77, Welcome(103)) == []
        assert manager.hears(33, Welcome(102))[-1] == said(
            "i3", 102, Grant(2, START_ROWS, START_FRAME_ROWS)
        )

    def test_a_worker_that_hosts_no_consumer_passes_grants_on(self) -> None:
        manager = home()
        assert manager.hears(77, Grant(2, 9, 5)) == []  # i3 has not used its first one
        manager.gets(33, 1, words(2, 3, n=2))
        assert manager.hears(77, Grant(2, 9, 5)) == [said("i3", 102, Grant(2, 9, 5))]
        assert manager.hears(77, Grant(2, 9, 5)) == []
        assert manager.hears(77, Pressure(2, False, 256)) == [
            said("i3", 102, Pressure(2, False, 256))
        ]

    def test_the_last_grant_holds_again_when_congestion_ends(self) -> None:
        manager = home()
        manager.gets(33, 1, words(2, 3, n=2))
        manager.hears(77, Grant(2, 9, 5))
        assert manager.egress("s1", congested=True) == [said("i3", 102, Pressure(2, True, 5))]
        assert manager.egress("s1", congested=False) == [said("i3", 102, Grant(2, 9, 5))]

    def test_who_never_sends_to_a_task_has_no_share_of_its_room(self) -> None:
        """Words of worker 1, task 4 of i4, stay there: local or shuffle, and a count is there."""
        plan = plan_of(
            spout("words", "word", tasks=2),
            bolt("count", {"words": LOCAL}, tasks=2),
            workers=2,
        )
        manager = Manager(plan, limits=LIMITED)
        manager.link("i1", 11, 101)
        manager.link("i3", 33, 102)
        manager.link("s1", 77, 103)
        manager.gets(33, 1, words(src=3, n=2))
        manager.now = 0.001
        assert finish(manager, 2) == [said("i3", 102, Grant(1, 4, 250))]

    def test_where_nobody_is_near_all_share_the_room(self) -> None:
        """Local or shuffle again: i2 with words is on worker 1, where no count is."""
        plan = plan_of(spout("words", "word", tasks=2), bolt("count", {"words": LOCAL}), workers=2)
        manager = Manager(plan, limits=LIMITED)
        manager.link("i1", 11, 101)
        manager.link("i3", 33, 102)
        manager.link("s1", 77, 103)
        manager.gets(33, 1, words(src=3, n=2))
        manager.gets(77, 1, words(src=2, n=2))
        manager.now = 0.001
        assert finish(manager, 2, 2) == [
            said("s1", 103, Grant(1, 3, 256)),
            said("i3", 102, Grant(1, 3, 256)),
        ]

    def test_all_senders_share_the_room(self) -> None:
        #: count is task 1, words are tasks 2 to 5 on four executors
        manager = Manager(
            plan_of(spout("words", "word", tasks=4), bolt("count", "words")), limits=LIMITED
        )
        for executor in range(1, 6):
            manager.link(f"i{executor}", executor * 11, 100 + executor)
        manager.gets(22, 1, words(src=2, n=2))
        manager.gets(33, 1, words(src=3, n=2))
        manager.now = 0.001
        assert finish(manager, 2, 2) == [
            said("i2", 102, Grant(1, 1, 256)),
            said("i3", 103, Grant(1, 1, 256)),
        ]
