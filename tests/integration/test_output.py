"""What user code prints and logs reaches whoever watches the run, and the log folder."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.integration.harness import Outcome, run_local
from tests.integration.topologies_for_tests.failing import ChattyBolt, onto


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs") / "of" / "a run"


@pytest.fixture(scope="module")
def outcome(logs: Path) -> Outcome:
    outcome = run_local(onto(ChattyBolt()), workers=2, log_dir=logs)
    assert not outcome.result.failed
    assert outcome.result.log_dir == str(logs)
    return outcome


def test_printed_lines(outcome: Outcome) -> None:
    assert outcome.seen.lines == [
        ("last (task 1)", line)
        for line in (
            "hello from prepare, größer",
            "in parts: one line",
            "from below: \N{REPLACEMENT CHARACTER}",
            "no newline at the end",
        )
    ]


def test_logged_warnings(outcome: Outcome) -> None:
    assert outcome.seen.logs == [
        (logging.WARNING, "last (task 1)", "number is 0"),
        (logging.ERROR, "last (task 1)", "the end"),
    ]


def test_reported_errors(outcome: Outcome) -> None:
    [error] = outcome.seen.errors
    assert (error.component, error.task, error.where) == ("last", 1, "report_error")
    assert error.message == "ValueError: only reported"
    assert not error.fatal
    assert outcome.result.final.errors == 1


def test_log_files(outcome: Outcome, logs: Path) -> None:
    [log] = logs.glob("*/last-1.log")
    text = log.read_text(encoding="utf-8")
    assert "WARNING my.own number is 0" in text
    assert "INFO my.own nobody wants to know on the terminal" in text
    assert "this is deprecated" in text
    [printed] = logs.glob("*/last-1.out")
    assert printed.read_text(encoding="utf-8", errors="replace").startswith("hello from prepare")
    assert {path.name for path in logs.glob("*/worker.log")} == {"worker.log"}
    assert len(list(logs.iterdir())) == 2


def test_a_log_folder_that_has_been_used_before(tmp_path: Path) -> None:
    """The files go on where they ended; only what is new is shown."""
    outcomes = [run_local(onto(ChattyBolt()), log_dir=tmp_path) for _ in range(2)]
    assert outcomes[0].seen.lines == outcomes[1].seen.lines
    [printed] = tmp_path.glob("*/last-1.out")
    assert printed.read_text(encoding="utf-8", errors="replace").count("hello from prepare") == 2
