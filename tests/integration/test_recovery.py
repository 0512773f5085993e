"""The kill oracle at length: every kind of process killed again and again, and nothing is lost.

It runs `benchmarks/recovery.py`, which measures as well; here only what was counted is judged.
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


def recovery(kills: int, *options: str) -> dict[str, Any]:
    """Run the program; the figures that it prints."""
    command = [sys.executable, "-m", "benchmarks.recovery", "--kills", str(kills), *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=550, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    figures: dict[str, Any] = json.loads(done.stdout)
    assert f"{figures['lost']} lost, {figures['duplicates']} duplicates" in " ".join(
        done.stderr.split()
    )
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
