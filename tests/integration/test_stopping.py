"""Runs that end or are stopped: they drain, unless they cannot, and nothing is left behind.

Processes and run folders that a test leaves fail it by fixtures; what is asked here in addition is
that they are gone when the run says that it is over. Signals to the program, and the death of the
parent, are in test_command.py.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from storm_py import TopologyBuilder
from tests.integration.harness import Outcome, Recorder, processes_of, run_folders, run_local
from tests.integration.topologies_for_tests.flows import NumberSpout, Relay, Sink
from tests.integration.topologies_for_tests.stopping import endless


def check_drained(outcome: Outcome) -> None:
    """What was emitted was executed, all the way down."""
    assert outcome.figures("relay").executed == outcome.figures("numbers").emitted
    assert outcome.figures("last").executed == outcome.figures("relay").emitted > 0
    reports = outcome.reports("last")
    assert sum(report["count"] for report in reports) == outcome.figures("last").executed
    assert outcome.result.lost == ()
    assert not outcome.result.forced
    assert not outcome.result.failed
    assert outcome.result.final.phase == "done"


def numbers(total: int) -> TopologyBuilder:
    """A run that ends by itself."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(total), 2)
    builder.set_bolt("relay", Relay(), 2).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink(), 2).shuffle_grouping("relay")
    return builder


def test_a_run_that_has_ended_leaves_nothing() -> None:
    run_local(numbers(100), workers=2).check_clean()
    fds = psutil.Process().num_fds()
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    run_local(numbers(100), workers=2).check_clean()
    assert processes_of(os.getpid()) == []
    assert run_folders() == []
    assert psutil.Process().num_fds() == fds
    assert handlers == [
        signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
    ]


def test_a_time_to_live_drains(tmp_path: Path) -> None:
    outcome = run_local(endless(tmp_path), workers=2, ttl_secs=0.5)
    check_drained(outcome)
    assert not outcome.result.interrupted
    assert run_folders() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains(tmp_path: Path, number: signal.Signals) -> None:
    seen = Recorder()
    seen.when(lambda: seen.executed("last") > 1000, lambda: os.kill(os.getpid(), number))
    outcome = run_local(endless(tmp_path), workers=2, seen=seen)
    check_drained(outcome)
    assert outcome.result.interrupted


def test_a_drain_of_user_code_that_hangs_is_forced(tmp_path: Path) -> None:
    outcome = run_local(
        endless(tmp_path, stuck=True), conf={"storm_py.drain.timeout.secs": 0.5}, ttl_secs=0.5
    )
    assert outcome.result.forced
    assert not outcome.result.interrupted
    assert "stopped before it was drained" in " ".join(outcome.result.lost)
    assert any("storm_py.drain.timeout.secs" in event for event in outcome.seen.events)
    assert run_folders() == []


def test_one_signal_is_enough_when_a_drain_has_begun_already(tmp_path: Path) -> None:
    """The time to live has begun it, and the operator was told that a signal stops at once."""
    seen = Recorder()
    seen.when(
        lambda: seen.snapshots[-1].phase == "draining", lambda: os.kill(os.getpid(), signal.SIGINT)
    )
    outcome = run_local(endless(tmp_path, stuck=True), ttl_secs=0.5, seen=seen)
    assert outcome.result.forced
    assert outcome.result.interrupted


@pytest.mark.parametrize("moment", range(4))
@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_while_the_run_starts(tmp_path: Path, workers: int, moment: int) -> None:
    """Whatever has come up by then: it stops as it should, without force."""
    seen = Recorder()
    pids: set[int] = set()

    def come_up() -> bool:
        pids.update(process.pid for process in processes_of(os.getpid()))
        return len(pids) >= (0, 1, workers + 1, 3 * workers)[moment]

    seen.when(come_up, lambda: os.kill(os.getpid(), signal.SIGINT))
    outcome = run_local(endless(tmp_path), workers, seen=seen)
    assert outcome.result.interrupted
    assert not outcome.result.forced, seen.events
    assert outcome.result.final.restarts == 0
    assert run_folders() == []


def test_a_runtime_folder_whose_name_is_too_long_for_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    run_local(numbers(10)).check_clean()
    assert list(folder.iterdir()) == []
