"""Who counts words in the throughput part, and which of them are compared."""

from __future__ import annotations

from benchmarks.bench import Contender, Options
from benchmarks.commands import storm_py

LOOP = "plain loop"
YARDSTICK = "yardstick"
OFF, ON = "storm-py, acks off", "storm-py, acks on"
OFF_BATCHED, ON_BATCHED = f"{OFF}, batch bolts", f"{ON}, batch bolts"
OFF_2, ON_2 = f"{OFF}, 2 workers", f"{ON}, 2 workers"
BYTEWAX = "Bytewax, 1 worker, batched source"
BYTEWAX_1 = "Bytewax, 1 worker, one by one"
BYTEWAX_2 = "Bytewax, 2 processes"
PYSTORM = "pystorm JSON bound"
FLINK = "PyFlink, process mode"
FLINK_THREAD = "PyFlink, thread mode"

RATIOS = [
    *((OFF, f"{YARDSTICK}, acks off"), (ON, f"{YARDSTICK}, acks on")),
    *((OFF_2, OFF), (ON_2, ON), (ON, OFF), (OFF_BATCHED, OFF), (ON_BATCHED, ON)),
    *((OFF, BYTEWAX), (ON, BYTEWAX), (OFF, BYTEWAX_1), (ON, BYTEWAX_1)),
    *((OFF, BYTEWAX_2), (ON, BYTEWAX_2), (OFF_2, BYTEWAX_2), (ON_2, BYTEWAX_2)),
    *((OFF, PYSTORM), (ON, PYSTORM), (ON, FLINK), (ON, FLINK_THREAD), (OFF, FLINK)),
    *((OFF, LOOP), (ON, LOOP)),
]
"""Pairs of contenders; what is shown is the first one's words/s divided by the second one's."""


def ours(options: Options) -> list[Contender]:
    """storm-py, and the yardstick right behind the run it is compared with."""
    found = []
    for workers in (1, 2):
        for acks in (False, True):
            count = options.word_count(acks=acks, workers=workers)
            name = {(1, False): OFF, (1, True): ON, (2, False): OFF_2, (2, True): ON_2}
            found.append(Contender(name[workers, acks], storm_py(count)))
            command = options.yardstick_command(count) if workers == 1 else None
            if command is not None:
                found.append(Contender(f"{YARDSTICK}, acks {'on' if acks else 'off'}", command))
    for batched, acks in ((OFF_BATCHED, False), (ON_BATCHED, True)):
        found.append(Contender(batched, storm_py(options.word_count(acks=acks, batched=True))))
    return found


def peers(options: Options) -> list[Contender]:
    """Everybody whose environment is there; each counts for some seconds, at its own speed."""
    sentences = options.sentences
    programs = {
        BYTEWAX: ("bytewax", "bytewax_count", sentences, ()),
        BYTEWAX_1: ("bytewax", "bytewax_count", sentences // 3, ("--batch", "1")),
        BYTEWAX_2: ("bytewax", "bytewax_count", sentences // 3, ("--processes", "2")),
        PYSTORM: ("pystorm", "pystorm_bolts", sentences // 25, ("--cores", str(options.cores))),
        FLINK: ("flink", "flink_count", sentences // 8, ("--mode", "process")),
        FLINK_THREAD: ("flink", "flink_count", sentences // 8, ("--mode", "thread")),
    }
    found = []
    for name, (peer, module, some, more) in programs.items():
        if peer in options.environments:
            place = options.environments[peer]
            command = [place.python, "-m", f"benchmarks.peers.{module}", "--sentences", str(some)]
            found.append(Contender(name, [*command, *more], variables=place.variables))
    return found


def everybody(options: Options) -> list[Contender]:
    """All of them, in the order in which they take turns."""
    return [*ours(options), Contender(LOOP, sentences=options.sentences), *peers(options)]
