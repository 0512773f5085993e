"""Processes of a run that are killed under load: it goes on, ends by itself, says what was lost.

Without acking a death may cost tuples; it may not cost the run, and it may not go unmentioned.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.harness import Outcome, Recorder, figures, restarted, run_local
from tests.integration.topologies_for_tests.deaths import deadly
from tests.variants import chosen

pytestmark = pytest.mark.variants

VICTIMS = ["instance", "fork server", "stream manager", "worker"]


def run_deadly(
    victim: str, folder: Path, workers: int, at: int | None, busy_secs: float = 0.0
) -> Outcome:
    """Run until the victim was killed and is back, and tuples flow again; then end the input."""
    seen = Recorder()
    gate = folder / "gate"
    if at is None:  # it will die of the end of its input
        seen.when(lambda: seen.executed("sink") > 0, gate.touch)
    else:

        def open_gate_when_tuples_flow_again() -> None:
            before = seen.executed("sink")
            seen.when(lambda: seen.executed("sink") > before + 1000, gate.touch)

        seen.when(lambda: seen.snapshots[-1].restarts > 0, open_gate_when_tuples_flow_again)
    return run_local(deadly(victim, folder, at, busy_secs), workers, seen=seen)


def check_survived(outcome: Outcome, victim: str) -> None:
    """The run ended by itself and tells of the death."""
    result = outcome.result
    assert [report["victim"] for report in outcome.reports("killing")] == [victim]
    assert result.final.phase == "done"
    outcome.check_ended_by_itself()
    assert result.final.restarts > 0
    assert len(result.lost) == result.final.restarts
    assert all("SIGKILL" in sentence for sentence in result.lost), result.lost
    assert any("SIGKILL" in event for event in outcome.seen.events)
    assert outcome.seen.errors == []
    assert outcome.seen.unmet == 0
    for component in ("numbers", "killer", "sink"):  # figures outlive whoever had counted
        found = [figures(snapshot, component) for snapshot in outcome.seen.snapshots]
        for counts in ([each.executed for each in found], [each.emitted for each in found]):
            assert counts == sorted(counts)
    # Every sink was told of the end, exactly once since it was started.
    tasks = [report["task"] for report in outcome.reports("sink")]
    assert len(set(tasks)) == 2


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_death_under_load(tmp_path: Path, victim: str, workers: int) -> None:
    outcome = run_deadly(victim, tmp_path, workers, at=5000)
    check_survived(outcome, victim)
    lost = " / ".join(outcome.result.lost)
    if victim == "worker":
        assert "worker 0" in lost or "worker 1" in lost
    elif victim == "stream manager":
        assert "a stream manager was restarted" in lost
    elif victim == "instance":
        assert "killer" in restarted(lost)
    else:  # every instance of that worker dies with the fork server
        assert len(outcome.result.lost) == (4 if chosen().fused else 6) // workers


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_death_while_the_input_ends(tmp_path: Path, victim: str) -> None:
    check_survived(run_deadly(victim, tmp_path, workers=2, at=None), victim)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stream_manager_that_dies_and_is_back_while_user_code_runs(
    tmp_path: Path, workers: int
) -> None:
    """The instance learns of the death and of the successor's greeting at the same time."""
    outcome = run_deadly("stream manager", tmp_path, workers, at=5000, busy_secs=1.5)
    check_survived(outcome, "stream manager")
