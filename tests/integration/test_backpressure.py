"""A slow bolt: memory stays bounded, only its own spout pauses, and nothing is lost.

The numbers are the acceptance of this property: a bolt at least 1,000 times slower than its spout,
memory that grows by at most 5 MiB in any process once it has settled, a branch beside it that keeps
0.9 of its rate. A tuple in a queue costs little, so the number of them is bounded as well.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from storm_py.config import Config
from storm_py.run import Snapshot
from tests.integration.harness import Outcome, Recorder, figures, processes_of, run_local
from tests.integration.topologies_for_tests.pressure import pressure, tracked

RATE = 500.0
GROWTH_BYTES = 5 * 2**20


class Watch(Recorder):
    """Remembers the memory of every process of the run, this one included, while it runs.

    Memory is what a process has for itself (USS): pages shared with the fork server or mapped
    from files do not count for each of them anew.
    """

    def __init__(self) -> None:
        super().__init__(patience_secs=300)
        self.memory: dict[str, list[tuple[float, int]]] = {}
        self._measure_at = 0.0

    def snapshot(self, snapshot: Snapshot) -> None:
        super().snapshot(snapshot)
        if snapshot.phase == "running" and snapshot.secs >= self._measure_at:
            self._measure_at = snapshot.secs + 0.5
            for process in [psutil.Process(), *processes_of(os.getpid())]:
                name = f"{process.pid} {' '.join(process.cmdline()[3:5])}"
                used = process.memory_full_info().uss
                self.memory.setdefault(name, []).append((snapshot.secs, used))

    def growth_bytes(self, after_secs: float) -> dict[str, int]:
        """Per process, how far its memory rose above what it was at `after_secs`."""
        growth = {}
        for name, samples in self.memory.items():
            later = [used for secs, used in samples if secs >= after_secs]
            growth[name] = max(later) - later[0]
        return growth

    def rate(self, component: str, after_secs: float) -> float:
        """Tuples per second that a component executed between `after_secs` and the drain."""
        running = [s for s in self.snapshots if s.phase == "running" and s.secs >= after_secs]
        first, last = running[0], running[-1]
        executed = figures(last, component).executed - figures(first, component).executed
        return executed / (last.secs - first.secs)


def run_under_pressure(
    folder: Path, workers: int, secs: float, payload_bytes: int, slow_secs: float
) -> tuple[Outcome, Watch]:
    """Run for `secs`, then let the slow bolt hurry so that everything is drained."""
    hurry = folder / "hurry"
    seen = Watch()
    seen.when(lambda: seen.snapshots[-1].phase == "draining", hurry.touch)
    builder = pressure(payload_bytes, slow_secs, RATE, str(hurry))
    outcome = run_local(builder, workers, ttl_secs=secs, seen=seen)
    return outcome, seen


def check(outcome: Outcome, seen: Watch, workers: int, settled_secs: float) -> None:
    """Everything that a slow bolt may not break."""
    outcome.check_clean()
    [eager] = outcome.reports("eager")
    secs = outcome.result.final.secs
    # Five instances; per worker itself, its fork server and its stream manager; and the parent.
    assert len(seen.memory) == 5 + 3 * workers + 1
    growth = seen.growth_bytes(settled_secs)
    assert max(growth.values()) <= GROWTH_BYTES, growth
    assert seen.rate("e-steady", settled_secs) >= 0.9 * RATE
    # It was held back: without pressure it would have emitted a hundred times more than this. What
    # the slow bolt takes it may emit, so that one has to be slower by more than that.
    assert eager["emitted"] <= 0.01 * secs / eager["secs_each"]
    # And nothing is lost; the slow bolt itself checks that no number is left out.
    for producer, consumer in (
        ("a-eager", "b-pass"),
        ("b-pass", "c-slow"),
        ("d-steady", "e-steady"),
    ):
        assert outcome.figures(consumer).executed == outcome.figures(producer).emitted > 0
    assert outcome.figures("a-eager").emitted == eager["emitted"]
    [steady] = outcome.reports("steady-bolt")
    assert steady["count"] == outcome.figures("d-steady").emitted


def check_slowness(outcome: Outcome, slow_secs: float) -> None:
    """The bolt was as slow, beside its spout, as the test is about."""
    [eager] = outcome.reports("eager")
    assert slow_secs >= 200 * eager["secs_each"]


def test_a_slow_bolt_holds_back_only_its_own_spout(tmp_path: Path) -> None:
    outcome, seen = run_under_pressure(tmp_path, 2, 5, payload_bytes=100, slow_secs=0.005)
    check(outcome, seen, workers=2, settled_secs=2)
    check_slowness(outcome, 0.005)


@pytest.mark.slow
@pytest.mark.parametrize(("payload_bytes", "slow_secs"), [(10, 0.005), (10_000, 0.05)])
@pytest.mark.parametrize("workers", [1, 2])
def test_memory_is_bounded_for_half_a_minute(
    tmp_path: Path, workers: int, payload_bytes: int, slow_secs: float
) -> None:
    outcome, seen = run_under_pressure(tmp_path, workers, 30, payload_bytes, slow_secs)
    check(outcome, seen, workers, settled_secs=10)
    check_slowness(outcome, slow_secs)


def run_tracked(
    folder: Path, workers: int, secs: float, relays: int, slow_secs: float, timeout_secs: int
) -> dict[str, int]:
    """Run for `secs` and drain at the same pace; what the spout says."""
    conf = {Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: timeout_secs}
    builder = tracked(relays, slow_secs, str(folder / "never"))
    outcome = run_local(builder, workers, conf, ttl_secs=secs)
    outcome.check_clean()
    [said] = outcome.reports("tracked")
    assert said["emitted"] == said["acks"] + said["fails"] == outcome.figures("slow").executed
    return dict(said)


@pytest.mark.parametrize("relays", [0, 2])
def test_a_slow_bolt_makes_nothing_wait_for_a_message_timeout(tmp_path: Path, relays: int) -> None:
    """From the first tuple on, also behind fast bolts: what is queued is counted in time."""
    said = run_tracked(tmp_path, 1, 6, relays, slow_secs=0.1, timeout_secs=5)
    assert said["fails"] == 0
    assert said["acks"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("relays", [0, 1])
def test_nothing_fails_before_a_bolt_of_100_ms(tmp_path: Path, workers: int, relays: int) -> None:
    said = run_tracked(tmp_path, workers, 20, relays, slow_secs=0.1, timeout_secs=5)
    assert said["fails"] == 0
    assert said["acks"] > 150
