"""Throughput and latency against the two knobs of a batch: its rows, and how long it may wait."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Contender, Options, Part, Table, in_turn, number, spreads
from benchmarks.commands import WordCount, storm_py
from benchmarks.figures import spread

ROWS = (1, 8, 32, 64, 128, 256, 512, 1024, 2048)
FEW_ROWS = (8, 1024)
DELAYS_MS = (1, 2, 5, 20)
FEW_DELAYS_MS = (1, 5)
RATE = 20_000
"""Sentences per second at which latency is taken."""
COLUMNS = ("words/s, acks off", "words/s, acks on", f"p99 ms at {RATE:,}/s, acks on")

Settings = dict[str, dict[str, Any]]
"""How the word count is changed, by the name that the change has in tables."""


def run(options: Options) -> Part:
    """One knob at a time, the other at its default."""
    rows = FEW_ROWS if options.quick else ROWS
    delays = FEW_DELAYS_MS if options.quick else DELAYS_MS
    rounds = max(1, options.pairs // 3)
    data: dict[str, Any] = {}
    tables = []
    by_rows: Settings = {f"{each} rows": {"rows": each} for each in rows}
    by_delay: Settings = {f"{each} ms": {"conf": delayed(options, each)} for each in delays}
    for knob, settings in {
        "storm_py.batch.rows": by_rows,
        "storm_py.batch.delay.ms": by_delay,
    }.items():
        found, lines = measure(options, settings, rounds)
        data[knob] = found
        head = ("", *COLUMNS)
        tables.append(Table(f"{knob}: medians of {rounds} interleaved rounds", head, lines))
    return Part(data, tables)


def delayed(options: Options, delay_ms: int) -> tuple[str, ...]:
    """The configuration with this flush interval."""
    return (*options.conf, f"storm_py.batch.delay.ms={delay_ms}")


def measure(
    options: Options, settings: Settings, rounds: int
) -> tuple[dict[str, Any], list[list[str]]]:
    """What each setting gives, as data and as lines of a table."""
    secs = options.few(5, 2)
    contenders = []
    for label, changes in settings.items():
        counts: list[WordCount] = [
            options.word_count(sentences=options.sentences // 2, **changes),
            options.word_count(sentences=options.sentences // 2, acks=True, **changes),
            options.word_count(sentences=RATE * secs, rate=float(RATE), acks=True, **changes),
        ]
        contenders += [
            Contender(f"{label}: {column}", storm_py(count))
            for column, count in zip(COLUMNS, counts, strict=True)
        ]
    found, failed = in_turn(contenders, rounds)
    data: dict[str, Any] = {"not_run": failed}
    lines = []
    for label in settings:
        line = [label]
        for column in COLUMNS:
            name = f"{label}: {column}"
            if name not in found:
                line.append("failed")
                continue
            is_latency = column == COLUMNS[2]
            taken = [one["lat_ms"]["99"] if is_latency else one["words_s"] for one in found[name]]
            data |= spreads({name: taken})
            line.append(number(spread(taken)["median"]))
        lines.append(line)
    return data, lines
