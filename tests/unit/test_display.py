"""What an operator sees: figures, errors, output, the summary; on a terminal and elsewhere."""

from __future__ import annotations

import io
import logging
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from storm_py.cli.display import (
    LiveDisplay,
    PlainDisplay,
    Rates,
    StderrConsole,
)
from storm_py.cli.tracebacks import users_part
from storm_py.run import ComponentFigures, RunResult, Snapshot
from storm_py.wire.control import ErrorReport


def snapshot(secs: float = 0.0, emitted: int = 0, executed: int = 0) -> Snapshot:
    return Snapshot(
        topology_id="words-1-1700000000",
        phase="running",
        secs=secs,
        workers=2,
        components=(
            ComponentFigures("line", "spout", 5, 5, 0, emitted, 0, emitted // 2, emitted // 4),
            ComponentFigures("split", "bolt", 8, 16, executed, 2 * executed, emitted - executed),
        ),
        restarts=0,
        errors=0,
    )


def result(final: Snapshot | None = None) -> RunResult:
    return RunResult(
        final=final or snapshot(20.0, 123_456, 1_000_000),
        start_secs=0.8,
        failed=False,
        interrupted=False,
        forced=False,
        lost=(),
        log_dir=None,
    )


@dataclass
class Screen:
    """Where a display writes: `err` is what it shows, `out` stands for stdout."""

    terminal: bool = False
    err: io.StringIO = field(default_factory=io.StringIO)
    out: io.StringIO = field(default_factory=io.StringIO)
    now: float = 0.0

    @property
    def console(self) -> Console:
        return Console(
            file=self.err,
            force_terminal=self.terminal,
            color_system=None,
            width=100,
            soft_wrap=True,
            legacy_windows=False,
        )

    def plain(self, every_secs: float | None = 5.0) -> PlainDisplay:
        return PlainDisplay(self.console, self.out, every_secs, clock=lambda: self.now)

    def live(self) -> LiveDisplay:
        return LiveDisplay(self.console, self.out)

    @property
    def text(self) -> str:
        return self.err.getvalue()

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.text.splitlines()]


def everything(terminal: int) -> str:
    """What was written to a pseudo terminal whose other end is closed by now."""
    found = b""
    try:
        while data := os.read(terminal, 4096):
            found += data
    except OSError:  # how Linux says that there is no more; others return b""
        pass
    os.close(terminal)
    return found.decode()


class TestRates:
    def test_rate_of_spouts_is_emitted_of_bolts_executed(self) -> None:
        rates = Rates()
        rates.add(snapshot(1.0, 100, 10))
        assert rates.add(snapshot(2.0, 300, 60)) == {"line": 200.0, "split": 50.0}

    def test_nothing_to_compare_with(self) -> None:
        rates = Rates()
        assert rates.add(snapshot(0.0, 0, 0)) == {"line": 0.0, "split": 0.0}
        assert rates.add(snapshot(0.0, 50, 5)) == {"line": 0.0, "split": 0.0}

    def test_only_the_last_seconds_count(self) -> None:
        rates = Rates()
        for tenth in range(100):
            rates.add(snapshot(tenth / 10, 1_000_000 + tenth, 0))
        assert rates.add(snapshot(10.0, 1_000_100, 0))["line"] == pytest.approx(10.0)
        for tenth in range(101, 130):
            found = rates.add(snapshot(tenth / 10, 1_000_100, 0))
        assert found["line"] == 0.0

    def test_counters_that_start_again_are_no_negative_rate(self) -> None:
        rates = Rates()
        rates.add(snapshot(1.0, 100, 100))
        assert rates.add(snapshot(2.0, 0, 0)) == {"line": 0.0, "split": 0.0}


class TestPlain:
    def test_a_line_of_figures_every_five_seconds(self) -> None:
        screen = Screen()
        display = screen.plain()
        for quarter in range(50):
            screen.now = quarter / 4
            display.snapshot(snapshot(screen.now, quarter * 1000, quarter))
        assert screen.lines == [
            "5.0s running  line 20,000 emitted  split 20 executed",
            "10.0s running  line 40,000 emitted  split 40 executed",
        ]
        assert screen.out.getvalue() == ""

    def test_restarts_are_in_the_line(self) -> None:
        screen = Screen()
        display = screen.plain()
        screen.now = 6.0
        display.snapshot(replace(snapshot(6.0), restarts=1))
        assert screen.lines[0].endswith("  1 restart")

    def test_no_line_of_figures_beside_a_debugger(self) -> None:
        screen = Screen()
        display = screen.plain(None)
        screen.now = 1000.0
        display.snapshot(snapshot(1000.0))
        assert screen.text == ""

    def test_output_goes_to_stdout_alone(self) -> None:
        screen = Screen()
        display = screen.plain()
        display.output("split (task 3)", "[bold]hello[/bold] :smile: \x1b[1m")
        display.output("split (task 3)", "")
        assert screen.out.getvalue() == "[bold]hello[/bold] :smile: \x1b[1m\n\n"
        assert screen.text == ""

    def test_output_that_stdout_cannot_encode(self) -> None:
        written = io.BytesIO()
        display = PlainDisplay(Screen().console, io.TextIOWrapper(written, encoding="ascii"), None)
        display.output("split (task 3)", "caf\xe9 \udc80")
        display.close()
        display.snapshot(snapshot())
        assert written.getvalue() == b"caf\\xe9 \\udc80\n"

    def test_long_lines_stay_whole(self) -> None:
        screen = Screen()
        screen.plain().event("x" * 500)
        assert screen.lines == [f"storm-py: {'x' * 500}"]

    def test_reader_of_stdout_leaves(self) -> None:
        screen = Screen()
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w", encoding="utf-8") as out:
            display = PlainDisplay(screen.console, out, None)
            for number in range(10):
                display.output("split (task 3)", f"line {number}")
                display.snapshot(snapshot())
            display.finish(result())
        assert screen.lines[0] == (
            "storm-py: nobody reads stdout any more: what user code prints is dropped"
        )
        assert sum("nobody reads" in line for line in screen.lines) == 1

    def test_reader_of_stderr_leaves(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        out = io.StringIO()
        with os.fdopen(writer, "w", encoding="utf-8") as err:
            display = PlainDisplay(StderrConsole(file=err), out, None)
            display.event("nobody reads this")
            display.output("split (task 3)", "but this")
            display.finish(result())
        assert out.getvalue() == "but this\n"


class TestLive:
    def test_table(self) -> None:
        screen = Screen(terminal=True)
        with screen.live() as display:
            display.snapshot(snapshot(1.0, 1_000, 100))
            display.snapshot(replace(snapshot(2.0, 124_456, 1_300), restarts=3, errors=1))
            header, names, line, split = screen.lines[-4:]
        assert "words-1-1700000000  running  2.0 s  2 workers  3 restarts  1 error" in header
        assert names.split() == [
            *("component", "kind", "executors", "executed", "emitted", "rate", "queue")
        ]
        assert line.split() == ["line", "spout", "5", "124,456", "123,456/s"]
        cells = ["split", "bolt", "8", "1,300", "2,600", "1,200/s", "123,156"]
        assert split.split() == cells

    def test_table_is_taken_off_at_the_end(self) -> None:
        screen = Screen(terminal=True)
        display = screen.live()
        display.snapshot(snapshot())
        display.close()
        assert screen.text.endswith("\x1b[1A\x1b[2K")  # the last line up is erased
        assert "\x1b[?25h" in screen.text  # the cursor is shown again

    def test_table_is_taken_off_when_the_run_raises(self) -> None:
        screen = Screen(terminal=True)
        display = screen.live()
        display.snapshot(snapshot())
        error = RuntimeError("boom")
        display.__exit__(RuntimeError, error, None)
        assert "\x1b[?25h" in screen.text

    def test_output_into_a_file_does_not_touch_the_table(self) -> None:
        screen = Screen(terminal=True)
        with screen.live() as display:
            display.snapshot(snapshot())
            before = screen.text
            display.output("split (task 3)", "hello")
            assert screen.text == before
        assert screen.out.getvalue() == "hello\n"

    def test_output_on_the_same_terminal_goes_above_the_table(self) -> None:
        master, terminal = os.openpty()
        with (
            os.fdopen(terminal, "w", encoding="utf-8") as out,
            os.fdopen(os.dup(terminal), "w", encoding="utf-8") as err,
        ):
            console = Console(file=err, force_terminal=True, color_system=None, width=100)
            display = LiveDisplay(console, out)
            display.output("split (task 3)", "early")
            display.snapshot(snapshot())
            display.output("split (task 3)", "hello [bold] " + "x" * 200)
            display.close()
        shown = everything(master).replace("\r\n", "\n")
        assert shown.startswith("early\n")
        above, table, below = shown.partition("hello [bold] " + "x" * 200 + "\n")
        assert table
        assert above.endswith("\x1b[2K")  # the old table is erased first
        assert below.startswith("words-1-1700000000")  # and drawn again behind

    def test_errors_and_events_go_above_the_table(self) -> None:
        screen = Screen(terminal=True)
        with screen.live() as display:
            display.snapshot(snapshot())
            display.event("task 3 was started again")
            display.log(logging.WARNING, "split (task 3)", "careful")
        assert "storm-py: task 3 was started again\nwords-1-1700000000" in screen.text
        assert "WARNING split (task 3): careful\nwords-1-1700000000" in screen.text

    def test_summary_comes_instead_of_the_table(self) -> None:
        screen = Screen(terminal=True)
        display = screen.live()
        display.snapshot(snapshot())
        display.finish(result())
        assert screen.text.count("avg rate") == 1
        assert screen.lines[-1].startswith("words-1-1700000000: done after 20.0 s")


class TestMessages:
    def test_error_with_a_traceback(self) -> None:
        screen = Screen()
        trace = (
            "Traceback (most recent call last):\n"
            f'  File "{Path(users_part.__code__.co_filename).parents[1]}/engine/tasks.py", '
            "line 94, in _call\n"
            "    function(*args)\n"
            '  File "/home/me/flow.py", line 7, in execute\n'
            "    return int('x[1]')\n"
            "ValueError: bad [red]x[/red]\n"
        )
        screen.plain().error(
            ErrorReport("split", 3, "execute", "ValueError: bad [red]x[/red]", trace, True)
        )
        assert screen.lines == [
            "ERROR split (task 3), execute: ValueError: bad [red]x[/red]",
            "    Traceback (most recent call last):",
            '      File "/home/me/flow.py", line 7, in execute',
            "        return int('x[1]')",
        ]

    def test_an_error_that_comes_again_takes_one_line(self) -> None:
        screen = Screen()
        display = screen.plain()
        trace = (
            "Traceback (most recent call last):\n"
            '  File "/home/me/flow.py", line 7, in execute\n'
            "ValueError: bad\nand more\n"
        )
        report = ErrorReport("split", 3, "execute", "ValueError: bad\nand more", trace, True)
        for task in (3, 3, 4):
            display.error(replace(report, task=task))
        display.error(replace(report, message="ValueError: worse", traceback="", fatal=False))
        display.error(replace(report, component="count"))
        assert screen.lines == [
            "ERROR split (task 3), execute: ValueError: bad",
            "and more",
            "    Traceback (most recent call last):",
            '      File "/home/me/flow.py", line 7, in execute',
            "ERROR split (task 3), execute: ValueError: bad (again, 2nd time)",
            "ERROR split (task 4), execute: ValueError: bad (again, 3rd time)",
            "ERROR split (task 3), execute: ValueError: worse",
            "ERROR count (task 3), execute: ValueError: bad",
            "and more",
            "    Traceback (most recent call last):",
            '      File "/home/me/flow.py", line 7, in execute',
        ]

    def test_error_without_traceback_and_without_text(self) -> None:
        screen = Screen()
        screen.plain().error(ErrorReport("split", 3, "execute", "KeyError: ", "", True))
        assert screen.lines == ["ERROR split (task 3), execute: KeyError"]

    def test_levels_of_log_records(self) -> None:
        screen = Screen()
        display = screen.plain()
        display.log(logging.WARNING, "split (task 3)", "careful")
        display.log(logging.CRITICAL, "", "worse")
        assert screen.lines == ["WARNING split (task 3): careful", "CRITICAL worse"]


class TestSummary:
    def finish(self, ended: RunResult) -> list[str]:
        screen = Screen()
        screen.plain().finish(ended)
        assert screen.out.getvalue() == ""
        return screen.lines

    def test_done(self) -> None:
        names, line, split, outcome = self.finish(result())
        columns = ["executors", "executed", "emitted", "acked", "failed", "avg", "rate"]
        assert names.split() == ["component", "kind", *columns]
        assert max(map(len, (names, line, split))) <= 80  # or a terminal cuts numbers off
        assert line.split() == ["line", "spout", "5", "123,456", "61,728", "30,864", "6,173/s"]
        assert split.split() == ["split", "bolt", "8", "1,000,000", "2,000,000", "50,000/s"]
        assert outcome == "words-1-1700000000: done after 20.0 s, start took 0.8 s"

    def test_failed_with_losses(self) -> None:
        ended = replace(
            result(replace(snapshot(2.0), errors=1, restarts=2)),
            failed=True,
            lost=("process 7 was killed", "process 8 was killed", "task 4 [b] too"),
            log_dir="/var/log/words",
        )
        assert self.finish(ended)[-4:] == [
            "words-1-1700000000: failed after 2.0 s, start took 0.8 s, 1 error, 2 restarts",
            "note: process 7 was killed (2 times like this)",
            "note: task 4 [b] too",
            "logs: /var/log/words",
        ]

    @pytest.mark.parametrize(
        ("interrupted", "forced", "how"),
        [
            (True, False, "stopped and drained"),
            (True, True, "stopped without draining"),
            (False, True, "stopped without draining"),
        ],
    )
    def test_stopped(self, interrupted: bool, forced: bool, how: str) -> None:
        ended = replace(result(), interrupted=interrupted, forced=forced)
        assert f": {how} after 20.0 s" in self.finish(ended)[-1]

    def test_never_started(self) -> None:
        line = self.finish(result(snapshot()))[1]
        assert line.split() == ["line", "spout", "5", "0", "0", "0"]
