"""What users get wrong in a topology file or on the command line, and what they are told.

Each row goes through the real command. The message must name the thing, the value and what was
expected, in one go and without a traceback, unless it was the user's own code that raised.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from storm_py.cli import main
from tests.mistakes import (
    BASE,
    FILE,
    GOOD,
    NUMBERS,
    Mistake,
    building,
    check_mistake,
    emitting,
)

pytestmark = pytest.mark.usefixtures("own_folder")

MISTAKES = [
    # naming the topology
    Mistake("no topology", ("Missing argument 'TOPOLOGY'",), args=()),
    Mistake(
        "missing folder",
        ("nowhere/flow.py does not exist", "nor does its folder nowhere"),
        args=("nowhere/flow.py",),
    ),
    Mistake("folder", (". is a folder; name a file in it", "flow.py"), args=(".",)),
    Mistake("nothing", ("'' names no topology", "path/file.py[:name]"), args=("",)),
    Mistake(
        "misspelt file", ("flwo.py does not exist", "did you mean 'flow.py'?"), args=("flwo.py",)
    ),
    Mistake(
        "misspelt name",
        ("flow.py) has no 'topologie'", "did you mean 'topology'?"),
        args=("flow.py:topologie",),
    ),
    Mistake(
        "no such module",
        ("no module 'flows.counting'", "did you mean 'flow'?"),
        args=("flows.counting",),
    ),
    Mistake(
        "name of the standard library",
        ("csv.py would be imported as 'csv'", "standard library", "rename the file"),
        args=("csv.py",),
    ),
    Mistake(
        "two topologies",
        ("unexpected extra argument (other.py)", "what is meant for the topology goes behind --"),
        args=(FILE, "other.py"),
    ),
    # the file itself
    Mistake(
        "syntax error",
        ("flow.py is not valid Python", "flow.py, line 2", "SyntaxError"),
        text="import os\ndef topology(args:\n    pass\n",
    ),
    Mistake(
        "import that fails",
        ("importing flow.py failed", "flow.py", "No module named 'numpyy'"),
        text="import numpyy\n",
        traceback=True,
    ),
    Mistake(
        "exception while building",
        ("'topology' in flow.py failed", "ZeroDivisionError", "line 19", "return 1 / 0"),
        text=BASE + "def topology(args):\n    return 1 / 0\n",
        traceback=True,
    ),
    Mistake(
        "returns nothing",
        ("'topology' in flow.py returned None", "did it forget to return the builder?"),
        text=BASE + "def topology(args):\n    TopologyBuilder()\n",
    ),
    Mistake(
        "wrong signature",
        ("'topology' in flow.py has the parameters ()", "called with one", "def topology(args)"),
        text=BASE + "def topology():\n    return TopologyBuilder()\n",
    ),
    # building
    Mistake(
        "duplicate id",
        ("component id 'numbers' is already taken by a spout, a Numbers",),
        text=building(NUMBERS, "builder.set_bolt('numbers', Echo()).shuffle_grouping('numbers')"),
    ),
    Mistake(
        "unknown component",
        ("bolt 'echo' subscribes to 'number'", "it has: numbers; did you mean 'numbers'?"),
        text=building(NUMBERS, "builder.set_bolt('echo', Echo()).shuffle_grouping('number')"),
    ),
    Mistake(
        "unknown component that looks like the bolt itself",
        (
            "bolt 'echo2' subscribes to 'echo'",
            "no component of this topology; it has: numbers (flow.py, line 21)\n",
        ),
        text=building(NUMBERS, "builder.set_bolt('echo2', Echo()).shuffle_grouping('echo')"),
    ),
    Mistake(
        "unknown stream",
        ("bolt 'echo' subscribes to stream 'defalt' of 'numbers'", "did you mean 'default'?"),
        text=building(
            NUMBERS, "builder.set_bolt('echo', Echo()).shuffle_grouping('numbers', 'defalt')"
        ),
    ),
    Mistake(
        "unknown field",
        (
            "by field 'party'",
            "declared fields: number, parity",
            "did you mean 'parity'? (flow.py, line 23)",
        ),
        text=building(
            NUMBERS,
            "(",
            "    builder.set_bolt('echo', Echo())",
            "    .fields_grouping('numbers', ['party'])",
            ")",
        ),
    ),
    Mistake(
        "class instead of instance",
        ("set_bolt('echo') got the class Echo; pass an instance: Echo()",),
        text=building(NUMBERS, "builder.set_bolt('echo', Echo).shuffle_grouping('numbers')"),
    ),
    Mistake(
        "bolt as spout",
        ("set_spout('echo') got an Echo, which is a bolt; use set_bolt",),
        text=building("builder.set_spout('echo', Echo())"),
    ),
    Mistake(
        "parallelism 0",
        ("spout 'numbers' has parallelism_hint 0", "an int of at least 1"),
        text=building("builder.set_spout('numbers', Numbers(), 0)"),
    ),
    Mistake(
        "no spout",
        ("the topology has no spout, only echo", "set_spout"),
        text=building("builder.set_bolt('echo', Echo()).shuffle_grouping('echo')"),
    ),
    Mistake(
        "bolt without input",
        ("bolt 'echo' has no input", "shuffle_grouping('numbers')"),
        text=building(NUMBERS, "builder.set_bolt('echo', Echo())"),
    ),
    Mistake(
        "reserved id",
        ("spout id '__numbers' begins with '__'", "choose another id"),
        text=building("builder.set_spout('__numbers', Numbers())"),
    ),
    Mistake(
        "misspelt method",
        ("bolt 'echo': class Mute does not define execute(self, tup, collector)", "'exeute'"),
        text=building(NUMBERS, "builder.set_bolt('echo', Mute()).shuffle_grouping('numbers')")
        + "\nclass Mute(BaseBasicBolt):\n    def exeute(self, tup, collector):\n        pass\n",
    ),
    Mistake(
        "more tasks than key groups",
        ("bolt 'echo' has 3 tasks and a fields grouping", "only 2 groups", "storm_py.key.groups"),
        text=building(
            NUMBERS, "builder.set_bolt('echo', Echo(), 3).fields_grouping('numbers', 'number')"
        ),
        args=(FILE, "--inline", "-c", "storm_py.key.groups=2"),
    ),
    Mistake(
        "unknown key for a component",
        ("spout 'numbers'", "'storm_py.batch.row'", "did you mean 'storm_py.batch.rows'?"),
        text=building(f"{NUMBERS}.add_configuration('storm_py.batch.row', 5)"),
    ),
    Mistake(
        "bad value for a component",
        ("spout 'numbers'", "topology.tasks is 0 (int)", "expected an integer of at least 1"),
        text=building(f"{NUMBERS}.add_configuration('topology.tasks', 0)"),
    ),
    Mistake(
        "configuration that is no plain value",
        ("spout 'numbers': since is datetime.date(2020, 1, 1)", "a value that JSON knows"),
        text="import datetime\n"
        + building(f"{NUMBERS}.add_configuration('since', datetime.date(2020, 1, 1))"),
    ),
    Mistake(
        "lock made too early",
        ("bolt 'echo'", "cannot pickle '_thread.lock'", "'lock'", "prepare()", "__init__"),
        text="import threading\n"
        + building(
            NUMBERS,
            "bolt = Echo()",
            "bolt.lock = threading.Lock()",
            "builder.set_bolt('echo', bolt).shuffle_grouping('numbers')",
        ),
    ),
    # options
    Mistake(
        "-c without =",
        ("'-c'", "'topology.workers' sets nothing", "expected key=value"),
        args=(FILE, "-c", "topology.workers"),
    ),
    Mistake(
        "unknown key",
        ("unknown configuration key 'storm_py.batch.row'", "did you mean 'storm_py.batch.rows'?"),
        args=(FILE, "-c", "storm_py.batch.row=5"),
    ),
    Mistake(
        "misspelt key of Storm",
        ("unknown configuration key 'topology.worker'", "did you mean 'topology.workers'?"),
        args=(FILE, "-c", "topology.worker=2"),
    ),
    Mistake(
        "list that breaks off",
        (
            "'-c'",
            "mine=[1, 2 begins as JSON but is none: Expecting ',' delimiter at character 6",
            'as a text it goes into quotes: mine="..."',
        ),
        args=(FILE, "-c", "mine=[1, 2"),
    ),
    Mistake(
        "dict with Python's quotes",
        ("mine={'a': 1} begins as JSON but is none: Expecting property name", "at character 2"),
        args=(FILE, "-c", "mine={'a': 1}"),
    ),
    Mistake(
        "wrong type of a value",
        ("storm_py.batch.rows is 'many' (str)", "expected an integer from 1 to 65535"),
        args=(FILE, "-c", "storm_py.batch.rows=many"),
    ),
    Mistake(
        "name that is no name",
        ("topology.name is 'a/b' (str)", "holds none of / . : \\"),
        args=(FILE, "-c", "topology.name=a/b"),
    ),
    Mistake(
        "no workers",
        ("'--workers': '0'", "a whole number of at least 1"),
        args=(FILE, "--workers", "0"),
    ),
    Mistake(
        "workers in words",
        ("'--workers': 'two'", "a whole number of at least 1"),
        args=(FILE, "--workers", "two"),
    ),
    Mistake(
        "negative ttl",
        ("'--ttl': '-1'", "a number above 0"),
        args=(FILE, "--ttl", "-1"),
    ),
    Mistake(
        "json in no folder",
        ("--json results/run.json", "there is no folder results"),
        args=(FILE, "--json", "results/run.json"),
    ),
    Mistake("json to a folder", ("--json .", "is a folder"), args=(FILE, "--json", ".")),
    Mistake(
        "logs into a file", ("--log-dir flow.py", "is not a folder"), args=(FILE, "--log-dir", FILE)
    ),
    Mistake(
        "unknown option",
        ("--inlin", "--inline"),
        args=(FILE, "--inlin"),
    ),
    Mistake(
        "the topology's option before --",
        ("--verify", "what is meant for the topology goes behind --"),
        args=(FILE, "--verify"),
    ),
    Mistake(
        "option that the topology refuses",
        ("unrecognized arguments: --nope",),
        text="import argparse\n"
        + BASE
        + "def topology(args):\n    argparse.ArgumentParser().parse_args(args)\n",
        args=(FILE, "--", "--nope"),
    ),
    # while it runs
    Mistake(
        "undeclared stream",
        ("ERROR numbers (task 2), next_tuple: EmitError", "on stream 'odd'", "declared: default"),
        text=emitting("self.collector.emit([1, 2], stream='odd')"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "wrong width",
        ("component 'numbers', stream 'default'", "1 value(s), expected 2: number, parity"),
        text=emitting("self.collector.emit([1])"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "value that cannot travel",
        ("field 'parity'", "of type object cannot be serialised", "emit plain values"),
        text=emitting("self.collector.emit([1, object()])"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "str instead of a list",
        ("emit got a str, expected a list of 2 value(s)", "emit([value])"),
        text=emitting("self.collector.emit('odd')"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "a number instead of a list",
        ("emit got an int, expected a list of 2 value(s)",),
        text=emitting("self.collector.emit(1, 2)"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "emit after the end",
        ("component 'numbers'", "emit after end_of_input()"),
        text=emitting("self.collector.end_of_input()", "self.collector.emit([1, 'odd'])"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "ended twice",
        ("spout 'numbers' calls end_of_input() a second time",),
        text=emitting("self.collector.end_of_input()", "self.collector.end_of_input()"),
        code=1,
        traceback=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.id)
def test_mistake_gets_a_clear_message(mistake: Mistake) -> None:
    check_mistake(mistake)


def test_the_good_file_is_good() -> None:
    """Otherwise rows might fail for a reason that is none of theirs."""
    Path(FILE).write_text(GOOD, encoding="utf-8")
    result = CliRunner().invoke(main, ["local", FILE, "--inline"])
    assert (result.exit_code, result.stdout) == (0, ""), result.output


def test_every_mistake_has_a_name_of_its_own() -> None:
    assert len({mistake.id for mistake in MISTAKES}) == len(MISTAKES) >= 20
