"""Random processes of a run are killed again and again, also while it recovers and while it ends.

Which and when is drawn from the seed in the test's name, though the machine's speed has a say too.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import psutil
import pytest

from storm_py.run import Snapshot
from tests.integration.harness import Recorder, processes_of, run_folders, run_local
from tests.integration.topologies_for_tests.stopping import endless

KILLS = 8


class Chaos(Recorder):
    """Kills until the budget is used up, then opens the gate, and kills twice more on the way."""

    def __init__(self, seed: int, gate: Path) -> None:
        super().__init__(patience_secs=120)
        self._rng = random.Random(seed)
        self._gate = gate
        self.killed: list[str] = []

    def snapshot(self, snapshot: Snapshot) -> None:
        super().snapshot(snapshot)
        if snapshot.phase != "running":
            return
        if len(self.killed) >= KILLS:
            self._gate.touch()
        if len(self.killed) < KILLS + 2 and self._rng.random() < 0.6:
            self.kill(self._rng.randrange(1, 3))

    def kill(self, count: int) -> None:
        """Kill some processes at the same moment."""
        found = sorted(processes_of(os.getpid()), key=lambda process: process.pid)
        for process in self._rng.sample(found, min(count, len(found))):
            try:
                command = process.cmdline()
                process.kill()
            except psutil.NoSuchProcess:
                continue  # it died of the one before
            self.killed.append(" ".join(command[3:5]))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_random_deaths(tmp_path: Path, seed: int, workers: int) -> None:
    seen = Chaos(seed, tmp_path / "gate")
    outcome = run_local(endless(tmp_path, gentle=seed % 2 == 0), workers, seen=seen)
    assert len(seen.killed) >= KILLS
    assert outcome.result.final.phase == "done", seen.killed
    assert not outcome.result.forced, seen.events
    # Nothing is wrong with user code; something may have been killed too often to look healthy.
    assert all("before it was up" in error.message for error in seen.errors), seen.errors
    assert not outcome.result.failed or seen.errors
    assert outcome.result.final.restarts > 0
    assert len(outcome.result.lost) == outcome.result.final.restarts
    assert {report["task"] for report in outcome.reports("last")} == {1, 2}
    assert run_folders() == []
