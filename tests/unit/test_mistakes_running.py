"""What users get wrong inside spouts and bolts, and what they are told while it runs.

As in `test_mistakes`, each row goes through the real command, in one thread.
"""

from __future__ import annotations

import pytest

from tests.mistakes import Mistake, building, check_mistake, emitting

pytestmark = pytest.mark.usefixtures("own_folder")

TRACKED = "self.collector.emit([1, 'odd'], msg_id=1)"


def guilty(text: str, kind: str, *methods: str) -> str:
    """A topology file in which these methods of the spout or the bolt are the user's."""
    head, tail = text.split("def topology", 1)
    lines = [f"class Wrong({kind}):"]
    for method in methods:
        name, _, body = method.partition(": ")
        lines += [f"    def {name}:", *(f"        {line}" for line in body.split("; "))]
    return head + "\n".join(lines) + "\n\ndef topology" + tail


def bolt(*methods: str, kind: str = "BaseRichBolt") -> str:
    """A tracked tuple goes to a bolt with these methods; "name(parameters): line; line"."""
    prepare = "prepare(self, conf, context, collector): self.collector = collector"
    if kind == "BaseRichBolt" and not any(method.startswith("prepare") for method in methods):
        methods = (prepare, *methods)
    text = emitting(TRACKED, "self.collector.end_of_input()").replace("Echo(), ", "Wrong(), ")
    return guilty(text.replace("'echo', Echo()", "'echo', Wrong()"), kind, *methods)


def spout(*methods: str) -> str:
    """A spout with these methods, in front of a bolt that acks."""
    text = building(
        "builder.set_spout('numbers', Wrong())",
        "builder.set_bolt('echo', Echo()).shuffle_grouping('numbers')",
    )
    return guilty(text, "Numbers", *methods)


def failing(call: str, text: str, who: str = "echo (task 1)") -> Mistake:
    """User code that raises in this call: told where, which and from which line."""
    return Mistake(
        f"exception in {who.split()[0]} {call}",
        (f"ERROR {who}, {call}: ZeroDivisionError", "flow.py", "1 / 0"),
        text=text,
        code=1,
        traceback=True,
    )


def running(id: str, text: str, *fragments: str, where: str = "echo (task 1), execute") -> Mistake:
    """A call that is refused, in the bolt unless said otherwise."""
    return Mistake(id, (f"ERROR {where}: ", *fragments), text=text, code=1, traceback=True)


EXECUTE = "execute(self, tup): "
ENDS = "next_tuple(self): self.collector.end_of_input()"

MISTAKES = [
    # what is answered twice, or not a tuple
    running(
        "double ack",
        bolt(EXECUTE + "self.collector.ack(tup); self.collector.ack(tup)"),
        "EmitError",
        "cannot be acked: it was acked or failed before",
        "ack or fail each input tuple once",
    ),
    running(
        "fail after ack",
        bolt(EXECUTE + "self.collector.ack(tup); self.collector.fail(tup)"),
        "cannot be failed: it was acked or failed before",
    ),
    running(
        "reset after ack",
        bolt(EXECUTE + "self.collector.ack(tup); self.collector.reset_timeout(tup)"),
        "cannot be renewed: it was acked or failed before",
    ),
    running(
        "emit anchored to an acked tuple",
        bolt(
            "declare_output_fields(self, declarer): declarer.declare('x')",
            EXECUTE + "self.collector.ack(tup); self.collector.emit([1], tup)",
        ),
        "cannot be used as an anchor: it was acked or failed before",
        "after the last tuple anchored to it was emitted",
    ),
    running(
        "ack of an id",
        bolt(EXECUTE + "self.collector.ack(17)"),
        "ack got an int; expected the input tuple that execute was given",
    ),
    running(
        "fail of the values",
        bolt(EXECUTE + "self.collector.fail(tup.values)"),
        "fail got a list; expected the input tuple that execute was given",
    ),
    running(
        "reset of nothing",
        bolt(EXECUTE + "self.collector.reset_timeout(None)"),
        "reset_timeout got None; expected the input tuple that execute was given",
    ),
    # what other components may do
    running(
        "ack in a basic bolt",
        bolt("execute(self, tup, collector): collector.ack(tup)", kind="BaseBasicBolt"),
        "this collector has no ack: a BaseBasicBolt acks its tuple by itself",
        "extend BaseRichBolt to ack",
    ),
    running(
        "fail in a basic bolt",
        bolt("execute(self, tup, collector): collector.fail(tup)", kind="BaseBasicBolt"),
        "this collector has no fail: a BaseBasicBolt fails its tuple by raising FailedException",
    ),
    running(
        "reset_timeout in a basic bolt",
        bolt("execute(self, tup, collector): collector.reset_timeout(tup)", kind="BaseBasicBolt"),
        "this collector has no reset_timeout: extend BaseRichBolt",
    ),
    running(
        "ack in a spout",
        emitting("self.collector.ack(1)"),
        "this collector has no ack: bolts ack tuples; the spout is told",
        "its own method ack(msg_id)",
        where="numbers (task 2), next_tuple",
    ),
    running(
        "fail in a spout",
        emitting("self.collector.fail(1)"),
        "this collector has no fail: bolts fail tuples; the spout is told",
        where="numbers (task 2), next_tuple",
    ),
    running(
        "end_of_input of a bolt's collector",
        bolt(EXECUTE + "self.collector.end_of_input()"),
        "this collector has no end_of_input: spouts end their input; a bolt defines a method",
    ),
    # emits
    running(
        "stream in the place of anchors",
        bolt(
            "declare_output_fields(self, declarer): declarer.declare('x')",
            EXECUTE + "self.collector.emit([1], 'default')",
        ),
        "anchors of type str",
        "a stream id goes into stream=...",
    ),
    running(
        "values that are not in a list",
        bolt(
            "declare_output_fields(self, declarer): declarer.declare('x', 'y')",
            EXECUTE + "self.collector.emit(7, 8)",
        ),
        "emit got 8, anchors of type int; expected the input tuple or a list of input tuples",
        "behind one list of values: emit([1, 2], tup)",
    ),
    running(
        "an anchor that is no tuple",
        bolt(
            "declare_output_fields(self, declarer): declarer.declare('x')",
            EXECUTE + "self.collector.emit([1], [tup, 17])",
        ),
        "an anchor of type int, expected a Tuple",
    ),
    running(
        "object deep inside a list",
        emitting("self.collector.emit([1, [2, {'three': (4, [object()])}]])"),
        "field 'parity'",
        "of type object",
        where="numbers (task 2), next_tuple",
    ),
    running(
        "list that holds itself",
        emitting("loop = []", "loop.append(loop)", "self.collector.emit([1, loop])"),
        "field 'parity'",
        where="numbers (task 2), next_tuple",
    ),
    running(
        "emit without declaring anything",
        bolt(EXECUTE + "self.collector.emit([1], tup)"),
        "component 'echo'",
        "which it has not declared (declared: none); define declare_output_fields(self, declarer)",
    ),
    running(
        "emit_direct on a stream that is not direct",
        emitting("self.collector.emit_direct(1, [1, 'odd'])"),
        "component 'numbers', stream 'default'",
        "not",
        "direct",
        where="numbers (task 2), next_tuple",
    ),
    # reading
    running(
        "field that is not there",
        bolt(EXECUTE + "tup['party']"),
        "'party'",
        "number, parity",
        "did you mean 'parity'?",
    ),
    # user code that raises
    failing("open", spout("open(self, conf, context, collector): 1 / 0"), "numbers (task 2)"),
    failing("next_tuple", spout("next_tuple(self): 1 / 0"), "numbers (task 2)"),
    failing(
        "ack", spout(f"next_tuple(self): {TRACKED}", "ack(self, msg_id): 1 / 0"), "numbers (task 2)"
    ),
    failing(
        "fail",
        bolt(EXECUTE + "self.collector.fail(tup)").replace(
            "class Guilty(Numbers):",
            "class Guilty(Numbers):\n    def fail(self, msg_id):\n        1 / 0\n",
        ),
        "numbers (task 2)",
    ),
    failing("activate", spout("activate(self): 1 / 0"), "numbers (task 2)"),
    failing("prepare", bolt("prepare(self, conf, context, collector): 1 / 0", EXECUTE + "pass")),
    failing("execute", bolt(EXECUTE + "1 / 0")),
    failing("end_of_input", bolt(EXECUTE + "self.collector.ack(tup)", "end_of_input(self): 1 / 0")),
    running(
        "sys.exit in a bolt",
        "import sys\n" + bolt(EXECUTE + "sys.exit(3)"),
        "SystemExit: 3",
    ),
]

CLOSING = [
    ("close", spout(ENDS, "close(self): 1 / 0"), "numbers (task 2)"),
    ("cleanup", bolt(EXECUTE + "self.collector.ack(tup)", "cleanup(self): 1 / 0"), "echo (task 1)"),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.id)
def test_mistake_gets_a_clear_message(mistake: Mistake) -> None:
    check_mistake(mistake)


@pytest.mark.parametrize(("call", "text", "who"), CLOSING)
def test_an_exception_at_the_very_end_is_shown_and_fails_nothing(
    call: str, text: str, who: str
) -> None:
    fragments = (f"ERROR {who}, {call}: ZeroDivisionError", "1 / 0")
    check_mistake(Mistake(call, fragments, text=text, code=0, traceback=True))


def test_every_mistake_has_a_name_of_its_own() -> None:
    assert len({mistake.id for mistake in MISTAKES}) == len(MISTAKES) >= 20
