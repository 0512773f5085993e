"""Edge ids come from a generator of the instance's own, made after the fork."""

from __future__ import annotations

import pytest

from storm_py.config import Config
from tests.integration.harness import run_local
from tests.integration.topologies_for_tests.seeding import MESSAGES, seeding

pytestmark = pytest.mark.variants


@pytest.mark.parametrize("workers", [1, 2])
def test_user_code_that_seeds_completes_no_tree_falsely(workers: int) -> None:
    outcome = run_local(seeding(), workers, {Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 1})
    outcome.check_clean()
    (spout,) = outcome.reports("spout")
    assert (spout["acked"], spout["failed"]) == (0, MESSAGES)
