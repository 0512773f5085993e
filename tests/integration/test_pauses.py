"""Processes that stand still for a while, as on a machine that swaps: all wait, nothing is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from storm_py.run import Snapshot
from tests.integration.harness import Recorder, figures, processes_of, run_local
from tests.integration.topologies_for_tests.stopping import endless
from tests.variants import chosen

pytestmark = pytest.mark.variants

STILL_SNAPSHOTS = 3
"""So many snapshots in a row with the same figures: nothing moves any more."""


class Pause(Recorder):
    """Stops a process once tuples flow, wakes it when nothing moves, and lets the input end."""

    def __init__(self, victim: str, gate: Path) -> None:
        super().__init__()
        self._victim = victim
        self._gate = gate
        self._stopped: psutil.Process | None = None
        self.woken = False

    def snapshot(self, snapshot: Snapshot) -> None:
        super().snapshot(snapshot)
        if self._stopped is None and self.executed("last") > 1000:
            self._stopped = self._find()
            self._stopped.suspend()
        elif self._stopped is not None and not self.woken and self._is_still():
            self._stopped.resume()
            self.woken = True
            self._gate.touch()

    def _is_still(self) -> bool:
        last = self.snapshots[-STILL_SNAPSHOTS:]
        emitted = {figures(snapshot, "numbers").emitted for snapshot in last}
        executed = {figures(snapshot, "last").executed for snapshot in last}
        return len(last) == STILL_SNAPSHOTS and len(emitted) == len(executed) == 1

    def _find(self) -> psutil.Process:
        if self._victim in ("relay", "last"):  # every task of it must go through one process
            pids = [r["pid"] for r in self.reports("opened") if r["component"] == self._victim]
            return psutil.Process(pids[0])
        for process in processes_of(os.getpid()):
            if f"storm_py.runtime.{self._victim}" in process.cmdline():
                return process
        raise AssertionError(f"no {self._victim} among the processes")

    def end(self) -> None:
        """Wake what a failed test has left stopped."""
        if self._stopped is not None and self._stopped.is_running():
            self._stopped.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("workers", [1, 2])
# Every tuple has to come by, which is true of one relay only where it is not fused.
@pytest.mark.parametrize("victim", ["last" if chosen().fused else "relay", "stream_manager"])
def test_a_process_that_stands_still(tmp_path: Path, victim: str, workers: int) -> None:
    seen = Pause(victim, tmp_path / "gate")
    try:
        outcome = run_local(endless(tmp_path), workers, seen=seen)
    finally:
        seen.end()
    outcome.check_clean()
    assert seen.woken
    assert outcome.figures("relay").executed == outcome.figures("numbers").emitted
    assert outcome.figures("last").executed == outcome.figures("relay").emitted
