"""Mistakes in how a bolt subscribes to streams, one row each, and what is made of the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storm_py import (
    CustomStreamGrouping,
    Fields,
    GlobalStreamId,
    Grouping,
    GroupingKind,
    InvalidTopologyException,
    TopologyBuilder,
)
from tests.lines import Lines, Sink


class First(CustomStreamGrouping):
    def choose_tasks(self, task_id: int, values: list[object]) -> list[int]:
        return [task_id]


# Deliberately wrong classes; type checkers would refuse most of them.


class JavaName(CustomStreamGrouping):
    def chooseTasks(self, task_id: int, values: list[object]) -> list[int]:
        return [task_id]


class OneParameter(CustomStreamGrouping):
    def choose_tasks(self, values: list[object]) -> list[int]:  # type: ignore[override]
        return []


class Yields(CustomStreamGrouping):
    def choose_tasks(self, task_id: int, values: list[object]) -> Any:
        yield task_id


class Async(CustomStreamGrouping):
    async def prepare(  # type: ignore[override]
        self, context: object, stream: object, target_tasks: object
    ) -> None:
        pass

    def choose_tasks(self, task_id: int, values: list[object]) -> list[int]:
        return []


LINES = GlobalStreamId("lines")
Mistake = Callable[[Any], object]
"""Gets the declarer of the bolt 'bolt'; typed Any, because mistakes break types as well."""

MISTAKES: dict[str, tuple[Mistake, str]] = {
    # any
    "an unknown component": (
        lambda d: d.shuffle_grouping("line"),
        "bolt 'bolt' subscribes to 'line', which is no component of this topology; "
        "it has: lines; did you mean 'lines'?",
    ),
    "an unknown stream": (
        lambda d: d.shuffle_grouping("lines", "error"),
        "bolt 'bolt' subscribes to stream 'error' of 'lines', which declares only: "
        "default, errors, chosen; did you mean 'errors'?",
    ),
    "a component that is no str": (
        lambda d: d.shuffle_grouping(Lines()),
        "bolt 'bolt': component to subscribe to is a Lines; expected the component's id, a str",
    ),
    "a stream that is no str": (
        lambda d: d.shuffle_grouping("lines", 1),
        "bolt 'bolt': stream to subscribe to is an int; expected the stream's id, a str",
    ),
    "a stream subscribed to twice": (
        lambda d: d.shuffle_grouping("lines").fields_grouping("lines", "line"),
        "bolt 'bolt' subscribes twice to stream 'default' of 'lines', by shuffle and fields(line);",
    ),
    "an unknown field": (
        lambda d: d.fields_grouping("lines", ["line", "nummer"]),
        "bolt 'bolt' subscribes to stream 'default' of 'lines' by field 'nummer', which it does "
        "not have; declared fields: line, number; did you mean 'number'?",
    ),
    "a field of another stream": (
        lambda d: d.fields_grouping("lines", "text"),
        "by field 'text', which it does not have; declared fields: line, number",
    ),
    "fields given one by one": (
        lambda d: d.fields_grouping("lines", "line", "number"),
        "subscribes to stream 'number' of 'lines', which declares only: default, errors, chosen; "
        "'number' is one of its fields: give several fields as one list",
    ),
    "no field to group by": (
        lambda d: d.fields_grouping("lines", []),
        "bolt 'bolt': fields grouping on 'lines' names no field; name the fields that make the",
    ),
    "a repeated field to group by": (
        lambda d: d.fields_grouping("lines", ["line", "line"]),
        "bolt 'bolt', fields grouping on 'lines': field 'line' appears twice",
    ),
    "None to group by": (
        lambda d: d.fields_grouping("lines", None),
        "fields grouping on 'lines': None is no field name",
    ),
    "direct grouping on a stream that is not direct": (
        lambda d: d.direct_grouping("lines"),
        "bolt 'bolt' subscribes to stream 'default' of 'lines' by direct grouping, but the stream "
        "is not direct; declare it with direct=True or choose another grouping",
    ),
    "regular grouping on a direct stream": (
        lambda d: d.fields_grouping("lines", "line", "chosen"),
        "bolt 'bolt' subscribes to stream 'chosen' of 'lines' by fields(line) grouping, but the "
        "stream is direct; use direct_grouping or declare it without direct=True",
    ),
    # partial key
    "partial key by an unknown field": (
        lambda d: d.partial_key_grouping("lines", ["line", "nummer"]),
        "bolt 'bolt' subscribes to stream 'default' of 'lines' by field 'nummer', which it does "
        "not have; declared fields: line, number; did you mean 'number'?",
    ),
    "partial key by a field of another stream": (
        lambda d: d.partial_key_grouping("lines", "line", "errors"),
        "stream 'errors' of 'lines' by field 'line', which it does not have; declared fields: text",
    ),
    "partial key without a field": (
        lambda d: d.partial_key_grouping("lines", []),
        "bolt 'bolt': partial key grouping on 'lines' names no field; name the fields that make",
    ),
    "partial key by a field twice": (
        lambda d: d.partial_key_grouping("lines", ["line", "line"]),
        "bolt 'bolt', partial key grouping on 'lines': field 'line' appears twice",
    ),
    "partial key by None": (
        lambda d: d.partial_key_grouping("lines", None),
        "bolt 'bolt', partial key grouping on 'lines': None is no field name",
    ),
    # custom
    "a custom grouping that is none": (
        lambda d: d.custom_grouping("lines", "first"),
        "bolt 'bolt', grouping on 'lines': custom grouping got a str; expected an instance of a "
        "class derived from CustomStreamGrouping",
    ),
    "a function as custom grouping": (
        lambda d: d.custom_grouping("lines", lambda task, values: [task]),
        "grouping on 'lines': custom grouping got a function; expected an instance of a class",
    ),
    "None as custom grouping": (
        lambda d: d.custom_grouping("lines", None),
        "custom grouping got None; expected an instance of a class",
    ),
    "the class of a custom grouping": (
        lambda d: d.custom_grouping("lines", First),
        "custom grouping got the class First; pass an instance: First()",
    ),
    "a custom grouping without choose_tasks": (
        lambda d: d.custom_grouping("lines", JavaName()),
        "bolt 'bolt', custom grouping on 'lines': class JavaName does not define "
        "choose_tasks(self, task_id, values); is it what 'chooseTasks' was meant to be?",
    ),
    "choose_tasks with one parameter": (
        lambda d: d.custom_grouping("lines", OneParameter()),
        "OneParameter.choose_tasks(values) cannot be called as choose_tasks(task_id, values); give",
    ),
    "choose_tasks that yields": (
        lambda d: d.custom_grouping("lines", Yields()),
        "Yields.choose_tasks contains yield, so calling it would run nothing; ",
    ),
    "async prepare": (
        lambda d: d.custom_grouping("lines", Async()),
        "bolt 'bolt', custom grouping on 'lines': Async.prepare is async; define it with a plain",
    ),
    # streams
    "two subscriptions": (
        lambda d: d.none_grouping("lines").custom_grouping("lines", First()),
        "bolt 'bolt' subscribes twice to stream 'default' of 'lines', by none and custom(First); ",
    ),
    "two subscriptions of other kinds": (
        lambda d: d.partial_key_grouping("lines", "line").local_or_shuffle_grouping("lines"),
        "by partial key(line) and local or shuffle; keep one",
    ),
    "local or shuffle on an unknown component": (
        lambda d: d.local_or_shuffle_grouping("line"),
        "bolt 'bolt' subscribes to 'line', which is no component of this topology; ",
    ),
    "none on an unknown stream": (
        lambda d: d.none_grouping("lines", "error"),
        "subscribes to stream 'error' of 'lines', which declares only: default, errors, chosen; ",
    ),
    "custom on a component that is no str": (
        lambda d: d.custom_grouping(First(), "lines"),
        "bolt 'bolt': component to subscribe to is a First; expected the component's id, a str",
    ),
    "local or shuffle on a direct stream": (
        lambda d: d.local_or_shuffle_grouping("lines", "chosen"),
        "by local or shuffle grouping, but the stream is direct; use direct_grouping or",
    ),
    "custom on a direct stream": (
        lambda d: d.custom_grouping("lines", First(), "chosen"),
        "by custom(First) grouping, but the stream is direct; use direct_grouping or",
    ),
    # the general one
    "grouping by a component's id": (
        lambda d: d.grouping("lines", Grouping(GroupingKind.SHUFFLE)),
        "bolt 'bolt': grouping got a str to subscribe to; expected "
        'GlobalStreamId("component", "stream")',
    ),
    "grouping by a kind": (
        lambda d: d.grouping(LINES, GroupingKind.SHUFFLE),
        "bolt 'bolt': grouping on 'lines' got a GroupingKind; expected a Grouping, as in "
        "Grouping(GroupingKind.SHUFFLE)",
    ),
    "grouping of no kind": (
        lambda d: d.grouping(LINES, Grouping("SHUFLE")),  # type: ignore[arg-type]
        "bolt 'bolt', grouping on 'lines': 'SHUFLE' is no kind of grouping; expected a "
        "GroupingKind: SHUFFLE, FIELDS, PARTIAL_KEY, ALL, GLOBAL, NONE, DIRECT, LOCAL_OR_SHUFFLE, ",
    ),
    "grouping by fields without fields": (
        lambda d: d.grouping(LINES, Grouping(GroupingKind.FIELDS)),
        "grouping on 'lines': a grouping of the kind FIELDS needs the fields of its key",
    ),
    "grouping by an empty key": (
        lambda d: d.grouping(LINES, Grouping(GroupingKind.PARTIAL_KEY, Fields())),
        "bolt 'bolt': partial key grouping on 'lines' names no field",
    ),
    "grouping by shuffle with fields": (
        lambda d: d.grouping(LINES, Grouping(GroupingKind.SHUFFLE, Fields("line"))),
        "grouping on 'lines': a grouping of the kind SHUFFLE has no fields",
    ),
    "grouping by shuffle with an object": (
        lambda d: d.grouping(LINES, Grouping(GroupingKind.SHUFFLE, custom=First())),
        "a grouping of the kind SHUFFLE has no object, it got a First; custom_grouping takes one",
    ),
    "grouping by custom without an object": (
        lambda d: d.grouping(LINES, Grouping(GroupingKind.CUSTOM)),
        "grouping on 'lines': custom grouping got None; expected an instance of a class",
    ),
}


@pytest.mark.parametrize(("mistake", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_explained(mistake: Mistake, message: str) -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    with pytest.raises(InvalidTopologyException) as caught:  # noqa: PT012 - either may refuse
        mistake(builder.set_bolt("bolt", Sink()))
        builder.create_topology()
    assert message in str(caught.value)


FIRST = First()
GOOD: dict[str, tuple[Mistake, Grouping]] = {
    "local or shuffle": (
        lambda d: d.local_or_shuffle_grouping("lines"),
        Grouping(GroupingKind.LOCAL_OR_SHUFFLE),
    ),
    "none": (lambda d: d.none_grouping("lines"), Grouping(GroupingKind.NONE)),
    "partial key": (
        lambda d: d.partial_key_grouping("lines", ["number", "line"]),
        Grouping(GroupingKind.PARTIAL_KEY, Fields("number", "line")),
    ),
    "custom": (
        lambda d: d.custom_grouping("lines", FIRST),
        Grouping(GroupingKind.CUSTOM, custom=FIRST),
    ),
    "any": (
        lambda d: d.grouping(LINES, Grouping(GroupingKind.ALL)),
        Grouping(GroupingKind.ALL),
    ),
    "any by fields, which may be a plain list": (
        lambda d: d.grouping(LINES, Grouping(GroupingKind.FIELDS, ["line"])),  # type: ignore[arg-type]
        Grouping(GroupingKind.FIELDS, Fields("line")),
    ),
    "any custom": (
        lambda d: d.grouping(LINES, Grouping(GroupingKind.CUSTOM, custom=FIRST)),
        Grouping(GroupingKind.CUSTOM, custom=FIRST),
    ),
}


@pytest.mark.parametrize(("subscribe", "expected"), GOOD.values(), ids=GOOD)
def test_what_a_subscription_becomes(subscribe: Mistake, expected: Grouping) -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    declarer = builder.set_bolt("bolt", Sink())
    assert subscribe(declarer) is declarer
    topology = builder.create_topology()
    assert topology.components["bolt"].inputs == {LINES: expected}
    assert hash(expected) == hash(topology.edges[0].grouping)


def test_groupings_with_different_objects_differ() -> None:
    one, other = (Grouping(GroupingKind.CUSTOM, custom=First()) for _ in range(2))
    assert one != other
