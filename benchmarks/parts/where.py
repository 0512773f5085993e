"""Where the time goes: CPU microseconds per word of each process, by what its lines are for."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import sampling
from benchmarks.bench import Contender, Options, Part, Table, say
from benchmarks.commands import storm_py
from benchmarks.figures import rounded
from benchmarks.processes import role_of

#: The roles of processes, as they are shown.
ROLES = ("spout", "split", "stream manager", "count")


def run(options: Options) -> Part:
    """One sampled run with acks off, and one with acks on."""
    data: dict[str, dict[str, dict[str, float]]] = {}
    rows: list[list[str]] = []
    for acks in (False, True):
        name = f"acks {'on' if acks else 'off'}"
        data[name] = found = sampled(options, acks)
        for role, parts in found.items():
            cells = [f"{parts.get(part, 0.0):.3f}" for part in sampling.PARTS]
            rows.append([f"{name}: {role}", f"{sum(parts.values()):.3f}", *cells])
    head = ("", "all", *sampling.PARTS)
    note = "sampled, which costs a few percent; both count bolts are added up"
    return Part(data, [Table("where the time goes, CPU us per word", head, rows, note)])


def sampled(options: Options, acks: bool) -> dict[str, dict[str, float]]:
    """By role and part, CPU microseconds per word."""
    with tempfile.TemporaryDirectory() as folder:
        command = storm_py(options.word_count(acks=acks))
        say(f"sampled run, acks {'on' if acks else 'off'}")
        contender = Contender("sampled", command, variables=sampling.variables(Path(folder)))
        figures = contender.run()
        noted = list(sampling.read(Path(folder)))
    said = {pid: role for role, pids in figures["pids"].items() for pid in pids}
    found: dict[str, dict[str, float]] = {role: {} for role in ROLES}
    for each in noted:
        parts = found.get(said.get(each.pid) or role_of(each.command))
        if parts is None:
            continue  # the report bolt, whose loop does nothing
        for part, secs in each.secs.items():
            parts[part] = parts.get(part, 0.0) + secs / figures["words"] * 1e6
    return {
        role: {part: rounded(us) for part, us in parts.items()} for role, parts in found.items()
    }
