"""Custom groupings: how the user's object is asked, and what becomes of a wrong answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from storm_py import (
    CustomStreamGrouping,
    EmitError,
    FailedException,
    GlobalStreamId,
    TopologyContext,
)
from storm_py.api.grouping import GroupingKind
from storm_py.core.routing import Target
from storm_py.engine.instance_core import InstanceCore
from storm_py.engine.tasks import UserError
from tests.builders import CUSTOM, FakePort, Numbers, Recorder, bolt, plan_of, settings_of, spout
from tests.instance import ScriptedBasicBolt, ScriptedSpout
from tests.tracked import Producer, tracked

#: sink is tasks 1 to 3, words tasks 4 and 5, one executor
PLAN = plan_of(
    spout("words", "word; side: word", tasks=2, executors=1),
    bolt("sink", {"words": CUSTOM, "words:side": CUSTOM}, tasks=3),
)


class Told(CustomStreamGrouping):
    """Remembers its calls, and answers what it is told to, or raises it."""

    def __init__(self, answer: object = ()) -> None:
        self.answer = answer
        self.calls: list[tuple[object, ...]] = []

    def prepare(
        self, context: TopologyContext, stream: GlobalStreamId, target_tasks: list[int]
    ) -> None:
        self.calls.append(("prepare", context.this_task_id, stream, target_tasks))

    def choose_tasks(self, task_id: int, values: list[object]) -> Sequence[int]:
        self.calls.append((task_id, values))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


class Refuses(Told):
    """Fails to get ready."""

    def prepare(self, *_: object) -> None:
        raise OSError("no such table")


def producer(answer: object, style: str = "spout") -> Producer:
    """A task that emits by a custom grouping to tasks 13, 14 and 15."""
    target = Target("three", GroupingKind.CUSTOM, (13, 14, 15), custom=Told(answer))
    return Producer(style, {"default": [target]})


class TestLife:
    def test_every_task_prepares_a_copy_of_its_own_for_each_stream_before_it_opens(self) -> None:
        groupings = {
            task: {(stream, "sink"): Told() for stream in ("default", "side")} for task in (4, 5)
        }
        opened = Recorder()
        seen: dict[int, int] = {}

        def on_open(component: ScriptedSpout) -> None:
            task = component.context.this_task_id
            seen[task] = sum(len(each.calls) for each in groupings[task].values())

        components = {task: ScriptedSpout(opened, on_open=on_open) for task in (4, 5)}
        core = InstanceCore(
            PLAN, 4, 1, components, settings_of(PLAN), FakePort(), Numbers(), groupings=groupings
        )
        assert not any(each.calls for found in groupings.values() for each in found.values())
        core.open()
        assert seen == {4: 2, 5: 2}
        for task, found in groupings.items():
            for (stream, _), each in found.items():
                source = GlobalStreamId("words", stream)
                assert each.calls == [("prepare", task, source, [1, 2, 3])]

    def test_what_it_does_to_its_list_of_tasks_is_its_own_business(self) -> None:
        made = Told([1])
        plan = plan_of(spout("words", "word"), bolt("sink", {"words": CUSTOM}))
        component = ScriptedSpout(Recorder())
        core = InstanceCore(
            plan,
            2,
            1,
            {2: component},
            settings_of(plan),
            FakePort(),
            Numbers(),
            groupings={2: {("default", "sink"): made}},
        )
        core.open()
        made.calls[0][3].clear()  # type: ignore[attr-defined]
        assert component.collector.emit(["a"]) == (1,)

    def test_an_exception_in_prepare_is_the_users(self) -> None:
        plan = plan_of(spout("words", "word"), bolt("sink", {"words": CUSTOM}))
        opened = Recorder()
        core = InstanceCore(
            plan,
            2,
            1,
            {2: ScriptedSpout(opened)},
            settings_of(plan),
            FakePort(),
            Numbers(),
            groupings={2: {("default", "sink"): Refuses()}},
        )
        with pytest.raises(UserError) as caught:
            core.open()
        report = caught.value.report(fatal=True)
        assert (report.component, report.task) == ("words", 2)
        assert report.where == "Refuses.prepare for 'sink'"
        assert report.message == "OSError: no such table"
        assert opened.take() == []

    def test_a_driver_that_forgets_the_objects_is_told(self) -> None:
        components = {task: ScriptedSpout(Recorder()) for task in (4, 5)}
        with pytest.raises(
            ValueError, match="no object for the custom grouping of 'sink'; hand in"
        ):
            InstanceCore(PLAN, 4, 1, components, settings_of(PLAN), FakePort(), Numbers())


class TestAnswers:
    def test_it_gets_the_emitting_task_and_the_values_as_a_list(self) -> None:
        told = Told([14])
        made = Producer(
            "spout", {"default": [Target("three", GroupingKind.CUSTOM, (13, 14, 15), custom=told)]}
        )
        assert made.emit((1, "a")) == (14,)
        assert told.calls == [(4, [1, "a"])]

    @pytest.mark.parametrize("answer", [[13], (13, 15), [15, 13], range(13, 16), [14, 14], []])
    @pytest.mark.parametrize("style", ["spout", "bolt", "basic"])
    def test_any_sequence_will_do(self, style: str, answer: Sequence[int]) -> None:
        made = producer(answer, style)
        assert made.emit([1, 2]) == tuple(answer)
        received = made.flush()
        assert {task: len(rows) for task, rows in received.items() if rows} == {
            task: answer.count(task) for task in answer
        }

    def test_a_message_id_whose_tuple_goes_to_nobody_is_acked_at_once(self) -> None:
        made = producer([])
        assert made.emit([1, 2], "id") == ()
        assert made.output.acked == ["id"]
        assert (made.acks.init_roots, len(made.pending)) == ([], 0)

    def test_an_anchor_of_a_tuple_that_goes_to_nobody_stays_as_it_was(self) -> None:
        made = producer([], "bolt")
        anchor, other = tracked({7: 1}), tracked({8: 2})
        assert made.emit([1, 2], anchor) == made.emit([1, 2], [anchor, other]) == ()
        assert (anchor.xor, other.xor) == (1, 2)

    def test_each_copy_to_a_task_named_twice_has_an_edge_of_its_own(self) -> None:
        made = producer([14, 14])
        made.emit([1, 2], "id")
        [first, second] = [ids for _, _, ids in made.flush()[14]]
        [value] = made.acks.init_values
        assert [*first.values()] != [*second.values()]
        assert value ^ first.popitem()[1] ^ second.popitem()[1] == 0


KNOWN = "task ids out of 13, 14, 15"
WRONG: dict[str, tuple[object, str]] = {
    "a task of nobody": (
        [99],
        f"returned 99, which is none of its tasks; expected {KNOWN}",
    ),
    "a task of another component": ([13, 10], "returned 10, which is none of its tasks"),
    "a task as text": (["13"], f"returned '13', a str; expected {KNOWN}"),
    "a task as a float": ([13.0], "returned 13.0, a float"),
    "a truth": ([True], "returned True, a bool; expected"),
    "one task": (13, f"returned an int; expected a list of {KNOWN}, empty for nobody"),
    "a text": ("13", "returned a str; expected a list of"),
    "bytes": (b"\x0d", "returned a bytes; expected a list of"),
    "a set": ({13}, "returned a set; expected a list of"),
    "an iterator": (iter([13]), "returned a list_iterator; expected a list of"),
    "nothing": (None, "returned None; expected a list of"),
    "nothing at all": (None, "for nobody; did it forget to return them?"),
    "an exception": (
        KeyError("b"),
        "raised KeyError: 'b' (emitting task 4)",
    ),
}


@pytest.mark.parametrize(("answer", "message"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("style", ["spout", "bolt", "basic"])
def test_a_wrong_answer_is_named_and_nothing_is_emitted(
    style: str, answer: object, message: str
) -> None:
    made = producer(answer, style)
    second = [] if style == "basic" else ["id"] if style == "spout" else [tracked({7: 1})]
    with pytest.raises(EmitError) as caught:
        made.emit([1, 2], *second)
    start = "component 'words', stream 'default': choose_tasks of custom grouping Told for 'three' "
    assert str(caught.value).startswith(start)
    assert message in str(caught.value)
    assert not any(made.flush().values())
    assert (made.output.emissions.emitted, made.output.acked, made.acks.init_roots) == (0, [], [])


def test_an_exception_of_choose_tasks_is_the_cause() -> None:
    error = KeyError("b")
    with pytest.raises(EmitError) as caught:
        producer(error).emit([1, 2])
    assert caught.value.__cause__ is error


def test_it_may_fail_the_tuple_that_a_basic_bolt_executes() -> None:
    plan = plan_of(
        spout("words", "word"), bolt("copy", "words", "word"), bolt("sink", {"copy": CUSTOM})
    )
    component = ScriptedBasicBolt(Recorder(), lambda it, tup: it.collector.emit([tup[0]]))
    grouping = Told(FailedException("not today"))
    core = InstanceCore(
        plan,
        1,
        1,
        {1: component},
        settings_of(plan),
        FakePort(),
        Numbers(),
        groupings={1: {("default", "sink"): grouping}},
    )
    core.open()
    (task,) = core.tasks
    tup = tracked({7: 1})
    task.run(iter([["a"]]), tup.context, [7], [1])  # type: ignore[attr-defined]
    assert task.acks is not None
    assert (task.acks.fails, task.acks.acks) == ([7], {})
