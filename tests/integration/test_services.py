"""Ticks, threads, metrics and hooks over real processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from storm_py.config import Config
from tests.integration.harness import (
    Outcome,
    Recorder,
    local_run,
    reports_in,
    run_inline,
    run_local,
)
from tests.integration.topologies_for_tests.flows import GatedSpout
from tests.integration.topologies_for_tests.services import (
    CountingBolt,
    hooked,
    metered,
    metered_conf,
    threaded,
    ticking,
    ticking_slowly,
)

pytestmark = pytest.mark.variants

TOTAL = 500


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_gets_its_ticks_and_what_they_emit_arrives(tmp_path: Path, workers: int) -> None:
    outcome = run_local(ticking(tmp_path / "gate"), workers)
    outcome.check_clean()
    ticks = outcome.reports("ticks")
    assert len(ticks) == 2
    assert max(len(task["at"]) for task in ticks) >= 3
    [sink] = outcome.reports("sink")
    assert sink["count"] == sum(len(task["at"]) for task in ticks)
    executed = sum(task["executed"] for task in ticks)
    assert outcome.figures("ticking").executed == executed, "ticks are no rows"


def test_a_tick_does_not_queue_behind_the_input(tmp_path: Path) -> None:
    outcome = run_local(ticking_slowly(tmp_path / "gate", total=100))
    outcome.check_clean()
    [task] = outcome.reports("ticks")
    assert task["executed"] == 100
    assert task["at"][0] < 100
    assert len(task["at"]) >= 3
    assert task["at"] == sorted(set(task["at"])), "one at a time, between tuples"


def check_threads(answers: list[dict[str, int]], sink: dict[str, int], tracked: bool) -> None:
    failed = TOTAL // 10
    expected = {"acked": TOTAL - failed, "failed": failed} if tracked else {"acked": TOTAL}
    assert answers == [{"report": "answers", **expected}]
    assert sink["count"] == TOTAL - failed
    assert sink["sum"] == 2 * sum(n for n in range(TOTAL) if n % 10 != 9)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("ackers", [None, 0])
def test_threads_emit_ack_and_fail_later(workers: int, ackers: int | None) -> None:
    """Tracked or not, what the threads still do when the input ends reaches the sink."""
    outcome = run_local(threaded(TOTAL), workers, {Config.TOPOLOGY_ACKER_EXECUTORS: ackers})
    outcome.check_clean()
    [sink] = outcome.reports("sink")
    check_threads(outcome.reports("answers"), sink, tracked=ackers is None)


def test_threads_inline(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run_inline(threaded(TOTAL))
    outcome.check_clean()
    lines = capsys.readouterr().out.splitlines()
    [sink] = reports_in(iter(lines), "sink")
    check_threads(reports_in(iter(lines), "answers"), sink, tracked=True)


def check_metrics(outcome: Outcome, found: dict[str, object]) -> None:
    outcome.check_clean()
    assert [each.component_id for each in outcome.result.final.components] == [
        "numbers",
        "counting",
    ]
    assert outcome.figures("counting").emitted == 0
    assert found["argument"] == {"to": "here"}
    tasks = 3  # counting is tasks 1 and 2
    assert found["sums"] == {
        "counting tuples": 2 * TOTAL,
        "counting sizes": 2 * TOTAL,
        "counting task": tasks,
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_consumers_hear_every_count_before_the_run_ends(tmp_path: Path, workers: int) -> None:
    outcome = run_local(metered(TOTAL), workers, metered_conf(), log_dir=tmp_path)
    [found] = outcome.reports("metrics")
    check_metrics(outcome, found)
    logs = [path.read_text() for path in tmp_path.glob("*/__metrics_*Logging*.log")]
    assert len(logs) == 2
    lines = [line for log in logs for line in log.splitlines() if "counting\ttuples\t" in line]
    assert sum(int(line.rpartition("\t")[2]) for line in lines) == 2 * TOTAL


def test_a_consumer_that_dies_comes_back_and_the_run_ends(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    seen = Recorder()
    builder = metered(TOTAL)
    builder.set_spout("gated", GatedSpout(str(gate), pause_secs=0.001))
    builder.set_bolt("relay", CountingBolt()).shuffle_grouping("gated")
    run = local_run(builder, 2, metered_conf(), seen)

    def kill() -> None:
        os.kill(seen.reports("consuming")[0]["pid"], signal.SIGKILL)

    seen.when(lambda: seen.reports("consuming"), kill)
    seen.when(lambda: len(seen.reports("consuming")) == 2, gate.touch)
    result = run.run(None)
    assert (result.final.phase, result.failed, result.final.restarts) == ("done", False, 1)
    [sentence] = result.lost
    assert sentence.startswith("__metrics_")
    [found] = seen.reports("metrics")
    assert found["sums"]["relay tuples"] > 0


def test_consumers_inline(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run_inline(metered(TOTAL), metered_conf())
    [found] = reports_in(iter(capsys.readouterr().out.splitlines()), "metrics")
    check_metrics(outcome, found)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hook_that_raises_ends_its_executor_only(tmp_path: Path, workers: int) -> None:
    conf = {
        Config.TOPOLOGY_AUTO_TASK_HOOKS: [f"{hooked.__module__}:RaisingHook"],
        "test.flag": str(tmp_path / "flag"),
    }
    outcome = run_local(hooked(TOTAL), workers, conf)
    [error] = outcome.seen.errors
    assert (error.component, error.where) == ("relay", "hook RaisingHook.emit")
    assert error.message == "ValueError: a hook, on purpose"
    assert "topologies_for_tests/services.py" in error.traceback
    assert error.fatal
    assert outcome.result.failed
    assert outcome.result.final.restarts == 1
    assert outcome.result.final.phase == "done"
