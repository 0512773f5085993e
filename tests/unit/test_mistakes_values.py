"""What users get wrong with the values of tuples, and what they are told; as `test_mistakes`."""

from __future__ import annotations

import pytest

from tests.mistakes import FILE, NUMBERS, Mistake, building, check_mistake, emitting

pytestmark = pytest.mark.usefixtures("own_folder")

CASH = """
class Cash:
    def __init__(self, cents):
        self.cents = cents

def dump(cash):
    return {dump}

def load(data):
    return {load}
"""
REGISTERED = 'storm_py.serializers=[["flow:Cash", "flow:dump", "flow:load"]]'


def cash(dump: str = "b'%d' % cash.cents", load: str = "Cash(int(data))") -> str:
    """A topology that emits an instance of a class with a serializer."""
    return emitting(
        "self.collector.emit([1, Cash(5)])", "self.collector.end_of_input()"
    ) + CASH.format(dump=dump, load=load)


MISTAKES = [
    Mistake(
        "instance of any class",
        (
            "component 'numbers', stream 'default'",
            "field 'parity': value[1] of type flow.Cash cannot be serialised; emit plain values",
            "or register a serializer for the class with Config.register_serialization",
        ),
        text=cash(),
        code=1,
        traceback=True,
    ),
    Mistake(
        "Enum of a function",
        (
            "field 'parity': value[1]['a'][0] of type flow.colours.<locals>.Colour",
            "is defined inside a function, where no other process can import it; define it at the",
        ),
        text="import enum\n"
        + emitting("self.collector.emit([1, {'a': [colours().RED]}])")
        + "\ndef colours():\n    class Colour(enum.IntEnum):\n        RED = 1\n    return Colour\n",
        code=1,
        traceback=True,
    ),
    Mistake(
        "attribute beside the fields",
        ("field 'number': value[0] of type flow.Order", "'late' is no field and would be lost"),
        text="from dataclasses import dataclass\n"
        + emitting("order = Order(1)", "order.late = True", "self.collector.emit([order, 1])")
        + "\n@dataclass\nclass Order:\n    id: int\n",
        code=1,
        traceback=True,
    ),
    Mistake(
        "array of objects",
        ("field 'number': value[0] of type numpy.ndarray", "its elements are Python objects; give"),
        text="import numpy as np\n"
        + emitting("self.collector.emit([np.array([1, 'a'], object), 1])"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "array as a key",
        ("grouping field(s) number hold a value of type numpy.ndarray, which cannot be a key",),
        text="import numpy as np\n"
        + emitting("self.collector.emit([np.zeros(2), 1])").replace(
            "shuffle_grouping('numbers')", "fields_grouping('numbers', ['number'])"
        ),
        code=1,
        traceback=True,
    ),
    Mistake(
        "list that holds itself",
        ("field 'parity': value[1][0][0]", "is nested deeper than 64 levels, or holds itself"),
        text=emitting("loop = []", "loop.append(loop)", "self.collector.emit([1, loop])"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "serializer that is not there",
        ("storm_py.serializers: the module flow has no Cash",),
        args=(FILE, "--inline", "-c", REGISTERED),
    ),
    Mistake(
        "serializer that is not there, in processes",
        ("storm_py.serializers: the module flow has no Cash",),
        args=(FILE, "-c", REGISTERED),
    ),
    Mistake(
        "serializers of another form",
        ("storm_py.serializers is {'flow:Cash': 1} (dict); expected a list of [class, dumps, loa",),
        args=(FILE, "--inline", "-c", 'storm_py.serializers={"flow:Cash": 1}'),
    ),
    Mistake(
        "serializer for a component",
        ("spout 'numbers': storm_py.serializers cannot be set for one component",),
        text=building(f"{NUMBERS}.add_configuration('storm_py.serializers', [])"),
    ),
    Mistake(
        "dumps that returns text",
        ("value[1] of type flow.Cash", "its serializer flow.dump returned str, expected bytes"),
        text=cash(dump="str(cash.cents)"),
        args=(FILE, "--inline", "-c", REGISTERED),
        code=1,
        traceback=True,
    ),
    Mistake(
        "dumps that raises",
        ("value[1] of type flow.Cash", "its serializer flow.dump raised AttributeError: 'Cash' ob"),
        text=cash(dump="cash.cent"),
        args=(FILE, "--inline", "-c", REGISTERED),
        code=1,
        traceback=True,
    ),
    Mistake(
        "loads that raises",
        ("a value of the class flow.Cash cannot be read: flow.load raised NameError: name 'date'",),
        text=cash(load="Cash(date)"),
        args=(FILE, "--inline", "-c", REGISTERED),
        code=1,
    ),
    Mistake(
        "pickling what cannot be pickled",
        ("field 'parity': value[1] of type generator cannot be serialised: pickling it raised",),
        text=emitting("self.collector.emit([1, (n for n in [])])"),
        args=(FILE, "--inline", "-c", "storm_py.fall.back.on.pickle=true"),
        code=1,
        traceback=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.id)
def test_mistake_gets_a_clear_message(mistake: Mistake) -> None:
    check_mistake(mistake)


def test_a_good_serializer_is_good() -> None:
    """Otherwise rows might fail for a reason that is none of theirs."""
    good = Mistake("", (), text=cash(), args=(FILE, "--inline", "-c", REGISTERED), code=0)
    check_mistake(good)
