"""The page of counters while another process writes it: what is read is never half of a number."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from storm_py.runtime.page import read_page
from tests.helpers import wait_until
from tests.integration.harness import ROOT

WRITER = """
import sys
from pathlib import Path
from storm_py.engine.statistics import InstanceStatistics
from storm_py.runtime.page import PageWriter

page, count = PageWriter(Path(sys.argv[1]), 1, 1), 0x1FF0000
while True:
    count += 1000
    page.write([InstanceStatistics(count, count, count, count, count, count)])
"""
READS = 20_000


def test_counters_never_go_back(tmp_path: Path) -> None:
    path = tmp_path / "page"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=ROOT) as writer:
        try:
            wait_until(lambda: read_page(path).counters, 30.0, "the first writing")
            first = newest = read_page(path).counters[0].totals
            for _ in range(READS):
                found = read_page(path).counters[0].totals
                assert all(now >= before for now, before in zip(found, newest, strict=True))
                newest = found
            assert min(newest) > max(first), "nobody has written meanwhile"
        finally:
            writer.kill()
