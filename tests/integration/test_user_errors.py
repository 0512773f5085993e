"""Exceptions of user code: reported with all that is needed, and the rest goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.harness import Outcome, restarted, run_local
from tests.integration.topologies_for_tests.failing import (
    TOTAL,
    FailingBolt,
    FailingSpout,
    HangingBolt,
    RefusingBolt,
    after,
    around,
    onto,
)
from tests.variants import chosen

pytestmark = pytest.mark.variants


def check_the_others_did_not_suffer(outcome: Outcome) -> None:
    assert outcome.figures("other sink").executed == TOTAL
    assert [r["count"] for r in outcome.reports("sink") if r["component"] == "other sink"] == [
        TOTAL
    ]
    assert outcome.result.final.phase == "done"
    assert not outcome.result.forced
    assert not outcome.result.interrupted


def check_error(outcome: Outcome, component: str, where: str, fatal: bool) -> None:
    """The error says who, where, what; its traceback shows the user's own line."""
    error = outcome.seen.errors[0]
    assert error.component == component
    assert error.task > 0
    assert error.where == where
    assert error.message == "ValueError: this is on purpose: größer"
    assert "topologies_for_tests/failing.py" in error.traceback
    assert 'raise ValueError("this is on purpose' in error.traceback
    assert error.fatal == fatal
    assert outcome.result.final.errors == len(outcome.seen.errors)


@pytest.mark.parametrize("workers", [1, 2])
def test_execute_raises(tmp_path: Path, workers: int) -> None:
    outcome = run_local(around(FailingBolt("execute", str(tmp_path / "flag"))), workers)
    check_error(outcome, "middle", "execute", fatal=True)
    assert len(outcome.seen.errors) == 1
    assert outcome.result.failed
    assert outcome.result.final.restarts == 1
    [sentence] = outcome.result.lost
    assert "middle" in restarted(sentence)
    assert "exited with code 1" in sentence
    check_the_others_did_not_suffer(outcome)
    # What is missing is what was in the instance that ended, not what came before or after it.
    executed = outcome.figures("sink").executed
    if chosen().fused:  # the spout was in it, and began anew
        assert executed > TOTAL
    else:
        assert 0 < executed < TOTAL
    assert outcome.figures("middle").emitted == outcome.figures("middle").executed - 1


@pytest.mark.parametrize("where", ["next_tuple", "activate"])
def test_a_spout_raises(tmp_path: Path, where: str) -> None:
    outcome = run_local(after(FailingSpout(where, str(tmp_path / "flag"))))
    check_error(outcome, "numbers", where, fatal=True)
    assert outcome.result.failed
    assert outcome.result.final.restarts == 1
    check_the_others_did_not_suffer(outcome)
    # The spout began anew: what it had emitted by then comes twice.
    emitted = TOTAL + (10 if where == "next_tuple" else 0)
    assert outcome.figures("numbers").emitted == emitted
    assert TOTAL <= outcome.figures("sink").executed <= emitted


@pytest.mark.parametrize("workers", [1, 2])
def test_a_component_cannot_start(tmp_path: Path, workers: int) -> None:
    for builder, component, where in (
        (around(FailingBolt("prepare", "")), "middle", "prepare"),
        (after(FailingSpout("open", "")), "numbers", "open"),
    ):
        outcome = run_local(builder, workers)
        check_error(outcome, component, where, fatal=True)
        assert outcome.result.failed
        assert not outcome.result.forced, "it ended because it could not start, not by force"
        assert outcome.result.final.phase == "done"
        assert outcome.figures("other sink").executed == 0
        assert any("could not start" in event for event in outcome.seen.events)
        assert len(outcome.seen.errors) == 1, "nothing was started again behind that"


@pytest.mark.parametrize("how", ["exit", "os exit", "crash"])
def test_a_component_that_leaves_instead_of_starting(how: str) -> None:
    outcome = run_local(around(FailingBolt("prepare", "", how)))
    assert outcome.result.failed
    assert not outcome.result.forced
    assert outcome.result.final.phase == "done"
    error = outcome.seen.errors[0]
    assert error.component == "middle"
    assert error.fatal
    if how == "exit":
        assert error.where == "prepare"
        assert "gone on purpose" in error.message
    elif how == "os exit":
        assert error.where == "start"
        assert "exited with code 7" in error.message
    else:
        assert "was killed by SIGSEGV" in error.message
        assert "Fatal Python error: Segmentation fault" in error.traceback


def test_end_of_input_raises(tmp_path: Path) -> None:
    outcome = run_local(around(FailingBolt("end_of_input", str(tmp_path / "flag"))))
    check_error(outcome, "middle", "end_of_input", fatal=False)
    assert outcome.result.failed
    assert outcome.result.final.restarts == 0
    assert outcome.result.lost == ()
    assert outcome.figures("sink").executed == TOTAL
    check_the_others_did_not_suffer(outcome)


@pytest.mark.parametrize("where", ["cleanup", "close"])
def test_closing_raises(where: str) -> None:
    """As in Storm these are called as best effort: an error is shown and changes nothing."""
    builder = after(FailingSpout(where, "")) if where == "close" else around(FailingBolt(where, ""))
    outcome = run_local(builder)
    check_error(outcome, "numbers" if where == "close" else "middle", where, fatal=False)
    assert outcome.result.final.restarts == 0
    assert outcome.figures("sink").executed == TOTAL
    check_the_others_did_not_suffer(outcome)


def test_tuples_refused_on_purpose() -> None:
    outcome = run_local(around(RefusingBolt()))
    assert not outcome.result.failed
    assert outcome.result.final.restarts == 0
    assert [error.message for error in outcome.seen.errors] == [
        f"ReportedFailedException: number {number} is refused" for number in (10, 1010)
    ]
    assert not any(error.fatal for error in outcome.seen.errors)
    assert outcome.figures("sink").executed == TOTAL - 2 - TOTAL // 100
    check_the_others_did_not_suffer(outcome)


@pytest.mark.parametrize(
    ("how", "seen"),
    [("exit", "exited with code"), ("os exit", "exited with code 7"), ("crash", "SIGSEGV")],
)
def test_user_code_leaves_the_process(tmp_path: Path, how: str, seen: str) -> None:
    """An exit is no way out for a bolt: it is shown as an error, and the instance is back."""
    outcome = run_local(around(FailingBolt("execute", str(tmp_path / "flag"), how)))
    assert outcome.result.final.restarts == 1
    [sentence] = outcome.result.lost
    assert seen in sentence
    check_the_others_did_not_suffer(outcome)
    if how == "exit":
        [error] = outcome.seen.errors
        assert (error.component, error.where) == ("middle", "execute")
        assert "gone on purpose" in error.message
        assert outcome.result.failed


def test_user_code_that_hangs_is_ended_with_the_time_of_the_drain(tmp_path: Path) -> None:
    sign = tmp_path / "hang"
    sign.touch()
    outcome = run_local(
        onto(HangingBolt(str(sign))), conf={"storm_py.drain.timeout.secs": 0.3}, ttl_secs=0.3
    )
    assert outcome.result.forced
    assert not outcome.result.failed
    assert outcome.result.lost != ()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Nothing of the user's is at fault here, but nobody should have to guess what is."""
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n", encoding="utf-8")
    interpreter.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    outcome = run_local(onto(HangingBolt("")), workers)
    assert outcome.result.failed
    assert not outcome.result.forced
    assert outcome.result.final.phase == "done"
    error = outcome.seen.errors[0]
    assert error.component in {"worker 0", "worker 1"}
    assert "exited with code 3" in error.message
    assert "out of order" in error.traceback
