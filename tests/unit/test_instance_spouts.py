"""InstanceCore of a spout: when next_tuple is called, what leaves when, and how the input ends."""

from __future__ import annotations

from typing import Any

import pytest

from storm_py import EmitError
from storm_py.engine.links import BEAT_SECS, QUIET_BEAT_SECS
from storm_py.engine.tasks import UserError
from storm_py.errors import ProtocolError
from storm_py.wire.control import FailPending, LinkBroken, Pressure, Welcome
from tests.builders import (
    Data,
    End,
    FakeClock,
    bolt,
    data_message,
    hello,
    plan_of,
    rows,
    spout,
)
from tests.instance import Act, Instance, ScriptedSpout, nothing

#: count is task 1 (i1), words task 2 (i2)
PLAN = plan_of(spout("words", "word"), bolt("count", "words"))
UNTRACKED = plan_of(spout("words", "word"), bolt("count", "words"), topology_acker_executors=0)
#: count is task 1 (i1), words tasks 2 and 3, both in i2
PAIR = plan_of(spout("words", "word", tasks=2, executors=1), bolt("count", "words"))


def emit_count(spout: Any) -> None:
    spout.collector.emit([spout.count])


def emits(n: int) -> Act:
    """Emit 1 to n, one per call, then end the input."""

    def act(spout: Any) -> None:
        if spout.count <= n:
            spout.collector.emit([spout.count])
        else:
            spout.collector.end_of_input()

    return act


def words(
    act: Act = emit_count, clock: FakeClock | None = None, plan: Any = PLAN, on_open: Act = nothing
) -> Instance:
    return Instance(plan, 2, lambda log: ScriptedSpout(log, act, on_open), clock).open()


def sent_rows(messages: list[Any]) -> list[object]:
    return [row[0] for m in messages for f in m.frames for _, run in f.runs for row in run]


class TestLife:
    def test_calls_in_order(self) -> None:
        instance = Instance(PLAN, 2, ScriptedSpout)
        instance.core.open()
        instance.core.activate()
        instance.core.deactivate()
        instance.core.close()
        assert instance.done() == [
            *(("open", 2), ("activate", 2)),
            *(("deactivate", 2), ("close", 2)),
        ]

    def test_a_hook_that_raises_ends_it_but_for_close(self) -> None:
        def fail(spout: object) -> None:
            raise OSError("no such file")

        instance = Instance(PLAN, 2, lambda log: ScriptedSpout(log, on_open=fail))
        with pytest.raises(UserError, match=r"words \(task 2\), open: OSError: no such file"):
            instance.core.open()
        instance.only.close = lambda: fail(None)
        instance.core.close()
        (report,) = instance.port.reports
        assert (report.where, report.fatal) == ("close", False)

    def test_input_is_refused(self) -> None:
        with pytest.raises(ProtocolError, match="frame for task 2, which takes no input here"):
            words().core.on_data(data_message(11, 1, rows(1, 2, ["x"])))


class TestSpinning:
    def test_what_is_emitted_leaves_when_the_spout_idles(self) -> None:
        instance = words(lambda spout: emit_count(spout) if spout.count % 3 else None)
        assert instance.core.spouting
        assert instance.spins() == []  # one call at first: the slice is found by doubling
        assert instance.spins() == []  # two calls; the second was idle
        assert instance.spins() == []
        assert instance.core.statistics().emitted == 4
        assert instance.flushes() == [Data(501, 1, [rows(2, 1, [1], [2], [4], [5])])]

    def test_an_idle_round_flushes(self) -> None:
        instance = words(lambda spout: emit_count(spout) if spout.count < 2 else None)
        assert instance.spins() == []
        assert instance.spins() == [Data(501, 1, [rows(2, 1, [1])])]
        assert instance.spins() == []

    def test_a_busy_spout_flushes_in_time(self) -> None:
        clock = FakeClock()

        def act(spout: Any) -> None:
            clock.now += 0.0004
            emit_count(spout)

        instance = words(act, clock)
        flushed_at = 0.0
        for _ in range(50):
            if instance.spins():
                assert clock.now - flushed_at <= 0.002 + 2 * 0.001 + 0.0004
                flushed_at = clock.now
        assert flushed_at > 0.01

    @pytest.mark.parametrize("secs", [1e-6, 1e-4, 0.05])
    def test_a_round_takes_a_slice_of_time(self, secs: float) -> None:
        clock = FakeClock()

        def act(spout: Any) -> None:
            clock.now += secs
            emit_count(spout)

        instance = words(act, clock)
        for _ in range(30):
            before = clock.now
            instance.spins()
            assert clock.now - before <= max(2 * 0.001, secs) * 1.01

    def test_not_while_inactive(self) -> None:
        instance = words()
        instance.core.deactivate()
        assert (instance.core.spouting, instance.spins(), instance.only.count) == (False, [], 0)
        instance.core.activate()
        instance.spins()
        assert instance.only.count == 1

    def test_not_under_pressure_nor_without_a_link(self) -> None:
        instance = words()
        instance.hears(11, Pressure(1, True, 64))
        assert (instance.core.spouting, instance.spins(), instance.only.count) == (False, [], 0)
        instance.hears(11, Pressure(1, False, 64))
        instance.hears(11, LinkBroken(501))
        assert (instance.core.spouting, instance.spins(), instance.only.count) == (False, [], 0)
        instance.hears(11, Welcome(502))
        instance.spins()
        assert instance.only.count == 1

    def test_messages_that_nobody_tracks_are_acked_at_once(self) -> None:
        def act(spout: Any) -> None:
            spout.collector.emit([1], msg_id="a")
            spout.collector.emit([1], msg_id=0)
            spout.collector.emit([1])

        instance = words(act, plan=UNTRACKED)
        instance.spins()
        assert instance.done() == [("ack", "a"), ("ack", 0)]

    def test_answers_come_behind_next_tuple_and_not_during_it(self) -> None:
        def act(spout: Any) -> None:
            spout.collector.emit([1], msg_id=spout.count)
            spout.recorder.add("emitted", spout.count)

        instance = words(act, plan=UNTRACKED)
        instance.spins()
        assert instance.done()[:2] == [("emitted", 1), ("ack", 1)]

    def test_a_spout_that_raises(self) -> None:
        def act(spout: Any) -> None:
            emit_count(spout)
            if spout.count == 3:
                raise ValueError("broken line")

        instance = words(act)
        instance.spins()
        with pytest.raises(UserError, match=r"words \(task 2\), next_tuple: ValueError: broken"):
            instance.core.spin()
        assert sent_rows(instance.flushes()) == [1, 2, 3]

    def test_both_tasks_of_an_executor_have_their_turns(self) -> None:
        instance = words(plan=PAIR)
        for _ in range(3):
            instance.spins()
        first, second = instance.components.values()
        assert [getattr(first, "count", 0), getattr(second, "count", 0)] == [7, 7]


class TestTheEnd:
    def test_of_the_input(self) -> None:
        instance = words(emits(2))
        assert instance.spins() == []
        assert instance.spins() == [
            Data(501, 1, [rows(2, 1, [1], [2])]),
            Data(501, 2, [End(2, 1, wave=1)]),
        ]
        assert instance.port.ends == [(1, False)]
        assert (instance.core.spouting, instance.spins(), instance.only.count) == (False, [], 3)

    def test_a_second_time_is_an_error(self) -> None:
        instance = words(lambda spout: [spout.collector.end_of_input() for _ in range(2)])
        with pytest.raises(UserError, match=r"spout 'words' calls end_of_input\(\) a second time"):
            instance.core.spin()

    def test_nothing_may_be_emitted_after_it(self) -> None:
        def act(spout: Any) -> None:
            spout.collector.end_of_input()
            emit_count(spout)

        instance = words(act)
        with pytest.raises(UserError) as caught:
            instance.core.spin()
        assert isinstance(caught.value.error, EmitError)

    @pytest.mark.parametrize("where", ["open", "activate", "ack"])
    def test_it_may_be_called_in_any_hook(self, where: str) -> None:
        def end(spout: Any) -> None:
            spout.collector.end_of_input()

        def prepare(spout: Any) -> None:
            if where == "activate":
                spout.activate = lambda: end(spout)
            if where == "ack":
                spout.ack = lambda msg_id: end(spout)

        def act(spout: Any) -> None:
            spout.collector.emit([1], 1)

        instance = words(act, plan=UNTRACKED, on_open=end if where == "open" else prepare)
        sent = instance.spins() + instance.spins()
        assert sent[-1] == Data(501, len(sent), [End(2, 1, wave=1)])
        assert instance.port.ends == [(1, False)]
        assert len(sent) == (2 if where == "ack" else 1)

    def test_every_task_must_end(self) -> None:
        instance = words(lambda spout: emits(spout.context.this_task_id)(spout), plan=PAIR)
        for _ in range(3):
            assert instance.port.ends == []
            instance.spins()
        assert instance.port.ends == [(1, False)]

    def test_a_new_wave_is_sent_by_spouts_that_have_ended(self) -> None:
        instance = words(emits(0))
        assert instance.on_wave(2) == []
        assert instance.spins() == [Data(501, 1, [End(2, 1, wave=2)])]
        assert instance.on_wave(3) == [Data(501, 2, [End(2, 1, wave=3)])]
        assert instance.on_wave(3) == instance.on_wave(2) == []
        assert instance.port.ends == [(2, False), (3, False)]

    def test_a_drain_ends_it_where_it_is(self) -> None:
        instance = words()
        instance.spins()
        assert instance.on_wave(1, drain=True) == [
            Data(501, 1, [rows(2, 1, [1])]),
            Data(501, 2, [End(2, 1, wave=1)]),
        ]
        assert (instance.core.spouting, instance.port.ends) == (False, [(1, False)])

    def test_a_drain_under_pressure_or_while_inactive(self) -> None:
        instance = words()
        instance.core.deactivate()
        instance.hears(11, Pressure(1, True, 1))
        assert instance.on_wave(2, drain=True) == [Data(501, 1, [End(2, 1, wave=2)])]

    def test_the_end_is_told_to_a_new_stream_manager_by_a_new_wave(self) -> None:
        instance = words(emits(0))
        instance.spins()
        instance.disconnect()
        assert instance.on_wave(2) == []
        instance.connect()
        instance.hears(12, hello("s0", incarnation=2))
        assert instance.hears(12, Welcome(502)) == [Data(502, 1, [End(2, 1, wave=2)])]


class TestBeats:
    def test_the_other_end_notices_losses_although_nothing_is_sent(self) -> None:
        instance = words()
        instance.core.deactivate()
        now = instance.clock.now
        assert instance.ticks(now) == []
        assert instance.ticks(now + BEAT_SECS * 0.9) == []
        assert instance.ticks(now + BEAT_SECS * 1.1) == [Data(501, 1, [])]
        assert instance.ticks(now + BEAT_SECS * 1.2) == []
        instance.hears(11, LinkBroken(501))
        assert instance.ticks(now + BEAT_SECS * 3) == []  # there is no open link
        instance.hears(11, Welcome(502))
        assert instance.ticks(now + BEAT_SECS * 5) == [Data(502, 1, [])]

    def test_a_driver_that_sleeps_wakes_for_them_soon_behind_data_and_rarely_in_silence(
        self,
    ) -> None:
        instance = words(lambda spout: spout.collector.emit([spout.count]))
        instance.disconnect()
        assert instance.core.next_timeout() is None
        instance.connect()
        instance.hears(12, hello("s0"))
        instance.hears(12, Welcome(502))
        instance.may_send(12)
        clock = instance.clock
        apart = []
        for _ in range(6):
            due = instance.core.next_timeout()
            assert due is not None
            apart.append(due - clock.now)
            assert instance.ticks(due - 0.001) == []
            clock.now = due
            assert len(instance.ticks(due)) == 1
        assert apart == [BEAT_SECS, BEAT_SECS, 4.0, 8.0, QUIET_BEAT_SECS, QUIET_BEAT_SECS]
        clock.now += 1.0
        assert instance.spins()
        assert instance.core.next_timeout() == clock.now + BEAT_SECS

    def test_answers_that_were_lost_on_the_way_here_fail(self) -> None:
        def act(spout: Any) -> None:
            spout.collector.emit([1], msg_id=spout.count)

        instance = words(act)
        instance.spins()
        assert instance.hears(12, hello("s0"))  # it begins a new session
        instance.core.tick(0.0)
        assert instance.done() == [("fail", 1)]

    @pytest.mark.parametrize("record", [LinkBroken(501), FailPending()])
    def test_what_was_emitted_before_a_loss_fails(self, record: LinkBroken | FailPending) -> None:
        def act(spout: Any) -> None:
            spout.collector.emit([1], msg_id=spout.count)

        instance = words(act)
        instance.spins()
        instance.hears(11, record)
        instance.core.tick(0.0)
        assert instance.done() == [("fail", 1)]
