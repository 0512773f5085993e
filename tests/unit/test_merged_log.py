"""MergedLog: one terminal for many daemons."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from storm_py.one_machine.output import LAST_LINES, MergedLog


def merged(terminal: bool = False) -> tuple[MergedLog, io.StringIO]:
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        highlight=False,
        soft_wrap=True,
        width=40,
    )
    return MergedLog(console, ["nimbus", "supervisor-1"]), out


def test_each_line_names_who_said_it() -> None:
    log, out = merged()
    log.line("nimbus", "[bold]one[/bold]")
    log.say("two\nthree")
    log.line("supervisor-1", "four" * 20)
    assert out.getvalue() == (
        "nimbus       | [bold]one[/bold]\n"
        "cluster      | two\n"
        "cluster      | three\n"
        f"supervisor-1 | {'four' * 20}\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("an INFO line", "an INFO line"),
        ("a WARNING line", "\x1b[33ma WARNING line\x1b[0m"),
        ("an ERROR line", "\x1b[31man ERROR line\x1b[0m"),
        ("Error: no", "\x1b[31mError: no\x1b[0m"),
        ("no TERROR", "no TERROR"),
    ],
)
def test_colours_on_a_terminal(text: str, shown: str) -> None:
    log, out = merged(terminal=True)
    log.line("nimbus", text)
    log.line("supervisor-1", "x")
    assert out.getvalue() == (
        f"\x1b[35mnimbus       | \x1b[0m{shown}\n\x1b[36msupervisor-1 | \x1b[0mx\n"
    )


def test_last_words() -> None:
    log, _ = merged()
    assert log.last_words("nimbus") == "(nothing)"
    for number in range(LAST_LINES + 2):
        log.line("nimbus", str(number))
    log.line("supervisor-1", "other")
    assert log.last_words("nimbus").splitlines() == [str(n) for n in range(2, LAST_LINES + 2)]


class _Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError("the terminal is gone")


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    log = MergedLog(Console(file=_Gone()), ["nimbus"])
    log.line("nimbus", "one")
    log.say("two")
    assert log.last_words("nimbus") == "one"
