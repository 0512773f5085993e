"""What processes need: CPU per word and memory, by the role a process has. Pure.

The looking is done by `benchmarks.measuring`. A process is named by what its program says about
itself (`pids` in its line of JSON), else by its command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

_FORK_SERVER = "fork server"
_JVM = "JVM"


@dataclass(frozen=True, slots=True)
class Sample:
    """The CPU seconds that a process had used at a time (seconds since the Unix epoch)."""

    at: float
    cpu_secs: float


@dataclass(slots=True)
class Life:
    """What was seen of one process."""

    pid: int
    parent: int
    command: tuple[str, ...] = ()
    samples: list[Sample] = field(default_factory=list)
    pss_bytes: int = 0
    """Its largest proportional set size."""

    def cpu_at(self, at: float) -> float:
        """CPU seconds used until then, between the samples around it; 0 before it was seen."""
        before = Sample(at, 0.0)
        for sample in self.samples:
            if sample.at >= at:
                share = (at - before.at) / (sample.at - before.at) if sample.at > before.at else 1.0
                return before.cpu_secs + share * (sample.cpu_secs - before.cpu_secs)
            before = sample
        return before.cpu_secs


@dataclass(frozen=True, slots=True)
class Need:
    """What all processes of one role need together, and how many they are."""

    processes: int
    cpu_secs: float
    pss_bytes: int


def role_of(command: Sequence[str]) -> str:
    """What a process is, by its command line: its module, its script, or its program."""
    if not command:
        return "unknown"
    if PurePath(command[0]).name == "java":
        return _JVM
    if "-m" in command[:-1]:
        module = command[command.index("-m") + 1]
        if module == "storm_py":
            return "storm-py local"
        return module.rpartition(".")[2].replace("_", " ")
    scripts = [PurePath(part).name for part in command[1:] if part.endswith((".py", ".sh"))]
    return scripts[0] if scripts else PurePath(command[0]).name


def roles(lives: Iterable[Life], pids: Mapping[str, Sequence[int]]) -> dict[int, str]:
    """The role of each process; what a fork server made is an instance if it says no more."""
    lives = list(lives)
    said = {pid: role for role, them in pids.items() for pid in them}
    found = {life.pid: said.get(life.pid) or role_of(life.command) for life in lives}
    for life in lives:
        if found.get(life.parent) == _FORK_SERVER and life.pid not in said:
            found[life.pid] = "instance"
    return found


def needs(
    lives: Iterable[Life],
    pids: Mapping[str, Sequence[int]],
    began: float = 0.0,
    ended: float = float("inf"),
) -> dict[str, Need]:
    """By role: CPU seconds from `began` to `ended`, and memory; the hungriest role first."""
    lives = [life for life in lives if life.pss_bytes]  # the others were gone within moments
    named = roles(lives, pids)
    result: dict[str, Need] = {}
    for life in lives:
        cpu = life.cpu_at(ended) - life.cpu_at(began)
        old = result.get(named[life.pid], Need(0, 0.0, 0))
        result[named[life.pid]] = Need(
            old.processes + 1, old.cpu_secs + cpu, old.pss_bytes + life.pss_bytes
        )
    return dict(sorted(result.items(), key=lambda item: -item[1].cpu_secs))
