"""Batch bolts over real processes: at least once, whatever is killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from storm_py import TopologyBuilder
from tests.integration.test_acking import LINES, check_nothing_lost, emissions, run_oracle
from tests.integration.topologies_for_tests.batches import build, build_fused

Make: TypeAlias = Callable[[Path, float], TopologyBuilder]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("make", [build, build_fused])
def test_without_a_death_everything_arrives_once(tmp_path: Path, workers: int, make: Make) -> None:
    outcome = run_oracle(tmp_path, workers, [], make=make)
    outcome.check_clean()
    assert check_nothing_lost(tmp_path).duplicates == 0
    assert emissions(tmp_path) == LINES, "nothing failed"


@pytest.mark.parametrize("victim", ["instance", "stream_manager", "worker"])
@pytest.mark.parametrize("make", [build, build_fused])
def test_nothing_is_lost_when_a_process_is_killed(tmp_path: Path, victim: str, make: Make) -> None:
    outcome = run_oracle(tmp_path, 2, [victim], make=make)
    assert outcome.seen.unmet == 0
    assert outcome.result.final.restarts > 0
    assert not outcome.result.forced
    check_nothing_lost(tmp_path)
