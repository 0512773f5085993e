"""The part of a traceback that users can act on: their own frames, and no message twice."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

import pytest

from storm_py.cli.tracebacks import users_part

OURS = users_part.__code__.co_filename


def test_a_chain_keeps_what_users_can_act_on() -> None:
    try:
        try:
            int("x")
        except ValueError as error:
            raise RuntimeError("no number") from error
    except RuntimeError as error:
        text = "".join(traceback.format_exception(error))
    shown = users_part(text, "RuntimeError: no number")
    assert "ValueError: invalid literal" in shown
    assert "direct cause" in shown
    assert shown.count('raise RuntimeError("no number") from error') == 1
    assert not shown.endswith("RuntimeError: no number")


def test_a_cause_within_storm_py_goes() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "<storm-py emit split.default>", line 11, in emit\n'
        "    row = pack(values)\n"
        '  File "msgpack/_packer.pyx", line 280, in msgpack.Packer.pack\n'
        "storm_py.wire.values.UnserialisableValue: no\n"
        "\n"
        "The above exception was the direct cause of the following exception:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "/home/me/flow.py", line 7, in execute\n'
        "    collector.emit([object()])\n"
        '  File "<storm-py emit split.default>", line 13, in emit\n'
        "    row = repack(values, error)\n"
        f'  File "{OURS}", line 1, in _repack\n'
        "    raise EmitError()\n"
        "storm_py.errors.EmitError: no\n"
    )
    assert users_part(text, "EmitError: no") == (
        "Traceback (most recent call last):\n"
        '  File "/home/me/flow.py", line 7, in execute\n'
        "    collector.emit([object()])"
    )


def test_a_library_belongs_to_its_caller() -> None:
    library = f'  File "{Path(os.__file__)}", line 1, in f\n    g()\n'
    users = '  File "/home/me/flow.py", line 7, in execute\n    f()\n'
    ours = f'  File "{OURS}", line 1, in h\n    f()\n'
    head = "Traceback (most recent call last):\n"
    tail = "ValueError: no\n"
    assert users_part(head + users + library + tail, "") == head + users + library + tail[:-1]
    assert users_part(head + users + ours + library + tail, "ValueError: no") == (
        head + users
    ).rstrip("\n")
    assert users_part(head + ours + library + tail, "ValueError: no") == ""


def test_examples_are_user_code() -> None:
    example = Path(OURS).parents[1] / "topologies" / "word_count.py"
    text = f'Traceback (most recent call last):\n  File "{example}", line 1, in f\nOops: no\n'
    assert users_part(text, "Oops: no") == text.removesuffix("\nOops: no\n")


@pytest.mark.parametrize("text", ["", "ValueError: no", "  + Exception Group Traceback\n  | x"])
def test_what_is_no_traceback_stays(text: str) -> None:
    assert users_part(text, "other") == text


def test_message_of_several_lines() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/home/me/flow.py", line 7, in execute\n'
        "    f()\n"
        "flow.Oops: one\n"
        "two\n"
    )
    assert users_part(text, "Oops: one\ntwo").endswith("    f()")
    assert users_part(text, "other").endswith("    f()\nflow.Oops: one\ntwo")
