"""Emits in processes of their own: a grouping's object after a death, and what debug writes."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.integration.harness import run_inline, run_local
from tests.integration.topologies_for_tests.groupings import deadly_grouping

pytestmark = pytest.mark.variants

START = "emits on stream 'default' to"


def test_a_restarted_task_prepares_a_fresh_copy_of_its_grouping(tmp_path: Path) -> None:
    outcome = run_local(deadly_grouping(tmp_path / "mark", 100), workers=2)
    first, second = outcome.reports("prepared")
    assert first["task"] == second["task"]
    assert first["pid"] != second["pid"]
    assert (first["calls"], second["calls"]) == (0, 0)
    assert outcome.result.final.restarts == 1
    assert not outcome.result.failed
    [told] = outcome.reports("told")
    for report in outcome.reports("got"):
        if report["component"] == "shuffle":
            expected = {id_ for id_, tasks in told["told"].items() if tasks == [report["task"]]} - {
                id_ for id_ in told["told"] if id_[0] == "d"
            }
            assert expected <= set(report["ids"])
            assert len(expected) == 50


@pytest.mark.parametrize("here", [True, False])
def test_debug_writes_emits_to_the_log_of_the_instance_only(tmp_path: Path, here: bool) -> None:
    debug: dict[str, object] = {"topology.debug": True}
    own, conf = (debug, {}) if here else ({}, debug)
    builder = deadly_grouping(tmp_path, 10, own)
    outcome = run_local(builder, conf=conf, log_dir=tmp_path / "logs")
    outcome.check_clean()
    [task] = [report["task"] for report in outcome.reports("told")]
    [log] = (tmp_path / "logs").glob(f"*/source-{task}.log")
    lines = [line for line in log.read_text("utf-8").splitlines() if START in line]
    assert len(lines) == 10
    assert lines[0].endswith(f"INFO storm_py.instance source task {task} {START} 3: ['4-0', 0]")
    others = [path for path in (tmp_path / "logs").glob("*/*") if path != log]
    assert not any("emits on stream" in path.read_text("utf-8") for path in others)
    assert outcome.seen.logs == []


def test_debug_inline_shows_emits(tmp_path: Path) -> None:
    outcome = run_inline(deadly_grouping(tmp_path, 10), conf={"topology.debug": True})
    outcome.check_clean()
    lines = [text for level, _, text in outcome.seen.logs if level == logging.INFO]
    assert next(line for line in lines if START in line).startswith(f"source task 4 {START} ")
    assert len(lines) == 40
