"""What an instance holds back for a moment: small frames where it lingers, credits for few rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from storm_py.core.pressure import PROVEN_ROWS, START_FRAME_ROWS
from storm_py.engine.outflow import WORTH_ROWS
from storm_py.engine.settings import CREDIT_SECS
from storm_py.wire.control import Credit, LinkBroken, Pressure, Welcome
from tests.builders import Data, End, FakeClock, Said, bolt, frame_size, hello, plan_of, rows, spout
from tests.counter import PAIR, counter, emit, said, word
from tests.instance import Instance, ScriptedBolt, ScriptedSpout, nothing

LINGER = 0.2


def lingering(act: Any = nothing) -> Instance:
    instance = counter(act, clock=FakeClock())
    instance.core.linger(LINGER)
    instance.flushes()
    return instance


def works(instance: Instance, seq: int, *values: str) -> int:
    frame = word(*values)
    instance.gets(11, seq, frame)
    assert instance.works() == []
    return frame_size(frame)


def test_a_small_frame_and_its_credit_wait_for_the_time_since_the_last_flush() -> None:
    instance = lingering(emit)
    size = works(instance, 1, "a")
    assert instance.idles() == []
    due = instance.clock.now + LINGER
    assert instance.core.next_timeout() == due
    instance.clock.now += LINGER * 0.9
    assert instance.idles() == []
    assert instance.core.next_timeout() == due
    instance.clock.now = due
    assert instance.idles() == [
        Data(501, 1, [rows(3, 5, ["a", 1])]),
        said(501, Credit(3, 1, size, 1)),
    ]


def test_a_tick_sends_what_is_due() -> None:
    instance = lingering(emit)
    works(instance, 1, "a")
    instance.idles()
    due = instance.core.next_timeout()
    assert due is not None
    instance.clock.now = due
    data, credit = (sent for sent in instance.ticks(due) if sent != Data(501, 1, []))
    assert isinstance(data, Data)
    assert data.frames == [rows(3, 5, ["a", 1])]
    assert isinstance(credit, Said)
    assert isinstance(credit.record, Credit)
    assert instance.idles() == []
    assert instance.core.next_timeout() != due


def test_after_a_silence_nothing_waits() -> None:
    instance = lingering(emit)
    instance.clock.now += LINGER
    instance.gets(11, 1, word("a"))
    assert [*instance.works(), *instance.idles()] != []


def test_large_frames_do_not_wait() -> None:
    instance = lingering(emit)
    works(instance, 1, *["a"] * (2 * WORTH_ROWS - 1))  # for two tasks
    assert instance.idles() == []
    works(instance, 2, "a")
    assert instance.idles() != []


def test_an_instance_with_nothing_to_send_does_not_wake_for_it() -> None:
    instance = lingering()
    before = instance.core.next_timeout()
    assert instance.idles() == []
    assert instance.core.next_timeout() == before


def test_no_linger_time_is_as_before() -> None:
    instance = lingering(emit)
    instance.core.linger(0.0)
    works(instance, 1, "a")
    assert len(instance.idles()) == 2


def test_a_spout_holds_back_what_it_emits_when_it_has_no_more() -> None:
    plan = plan_of(spout("words", "word"), bolt("count", "words"))
    texts = ["a"]
    say = lambda spout: [spout.collector.emit([texts.pop()]) for _ in texts[:1]]  # noqa: E731
    instance = Instance(plan, 2, lambda log: ScriptedSpout(log, say), FakeClock()).open()
    instance.core.linger(LINGER)
    instance.flushes()
    instance.spins()
    assert texts == []
    assert instance.spins() == []
    instance.clock.now += LINGER
    assert [sent.frames for sent in instance.spins() if isinstance(sent, Data)] == [
        [rows(2, 1, ["a"])]
    ]


class TestBusyTime:
    """Credits say how long the instance had something to do, or could not go on."""

    def takes(self, secs: float, act: Any = nothing) -> Instance:
        clock = FakeClock()

        def work(bolt: Any, tup: Any) -> None:
            clock.now += secs
            act(bolt, tup)

        return counter(work, clock=clock)

    def busy_secs(self, sent: Sequence[Data | Said]) -> float:
        (credit,) = [s.record for s in sent if isinstance(s, Said)]
        assert isinstance(credit, Credit)
        return credit.busy_us / 1e6

    def test_the_time_of_its_work_not_that_of_waiting_for_input(self) -> None:
        instance = self.takes(3)
        for seq in (1, 2):
            instance.clock.now += 100
            instance.gets(11, seq, word("a"))
            sent = [*instance.works(), *instance.idles()]
            assert self.busy_secs(sent) == 3 * seq

    def test_what_waits_in_it_counts(self) -> None:
        instance = self.takes(3)
        instance.gets(11, 1, word("a"))
        instance.clock.now += 7
        assert self.busy_secs([*instance.works(), *instance.idles()]) == 10

    def test_so_does_the_time_in_which_it_could_not_go_on(self) -> None:
        instance = self.takes(3)
        instance.hears(11, Pressure(4, True, 1))
        assert instance.idles() == []
        instance.clock.now += 20
        instance.hears(11, Pressure(4, False, 1))
        instance.gets(11, 1, word("a"))
        assert self.busy_secs([*instance.works(), *instance.idles()]) == 23

    def test_a_new_session_of_the_input_begins_anew(self) -> None:
        instance = self.takes(3)
        instance.gets(11, 1, word("a"))
        instance.works()
        instance.idles()
        instance.hears(12, hello("s0"))
        instance.clock.now += 5
        instance.gets(12, 1, word("b"))
        assert self.busy_secs([*instance.works(), *instance.idles()]) == 3


class TestCreditsForFewRows:
    """They are told together, once the stream manager knows the task."""

    def known(self) -> Instance:
        instance = counter(clock=FakeClock())
        instance.gets(11, 1, word(*["a"] * PROVEN_ROWS))
        instance.works()
        assert self.told(instance.flushes()) == [PROVEN_ROWS]
        return instance

    def told(self, sent: Sequence[Data | Said]) -> list[int]:
        return [s.record.rows for s in sent if isinstance(s, Said) and isinstance(s.record, Credit)]

    def finishes(self, instance: Instance, seq: int, rows: int) -> list[int]:
        instance.gets(11, seq, word(*["a"] * rows))
        return self.told([*instance.works(), *instance.idles()])

    def test_they_wait_for_others_for_a_moment(self) -> None:
        instance = self.known()
        assert self.finishes(instance, 2, 1) == []
        due = instance.core.next_timeout()
        assert due == instance.clock.now + CREDIT_SECS
        instance.clock.now += CREDIT_SECS / 2
        assert self.finishes(instance, 3, 2) == []
        assert instance.core.next_timeout() == due
        instance.clock.now = due
        assert self.told(instance.ticks(due)) == [PROVEN_ROWS + 3]
        assert instance.core.next_timeout() != due

    def test_after_a_silence_they_do_not(self) -> None:
        instance = self.known()
        instance.clock.now += CREDIT_SECS
        assert self.finishes(instance, 2, 1) == [PROVEN_ROWS + 1]

    def test_nor_do_those_for_many(self) -> None:
        instance = self.known()
        assert self.finishes(instance, 2, START_FRAME_ROWS - 1) == []
        assert self.finishes(instance, 3, 1) == [PROVEN_ROWS + START_FRAME_ROWS]

    def test_nor_those_for_a_few_large_ones(self) -> None:
        instance = self.known()
        assert self.finishes(instance, 2, 1) == []
        instance.gets(11, 3, word("a" * (1 << 18)))  # a quarter of what may be outstanding
        assert self.told([*instance.works(), *instance.idles()]) == [PROVEN_ROWS + 2]

    def test_nor_those_of_a_task_that_is_new(self) -> None:
        instance = counter(clock=FakeClock())
        assert [self.finishes(instance, seq, 1) for seq in (1, 2, 3)] == [[1], [2], [3]]

    def test_nor_those_of_a_new_task_beside_one_that_is_known(self) -> None:
        instance = Instance(PAIR, 3, ScriptedBolt, FakeClock()).open()
        instance.gets(11, 1, word(*["a"] * PROVEN_ROWS, dest=3))
        instance.works()
        assert self.told(instance.flushes()) == [PROVEN_ROWS]
        instance.gets(11, 2, word("a", dest=4))
        assert self.told([*instance.works(), *instance.idles()]) == [1]

    def test_nor_those_for_markers_which_may_be_the_last(self) -> None:
        instance = self.known()
        assert self.finishes(instance, 2, 1) == []
        instance.gets(11, 3, End(1, 3, 1))
        assert self.told([*instance.works(), *instance.idles()]) == [PROVEN_ROWS + 1]

    def test_nor_any_when_it_ends(self) -> None:
        instance = self.known()
        assert self.finishes(instance, 2, 1) == []
        instance.core.close()
        assert self.told(instance.port.take()) == [PROVEN_ROWS + 1]

    def test_a_new_session_of_ours_hears_them_again_at_once(self) -> None:
        instance = self.known()
        assert self.finishes(instance, 2, 1) == []
        instance.hears(11, LinkBroken(501))
        instance.hears(11, Welcome(502))
        assert self.told(instance.idles()) == [PROVEN_ROWS + 1]
