"""Batch bolts over real processes: at least once, whatever is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_acking import LINES, check_nothing_lost, emissions, run_oracle
from tests.integration.topologies_for_tests.batches import build


@pytest.mark.parametrize("workers", [1, 2])
def test_without_a_death_everything_arrives_once(tmp_path: Path, workers: int) -> None:
    outcome = run_oracle(tmp_path, workers, [], make=build)
    outcome.check_clean()
    assert check_nothing_lost(tmp_path).duplicates == 0
    assert emissions(tmp_path) == LINES, "nothing failed"


@pytest.mark.parametrize("victim", ["instance", "stream_manager", "worker"])
def test_nothing_is_lost_when_a_process_is_killed(tmp_path: Path, victim: str) -> None:
    outcome = run_oracle(tmp_path, 2, [victim], make=build)
    assert outcome.seen.unmet == 0
    assert outcome.result.final.restarts > 0
    assert not outcome.result.forced
    check_nothing_lost(tmp_path)
