"""MergedLog: what all daemons of a cluster say, a line each, behind the name of who said it.

On a terminal each daemon has its colour, and warnings and errors have theirs; elsewhere there are
plain lines. A reader that leaves must not end the cluster: nobody is told anything then.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.text import Text

__all__ = ["LAST_LINES", "MergedLog"]

#: How many lines of a daemon are repeated when it was the end of the cluster.
LAST_LINES: Final = 15
_CLUSTER: Final = "cluster"
_COLOURS: Final = ("magenta", "cyan", "green", "blue", "yellow", "bright_magenta", "bright_cyan")
_LEVEL: Final = re.compile(r"\b(WARNING|ERROR|CRITICAL|Error)\b")


class MergedLog:
    """One terminal for many."""

    def __init__(self, console: Console, names: Iterable[str]) -> None:
        """`names` are those of the daemons; what the cluster itself says is one more."""
        names = list(names)
        self._console = console
        self._width = max(map(len, (*names, _CLUSTER)))
        self._colours = {
            name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)
        }
        self._last: dict[str, deque[str]] = {name: deque(maxlen=LAST_LINES) for name in names}

    def line(self, name: str, text: str) -> None:
        """A daemon has said this."""
        self._last[name].append(text)
        level = _LEVEL.search(text)
        style = "" if level is None else "yellow" if level[1] == "WARNING" else "red"
        self._print(name, self._colours[name], text, style)

    def say(self, text: str) -> None:
        """The cluster itself has to say this."""
        for line in text.splitlines():
            self._print(_CLUSTER, "bold", line, "bold")

    def last_words(self, name: str) -> str:
        """The last lines that a daemon has said."""
        return "\n".join(self._last[name]) or "(nothing)"

    def _print(self, name: str, colour: str, text: str, style: str) -> None:
        prefix = (f"{name:{self._width}} | ", colour)
        try:
            self._console.print(Text.assemble(prefix, (text, style)))
        except OSError:  # the terminal is gone, or the disk is full behind it
            self._console.quiet = True


class StdoutConsole(Console):
    """A console for stdout that goes quiet where rich would end the program."""

    def __init__(self) -> None:
        super().__init__(highlight=False, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Nobody reads any more; what is still in the buffer goes nowhere."""
        self.quiet = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.file.fileno())
        os.close(null)
