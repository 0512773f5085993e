"""The example of docs/simulation.md is run as it stands there, for a few of its seeds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(source, str(PAGE), "exec"), names)
    return names


@pytest.mark.parametrize("seed", range(10))
def test_the_example_passes(example: dict[str, Any], seed: int) -> None:
    example["test_no_order_is_lost"](seed)


def test_the_example_would_notice_a_loss(example: dict[str, Any]) -> None:
    example["Store"].execute = lambda self, tup, collector: None
    with pytest.raises(AssertionError):
        example["test_no_order_is_lost"](0)
