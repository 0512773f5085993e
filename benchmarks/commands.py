"""The commands of the word count: storm-py's own, and any yardstick's. Pure.

A yardstick is a command that does the same work, counts words, and prints a JSON object with
`"words_s"`; if that has `"ok": false` its run failed, and `"lat_ms"` with percentiles as keys is
its latency. It is a template, in which these are replaced: {sentences}, {acks} (0 or 1), {rows} per
batch, {pending} sentences at once, {rate} in sentences/s or 0.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class WordCount:
    """How the words are to be counted, whoever does it."""

    sentences: int = 500_000
    acks: bool = False
    workers: int = 1
    rate: float = 0.0
    """Sentences per second; 0 is as many as possible."""
    rows: int = 1024
    pending: int = 20_000
    conf: tuple[str, ...] = ()
    """More of storm-py's configuration, as key=value."""
    splits: int = 1
    counts: int = 2
    batched: bool = False
    """With batch bolts, at most at full speed."""

    def with_acks(self, acks: bool) -> WordCount:
        """The same with acks on or off."""
        return replace(self, acks=acks)


def storm_py(count: WordCount, *options: str, idle: bool = False) -> list[str]:
    """The command that runs storm-py's word count; `options` go to `storm-py local`."""
    program, conf, tail = submission(count)
    command = [sys.executable, "-m", "storm_py", "local", program, *conf, *options, "--", *tail]
    return [*command, "--idle"] if idle else command


def submission(count: WordCount) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """TOPOLOGY, the options that `local` and `submit` share, and ARGS."""
    conf = [f"storm_py.batch.rows={count.rows}"]
    if count.acks:
        conf.append(f"topology.max.spout.pending={count.pending}")
    else:
        conf.append("topology.acker.executors=0")
    options = ["--workers", str(count.workers)]
    options += [part for pair in (*conf, *count.conf) for part in ("-c", pair)]
    tail = [str(count.sentences), "--splits", str(count.splits), "--counts", str(count.counts)]
    if count.acks:
        tail.append("--acked")
    if count.rate:
        tail += ["--rate", f"{count.rate:g}"]
    program = f"benchmarks.sentences{'_batch' if count.batched else ''}"
    return program, tuple(options), tuple(tail)


def yardstick(template: str, count: WordCount) -> list[str]:
    """The command that counts the same with somebody else's program."""
    values = {
        "sentences": count.sentences,
        "acks": int(count.acks),
        "rows": count.rows,
        "pending": count.pending,
        "rate": f"{count.rate:g}",
    }
    try:
        return [part.format(**values) for part in shlex.split(template)]
    except (KeyError, IndexError, ValueError) as error:
        names = ", ".join(f"{{{name}}}" for name in values)
        raise ValueError(
            f"--yardstick {template!r}: cannot fill in {error}; it may hold {names}"
        ) from error
