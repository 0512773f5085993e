"""Spouts that emit nothing: legal, quiet and cheap, unless next_tuple blocks."""

from __future__ import annotations

import re
from pathlib import Path

from storm_py.config import Config
from tests.integration.harness import Recorder, run_local
from tests.integration.topologies_for_tests.idle import BlockedSpout, PipeSpout, idle

WAIT_MS = 20


def test_a_spout_that_never_emits_is_legal_and_no_busy_loop() -> None:
    outcome = run_local(idle(), conf={Config.STORM_PY_SPOUT_WAIT_MS: WAIT_MS}, ttl_secs=2.0)
    outcome.check_clean()
    assert outcome.seen.logs == []
    assert outcome.reports("heard") == []
    (report,) = outcome.reports("idle")
    # Some calls come sooner than that, at the beginning and after each message; none is a loop.
    allowed = 50 + 3 * report["secs"] * 1000 / WAIT_MS
    assert 1 < report["calls"] <= allowed


def test_a_spout_is_called_when_what_it_waits_on_can_be_read() -> None:
    """Without that it would be called once a minute, and the run would not end by itself."""
    messages = 20
    conf = {Config.STORM_PY_SPOUT_WAIT_MS: 60_000}
    outcome = run_local(idle(PipeSpout(messages)), conf=conf)
    outcome.check_clean()
    assert [heard["values"] for heard in outcome.reports("heard")] == [[n] for n in range(messages)]


def test_a_spout_that_blocks_is_named(tmp_path: Path) -> None:
    sign = tmp_path / "blocked"
    sign.touch()
    seen = Recorder()
    seen.when(lambda: seen.logs, sign.unlink)
    outcome = run_local(
        idle(BlockedSpout(str(sign))), conf={Config.STORM_PY_STUCK_SECS: 0.2}, seen=seen
    )
    outcome.check_clean()
    text = seen.logs[0][2]
    assert re.match(r"idle \(task \d\) has been in next_tuple for \d s", text), text
