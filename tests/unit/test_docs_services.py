"""The examples of docs/hooks-and-metrics.md, in one topology that runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from storm_py import BaseBasicBolt, BasicOutputCollector, Config, TopologyBuilder, Tuple
from storm_py.api.hooks import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
)
from storm_py.api.metrics import DataPoint, TaskInfo
from tests.integration.harness import run_inline
from tests.integration.topologies_for_tests.flows import NumberSpout

PAGE = Path(__file__).parents[2] / "docs" / "hooks-and-metrics.md"
TOTAL = 100
SEEN: list[list[Any]] = []


class Keep(BaseBasicBolt):
    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        SEEN.append([tup.source_component, *tup])


@pytest.fixture
def examples() -> Iterator[dict[str, Any]]:
    """The names that the page's code defines, and nothing kept from an earlier run."""
    SEEN.clear()
    names: dict[str, Any] = {"__name__": "examples"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    yield names
    SEEN.clear()


def test_they_run(
    examples: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL))
    for name in ("Flushing", "Fetching", "Watched", "Measured"):
        builder.set_bolt(name, examples[name]()).shuffle_grouping("numbers")
    keep = builder.set_bolt("keep", Keep())
    keep.shuffle_grouping("Flushing").shuffle_grouping("Fetching")
    conf = Config()
    conf.register_metrics_consumer("storm_py:LoggingMetricsConsumer")
    monkeypatch.setitem(sys.modules, "examples", ModuleType("examples"))
    vars(sys.modules["examples"]).update(examples)
    conf.register_metrics_consumer(examples["Lines"], str(tmp_path / "lines"))
    outcome = run_inline(builder, conf)
    outcome.check_clean()
    lines = (tmp_path / "lines").read_text().splitlines()
    assert f" Measured seen {TOTAL}" in [line[line.index(" ") :] for line in lines]
    fetched = sorted(row[1:] for row in SEEN if row[0] == "Fetching")
    assert fetched == [[number, 2 * number] for number in range(TOTAL)]


def test_it_names_what_there_is(examples: dict[str, Any]) -> None:
    """Every key and every method of a hook that the page mentions exists."""
    from storm_py import BaseTaskHook
    from storm_py.config import KEYS

    page = PAGE.read_text(encoding="utf-8")
    keys = set(re.findall(r"`((?:topology|storm_py)\.[a-z_.]+\.(?:secs|interval|hooks))`", page))
    assert len(keys) >= 5
    assert keys <= set(KEYS)
    methods = {name for name in vars(BaseTaskHook) if not name.startswith("_")}
    assert all(f"`{method}`" in page for method in methods)


@pytest.mark.parametrize(
    "kind",
    [
        *(EmitInfo, SpoutAckInfo, SpoutFailInfo, BoltExecuteInfo, BoltAckInfo, BoltFailInfo),
        *(TaskInfo, DataPoint),
    ],
)
def test_it_names_the_fields_of_what_hooks_and_consumers_get(kind: type[Any]) -> None:
    [row] = re.findall(rf"^\|.*`{kind.__name__}` \|(.*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert re.findall("`([a-z_]+)`", row) == [field.name for field in fields(kind)]
