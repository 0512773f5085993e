"""What the parts of the suite share: contenders, rounds in which each has its turn, results."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.commands import WordCount, yardstick
from benchmarks.environments import Environment
from benchmarks.figures import spread
from benchmarks.measuring import RunFailed, Sampler, plain_loop, run
from benchmarks.processes import Need, needs

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for, and what is there."""

    pairs: int
    quick: bool
    sentences: int
    yardstick: str | None
    conf: tuple[str, ...]
    cores: int
    environments: Mapping[str, Environment]
    refused: Mapping[str, str]
    """Peers that cannot run here, by title, with the reason."""

    def few(self, full: int, quick: int) -> int:
        """A number for a thorough run, or for a quick one."""
        return quick if self.quick else full

    def word_count(self, **changes: Any) -> WordCount:
        """The word count as asked for, but for these."""
        return WordCount(**{"sentences": self.sentences, "conf": self.conf, **changes})

    def yardstick_command(self, count: WordCount) -> list[str] | None:
        """The yardstick's command for this, if there is a yardstick."""
        return None if self.yardstick is None else yardstick(self.yardstick, count)


@dataclass(frozen=True, slots=True)
class Contender:
    """Something that counts words: a command, or the plain loop if it has none."""

    name: str
    command: Sequence[str] = ()
    sentences: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    result: Path | None = None
    """Where the command leaves JSON about the run; it becomes `run` of its figures."""
    prints: tuple[str, ...] = ()
    """What it must print besides words_s."""

    def run(self, sampler: Sampler | None = None) -> Figures:
        """Its figures, once."""
        if not self.command:
            return plain_loop(self.sentences)
        figures = run(list(self.command), self.variables, sampler=sampler)
        missing = [key for key in ("words_s", *self.prints) if key not in figures]
        if missing:
            raise RunFailed(f"{self.name} printed no {', '.join(missing)}, only {figures}")
        if self.result is not None:
            figures["run"] = json.loads(self.result.read_text())
        return figures


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for people to read; the first column names them."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What one part of the suite found: plain data, and tables of it."""

    data: dict[str, Any]
    tables: list[Table]


def say(text: str) -> None:
    """A line about progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def in_turn(
    contenders: Sequence[Contender], rounds: int
) -> tuple[dict[str, list[Figures]], dict[str, str]]:
    """Let every contender run once per round: what each gave, and who failed, with the reason.

    Who fails once is out, so that ratios are between runs of the same rounds.
    """
    found: dict[str, list[Figures]] = {each.name: [] for each in contenders}
    failed: dict[str, str] = {}
    for turn in range(1, rounds + 1):
        for each in contenders:
            if each.name in failed:
                continue
            say(f"round {turn} of {rounds}: {each.name}")
            try:
                found[each.name].append(each.run())
            except RunFailed as error:
                failed[each.name] = str(error)
                say(f"{each.name} failed and is out: {error}")
    return {name: runs for name, runs in found.items() if name not in failed}, failed


def observed(contender: Contender) -> tuple[Figures, dict[str, Need]]:
    """One more run, under observation: its figures, and what its processes needed by role."""
    say(f"processes of {contender.name}")
    sampler = Sampler()
    figures = contender.run(sampler)
    began, ended = figures.get("began", 0.0), figures.get("ended", float("inf"))
    return figures, needs(sampler.lives.values(), figures.get("pids", {}), began, ended)


def spread_cells(found: Mapping[str, float]) -> list[str]:
    """Median, minimum and maximum as a table shows them."""
    return [number(found[key]) for key in ("median", "min", "max")]


def number(figure: float) -> str:
    """A figure as a table shows it: thousands apart, or four digits."""
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.4g}"


def spread_table(title: str, found: Mapping[str, Sequence[float]], note: str = "") -> Table:
    """A table of spreads."""
    rows = [[name, *spread_cells(spread(figures))] for name, figures in found.items() if figures]
    return Table(title, ("", "median", "min", "max"), rows, note)


def spreads(found: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Spreads, with every figure, as data."""
    return {
        name: {**spread(figures), "all": list(figures)}
        for name, figures in found.items()
        if figures
    }
