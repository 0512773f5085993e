"""Mistakes in a topology, one row each: what is done, and what the message must say.

How bolts subscribe has rows of its own: `test_validation_groupings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    Fields,
    InvalidTopologyException,
    OutputFieldsDeclarer,
    StormTopology,
    TopologyBuilder,
)
from storm_py.api.component import BaseComponent
from tests.lines import Lines, Sink


class Declares(Sink):
    """A bolt whose ``declare_output_fields`` is whatever a row says."""

    def __init__(self, declare: Callable[[OutputFieldsDeclarer], Any]) -> None:
        self.declare = declare

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        result: None = self.declare(declarer)
        return result


class Configured(Sink):
    """A bolt whose ``get_component_configuration`` is whatever a row says."""

    def __init__(self, conf: Callable[[], Any]) -> None:
        self.conf = conf

    def get_component_configuration(self) -> Mapping[str, object] | None:
        conf: Mapping[str, object] | None = self.conf()
        return conf


# Deliberately wrong classes; type checkers would refuse most of them.


class NoNextTuple(BaseRichSpout):
    pass


class JavaName(BaseRichSpout):
    def nextTuple(self) -> None:
        pass


class Misspelt(BaseRichBolt):
    def exectue(self, tup: object) -> None:
        pass


class NoExecute(BaseBasicBolt):
    pass


class WithoutCollector(BaseBasicBolt):
    def execute(self, tup: object) -> None:  # type: ignore[override]
        pass


class TooManyParameters(BaseRichBolt):
    def execute(self, tup: object, collector: object) -> None:  # type: ignore[override]
        pass


class WithoutConf(Sink):
    def prepare(self, context: object, collector: object) -> None:  # type: ignore[override]
        pass


class Async(BaseRichBolt):
    async def execute(self, tup: object) -> None:  # type: ignore[override]
        pass


class Yields(BaseRichSpout):
    def next_tuple(self) -> Iterator[list[str]]:  # type: ignore[override]
        yield ["word"]


class Hides(BaseRichSpout):
    open = "the door"  # type: ignore[assignment]

    def next_tuple(self) -> None:
        pass


class OnlyAComponent(BaseComponent):
    def execute(self, tup: object) -> None:
        pass


def key_error(declarer: OutputFieldsDeclarer) -> None:
    names: dict[str, str] = {}
    declarer.declare(names["word"])


Mistake = Callable[[Any], object]
"""Gets a builder that has the spout 'lines'; typed Any, because mistakes break types as well."""


def bolt(component: object, **kwargs: object) -> Mistake:
    """Set ``component`` as 'bolt', reading from 'lines'."""
    return lambda b: b.set_bolt("bolt", component, **kwargs).shuffle_grouping("lines")


def spout(component: object) -> Mistake:
    """Set ``component`` as 'spout'."""
    return lambda b: b.set_spout("spout", component)


def declared(declare: Callable[[Any], Any]) -> Mistake:
    """Let the bolt 'bolt' declare its streams by ``declare``."""
    return bolt(Declares(declare))


def subscribed(subscribe: Callable[[Any], object]) -> Mistake:
    """Subscribe the bolt 'bolt' by ``subscribe``."""
    return lambda b: subscribe(b.set_bolt("bolt", Sink()))


MISTAKES: dict[str, tuple[Mistake, str]] = {
    # ids
    "id is taken by a spout": (
        lambda b: b.set_bolt("lines", Sink()),
        "component id 'lines' is already taken by a spout, a Lines; ids are unique over",
    ),
    "id is taken by a bolt": (
        lambda b: (b.set_bolt("x", Sink()), b.set_bolt("x", Sink())),
        "component id 'x' is already taken by a bolt, a Sink",
    ),
    "id is no str": (lambda b: b.set_spout(1, Lines()), "set_spout got 1 as id; component ids are"),
    "id is forgotten": (lambda b: b.set_bolt(Sink(), 2), "as id; component ids are str, and come"),
    "id is empty": (lambda b: b.set_bolt("", Sink()), "set_bolt got an empty id; name the bolt"),
    "id is reserved": (
        lambda b: b.set_bolt("__sink", Sink()),
        "bolt id '__sink' begins with '__', which is kept for the system; choose another id",
    ),
    # parallelism
    "hint is 0": (bolt(Sink(), parallelism_hint=0), "bolt 'bolt' has parallelism_hint 0; the num"),
    "hint is negative": (bolt(Sink(), parallelism_hint=-1), "parallelism_hint -1; the number of"),
    "hint is True": (bolt(Sink(), parallelism_hint=True), "hint True; the number of executors is"),
    "hint is a float": (bolt(Sink(), parallelism_hint=2.0), "hint 2.0; the number of executors is"),
    "hint is a str": (
        bolt(Sink(), parallelism_hint="2"),
        "hint '2'; the number of executors",
    ),
    "hint is None": (bolt(Sink(), parallelism_hint=None), "hint None; the number of executors is"),
    "tasks are 0": (
        subscribed(lambda d: d.set_num_tasks(0)),
        "bolt 'bolt': set_num_tasks got 0; the number of tasks is an int of at least 1",
    ),
    "tasks are True": (subscribed(lambda d: d.set_num_tasks(True)), "set_num_tasks got True"),
    "tasks are None": (subscribed(lambda d: d.set_num_tasks(None)), "set_num_tasks got None"),
    # objects
    "a class as bolt": (
        bolt(Sink),
        "the class Sink; pass an instance: Sink()",
    ),
    "a class as spout": (spout(Lines), "set_spout('spout') got the class Lines; pass an instance"),
    "a spout as bolt": (
        bolt(Lines()),
        "got a Lines, which is a spout; use set_spout",
    ),
    "a bolt as spout": (spout(Sink()), "got a Sink, which is a bolt; use set_bolt"),
    "a str as bolt": (
        bolt("sink"),
        "set_bolt('bolt') got a str; expected an instance of a class derived from BaseRichBolt, "
        "BaseBasicBolt or BatchBolt",
    ),
    "None as spout": (spout(None), "got None; expected an instance of a class derived from"),
    "a function as bolt": (bolt(lambda tup: None), "set_bolt('bolt') got a function; expected"),
    "an object of the common base": (bolt(OnlyAComponent()), "got an OnlyAComponent; expected an"),
    # hooks
    "no next_tuple": (
        spout(NoNextTuple()),
        "spout 'spout': class NoNextTuple does not define next_tuple(self)",
    ),
    "next_tuple in camel case": (
        spout(JavaName()),
        "class JavaName does not define next_tuple(self); is it what 'nextTuple' was meant to be?",
    ),
    "execute misspelt": (
        bolt(Misspelt()),
        "class Misspelt does not define execute(self, tup); is it what 'exectue' was meant to be?",
    ),
    "no execute": (bolt(NoExecute()), "NoExecute does not define execute(self, tup, collector)"),
    "a base class itself": (bolt(BaseRichBolt()), "class BaseRichBolt does not define execute("),
    "execute of a basic bolt without collector": (
        bolt(WithoutCollector()),
        "bolt 'bolt': WithoutCollector.execute(tup) cannot be called as "
        "execute(tup, collector); give it exactly these parameters, after self",
    ),
    "execute with too many parameters": (bolt(TooManyParameters()), "be called as execute(tup);"),
    "prepare with too few parameters": (
        bolt(WithoutConf()),
        "cannot be called as prepare(conf, context, collector); give it",
    ),
    "async execute": (bolt(Async()), "bolt 'bolt': Async.execute is async; define it with a plain"),
    "next_tuple that yields": (spout(Yields()), "Yields.next_tuple contains yield, so calling it"),
    "an attribute over a hook": (
        spout(Hides()),
        "Hides.open is a str; it hides the method",
    ),
    # declared streams
    "a stream declared twice": (
        declared(lambda d: (d.declare("a"), d.declare("b"))),
        "bolt 'bolt' declares stream 'default' twice; declare each stream once, with all of its",
    ),
    "a reserved stream": (
        declared(lambda d: d.declare_stream("__x", "a")),
        "bolt 'bolt' declares stream '__x'; ids that begin with '__' belong to the system",
    ),
    "a stream id that is no str": (
        declared(lambda d: d.declare_stream(Fields("a"))),
        "declares a stream with id Fields('a'); stream ids are non-empty str",
    ),
    "an empty stream id": (
        declared(lambda d: d.declare_stream("", "a")),
        "with id ''; stream ids",
    ),
    "a field declared twice": (
        declared(lambda d: d.declare("a", "b", "a")),
        "bolt 'bolt', stream 'default': field 'a' appears twice in ['a', 'b', 'a']",
    ),
    "an empty field": (
        declared(lambda d: d.declare_stream("s", "")),
        "stream 's': a field name",
    ),
    "a field that is no str": (
        declared(lambda d: d.declare(1)),
        "1 is no field name",
    ),
    "direct that is no bool": (
        declared(lambda d: d.declare("a", direct="yes")),
        "declares stream 'default' with direct='yes'; expected True or False",
    ),
    "streams returned": (
        declared(lambda d: ["word"]),
        "bolt 'bolt': declare_output_fields returned a list; it returns None, call declarer.decl",
    ),
    "an exception while declaring": (
        declared(key_error),
        "bolt 'bolt': declare_output_fields of Declares raised KeyError: 'word' (",
    ),
    # subscriptions
    "no input": (
        subscribed(lambda d: None),
        "bolt 'bolt' has no input; subscribe it to a stream, as in "
        "set_bolt('bolt', ...).shuffle_grouping('lines')",
    ),
    "a stream of a component without streams": (
        lambda b: (bolt(Sink())(b), b.set_bolt("more", Sink()).all_grouping("bolt")),
        "bolt 'more' subscribes to stream 'default' of 'bolt', which declares no streams; "
        "declare it in its declare_output_fields",
    ),
    # configuration
    "a bad value on the declarer": (
        subscribed(lambda d: d.set_debug("yes")),
        "bolt 'bolt': topology.debug is 'yes' (str); expected true or false",
    ),
    "a bad cap on the declarer": (
        subscribed(lambda d: d.set_max_task_parallelism(0)),
        "bolt 'bolt': topology.max.task.parallelism is 0 (int); expected an integer of at least 1",
    ),
    "a bad pending on the declarer": (
        subscribed(lambda d: d.set_max_spout_pending(-1)),
        "bolt 'bolt': topology.max.spout.pending is -1 (int); expected",
    ),
    "a misspelt key on the declarer": (
        subscribed(lambda d: d.add_configuration("topology.tsks", 2)),
        "bolt 'bolt': unknown configuration key 'topology.tsks'; did you mean 'topology.tasks'?",
    ),
    "configurations that are no dict": (
        subscribed(lambda d: d.add_configurations(["topology.tasks"])),
        "bolt 'bolt': configuration is a list; expected a dict of key to value",
    ),
    "a bad value of the component": (
        bolt(Configured(lambda: {"topology.tasks": "2"})),
        "bolt 'bolt', get_component_configuration: topology.tasks is '2' (str); expected an",
    ),
    "a configuration of the component that is no dict": (
        bolt(Configured(lambda: 3)),
        "bolt 'bolt', get_component_configuration: configuration is an int; expected a dict",
    ),
    "an exception while configuring": (
        bolt(Configured(lambda: 1 / 0)),
        "bolt 'bolt': get_component_configuration of Configured raised ZeroDivisionError: division",
    ),
}


@pytest.mark.parametrize(("mistake", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_explained(mistake: Mistake, message: str) -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    with pytest.raises(InvalidTopologyException) as caught:  # noqa: PT012 - either may refuse
        mistake(builder)
        builder.create_topology()
    assert message in str(caught.value)


def test_an_empty_topology() -> None:
    with pytest.raises(InvalidTopologyException) as caught:
        TopologyBuilder().create_topology()
    assert str(caught.value) == (
        "the topology is empty; add components with set_spout and set_bolt"
    )


def test_a_topology_without_spouts() -> None:
    builder = TopologyBuilder()
    builder.set_bolt("a", Sink()).shuffle_grouping("b")
    builder.set_bolt("b", Sink()).shuffle_grouping("a")
    with pytest.raises(InvalidTopologyException) as caught:
        builder.create_topology()
    assert str(caught.value) == (
        "the topology has no spout, only a, b; add a source of tuples with set_spout"
    )


def test_an_exception_while_declaring_keeps_its_cause_and_its_place() -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    builder.set_bolt("bolt", Declares(key_error)).shuffle_grouping("lines")
    with pytest.raises(InvalidTopologyException) as caught:
        builder.create_topology()
    assert isinstance(caught.value.__cause__, KeyError)
    line = Declares.declare_output_fields.__code__.co_firstlineno + 1
    assert f"({__file__}, line {line})" in str(caught.value)


def test_a_refused_component_leaves_the_builder_as_it_was() -> None:
    builder: Any = TopologyBuilder()
    builder.set_spout("lines", Lines())
    for wrong in (Sink, Lines(), NoExecute()):
        with pytest.raises(InvalidTopologyException):
            builder.set_bolt("bolt", wrong)
    builder.set_bolt("bolt", Sink()).shuffle_grouping("lines")
    topology: StormTopology = builder.create_topology()
    assert list(topology.components) == ["lines", "bolt"]


def test_extra_parameters_with_defaults_and_star_arguments_are_fine() -> None:
    class Defaults(BaseRichBolt):
        def execute(self, tup: object, extra: int = 0) -> None:
            pass

    class Stars(BaseBasicBolt):
        def execute(self, *args: object) -> None:
            pass

    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    builder.set_bolt("defaults", Defaults()).shuffle_grouping("lines")
    builder.set_bolt("stars", Stars()).shuffle_grouping("lines")
    assert len(builder.create_topology().bolts) == 2
