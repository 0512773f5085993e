"""InstanceCore of a bolt: handshake, rows in order, credits behind outputs, batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from storm_py import Fields, Tuple
from storm_py.engine.statistics import InstanceStatistics
from storm_py.errors import ProtocolError
from storm_py.wire.control import Credit, LinkBroken, Pressure, Stop, Welcome
from tests.builders import (
    ALL,
    LOCAL,
    Data,
    End,
    FakeClock,
    Rows,
    bolt,
    data_message,
    frame_size,
    hello,
    plan_of,
    rows,
    spout,
)
from tests.counter import PAIR, PLAN, counter, emit, said, word
from tests.instance import Instance, ScriptedBolt, ScriptedSpout


class TestHandshake:
    def made(self) -> Instance:
        instance = Instance(PLAN, 3, ScriptedBolt)
        instance.core.open()
        return instance

    def test_we_speak_first(self) -> None:
        instance = self.made()
        assert instance.connect() == [said(501, instance.me)]
        assert instance.hears(11, hello("s0")) == [said(501, Welcome(11))]
        assert (instance.core.linked, instance.core.paused) == (False, True)
        assert instance.hears(11, Welcome(501)) == []
        assert (instance.core.linked, instance.core.paused) == (True, False)

    def test_under_another_plan_we_speak_of_its_version(self) -> None:
        instance = self.made()
        instance.connect()
        instance.hears(11, hello("s0"))
        instance.disconnect()
        instance.core.replan(replace(PLAN, version=2))
        assert instance.connect() == [said(502, replace(instance.me, assignment_version=2))]
        assert instance.hears(12, hello("s0", 2, version=1)) == []
        assert instance.hears(13, hello("s0", 2, version=2)) == [said(502, Welcome(13))]

    def test_they_speak_first(self) -> None:
        instance = self.made()
        assert instance.hears(11, hello("s0")) == []
        assert instance.connect() == [said(501, instance.me), said(501, Welcome(11))]
        assert instance.hears(11, Welcome(501)) == []
        assert instance.core.linked

    def test_a_welcome_of_a_stranger_opens_nothing(self) -> None:
        instance = self.made()
        instance.connect()
        assert instance.hears(11, Welcome(501)) == []
        assert not instance.core.linked

    def test_a_welcome_of_another_session_opens_nothing_but_repeats_the_greeting(self) -> None:
        """Our Hello of before came behind this one's, on the socket that this one replaced."""
        instance = self.made()
        instance.connect()
        instance.hears(11, hello("s0"))
        greeting = [said(501, instance.me), said(501, Welcome(11))]
        assert instance.hears(11, Welcome(500)) == greeting
        assert not instance.core.linked
        instance.hears(11, Welcome(501))
        assert instance.core.linked

    def test_data_before_the_hello_is_refused(self) -> None:
        instance = self.made()
        instance.connect()
        assert instance.gets(11, 1, word("storm")) == []
        assert not instance.core.has_work

    def test_nothing_is_executed_before_the_link_is_open(self) -> None:
        instance = self.made()
        instance.connect()
        instance.hears(11, hello("s0"))
        instance.gets(11, 1, word("storm"))
        assert (instance.works(), instance.done()) == ([], [])
        instance.hears(11, Welcome(501))
        instance.works()
        assert instance.done() == [(3, 1, "default", "storm")]

    @pytest.mark.parametrize("stranger", [hello("s0", topology_id="words-2"), hello("s0", 1, 0)])
    def test_strangers_are_refused(self, stranger: Any) -> None:
        instance = counter()
        assert instance.hears(99, stranger) == []
        assert instance.gets(99, 1, word("storm")) == []
        assert not instance.core.has_work

    def test_orders_do_not_belong_on_a_link(self) -> None:
        with pytest.raises(ProtocolError, match="Stop does not belong on a link"):
            counter().hears(11, Stop())


class TestRows:
    def test_in_order_with_what_they_are(self) -> None:
        seen: list[Tuple] = []
        instance = counter(lambda bolt, tup: seen.append(tup))
        mixed = Rows(1, 3, [(0, [["a"], ["b"]]), (1, [["c", 4]]), (0, [["d"]])])
        instance.gets(11, 1, mixed, word("e", src=2))
        instance.gets(11, 2, word("f"))
        assert instance.core.statistics().queued == 6
        instance.works()
        assert instance.done() == [
            *((3, 1, "default", "a"), (3, 1, "default", "b"), (3, 1, "side", "c", 4)),
            *((3, 1, "default", "d"), (3, 2, "default", "e"), (3, 1, "default", "f")),
        ]
        assert seen[2].fields == Fields("a", "b")
        assert seen[0].context is seen[3].context
        assert instance.core.statistics() == InstanceStatistics(6, 0, 0, 0)

    def test_repeats_are_dropped_and_a_gap_is_reported(self) -> None:
        instance = counter()
        instance.gets(11, 1, word("a"))
        assert instance.gets(11, 1, word("a")) == []
        assert instance.gets(11, 3, word("c")) == [said(501, LinkBroken(11))]
        instance.works()
        assert instance.done() == [(3, 1, "default", "a")]

    @pytest.mark.parametrize(
        ("frame", "text"),
        [
            (word("a", dest=4), "frame for task 4, which takes no input here"),
            (word("a", src=77), "frame from task 77, which the plan does not know"),
            (rows(1, 3, ["a"], stream=2), "frame on stream 2 of 'words', which is not declared"),
            (Rows(1, 3, [(0, [["a"]]), (9, [["b"]])]), "frame on stream 9 of 'words'"),
        ],
    )
    def test_frames_that_cannot_be(self, frame: Rows, text: str) -> None:
        instance = counter()
        with pytest.raises(ProtocolError, match=text):
            instance.core.on_data(data_message(11, 1, frame))
        instance.core.check()

    def test_tasks_of_one_executor_do_not_mix(self) -> None:
        instance = counter(emit, plan=PAIR)
        instance.gets(11, 1, word("a", dest=4), word("b", dest=3), word("c", dest=4))
        instance.works()
        assert [(task, each) for task, *_, each in instance.done()] == [
            *((4, "a"), (3, "b"), (4, "c")),
        ]
        assert instance.flushes() == [
            Data(501, 1, [rows(3, 5, ["b", 1]), rows(4, 5, ["a", 1], ["c", 1])]),
            said(501, Credit(4, 2, frame_size(word("a", dest=4), word("c", dest=4)), 1)),
            said(501, Credit(3, 1, frame_size(word("b", dest=3)), 1)),
        ]


class TestCredits:
    def test_they_come_behind_the_outputs(self) -> None:
        instance = counter(emit)
        frame = word("a", "b")
        instance.gets(11, 1, frame)
        assert instance.flushes() == []  # taken, but not executed
        assert instance.works() == []  # executed, but its outputs are still here
        assert instance.flushes() == [
            Data(501, 1, [rows(3, 4, ["b", 1]), rows(3, 5, ["a", 1])]),
            said(501, Credit(3, 2, frame_size(frame), seq=1)),
        ]
        assert instance.flushes() == []

    def test_they_add_up(self) -> None:
        instance = counter()
        one, two = word("a"), word("b", "c")
        instance.gets(11, 1, one)
        instance.works()
        assert instance.flushes() == [said(501, Credit(3, 1, frame_size(one)))]
        instance.gets(11, 2, two)
        instance.works()
        assert instance.flushes() == [said(501, Credit(3, 3, frame_size(one, two)))]

    def test_half_a_frame_is_not_credited(self) -> None:
        clock = FakeClock()
        instance = counter(lambda bolt, tup: setattr(clock, "now", clock.now + 1), clock=clock)
        frame = Rows(1, 3, [(0, [["a"]]), (1, [["b", 1]])])
        instance.gets(11, 1, frame)
        assert instance.works() == []
        assert len(instance.done()) == 1
        assert instance.works() == [said(501, Credit(3, 2, frame_size(frame), busy_us=2_000_000))]

    def test_they_are_repeated_in_a_session_of_ours_that_replaces_another(self) -> None:
        """Nobody knows whether they were heard; without them the window may stay full for ever."""
        instance = counter()
        instance.gets(11, 1, word("a"))
        instance.works()
        assert instance.flushes() == [said(501, Credit(3, 1, frame_size(word("a"))))]
        instance.hears(11, LinkBroken(501))
        instance.hears(11, Welcome(502))
        assert instance.flushes() == [said(502, Credit(3, 1, frame_size(word("a"))))]
        assert instance.flushes() == []

    def test_a_new_session_starts_from_zero(self) -> None:
        instance = counter()
        instance.gets(11, 1, word("a"))
        instance.works()
        instance.flushes()
        assert instance.hears(12, hello("s0")) == [said(501, Welcome(12))]
        assert instance.flushes() == []
        instance.gets(12, 1, word("b", "c"))
        instance.works()
        assert instance.flushes() == [said(501, Credit(3, 2, frame_size(word("b", "c"))))]


class TestBatches:
    def test_a_full_one_goes_at_once(self) -> None:
        plan = plan_of(spout("a", "v"), bolt("b", "a", "v"), bolt("c", "b"), batch_rows=2)
        instance = Instance(
            plan, 2, lambda log: ScriptedBolt(log, lambda b, tup: b.collector.emit([tup[0]]))
        ).open()
        instance.gets(11, 1, rows(1, 2, *([n] for n in range(5))))
        assert instance.works() == [
            Data(501, 1, [rows(2, 3, [0], [1])]),
            Data(501, 2, [rows(2, 3, [2], [3])]),
        ]
        assert instance.flushes()[0] == Data(501, 3, [rows(2, 3, [4])])
        assert instance.core.statistics() == InstanceStatistics(5, 5, 5, 0)

    def test_pressure_says_how_large_frames_should_be(self) -> None:
        instance = counter(emit)
        instance.hears(11, Pressure(5, False, 2))
        instance.gets(11, 1, word(*"abcdefgh"))
        sent = instance.works()
        assert all(isinstance(m, Data) and len(m.frames) == 1 for m in sent)
        dests = [(f.dest, len(f.runs[0][1])) for m in sent for f in m.frames]  # type: ignore[union-attr]
        assert dests == [(5, 2), (5, 2)]


class TestLocalTasks:
    def test_only_tasks_that_it_may_send_to_pause_it(self) -> None:
        plan = plan_of(
            spout("a", "v", tasks=2),
            bolt("b", {"a": LOCAL}, "", 2),
            bolt("c", {"a": ALL}),
            workers=2,
        )
        assert [plan.worker_of(task) for task in (1, 3, 4, 5)] == [0, 0, 1, 0]
        instance = Instance(plan, 1, ScriptedSpout).open()
        instance.hears(11, Pressure(4, True, 256))
        assert not instance.core.paused
        for task in (3, 5):
            instance.hears(11, Pressure(task, True, 256))
            assert instance.core.paused
            instance.hears(11, Pressure(task, False, 256))
            assert not instance.core.paused

    def test_the_end_of_the_input_reaches_the_others_too(self) -> None:
        plan = plan_of(spout("a", "v", tasks=2), bolt("b", {"a": LOCAL}, "", 2), workers=2)
        instance = Instance(plan, 1, ScriptedSpout).open()
        instance.only.collector.emit(["x"])
        assert instance.on_wave(1, drain=True) == [
            Data(501, 1, [rows(1, 3, ["x"])]),
            Data(501, 2, [End(1, 3, 1)]),
            Data(501, 3, [End(1, 4, 1)]),
        ]
