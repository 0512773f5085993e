"""InstanceCore while an emit waits for room: control is served in the middle of user code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storm_py.wire.control import Control, FailPending, Hello, LinkBroken, Pressure, Welcome
from tests.builders import Rows, control_message, hello, plan_of, rows, spout
from tests.builders import bolt as a_bolt
from tests.instance import Act, Instance, ScriptedBasicBolt, ScriptedBolt, ScriptedSpout

#: words is task 1, x task 2, y task 3; each row is a message, so that each emit may wait
PLAN = plan_of(spout("words", "word"), a_bolt("x", "words", "word"), a_bolt("y", "x"), batch_rows=1)
#: the same with two tasks of words, 1 and 2, in one executor
PAIR = plan_of(spout("words", "word", tasks=2, executors=1), a_bolt("x", "words"), batch_rows=1)
LETTERS = "abcdefghij"

#: What a driver does while a send waits.
News = Callable[[Instance], object]


def heard(record: Control) -> News:
    """It hears this; a Hello opens another session of the stream manager."""
    session = 12 if isinstance(record, Hello) else 11
    return lambda instance: instance.core.on_control(control_message(session, record))


def gone(instance: Instance) -> None:
    """It hears from the worker that the stream manager died."""
    instance.core.disconnect(1)


def while_sending(instance: Instance, news: News) -> None:
    """The next send waits, and this comes meanwhile."""

    def come() -> None:
        instance.port.while_sending = lambda: None
        news(instance)

    instance.port.while_sending = come


LOSSES = [
    pytest.param(heard(LinkBroken(501)), id="our link"),
    pytest.param(heard(hello("s0")), id="their link"),
    pytest.param(heard(FailPending()), id="between stream managers"),
    pytest.param(gone, id="with the stream manager"),
]


def emit_count(it: Any) -> None:
    it.collector.emit([it.count], it.count)
    it.recorder.add("returns", it.count)


def emitting(act: Act = emit_count, plan: Any = PLAN) -> Instance:
    """The spout, whose n-th call emits with message id n."""
    return Instance(plan, 1, lambda log: ScriptedSpout(log, act)).open()


def word(*some: str) -> Rows:
    return rows(1, 2, *([each] for each in some))


def relaying(kind: Any, act: Act) -> Instance:
    """The bolt, which has learnt to execute many rows in one go."""
    instance = Instance(PLAN, 2, lambda log: kind(log, act)).open()
    for n in range(1, 7):
        instance.gets(11, n, word(*"xxxxxxxxxx"))
        instance.works()
    instance.flushes()
    instance.done()
    return instance


def executed(instance: Instance) -> str:
    return "".join(str(done[3]) for done in instance.done())


class TestLosses:
    """What may be lost fails behind the call that is under way, never inside it."""

    @pytest.mark.parametrize("news", LOSSES)
    def test_fail_is_not_called_in_the_middle_of_next_tuple(self, news: News) -> None:
        instance = emitting()
        instance.core.spin()
        while_sending(instance, news)
        instance.core.spin()
        assert instance.done() == [("returns", 1), ("returns", 2)]
        instance.core.tick(0.0)
        assert instance.done() == [("fail", 1), ("fail", 2)]

    @pytest.mark.parametrize("news", LOSSES)
    def test_nor_in_the_middle_of_fail(self, news: News) -> None:
        def fail(msg_id: object) -> None:
            instance.recorder.add("fail", msg_id)
            if msg_id == 1:
                instance.only.collector.emit([1], "again")
            instance.recorder.add("failed", msg_id)

        instance = emitting()
        instance.only.fail = fail
        instance.core.spin()
        instance.hears(11, FailPending())
        while_sending(instance, news)
        instance.done()
        instance.core.tick(0.0)
        assert instance.done() == [("fail", 1), ("failed", 1)]
        instance.core.tick(0.0)
        assert instance.done() == [("fail", "again"), ("failed", "again")]

    @pytest.mark.parametrize("news", LOSSES)
    def test_nor_does_a_task_end_in_the_middle_of_another_one(self, news: News) -> None:
        def act(it: Any) -> None:
            task = it.context.this_task_id
            it.collector.emit([it.count], task)
            if task == 1:
                it.collector.end_of_input()
                while_sending(instance, news)
            it.recorder.add("returns", task, [each.wave for each in instance.core.tasks])

        instance = emitting(act, PAIR)
        instance.core.spin()
        assert instance.done() == [("returns", 1, [0, 0]), ("returns", 2, [0, 0])]
        instance.core.tick(0.0)
        assert instance.done() == [("fail", 1), ("fail", 2)]
        assert [each.wave for each in instance.core.tasks] == [1, 0]

    @pytest.mark.parametrize("news", LOSSES)
    def test_the_spout_hears_of_them_before_it_is_called_again(self, news: News) -> None:
        instance = emitting()
        instance.core.spin()
        news(instance)
        instance.core.spin()
        assert instance.done()[:2] == [("returns", 1), ("fail", 1)]

    def test_whoever_hangs_in_fail_is_named(self) -> None:
        instance = emitting()
        instance.core.spin()
        instance.hears(11, FailPending())
        instance.watch.seen.clear()
        instance.core.tick(0.0)
        assert instance.watch.seen == [("ack or fail", 1)]


class TestPauses:
    """Whoever may not emit any more ends behind the row, or the call, that is under way."""

    @pytest.mark.parametrize(
        ("news", "good_news"),
        [
            pytest.param(
                heard(Pressure(2, True, 64)), heard(Pressure(2, False, 64)), id="pressure"
            ),
            pytest.param(heard(LinkBroken(501)), heard(Welcome(502)), id="our link"),
        ],
    )
    def test_a_spout_is_not_called_again(self, news: News, good_news: News) -> None:
        instance = emitting()
        for _ in range(4):  # it learns to make sixteen calls in one go
            instance.core.spin()
        while_sending(instance, news)
        instance.core.spin()
        assert (instance.only.count, instance.core.spouting) == (15 + 1, False)
        good_news(instance)
        instance.core.spin()
        assert instance.only.count == 16 + 16

    @pytest.mark.parametrize("kind", [ScriptedBolt, ScriptedBasicBolt])
    @pytest.mark.parametrize(
        ("news", "good_news"),
        [
            pytest.param(
                heard(Pressure(3, True, 64)), heard(Pressure(3, False, 64)), id="pressure"
            ),
            pytest.param(heard(LinkBroken(501)), heard(Welcome(502)), id="our link"),
        ],
    )
    def test_a_bolt_is_given_no_more_rows(self, kind: Any, news: News, good_news: News) -> None:
        def act(it: Any, tup: Any) -> None:
            if tup[0] == "c":
                while_sending(instance, news)
            it.collector.emit([tup[0]])

        instance = relaying(kind, act)
        instance.gets(11, 7, word(*LETTERS))
        instance.works()
        assert (executed(instance), instance.core.paused) == ("abc", True)
        assert instance.core.statistics().queued == 7
        good_news(instance)
        instance.works()
        assert executed(instance) == "defghij"

    @pytest.mark.parametrize("news", [heard(hello("s0")), gone], ids=["their link", "gone"])
    def test_nor_any_of_a_session_that_is_over(self, news: News) -> None:
        def act(it: Any, tup: Any) -> None:
            if tup[0] == "c":
                while_sending(instance, news)
            it.collector.emit([tup[0]])

        instance = relaying(ScriptedBolt, act)
        instance.gets(11, 7, word(*LETTERS))
        instance.works()
        assert (executed(instance), instance.core.has_work) == ("abc", False)

    def test_pressure_that_is_over_when_the_emit_returns(self) -> None:
        def come_and_go(instance: Instance) -> None:
            heard(Pressure(3, True, 64))(instance)
            heard(Pressure(3, False, 64))(instance)

        def act(it: Any, tup: Any) -> None:
            if tup[0] == "c":
                while_sending(instance, come_and_go)
            it.collector.emit([tup[0]])

        instance = relaying(ScriptedBolt, act)
        instance.gets(11, 7, word(*LETTERS))
        instance.works()
        assert executed(instance) == LETTERS
