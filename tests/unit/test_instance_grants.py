"""InstanceCore on grants: it sends what it may, and stops user code between two tuples."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from storm_py.core.pressure import START_FRAME_ROWS, START_ROWS
from storm_py.engine.tasks import UserError
from storm_py.wire.control import Credit, Grant, Pressure, Welcome
from tests.builders import Data, FakeClock, Rows, frame_size, hello, plan_of, rows, spout
from tests.builders import bolt as a_bolt
from tests.counter import counter, emit, said, word
from tests.instance import Act, Instance, ScriptedBasicBolt, ScriptedBolt, ScriptedSpout

PLAN = plan_of(spout("words", "word"), a_bolt("x-count", "words", "word n"), a_bolt("y", "x-count"))
#: words is task 1, x-count task 2, y task 3
LETTERS = "abcdefghij"


def limited(component: Any = lambda log: ScriptedBolt(log, emit)) -> Instance:
    """x-count, which does not spend time, in a session in which nothing has been heard yet."""
    instance = Instance(PLAN, 2, component)
    instance.core.open()
    instance.connect()
    instance.hears(11, hello("s0"))
    instance.hears(11, Welcome(501))
    instance.recorder.take()
    return instance


def executed(instance: Instance) -> str:
    return "".join(str(done[3]) for done in instance.done())


def take_in(instance: Instance, letters: str) -> list[Any]:
    """A frame of these words; what was sent while it was executed as far as it may be."""
    return [*instance.gets(11, 1, word(*letters, dest=2)), *instance.works()]


class TestABolt:
    def test_it_stops_in_the_middle_of_a_slice(self) -> None:
        instance = limited()
        instance.hears(11, Pressure(3, False, 256))
        for n in range(1, 7):  # it learns to execute many rows in one go
            instance.gets(11, n, word(*LETTERS, dest=2))
            instance.works()
            instance.flushes()
        instance.done()
        instance.hears(11, Grant(3, 3, 64))
        instance.gets(11, 7, word(*LETTERS, dest=2))
        sent = instance.works()
        assert sent == [Data(501, 7, [rows(2, 3, ["a", 1], ["b", 1], ["c", 1])])]
        assert (executed(instance), instance.core.paused) == ("abc", True)
        assert instance.core.statistics().queued == 7
        instance.hears(11, Grant(3, 2, 64))
        instance.works()
        assert executed(instance) == "de"
        instance.hears(11, Pressure(3, False, 256))
        instance.works()
        assert executed(instance) == "fghij"

    def test_a_session_begins_with_a_few_rows(self) -> None:
        instance = limited()
        take_in(instance, LETTERS)
        assert executed(instance) == LETTERS[:START_ROWS]

    def test_a_new_session_begins_with_them_again(self) -> None:
        instance = limited()
        take_in(instance, LETTERS)
        instance.hears(12, hello("s0"))
        assert not instance.core.paused
        instance.gets(12, 1, word(*LETTERS, dest=2))
        instance.works()
        assert executed(instance) == 2 * LETTERS[:START_ROWS]

    def test_a_basic_bolt_stops_as_well(self) -> None:
        instance = limited(
            lambda log: ScriptedBasicBolt(log, lambda b, tup: b.collector.emit([tup[0], 1]))
        )
        take_in(instance, LETTERS)
        assert executed(instance) == LETTERS[:START_ROWS]

    def test_an_exception_in_the_row_that_used_the_grant_up(self) -> None:
        def act(bolt: Any, tup: Any) -> None:
            emit(bolt, tup)
            if tup[0] == "b":
                raise ValueError("b")

        instance = limited(lambda log: ScriptedBolt(log, act))
        instance.gets(11, 1, word(*LETTERS, dest=2))
        for _ in range(9):
            with suppress(UserError):
                instance.works()
        assert executed(instance) == "ab"
        assert instance.core.statistics().queued == 8
        assert instance.core.statistics().executed == 2

    def test_only_a_whole_frame_is_credited(self) -> None:
        instance = limited()
        size = frame_size(word(*LETTERS, dest=2))
        take_in(instance, LETTERS)
        assert all(not hasattr(sent, "record") for sent in instance.flushes())
        instance.hears(11, Pressure(3, False, 256))
        instance.works()
        assert instance.flushes()[-1] == said(501, Credit(2, 10, size, 2))

    def test_every_consumer_counts(self) -> None:
        instance = counter(emit)  # its consumers are tasks 4 and 5, turn about
        instance.hears(11, Grant(4, 2, 64))
        instance.gets(11, 1, word(*LETTERS))
        instance.works()
        assert (len(instance.done()), instance.core.paused) == (4, True)


def emitting(rows: int) -> Act:
    """So many for each tuple."""

    def act(it: Any, tup: Any) -> None:
        for _ in range(rows):
            emit(it, tup)

    return act


def sizes(sent: list[Any]) -> list[int]:
    """The rows of each frame, in order."""
    contents = [frame for message in sent if isinstance(message, Data) for frame in message.frames]
    return [len(rows) for each in contents if isinstance(each, Rows) for _, rows in each.runs]


class TestOneCallThatEmitsMore:
    """User code is not interrupted: the rest of what it emits is over the grant, in any case."""

    def bursting(self, rows: int) -> Instance:
        return limited(lambda log: ScriptedBolt(log, emitting(rows)))

    def test_what_is_over_the_grant_leaves_in_frames_of_the_size_that_was_said(self) -> None:
        instance = self.bursting(100)
        instance.hears(11, Grant(3, 5, 40))
        assert sizes(take_in(instance, "a") + instance.flushes()) == [5, 40, 40, 15]

    def test_a_new_grant_cuts_frames_again(self) -> None:
        instance = self.bursting(100)
        instance.hears(11, Grant(3, 5, 40))
        take_in(instance, "ab")
        instance.flushes()
        instance.hears(11, Grant(3, 30, 60))
        assert sizes(instance.works() + instance.flushes()) == [30, 60, 10]

    def test_of_a_task_that_nobody_has_heard_of(self) -> None:
        sent = take_in(self.bursting(10_000), "a")
        assert sizes(sent) == [START_ROWS] + [START_FRAME_ROWS] * (10_000 // START_FRAME_ROWS - 1)

    def test_a_new_session_forgets_the_size(self) -> None:
        instance = self.bursting(2 + START_FRAME_ROWS)
        instance.hears(11, Grant(3, 5, 40))
        instance.hears(12, hello("s0"))
        instance.gets(12, 1, word("a", dest=2))
        assert sizes(instance.works()) == [START_ROWS, START_FRAME_ROWS]

    def test_who_waits_for_nobody_round_a_cycle_is_not_cut_by_a_grant(self) -> None:
        plan = plan_of(spout("a", "v"), a_bolt("b", "a c", "v n"), a_bolt("c", "b", "v"))
        instance = Instance(plan, 2, lambda log: ScriptedBolt(log, emitting(100))).open()
        instance.hears(11, Grant(3, 5, 40))
        sent = [*instance.gets(11, 1, word("a", dest=2)), *instance.works(), *instance.flushes()]
        assert sizes(sent) == [40, 40, 20]


class TestASpout:
    def test_it_stops_in_the_middle_of_a_burst(self) -> None:
        instance = Instance(
            PLAN,
            1,
            lambda log: ScriptedSpout(log, lambda spout: spout.collector.emit([spout.count])),
            FakeClock(),
        ).open()
        for _ in range(6):  # it learns to make many calls in one go
            instance.spins()
        before = instance.only.count
        instance.flushes()
        instance.hears(11, Grant(2, 5, 64))
        instance.spins()
        assert instance.only.count == before + 5
        assert (instance.core.paused, instance.core.spouting) == (True, False)
        instance.hears(11, Grant(2, 1, 64))
        instance.spins()
        assert instance.only.count == before + 6
