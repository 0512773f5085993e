"""A spout that never emits: legal, quiet, and cheap."""

from __future__ import annotations

from storm_py.config import Config
from tests.integration.harness import run_local
from tests.integration.topologies_for_tests.idle import idle

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
