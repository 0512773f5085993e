"""The kill oracle at length: every kind of process killed again and again, and nothing is lost.

It runs `benchmarks/recovery.py` and, on a cluster, `benchmarks/cluster_recovery.py`, which measure
as well; here only what was counted is judged.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


def figures_of(program: str, *options: str) -> tuple[dict[str, Any], str]:
    """Run a program; the figures that it prints, and its table."""
    command = [sys.executable, "-m", f"benchmarks.{program}", *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=550, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout), " ".join(done.stderr.split())


def recovery(kills: int, *options: str) -> dict[str, Any]:
    """Run the program of one machine; the figures that it prints."""
    figures, table = figures_of("recovery", "--kills", str(kills), *options)
    assert f"{figures['lost']} lost, {figures['duplicates']} duplicates" in table
    return figures


def test_without_kills_every_word_arrives_once() -> None:
    figures = recovery(0, "--step-secs", "1")
    assert figures["lost"] == figures["duplicates"] == figures["restarts"] == 0
    assert figures["rows"] == figures["expected"]


@pytest.mark.slow
def test_twenty_kills_lose_nothing_and_words_come_twice_only_after_kills() -> None:
    figures = recovery(20)
    assert figures["lost"] == figures["strange"] == figures["duplicates_before"] == 0
    assert figures["rows"] == figures["expected"] + figures["duplicates"]
    assert not figures["forced"]
    costs = figures["costs"]
    kinds = Counter(cost["kind"] for cost in costs)
    assert kinds.total() == 21
    assert kinds["no kill"] == 1
    for kind in ("source", "split", "sink", "stream_manager", "worker", "fork_server"):
        assert kinds[kind] >= 3
    assert sum(cost["duplicates"] for cost in costs) == figures["duplicates"]


@pytest.mark.slow
def test_on_a_cluster_whatever_is_killed_nothing_is_lost() -> None:
    figures, table = figures_of("cluster_recovery", "--rounds", "1")
    assert "words: 0 lost" in table
    [only] = figures["rounds"]
    assert only["verdict"]["lost"] == only["verdict"]["strange"] == 0
    costs = {cost["kind"]: cost for cost in only["costs"]}
    assert list(costs) == [
        *("no kill", "rebalance", "instance", "stream manager", "worker", "supervisor", "nimbus"),
        *("zookeeper", "node"),
    ]
    assert [kind for kind, cost in costs.items() if cost["up"] is not None] == [
        *("rebalance", "instance", "worker", "node"),
    ]
    assert [kind for kind, cost in costs.items() if cost["back"] is not None] == [
        *("supervisor", "nimbus", "zookeeper"),
    ]
