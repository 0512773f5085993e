"""At least once over real processes: whatever is killed, what was emitted reaches the end.

The oracle counts words that were on disk before their ack: `lost` are those of the text that no row
holds, `duplicates` the rows beyond the first of each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from benchmarks.oracle import WORDS, Verdict, build, judge, write_text
from storm_py import TopologyBuilder
from storm_py.config import Config
from tests.integration.harness import Outcome, Recorder, processes_of, run_local

LINES = 6_000
RATE = 1500
"""Lines a second of each spout: a run must last long enough for its processes to be killed."""
PENDING = 1_000


def run_oracle(
    folder: Path,
    workers: int,
    victims: list[str],
    lines: int = LINES,
    make: Callable[[Path, float], TopologyBuilder] = build,
) -> Outcome:
    """Run it; kill one victim after the other, each when the run has got a step further."""
    write_text(folder, lines)
    seen = Recorder()
    step = lines * WORDS // (len(victims) + 1)
    for i, victim in enumerate(victims):
        kill_at(seen, folder / "rows", (i + 1) * step, victim)
    conf = {Config.TOPOLOGY_MAX_SPOUT_PENDING: PENDING}
    return run_local(make(folder, RATE), workers, conf, seen=seen)


def kill_at(seen: Recorder, path: Path, rows: int, victim: str) -> None:
    """Kill such a process as soon as so many rows have been written and there is one."""
    found: list[psutil.Process] = []

    def due() -> bool:
        if path.exists() and path.read_bytes().count(b"\n") >= rows:
            found[:] = processes_like(victim)
        return bool(found)

    seen.when(due, lambda: found[0].kill())


def processes_like(victim: str) -> list[psutil.Process]:
    """The run's processes of a kind: worker, stream_manager, fork_server or instance."""
    found = []
    for process in processes_of(psutil.Process().pid):
        command = process.cmdline()
        parent = process.parent()
        forked = parent is not None and parent.cmdline() == command
        module = next((word for word in command if word.startswith("storm_py.runtime.")), "")
        kind = "instance" if forked else module.removeprefix("storm_py.runtime.")
        if kind == victim:
            found.append(process)
    return found


def check_nothing_lost(folder: Path) -> Verdict:
    """Assert that every word arrived; what was counted."""
    verdict = judge(folder)
    assert verdict.lost == verdict.strange == 0, verdict
    return verdict


@pytest.mark.parametrize("workers", [1, 2])
def test_without_a_death_everything_arrives_once(tmp_path: Path, workers: int) -> None:
    outcome = run_oracle(tmp_path, workers, [])
    outcome.check_clean()
    assert check_nothing_lost(tmp_path).duplicates == 0
    assert emissions(tmp_path) == LINES, "nothing failed"


def emissions(folder: Path) -> int:
    """How often the spouts emitted a line."""
    return (folder / "emitted").read_bytes().count(b"\n")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("victim", ["instance", "stream_manager", "fork_server", "worker"])
def test_nothing_is_lost_when_a_process_is_killed(
    tmp_path: Path, victim: str, workers: int
) -> None:
    outcome = run_oracle(tmp_path, workers, [victim])
    assert outcome.seen.unmet == 0
    assert outcome.result.final.restarts > 0
    assert not outcome.result.forced
    check_nothing_lost(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_is_lost_when_many_are_killed(tmp_path: Path, workers: int) -> None:
    victims = ["instance", "stream_manager", "instance", "fork_server", "worker"] * 2
    outcome = run_oracle(tmp_path, workers, victims, lines=5 * LINES)
    assert outcome.seen.unmet == 0
    assert outcome.result.final.restarts >= len(victims)
    assert not outcome.result.forced
    check_nothing_lost(tmp_path)
