"""Time from a sentence's emit to the counter, at rates far below what the machine could do."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import (
    Contender,
    Options,
    Part,
    Table,
    in_turn,
    number,
    spread_cells,
    spreads,
)
from benchmarks.commands import storm_py
from benchmarks.figures import ratios, spread

RATES = (1_000, 20_000)
SHOWN = ("50", "99", "99.9")


def run(options: Options) -> Part:
    """Both rates, acks off and on, beside the yardstick at the same."""
    secs = options.few(10, 3)
    data: dict[str, Any] = {}
    rows: list[list[str]] = []
    for rate in RATES:
        contenders, pairs = paced(options, rate, secs)
        found, failed = in_turn(contenders, options.pairs)
        one: dict[str, Any] = {"not_run": failed}
        for name, runs in found.items():
            by_percent = {p: [figures["lat_ms"][p] for figures in runs] for p in SHOWN}
            one[name] = spreads(by_percent)
            for p, figures in by_percent.items():
                rows.append([f"{name}, {rate:,}/s", f"p{p} ms", *spread_cells(spread(figures))])
            reached = [figures["words_s"] for figures in runs]
            one[name] |= spreads({"words_s": reached})
            rows.append([f"{name}, {rate:,}/s", "words/s", *spread_cells(spread(reached))])
        for ours, theirs in pairs:
            if ours not in found or theirs not in found:
                continue
            for p in SHOWN:
                a, b = ([figures["lat_ms"][p] for figures in found[x]] for x in (ours, theirs))
                ratio = ratios(a, b)
                one[f"{ours} / {theirs}, p{p}"] = ratio
                rows.append([f"{ours} / {theirs}, {rate:,}/s", f"p{p}", *spread_cells(ratio)])
        data[str(rate)] = one
    head = ("", "", "median", "min", "max")
    note = f"each run lasts {number(secs)} s; all words count, those of the first moments too"
    return Part(data, [Table(f"latency, {options.pairs} interleaved rounds", head, rows, note)])


def paced(options: Options, rate: int, secs: int) -> tuple[list[Contender], list[tuple[str, str]]]:
    """The contenders at this rate, and who is compared with whom."""
    contenders: list[Contender] = []
    pairs: list[tuple[str, str]] = []
    for acks in (False, True):
        count = options.word_count(sentences=rate * secs, rate=float(rate), acks=acks)
        mode = "on" if acks else "off"
        prints = ("lat_ms",)
        contenders.append(Contender(f"storm-py, acks {mode}", storm_py(count), prints=prints))
        command = options.yardstick_command(count)
        if command is not None:
            contenders.append(Contender(f"yardstick, acks {mode}", command, prints=prints))
            pairs.append((f"storm-py, acks {mode}", f"yardstick, acks {mode}"))
    return contenders, pairs
