"""Columns: batch bolts that get and emit pyarrow's record batches or numpy's arrays."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from storm_py import Batch, BatchBolt, EmitError, Fields, InvalidTopologyException, TopologyBuilder
from storm_py.engine import columns
from storm_py.testing import TopologyDriver
from storm_py.testing.start import around_bolt


class Columnar(BatchBolt):
    """Keeps what it is given, and emits what `make` makes of it."""

    def __init__(self, columns: Any, make: Any = None) -> None:
        self.columns = columns
        self.make = make
        self.seen: list[Any] = []

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("word", "count")

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def execute_batch(self, rows: Any, batch: Batch) -> None:
        self.seen.append(rows)
        if self.make is not None:
            self.collector.emit_batch(self.make(rows), [0] * len(batch))


def driver_of(columns: Any, make: Any = None, fields: str = "word count") -> TopologyDriver:
    return TopologyDriver.for_bolt(Columnar(columns, make), fields.split())


def test_arrow_hands_over_a_record_batch_named_as_the_fields() -> None:
    with driver_of("arrow") as driver:
        driver.feed("input", ["a", 1])
        [found] = driver.component("bolt").seen
    assert isinstance(found, pa.RecordBatch)
    assert found.to_pydict() == {"word": ["a"], "count": [1]}


def test_numpy_hands_over_an_array_for_each_field() -> None:
    with driver_of("numpy", fields="word count share") as driver:
        driver.feed("input", ["a", 1, 0.5])
        [found] = driver.component("bolt").seen
    assert {name: (array.dtype.kind, array.tolist()) for name, array in found.items()} == {
        "word": ("O", ["a"]),
        "count": ("i", [1]),
        "share": ("f", [0.5]),
    }


@pytest.mark.parametrize(
    "values",
    [[1, "a"], [1, None], [[1], [2, 3]], [[1, 2], [3, 4]], [2**70, 1], [1, 2.5], [dt.date.min, 1]],
)
def test_numpy_keeps_every_other_value_as_it_is(values: list[Any]) -> None:
    hand_over = columns.handing_over("numpy")
    found = hand_over([[value] for value in values], Fields("value"))["value"]
    assert found.dtype == object
    assert list(found) == values


@pytest.mark.parametrize("kind", ["arrow", "numpy"])
def test_a_tick_comes_in_columns_as_well(kind: str) -> None:
    hand_over = columns.handing_over(kind)
    found = hand_over([[5]], Fields("rate_secs"))
    assert found["rate_secs"].tolist() == [5]


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("arrow", lambda batch: batch),
        ("arrow", lambda batch: batch.select(["count", "word"])),
        ("numpy", lambda arrays: arrays),
        ("numpy", lambda arrays: {"count": np.array([1]), "word": ["a"]}),
        (None, lambda rows: {"word": np.array(["a"]), "count": np.array([1])}),
        (None, lambda rows: pa.RecordBatch.from_pydict({"word": ["a"], "count": [1]})),
    ],
)
def test_columns_are_emitted_as_rows(kind: Any, make: Any) -> None:
    with driver_of(kind, make) as driver:
        driver.feed("input", ["a", 1], msg_id=3)
        assert driver.outputs("bolt") == [["a", 1]]
        assert [type(value) for value in driver.outputs("bolt")[0]] == [str, int]
        assert driver.acked() == [3]


WHERE = "component 'bolt', stream 'default': emit_batch got "


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ({"word": ["a"]}, f"{WHERE}the columns word; expected word, count"),
        ({}, f"{WHERE}the columns none; expected word, count"),
        (
            {"word": np.array(["a"]), "count": np.array([1, 2])},
            f"{WHERE}columns of different lengths: word has 1, count has 2",
        ),
        (
            pa.RecordBatch.from_pydict({"word": ["a"], "n": [1]}),
            f"{WHERE}the columns word, n; expected word, count",
        ),
    ],
)
def test_columns_that_do_not_fit_are_refused(made: Any, message: str) -> None:
    with driver_of(None, lambda rows: made) as driver:
        with pytest.raises(EmitError) as caught:
            driver.feed("input", ["a", 1])
        assert str(caught.value) == message
        assert driver.outputs("bolt") == []


@pytest.mark.parametrize("value", [2 + 1j, 2**70])
def test_a_value_without_an_arrow_type_is_named(value: object) -> None:
    with driver_of("arrow") as driver, pytest.raises(TypeError) as caught:
        driver.feed("input", ["a", value])
    assert str(caught.value).startswith(
        "field 'count' holds values that have no common arrow type: "
    )
    assert str(caught.value).endswith("use rows (columns = None), or emit values of one type")


def test_values_of_different_types_have_no_arrow_type() -> None:
    hand_over = columns.handing_over("arrow")
    with pytest.raises(TypeError, match="field 'count' holds values that have no common"):
        hand_over([["a", 1], ["b", "x"]], Fields("word", "count"))


@pytest.mark.parametrize(("kind", "package"), [("arrow", "pyarrow"), ("numpy", "numpy")])
def test_a_package_that_is_missing_is_named_when_the_topology_is_built(
    kind: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storm_py.api.validation.find_spec", lambda name: None)
    with pytest.raises(InvalidTopologyException) as caught:
        TopologyBuilder().set_bolt("b", Columnar(kind))
    assert str(caught.value) == (
        f"bolt 'b': columns is {kind!r}, which needs the package {package}, and that is not "
        f"installed; pip install 'storm-py[{kind}]'"
    )


def test_a_package_that_is_missing_where_the_bolt_runs_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topology = around_bolt(Columnar("arrow"), "word")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs a package .* pip install 'storm-py\[arrow\]'"):
        TopologyDriver(topology)


def test_neither_package_is_loaded_for_rows() -> None:
    code = "import sys, storm_py.inline; print({'numpy', 'pyarrow'} & set(sys.modules))"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (process.stdout, process.stderr) == ("set()\n", "")
