"""InstanceCore between its neighbours: pressure, END waves, exceptions, broken and new sessions."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py import FailedException, Tuple
from storm_py.engine.statistics import InstanceStatistics
from storm_py.engine.tasks import UserError
from storm_py.errors import ProtocolError
from storm_py.wire.control import Credit, LinkBroken, Pressure, Welcome
from tests.builders import (
    Data,
    End,
    FakeClock,
    Rows,
    bolt,
    control_message,
    data_message,
    frame_size,
    hello,
    plan_of,
    rows,
    spout,
)
from tests.counter import PAIR, counter, emit, said, word
from tests.instance import Instance, ScriptedBolt
from tests.strategies import damaged


class TestPressure:
    def test_a_pause_in_the_middle_of_a_frame(self) -> None:
        clock = FakeClock(step=0.001)  # each look takes long: one row at a time
        instance = counter(emit, clock=clock)
        instance.gets(11, 1, word("a", "b", "c"))
        instance.works()
        assert len(instance.done()) == 1
        assert instance.hears(11, Pressure(4, True, 256)) == []
        assert (instance.core.paused, instance.core.has_work) == (True, True)
        assert (instance.works(), instance.done()) == ([], [])
        assert instance.core.statistics().queued == 2
        instance.hears(11, Pressure(4, False, 256))
        while instance.core.has_work:
            instance.works()
        assert instance.done() == [(3, 1, "default", "b"), (3, 1, "default", "c")]

    def test_every_pressured_task_must_be_free_again(self) -> None:
        instance = counter()
        instance.hears(11, Pressure(4, True, 256))
        instance.hears(11, Pressure(5, True, 256))
        instance.hears(11, Pressure(4, False, 256))
        assert instance.core.paused
        instance.hears(11, Pressure(5, False, 256))
        assert not instance.core.paused

    @pytest.mark.parametrize("task", [1, 3, 77])
    def test_pressure_elsewhere_is_no_concern_of_ours(self, task: int) -> None:
        instance = counter()
        instance.hears(11, Pressure(task, True, 1))
        assert not instance.core.paused

    def test_outputs_and_credits_still_leave(self) -> None:
        instance = counter(emit)
        instance.gets(11, 1, word("a"))
        instance.works()
        instance.hears(11, Pressure(4, True, 256))
        assert len(instance.flushes()) == 2

    def test_a_bolt_does_not_wait_for_itself_round_a_cycle(self) -> None:
        plan = plan_of(spout("a", "v"), bolt("b", "a c", "v"), bolt("c", "b", "v"), bolt("d", "b"))
        instance = Instance(plan, 2, ScriptedBolt).open()
        instance.hears(11, Pressure(3, True, 256))
        assert not instance.core.paused
        instance.hears(11, Pressure(4, True, 256))
        assert instance.core.paused

    def test_it_dies_with_its_session(self) -> None:
        instance = counter()
        instance.hears(11, Pressure(4, True, 256))
        # Its link broke. If the pressure was off before the new one was up, it does not say so.
        instance.hears(12, hello("s0"))
        assert not instance.core.paused
        instance.hears(12, Pressure(4, True, 256))
        instance.hears(12, hello("s0"))  # a repeat changes nothing
        assert instance.core.paused


class TestWaves:
    def test_rows_then_the_end_then_the_end_of_ours(self) -> None:
        instance = counter(emit, on_end=lambda bolt: bolt.collector.emit(["total", 3]))
        instance.gets(11, 1, word("a"), End(1, 3, wave=1))
        instance.gets(11, 2, word("b", src=2), word("c", src=2), End(2, 3, wave=1))
        sent = instance.works()
        assert instance.done() == [
            *((3, 1, "default", "a"), (3, 2, "default", "b"), (3, 2, "default", "c")),
            (3, "end of input"),
        ]
        content = [[3, 4, ["b", 1], ["total", 3]], [3, 5, ["a", 1], ["c", 1]]]
        assert sent[0] == Data(501, 1, [rows(*each) for each in content])  # type: ignore[arg-type]
        assert sent[-2:] == [Data(501, 2, [End(3, 4, 1)]), Data(501, 3, [End(3, 5, 1)])]
        assert instance.port.ends == [(1, False)]

    def test_markers_are_credited_as_bytes(self) -> None:
        instance = counter()
        instance.gets(11, 1, End(1, 3, wave=1))
        assert instance.works() == []
        assert instance.flushes() == [said(501, Credit(3, 0, frame_size(End(1, 3, 1))))]

    def test_not_before_every_channel_has_ended(self) -> None:
        instance = counter()
        instance.gets(11, 1, End(1, 3, wave=1), End(1, 3, wave=1))
        instance.works()
        assert (instance.done(), instance.port.ends) == ([], [])

    def test_a_higher_wave_is_only_forwarded(self) -> None:
        instance = counter(on_end=lambda bolt: bolt.collector.emit(["total", 3]))
        instance.gets(11, 1, End(1, 3, wave=1), End(2, 3, wave=1))
        instance.works()
        instance.done()
        instance.gets(11, 2, End(2, 3, wave=4), End(1, 3, wave=2), End(1, 3, wave=4))
        sent = [each for each in instance.works() if isinstance(each, Data)]
        assert sent == [Data(501, 4, [End(3, 4, 4)]), Data(501, 5, [End(3, 5, 4)])]
        assert instance.done() == []
        assert instance.port.ends == [(1, False), (4, False)]

    def test_all_tasks_of_an_executor_end(self) -> None:
        instance = counter(plan=PAIR)
        instance.gets(11, 1, *(End(src, 3, wave=1) for src in (1, 2)))
        instance.works()
        assert (instance.done(), instance.port.ends) == ([(3, "end of input")], [])
        instance.gets(11, 2, *(End(src, 4, wave=1) for src in (1, 2)))
        instance.works()
        assert (instance.done(), instance.port.ends) == ([(4, "end of input")], [(1, False)])
        instance.gets(11, 3, *(End(src, 3, wave=2) for src in (1, 2)))
        instance.works()
        assert instance.port.ends == [(1, False)]  # 3 is in wave 2, 4 not yet

    @pytest.mark.parametrize(
        ("error", "message", "traceback"),
        [
            (KeyError("x"), "KeyError: 'x'", True),
            (FailedException("wrong sum"), "wrong sum", False),
        ],
    )
    def test_an_end_that_raises(self, error: Exception, message: str, traceback: bool) -> None:
        def fail(bolt: object) -> None:
            raise error

        instance = counter(on_end=fail)
        instance.gets(11, 1, End(1, 3, wave=1), End(2, 3, wave=1))
        instance.works()
        assert instance.port.ends == [(1, True)]
        (report,) = instance.port.reports
        assert (report.component, report.task, report.where) == ("x-count", 3, "end_of_input")
        assert (report.message, bool(report.traceback), report.fatal) == (message, traceback, False)

    def test_the_end_waits_under_pressure(self) -> None:
        instance = counter()
        instance.hears(11, Pressure(4, True, 256))
        instance.gets(11, 1, End(1, 3, wave=1), End(2, 3, wave=1))
        assert (instance.works(), instance.port.ends) == ([], [])
        instance.hears(11, Pressure(4, False, 256))
        instance.works()
        assert instance.port.ends == [(1, False)]


class TestExceptions:
    def raising(self, at: str, error: BaseException) -> Instance:
        def act(bolt: object, tup: Tuple) -> None:
            emit(bolt, tup)
            if tup[0] == at:
                raise error

        return counter(act)

    @pytest.mark.parametrize("at", [0, 1, 2, 5, 6])
    def test_the_failing_row_counts_as_taken_later_ones_do_not(self, at: int) -> None:
        instance = self.raising("abcdefg"[at], ZeroDivisionError("no"))
        instance.gets(11, 1, word(*"abcdefg"))
        with pytest.raises(UserError, match=r"x-count \(task 3\), execute: ZeroDivisionError: no"):
            instance.core.work()
        instance.core.check()
        assert len(instance.done()) == at + 1
        assert instance.core.statistics() == InstanceStatistics(at + 1, at + 1, 0, 6 - at)

    def test_what_was_emitted_before_leaves_and_nothing_is_credited(self) -> None:
        instance = self.raising("b", ValueError("no"))
        instance.gets(11, 1, word("a", "b", "c"))
        with pytest.raises(UserError):
            instance.core.work()
        assert instance.flushes() == [Data(501, 1, [rows(3, 4, ["b", 1]), rows(3, 5, ["a", 1])])]

    def test_an_exit_is_an_error_too(self) -> None:
        instance = self.raising("a", SystemExit(0))
        instance.gets(11, 1, word("a"))
        with pytest.raises(UserError, match="execute: SystemExit: 0"):
            instance.core.work()


class TestSlices:
    @pytest.mark.parametrize("row_secs", [1e-5, 1e-4, 0.01])
    def test_they_adapt_to_the_time_a_row_takes(self, row_secs: float) -> None:
        clock = FakeClock()
        taken: list[float] = []

        def act(*_: object) -> None:
            clock.now += row_secs

        instance = counter(act, clock=clock)
        instance.gets(11, 1, word(*["x"] * 250))
        while instance.core.has_work:
            before = clock.now
            instance.works()
            taken.append(clock.now - before)
        delay = 0.002  # storm_py.batch.delay.ms: outputs leave in time
        assert max(taken) <= max(delay + 2 * 0.001, row_secs) * 1.01
        assert len(instance.done()) == 250

    def test_they_grow_again(self) -> None:
        clock = FakeClock()
        instance = counter(lambda bolt, tup: setattr(clock, "now", clock.now + tup[0]), clock=clock)
        instance.gets(11, 1, rows(1, 3, *([0.01] * 1 for _ in range(10))))
        instance.gets(11, 2, rows(1, 3, *([0.000001] for _ in range(1000))))
        while len(instance.recorder.log) < 10:
            instance.works()
        before = clock.looks
        while instance.core.has_work:
            instance.works()
        assert clock.looks - before < 60


class TestSessions:
    def test_a_lost_stream_manager(self) -> None:
        instance = counter(emit)
        instance.gets(11, 1, word("a"))
        instance.works()
        instance.hears(11, Pressure(4, True, 256))
        instance.gets(11, 2, word("b"))
        assert instance.disconnect() == []
        assert (instance.core.paused, instance.core.has_work) == (True, False)
        assert instance.flushes() == []  # nobody to send to
        assert instance.connect() == [said(502, instance.me)]
        instance.hears(12, hello("s0", incarnation=2))
        assert instance.hears(12, Welcome(502)) == [Data(502, 1, [rows(3, 5, ["a", 1])])]
        assert not instance.core.paused
        assert instance.flushes() == []  # what the old one had sent is not credited to the new one

    def test_our_link_breaks(self) -> None:
        instance = counter(emit)
        assert instance.hears(11, LinkBroken(500)) == []  # of an older session
        assert instance.hears(11, LinkBroken(501)) == [
            said(502, instance.me),
            said(502, Welcome(11)),
        ]
        assert instance.core.paused
        instance.gets(11, 1, word("a"))
        assert (instance.works(), instance.flushes()) == ([], [])
        assert instance.hears(11, Welcome(502)) == []
        instance.works()
        assert instance.flushes()[0] == Data(502, 1, [rows(3, 5, ["a", 1])])

    def test_what_is_emitted_while_there_is_no_link_is_kept(self) -> None:
        instance = counter(emit)
        instance.gets(11, 1, word("a"))
        instance.works()
        instance.hears(11, LinkBroken(501))
        assert instance.flushes() == []
        assert instance.hears(11, Welcome(502)) == [Data(502, 1, [rows(3, 5, ["a", 1])])]
        assert instance.flushes() == [said(502, Credit(3, 1, frame_size(word("a")), 1))]

    def test_their_link_breaks(self) -> None:
        instance = counter()
        instance.gets(11, 1, word("a", "b"))
        assert instance.hears(12, hello("s0")) == [said(501, Welcome(12))]
        assert not instance.core.has_work  # it counts as lost and is not credited
        assert instance.gets(11, 2, word("c")) == []
        instance.gets(12, 1, word("d"))
        instance.works()
        assert instance.done() == [(3, 1, "default", "d")]

    @pytest.mark.parametrize("early", [False, True])
    @pytest.mark.parametrize("rows_before", [0, 1, 2])
    def test_control_that_is_served_while_an_emit_waits(
        self, rows_before: int, early: bool
    ) -> None:
        """A driver whose socket is full serves control: user code is still inside of execute."""
        plan = plan_of(spout("a", "v"), bolt("b", "a", "v"), bolt("c", "b"), batch_rows=1)

        def act(bolt: Any, tup: Tuple) -> None:
            if tup[0] == "last":
                instance.port.while_sending = renew
            bolt.collector.emit([tup[0]])

        def renew() -> None:
            instance.port.while_sending = lambda: None
            instance.core.on_control(control_message(12, hello("s0")))
            if early:
                instance.core.on_data(new)

        instance = Instance(plan, 2, lambda log: ScriptedBolt(log, act)).open()
        new = data_message(12, 1, rows(1, 2, ["new"]))
        before = [["old"]] * rows_before
        instance.gets(11, 1, rows(1, 2, *before, ["last"]))
        instance.gets(11, 2, rows(1, 2, ["lost"]))
        instance.works()
        if not early:
            instance.core.on_data(new)
        instance.works()
        assert [log[-1] for log in instance.done()[rows_before:]] == ["last", "new"]
        instance.works()
        size, sent = frame_size(rows(1, 2, ["new"])), rows_before + 2
        assert instance.flushes()[-1:] == [said(501, Credit(2, 1, size, sent))]
        assert instance.core.statistics().queued == 0

    def test_a_session_that_ends_while_the_end_of_input_waits(self) -> None:
        instance = counter(on_end=lambda bolt: bolt.collector.emit(["total", 3]))

        def renew() -> None:
            instance.port.while_sending = lambda: None
            instance.core.on_control(control_message(12, hello("s0")))

        instance.gets(11, 1, End(1, 3, 1), End(2, 3, 1))
        instance.port.while_sending = renew
        instance.works()
        assert instance.port.ends == [(1, False)]
        assert instance.flushes() == []  # nothing that was of the older session is credited

    def test_a_session_that_ends_while_credits_are_sent(self) -> None:
        instance = counter(plan=PAIR)

        def renew() -> None:
            instance.port.while_sending = lambda: None
            instance.core.on_control(control_message(12, hello("s0")))

        instance.gets(11, 1, word("a", dest=3), word("b", dest=4))
        instance.works()
        instance.port.while_sending = renew
        sent = [said_.record for said_ in instance.flushes() if not isinstance(said_, Data)]
        assert [type(record) for record in sent] == [Credit, Welcome]
        assert instance.flushes() == []


messages = st.one_of(
    damaged(data_message(11, 1, word("a", "b"), End(1, 3, 1), Rows(1, 3, [(1, [[1, 2]])]))),
    damaged(control_message(11, Pressure(4, True, 16))),
    st.builds(
        control_message,
        st.sampled_from([11, 12, 13]),
        st.one_of(
            st.builds(hello, st.sampled_from(["s0", "s1"]), st.integers(0, 2)),
            st.builds(Welcome, st.integers(500, 503)),
            st.builds(LinkBroken, st.integers(500, 503)),
            st.builds(Pressure, st.integers(0, 6), st.booleans(), st.integers(-9, 2**40)),
        ),
    ),
    st.builds(
        data_message,
        st.sampled_from([11, 12, 13]),
        st.integers(1, 4),
        st.sampled_from([word("a"), word("b", src=2), End(1, 3, 1), End(2, 3, 1)]),
    ),
    st.binary(max_size=60),
)


@settings(max_examples=100)
@given(st.lists(messages, max_size=12))
def test_whatever_arrives(arrived: list[bytes]) -> None:
    """Any bytes, on either socket, are taken or a ProtocolError; the invariants hold."""
    instance = counter(emit)
    for message in arrived:
        for receive in (instance.core.on_data, instance.core.on_control):
            with suppress(ProtocolError):
                receive(message)
            instance.core.check()
    instance.flushes()
