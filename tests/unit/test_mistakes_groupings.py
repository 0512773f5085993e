"""Mistakes in custom groupings and in a file's configuration, as the command tells of them.

Each row goes through the real command, in one thread; the traceback is the user's part alone.
"""

from __future__ import annotations

import pytest

from tests.mistakes import BASE, Mistake, check_mistake

pytestmark = pytest.mark.usefixtures("own_folder")

FLOW = (
    "import threading\n"
    + BASE
    + """\
class Mine(CustomStreamGrouping):
    def __init__(self):
        {init}

    def prepare(self, context, stream, target_tasks):
        {prepare}

    def choose_tasks(self, task_id, values):
        {choose}

def topology(args):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("echo", Echo(), 2).custom_grouping("numbers", Mine())
    return {returned}
"""
)


def flow(
    init: str = "pass",
    prepare: str = "self.tasks = target_tasks",
    choose: str = "return self.tasks",
    returned: str = "builder",
) -> str:
    return FLOW.format(init=init, prepare=prepare, choose=choose, returned=returned)


MISTAKES: dict[str, tuple[str, int, bool, tuple[str, ...]]] = {
    "prepare raises": (
        flow(prepare="raise OSError('no table')"),
        1,
        True,
        ("ERROR numbers (task 3), Mine.prepare for 'echo': OSError: no table", "in prepare"),
    ),
    "choose_tasks raises": (
        flow(choose="return {}[values[1]]"),
        1,
        True,
        (
            "ERROR numbers (task 3), next_tuple: EmitError: component 'numbers', stream 'default'",
            "choose_tasks of custom grouping Mine for 'echo' raised KeyError: 'odd'",
            "in choose_tasks",
            'self.collector.emit([1, "odd"])',
        ),
    ),
    "a task that is not the bolt's": (
        flow(choose="return [task_id]"),
        1,
        True,
        ("custom grouping Mine for 'echo' returned 3, which is none", "expected task ids out of 1"),
    ),
    "choose_tasks without return": (
        flow(choose="self.tasks"),
        1,
        True,
        ("custom grouping Mine for 'echo' returned None", "did it forget to return them?"),
    ),
    "an object that cannot be copied": (
        flow(init="self.lock = threading.Lock()"),
        2,
        False,
        (
            "bolt 'echo', custom grouping on 'numbers': a Mine cannot be copied for its tasks",
            "because of its attribute 'lock'",
            "make files, sockets, threads and locks in prepare(), not in __init__",
        ),
    ),
    "a configuration of a wrong kind": (
        flow(returned="builder, ['topology.workers=2']"),
        2,
        False,
        ("'topology' in flow.py returned a tuple (a TopologyBuilder, a list)", "a Config or dict"),
    ),
    "a configuration with a bad value": (
        flow(returned="builder, {'topology.debug': 'yes'}"),
        2,
        False,
        ("the configuration that 'topology' in flow.py gives: topology.debug is 'yes' (str)",),
    ),
}


@pytest.mark.parametrize(
    ("text", "code", "traceback", "fragments"), MISTAKES.values(), ids=MISTAKES
)
def test_a_mistake_gets_a_clear_message(
    text: str, code: int, traceback: bool, fragments: tuple[str, ...]
) -> None:
    check_mistake(Mistake("", fragments, text=text, code=code, traceback=traceback))


def test_the_good_file_is_good() -> None:
    check_mistake(Mistake("", (), text=flow(returned="builder, {}"), code=0))
