"""Deactivated topologies: spouts pause and hear of the rest; what restarts comes up paused."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from storm_py.config import Config
from tests.integration.harness import Outcome, Recorder, local_run
from tests.integration.test_acking import kill_when
from tests.integration.topologies_for_tests.pausing import pausing

pytestmark = pytest.mark.variants

CONF = {Config.TOPOLOGY_MAX_SPOUT_PENDING: 500}


@pytest.mark.parametrize("workers", [1, 2])
def test_spouts_pause_hear_their_answers_and_go_on(tmp_path: Path, workers: int) -> None:
    gate = tmp_path / "gate"
    seen = Recorder()
    run = local_run(pausing(gate), workers, CONF, seen)
    seen.when(lambda: seen.executed("sink") > 1000, run.deactivate)
    seen.when(lambda: len(seen.reports("deactivated")) == 2, lambda: None)
    # A spout with nothing pending when it pauses has nothing more to hear.
    seen.when(lambda: answered(seen) == 2, run.activate)
    seen.when(lambda: len(seen.reports("activated")) == 4, gate.touch)
    outcome = Outcome(run.run(None), seen)
    outcome.check_clean()
    assert len(seen.reports("deactivated")) == 2
    assert len(seen.reports("activated")) == 4
    assert len({each["task"] for each in seen.reports("activated")}) == 2


def answered(seen: Recorder) -> int:
    """How many paused spouts have had an answer to all they emitted."""
    idle = [r["task"] for r in seen.reports("deactivated") if r["answered"] == r["emitted"]]
    return len({*idle, *(r["task"] for r in seen.reports("all answered"))})


@pytest.mark.parametrize("workers", [1, 2])
def test_a_spout_that_restarts_while_paused_stays_paused(tmp_path: Path, workers: int) -> None:
    gate = tmp_path / "gate"
    seen = Recorder()
    run = local_run(pausing(gate), workers, CONF, seen)
    run.deactivate()  # from the start: nothing is ever asked for

    def kill() -> None:
        os.kill(seen.reports("opened spout")[0]["pid"], signal.SIGKILL)

    seen.when(lambda: seen.snapshots and seen.snapshots[-1].phase == "running", kill)
    seen.when(lambda: len(seen.reports("opened spout")) == 3 and restarted(seen), run.activate)
    seen.when(lambda: seen.executed("sink") > 100, gate.touch)
    outcome = Outcome(run.run(None), seen)
    assert outcome.result.final.phase == "done"
    assert not seen.errors, seen.errors[0].traceback
    assert outcome.result.final.restarts == 1
    assert len(seen.reports("activated")) == 2
    assert seen.reports("deactivated") == []


def restarted(seen: Recorder) -> bool:
    """Whether the successor is up, so that it would have been activated by now."""
    return any("was restarted" in event for event in seen.events)


@pytest.mark.parametrize("victim", ["stream_manager", "worker"])
def test_what_else_restarts_does_not_wake_the_spouts(tmp_path: Path, victim: str) -> None:
    gate = tmp_path / "gate"
    seen = Recorder()
    run = local_run(pausing(gate), 2, CONF, seen)
    seen.when(lambda: seen.executed("sink") > 100, run.deactivate)
    kill_when(seen, lambda: len(seen.reports("deactivated")) == 2, victim)
    back = {"stream_manager": "stream manager was restarted", "worker": "is up again"}[victim]
    seen.when(lambda: any(back in event for event in seen.events), run.activate)
    seen.when(lambda: any("activated: spouts go" in event for event in seen.events), gate.touch)
    outcome = Outcome(run.run(None), seen)
    assert outcome.result.final.phase == "done"
    # Its spout asserts that it is never asked for a tuple, nor turned, at the wrong time.
    assert not seen.errors, seen.errors[0].traceback
    assert seen.unmet == 0
