"""What user code was in is said while it is stuck there, and when it dies there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from storm_py.config import Config
from tests.integration.harness import Recorder, local_run, run_local
from tests.integration.topologies_for_tests.failing import FailingBolt, HangingBolt, around, onto

pytestmark = pytest.mark.variants


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bolt_that_hangs_is_named_and_comes_back(tmp_path: Path, workers: int) -> None:
    sign = tmp_path / "hang"
    sign.touch()
    seen = Recorder()
    run = local_run(onto(HangingBolt(str(sign))), workers, {Config.STORM_PY_STUCK_SECS: 0.2}, seen)
    seen.when(lambda: len(warnings(seen)) == 2, sign.unlink)
    result = run.run(None)
    assert result.final.phase == "done"
    assert not result.failed
    first, second, *_ = warnings(seen)
    pattern = (
        r"last \(task \d\) has been in execute, row 0 of a frame from numbers \(task \d\) for "
        r"\d s \(storm_py\.stuck\.secs: 0\.2\)"
    )
    assert re.fullmatch(pattern, first)
    assert re.fullmatch(pattern, second)


def warnings(seen: Recorder) -> list[str]:
    return [text for _, source, text in seen.logs if source.startswith("worker ")]


@pytest.mark.parametrize("how", ["os exit", "crash"])
def test_a_bolt_that_dies_is_said_to_have_died_there(tmp_path: Path, how: str) -> None:
    outcome = run_local(around(FailingBolt("execute", str(tmp_path / "flag"), how)))
    [sentence] = outcome.result.lost
    assert re.search(
        r" in execute( of middle \(task \d\))?, rows? \d+(\.\.\d+)? of a frame from numbers \(task",
        sentence,
    )


def test_an_exception_is_no_death_in_user_code(tmp_path: Path) -> None:
    """It was reported already, with its traceback."""
    outcome = run_local(around(FailingBolt("execute", str(tmp_path / "flag"))))
    [sentence] = outcome.result.lost
    assert "exited with code 1)" in sentence
