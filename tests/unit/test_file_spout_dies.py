"""FileSpout where copies die and come back within one process: in the driver and the simulation."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_py import BaseBasicBolt, BasicOutputCollector, TopologyBuilder, Tuple
from storm_py.spouts import FileSpout
from storm_py.testing import Simulation, TopologyDriver


@pytest.fixture(autouse=True)
def nobody_closes_the_files_of_the_dead() -> Iterator[None]:
    """Who is killed closes nothing: within one process that is left to the garbage collector."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


class Reader(BaseBasicBolt):
    """Takes every line."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass


def test_a_successor_takes_over_what_the_dead_held(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a\nb\n")
    with TopologyDriver.for_spout(FileSpout(tmp_path / "text", tmp_path / "offsets")) as driver:
        driver.run(calls=1)
        driver.kill("spout")
        driver.run()
        assert driver.outputs("spout") == [[1, "a"], [1, "a"], [2, "b"]]


@pytest.mark.parametrize("seed", range(5))
def test_a_simulation_kills_it_as_often_as_it_likes(tmp_path: Path, seed: int) -> None:
    (tmp_path / "text").write_text("".join(f"line {n}\n" for n in range(60)))
    builder = TopologyBuilder()
    builder.set_spout("lines", FileSpout(tmp_path / "text", tmp_path / "offsets"), 2)
    builder.set_bolt("reader", Reader(), 2).shuffle_grouping("lines")
    report = Simulation(seed, builder).run()
    assert report.received >= 60
