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
from tests.variants import Variant

pytestmark = pytest.mark.variants

LINES = 6_000
RATE = 1500
"""Lines a second of each spout: a run must last long enough for its processes to be killed."""
PENDING = 1_000


def run_oracle(
    folder: Path,
    workers: int,
    victims: list[str],
    lines: int = LINES,
    variant: Variant | None = None,
    make: Callable[[Path, float], TopologyBuilder] = build,
) -> Outcome:
    """Run it; kill one victim after the other, each when the run has got a step further."""
    write_text(folder, lines)
    seen = Recorder()
    step = lines * WORDS // (len(victims) + 1)
    for i, victim in enumerate(victims):
        kill_at(seen, folder / "rows", (i + 1) * step, victim)
    conf = {Config.TOPOLOGY_MAX_SPOUT_PENDING: PENDING}
    return run_local(make(folder, RATE), workers, conf, seen=seen, variant=variant)


def kill_at(seen: Recorder, path: Path, rows: int, victim: str) -> None:
    """Kill such a process as soon as so many rows have been written and there is one."""
    kill_when(seen, lambda: path.exists() and path.read_bytes().count(b"\n") >= rows, victim)


def kill_when(seen: Recorder, condition: Callable[[], bool], victim: str) -> None:
    """Kill one process of a kind as soon as the condition is true and there is one."""
    seen.when(lambda: condition() and kill_one(victim), lambda: None)


def kill_one(victim: str) -> bool:
    """Kill the first process of a kind that is not dead by then; False if there is none."""
    for process in processes_of(psutil.Process().pid):
        try:
            if kind_of(process) == victim:
                process.kill()
                return True
        except psutil.NoSuchProcess:
            continue  # it has died meanwhile, perhaps with an earlier victim
    return False


def kind_of(process: psutil.Process) -> str:
    """What a process of the run is: worker, stream_manager, fork_server or instance."""
    command = process.cmdline()
    parent = process.parent()
    if parent is not None and parent.cmdline() == command:
        return "instance"  # forked
    module = next((word for word in command if word.startswith("storm_py.runtime.")), "")
    return module.removeprefix("storm_py.runtime.")


def check_nothing_lost(folder: Path) -> Verdict:
    """Assert that every word arrived; what was counted."""
    verdict = judge(folder)
    assert verdict.lost == verdict.strange == 0, verdict
    return verdict


@pytest.mark.parametrize("workers", [1, 2])
def test_without_a_death_everything_arrives_once(tmp_path: Path, workers: int) -> None:
    outcome = run_oracle(tmp_path, workers, [])
    outcome.check_clean()
    lines = outcome.figures("source")
    assert (lines.emitted, lines.acked, lines.failed) == (LINES, LINES, 0)
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
    outcome.check_ended_by_itself()
    assert outcome.seen.unmet == 0
    assert outcome.result.final.restarts > 0
    check_nothing_lost(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_is_lost_when_many_are_killed(tmp_path: Path, workers: int) -> None:
    victims = ["instance", "stream_manager", "instance", "fork_server", "worker"] * 2
    outcome = run_oracle(tmp_path, workers, victims, lines=5 * LINES)
    outcome.check_ended_by_itself()
    assert outcome.seen.unmet == 0
    # One restart may be that of several victims: a worker goes with those that died before it.
    assert outcome.result.final.restarts > 0
    check_nothing_lost(tmp_path)
