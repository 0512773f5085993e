"""What an operator sees of a run: a live table on a terminal, plain lines elsewhere, a summary.

`LiveDisplay` and `PlainDisplay` are the `Observer`s of `storm_py.run`; the runs that call them are
`storm_py.local` and `storm_py.inline`. Everything goes to stderr, except for lines that user code
printed: stdout holds those and nothing else. A display decides nothing and ends nothing: a reader
that leaves a pipe, as `head` does, must not end the run.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import IO, Final, Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from storm_py.run import ComponentFigures, RunResult, Snapshot
from storm_py.wire.control import ErrorReport

from .repeats import Repeats, grouped, ordinal
from .tracebacks import users_part

__all__ = [
    "Display",
    "LiveDisplay",
    "PlainDisplay",
    "StderrConsole",
    "choose",
    "stderr_is_terminal",
]

#: Time over which the live rate is averaged.
RATE_SECS: Final = 2.0
#: Time between two lines of figures where there is no terminal, at least.
LINE_SECS: Final = 5.0
#: Width of a summary where no terminal sets one: nothing is cut off.
_PLAIN_COLUMNS: Final = 250


def choose(inline: bool) -> Display:
    """Return the display that fits: no moving table for a pipe, nor beside a debugger."""
    is_terminal = stderr_is_terminal()
    # The width of a terminal is found out by rich; anything else would get 80 columns.
    console = StderrConsole(
        stderr=True, highlight=False, soft_wrap=True, width=None if is_terminal else _PLAIN_COLUMNS
    )
    if inline or not is_terminal:
        return PlainDisplay(console, sys.stdout, None if inline else LINE_SECS)
    return LiveDisplay(console, sys.stdout)


def stderr_is_terminal() -> bool:
    """Whether something may move on stderr."""
    return sys.stderr.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


class StderrConsole(Console):
    """A console that goes quiet where rich would end the program."""

    def on_broken_pipe(self) -> None:
        """Nobody reads stderr any more."""
        self.quiet = True
        _discard(self.file)


class Rates:
    """Tuples per second of each component over the last `RATE_SECS`, by the snapshots' own time."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, dict[str, int]]] = deque()

    def add(self, snapshot: Snapshot) -> Mapping[str, float]:
        """Take a snapshot in; the rate now, 0 where there is nothing to compare with."""
        samples = self._samples
        samples.append((snapshot.secs, {c.component_id: work(c) for c in snapshot.components}))
        while len(samples) > 2 and samples[1][0] <= snapshot.secs - RATE_SECS:
            samples.popleft()
        (then, before), (now, after) = samples[0], samples[-1]
        if now <= then:
            return dict.fromkeys(after, 0.0)
        return {name: max(0, n - before.get(name, 0)) / (now - then) for name, n in after.items()}


def work(figures: ComponentFigures) -> int:
    """What a component is measured by: tuples emitted by a spout, executed by a bolt."""
    return figures.emitted if figures.kind == "spout" else figures.executed


class Display:
    """What both displays share: errors, warnings, events, output of user code, the summary.

    Used as a context manager around the run; `finish` comes after it.
    """

    #: Time after which it wants fresh figures although nothing happens.
    quiet_secs: float = 4.0

    def __init__(self, console: Console, out: TextIO) -> None:
        """Show on `console`, which is stderr; what user code prints goes to `out`."""
        self._console = console
        self._out = out
        self._out_closed = False
        self._repeats = Repeats()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what moves on the screen; nothing to do without a live table."""

    def snapshot(self, snapshot: Snapshot) -> None:
        """Fresh figures, a few times a second while something happens."""
        self._flush()

    def error(self, error: ErrorReport) -> None:
        """User code raised, or a component could not start; what came before takes one line."""
        message = error.message.rstrip().removesuffix(":")  # str(error) may be empty
        head = f"ERROR {error.component} (task {error.task}), {error.where}: {message}"
        count = self._repeats.count(error)
        if count > 1:
            first_line = head.partition("\n")[0]
            self._show(Text(f"{first_line} (again, {ordinal(count)} time)", style="red"))
            return
        self._show(Text(head, style="bold red"))
        trace = users_part(error.traceback, error.message)
        if trace:
            self._show(_indented(trace))

    def log(self, level: int, source: str, text: str) -> None:
        """A log record, in the colour of its level."""
        style = "dim" if level < logging.WARNING else "yellow" if level < logging.ERROR else "red"
        name = logging.getLevelName(level)
        self._show(Text(f"{name} {source}: {text}" if source else f"{name} {text}", style=style))

    def output(self, source: str, line: str) -> None:
        """A line that user code printed."""
        self._write(line)

    def event(self, text: str) -> None:
        """Something an operator should know."""
        self._show(Text(f"storm-py: {text}", style="bold"))

    def finish(self, result: RunResult) -> None:
        """The summary of a run that has ended."""
        self.close()
        self._show(_summary_table(result.final))
        self._show(Text(_outcome(result), style="bold" if not result.failed else "bold red"))
        for sentence in grouped(result.lost):
            self._show(Text(f"note: {sentence}", style="yellow"))
        if result.log_dir is not None:
            self._show(Text(f"logs: {result.log_dir}"))

    def _show(self, what: Text | Table) -> None:
        self._flush()  # so that both streams tell the same order where they meet
        self._console.print(what)

    def _write(self, line: str) -> None:
        if self._out_closed:
            return
        try:
            self._out.write(f"{line}\n")
        except UnicodeEncodeError:
            coding = self._out.encoding or "ascii"
            self._write(line.encode(coding, "backslashreplace").decode(coding))
        except BrokenPipeError:
            self._on_closed_pipe()

    def _flush(self) -> None:
        try:
            self._out.flush()
        except BrokenPipeError:
            self._on_closed_pipe()

    def _on_closed_pipe(self) -> None:
        """Whoever read our stdout has left, as `head` does: the run goes on without it."""
        if not self._out_closed:
            self._out_closed = True
            _discard(self._out)
            self.event("nobody reads stdout any more: what user code prints is dropped")


class PlainDisplay(Display):
    """Lines only: for pipes, files and debuggers."""

    def __init__(
        self,
        console: Console,
        out: TextIO,
        every_secs: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Show a line of figures `every_secs`, or none at all."""
        super().__init__(console, out)
        self._every_secs = every_secs
        self._clock = clock
        self._last_line = clock()

    def snapshot(self, snapshot: Snapshot) -> None:
        """Show a line of figures when one is due."""
        super().snapshot(snapshot)
        now = self._clock()
        if self._every_secs is None or now - self._last_line < self._every_secs:
            return
        self._last_line = now
        figures = "  ".join(
            f"{c.component_id} {work(c):,} {'emitted' if c.kind == 'spout' else 'executed'}"
            for c in snapshot.components
        )
        restarts = f"  {_count(snapshot.restarts, 'restart')}" if snapshot.restarts else ""
        self._show(Text(f"{snapshot.secs:.1f}s {snapshot.phase}  {figures}{restarts}"))


class LiveDisplay(Display):
    """A table that stays at the bottom of the terminal while everything else scrolls above it."""

    quiet_secs = 1.0  # it shows a clock

    def __init__(self, console: Console, out: TextIO) -> None:
        super().__init__(console, out)
        self._rates = Rates()
        self._live: Live | None = None
        self._out_is_screen = _same_device(out, console.file)

    def snapshot(self, snapshot: Snapshot) -> None:
        """Redraw the table."""
        super().snapshot(snapshot)
        view = _live_view(snapshot, self._rates.add(snapshot))
        if self._live is None:
            # No refreshing thread, and stdout stays what it is: it is the user's.
            self._live = Live(
                view,
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start(refresh=True)
        else:
            self._live.update(view, refresh=True)

    def output(self, source: str, line: str) -> None:
        """Print above the table if stdout is this very terminal, else straight to stdout."""
        if self._live is not None and self._out_is_screen:
            self._console.out(line, highlight=False)
        else:
            self._write(line)

    def close(self) -> None:
        """Take the table off the screen."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()


def _discard(file: IO[str]) -> None:
    """Let what is still in the buffer go nowhere, or the interpreter complains at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, file.fileno())
    os.close(null)


def _same_device(one: IO[str], other: IO[str]) -> bool:
    """Whether two files are one terminal; a file without a descriptor is none."""
    try:
        devices = {os.fstat(file.fileno()).st_rdev for file in (one, other)}
    except (OSError, ValueError):
        return False
    return one.isatty() and len(devices) == 1


# ---- tables ------------------------------------------------------------------------------------


def _live_view(snapshot: Snapshot, rates: Mapping[str, float]) -> Group:
    facts = [
        f"{snapshot.secs:.1f} s",
        _count(snapshot.workers, "worker"),
        _count(snapshot.restarts, "restart"),
    ]
    if snapshot.errors:
        facts.append(_count(snapshot.errors, "error"))
    header = Text.assemble(
        (snapshot.topology_id, "bold"), "  ", (snapshot.phase, "green"), "  ", "  ".join(facts)
    )
    names = ("component", "kind", "executors", "executed", "emitted", "rate", "queue")
    # Room for a million, so that the table does not move with every digit.
    table = _table(*names, min_width=9)
    for c in snapshot.components:
        table.add_row(
            escape(c.component_id),
            c.kind,
            f"{c.executors:,}",
            f"{c.executed:,}" if c.kind == "bolt" else "",
            f"{c.emitted:,}",
            f"{rates.get(c.component_id, 0.0):,.0f}/s",
            f"{c.queued:,}" if c.kind == "bolt" else "",
        )
    return Group(header, table)


def _summary_table(final: Snapshot) -> Table:
    names = ("component", "kind", "executors", "executed", "emitted", "acked", "failed", "avg rate")
    table = _table(*names, min_width=0)
    for c in final.components:
        table.add_row(
            escape(c.component_id),
            c.kind,
            f"{c.executors:,}",
            f"{c.executed:,}" if c.kind == "bolt" else "",
            f"{c.emitted:,}",
            f"{c.acked:,}" if c.kind == "spout" else "",
            f"{c.failed:,}" if c.kind == "spout" else "",
            f"{work(c) / final.secs:,.0f}/s" if final.secs > 0 else "",
        )
    return table


def _table(*names: str, min_width: int) -> Table:
    """A table of text and then numbers, as wide as its content; `min_width` is that of a number."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        if name in ("component", "kind"):
            table.add_column(name, no_wrap=True)
        else:
            table.add_column(name, justify="right", no_wrap=True, min_width=min_width)
    return table


def _outcome(result: RunResult) -> str:
    """The sentence that says how the run ended."""
    final = result.final
    if result.failed:
        how = "failed"
    elif result.interrupted or result.forced:
        how = "stopped without draining" if result.forced else "stopped and drained"
    else:
        how = "done"
    facts = [f"{how} after {final.secs:.1f} s", f"start took {result.start_secs:.1f} s"]
    if final.errors:
        facts.append(_count(final.errors, "error"))
    if final.restarts:
        facts.append(_count(final.restarts, "restart"))
    return f"{final.topology_id}: {', '.join(facts)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _indented(text: str) -> Text:
    return Text("\n".join(f"    {line}" if line else "" for line in text.splitlines()))
