"""Words per second of everybody, ratios within rounds, CPU per word and memory per process."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.bench import (
    Contender,
    Figures,
    Options,
    Part,
    Table,
    in_turn,
    observed,
    spread_cells,
    spread_table,
    spreads,
)
from benchmarks.contenders import LOOP, RATIOS, everybody
from benchmarks.figures import ratios, rounded
from benchmarks.measuring import RunFailed
from benchmarks.processes import Need

MIB = 1 << 20


def run(options: Options) -> Part:
    """Rounds that are timed, then one run of each under observation."""
    contenders = everybody(options)
    found, failed = in_turn(contenders, options.pairs)
    refused = {**options.refused, **{name: why.splitlines()[-1] for name, why in failed.items()}}
    words_s = {name: [one["words_s"] for one in runs] for name, runs in found.items()}
    ratio = {
        f"{a} / {b}": ratios(words_s[a], words_s[b])
        for a, b in RATIOS
        if a in words_s and b in words_s
    }
    needed = {each.name: look(each) for each in contenders if each.name in found and each.command}
    data = {
        "rounds": options.pairs,
        "words_s": spreads(words_s),
        "ratios": ratio,
        "processes": needed,
        "not_run": refused,
    }
    first = spread_table(f"words/s, {options.pairs} interleaved rounds", words_s)
    absent = [[name, "not run", "", ""] for name in refused]
    note = "; ".join(f"{name} is not run: {why}" for name, why in refused.items())
    tables = [
        Table(first.title, first.head, [*first.rows, *absent], note),
        Table(
            "ratios within rounds",
            ("", "median", "min", "max"),
            [[name, *spread_cells(one)] for name, one in ratio.items()],
            f"{LOOP}: the same count in one process without an engine",
        ),
        processes_table(needed),
    ]
    return Part(data, tables)


def look(contender: Contender) -> dict[str, Figures]:
    """By role: number of processes, CPU microseconds per word, memory; why not, if it failed."""
    try:
        figures, needed = observed(contender)
    except RunFailed as error:
        return {"failed": {"reason": str(error)}}
    words = figures.get("words", 0)
    return {role: need_data(need, words) for role, need in needed.items()}


def need_data(need: Need, words: int) -> Figures:
    """One role's needs as data."""
    data: Figures = {
        "processes": need.processes,
        "cpu_secs": round(need.cpu_secs, 2),
        "pss_mib": round(need.pss_bytes / MIB, 1),
    }
    if words:
        data["cpu_us_word"] = rounded(need.cpu_secs / words * 1e6)
    return data


def processes_table(needed: Mapping[str, Mapping[str, Figures]]) -> Table:
    """What each process costs."""
    rows = []
    for name, by_role in needed.items():
        label = name
        for role, one in by_role.items():
            cells = [str(one.get(key, "")) for key in ("processes", "cpu_us_word", "pss_mib")]
            rows.append([label, role, *cells])
            label = ""
    return Table(
        "processes: CPU microseconds per word between first and last word, memory (PSS)",
        ("", "process", "number", "us/word", "PSS MiB"),
        rows,
        "from one run more, under observation; several processes of a role are added up",
    )
