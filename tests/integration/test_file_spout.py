"""A FileSpout whose process is killed: its successor goes on where the offset file says."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from benchmarks.oracle import build, judge, records, write_text
from storm_py.spouts.progress import START, Saved
from tests.integration.harness import Recorder, run_local

LINES = 6_000


def test_a_killed_spout_goes_on_where_its_offsets_say(tmp_path: Path) -> None:
    write_text(tmp_path, LINES)
    offsets = tmp_path / "offsets" / "source-0.json"
    seen = Recorder()
    stored: list[Saved] = []

    def some_lines_are_done() -> bool:
        if offsets.exists():
            stored[:] = [Saved.decode(offsets.read_bytes())]
        return bool(stored) and stored[0].lowest > START

    def births() -> list[list[str]]:
        """Of the first task of the spout."""
        found = [record for record in records(tmp_path, "births") if record[0] == "source"]
        first = min(int(record[1]) for record in found)
        return [record for record in found if int(record[1]) == first]

    def kill() -> None:
        ((_, _, pid, _, _),) = births()
        os.kill(int(pid), signal.SIGKILL)

    seen.when(some_lines_are_done, kill)
    outcome = run_local(build(tmp_path, 1500), seen=seen)
    assert seen.unmet == 0
    assert outcome.result.final.restarts == 1
    assert not outcome.result.forced
    verdict = judge(tmp_path)
    assert verdict.lost == verdict.strange == 0, verdict
    _, (_, task, _, _, born) = births()
    again = [
        int(number)
        for number, by, at in records(tmp_path, "emitted")
        if by == task and int(at) > int(born)
    ]
    assert min(again) >= stored[0].lowest.number, "what was done is not repeated"
