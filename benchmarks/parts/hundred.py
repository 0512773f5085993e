"""A hundred instances: how long they take to start, what each needs, how fast they still are."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.bench import (
    Contender,
    Options,
    Part,
    in_turn,
    observed,
    spread_table,
    spreads,
)
from benchmarks.commands import storm_py
from benchmarks.figures import ratios
from benchmarks.measuring import RunFailed
from benchmarks.parts.throughput import MIB

FEW = "4 instances"
MANY = "100 instances"
SHAPES = {FEW: (1, 2), MANY: (33, 66)}
"""Split and count bolts beside one spout; one more instance only reports at the end."""
INSTANCES = ("spout", "split", "count", "report")


def run(options: Options) -> Part:
    """Both sizes in turn, then the large one under observation."""
    with tempfile.TemporaryDirectory() as folder:
        contenders = [sized(options, name, Path(folder)) for name in SHAPES]
        found, failed = in_turn(contenders, options.pairs)
        if failed:
            raise RunFailed("\n".join(failed.values()))
        _, needed = observed(contenders[1])
    words_s = {name: [one["words_s"] for one in runs] for name, runs in found.items()}
    start = {name: [one["run"]["start_secs"] for one in runs] for name, runs in found.items()}
    pss = [need for role, need in needed.items() if role in INSTANCES]
    each = sum(need.pss_bytes for need in pss) / sum(need.processes for need in pss) / MIB
    ratio = ratios(words_s[MANY], words_s[FEW])
    data = {
        "words_s": spreads(words_s),
        "start_secs": spreads(start),
        f"{MANY} / {FEW}": ratio,
        "pss_mib_per_instance": round(each, 2),
    }
    shown = {f"{name}: words/s": found for name, found in words_s.items()}
    shown |= {f"{name}: start, seconds": found for name, found in start.items()}
    shown["100 / 4, words/s"] = [a / b for a, b in zip(words_s[MANY], words_s[FEW], strict=True)]
    shown["PSS per instance of 100, MiB"] = [each]
    return Part(data, [spread_table("a hundred instances, acks on", shown)])


def sized(options: Options, name: str, folder: Path) -> Contender:
    """A word count of so many instances, that leaves its result in a file of that name."""
    splits, counts = SHAPES[name]
    count = options.word_count(acks=True, splits=splits, counts=counts)
    result = folder / name
    return Contender(name, storm_py(count, "--json", str(result)), result=result)
