"""A thousand seeds of the simulation, and proof that it goes on injecting what it should."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from storm_py.testing import Simulation
from storm_py.testing.faults import KINDS

BLOCK = 100
#: Of each kind in a hundred seeds, at the very least.
LEAST = {**dict.fromkeys(KINDS, 5), "lost tail": 100, "stray": 10, "user error": 5}
#: What drivers do besides moving messages, in as many.
ENTERED = {"execute (tick)": 100, "call_soon": 500, "metrics": 100}
WAITS = 500


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1000, BLOCK))
def test_every_seed_keeps_every_promise(
    first: int, record_property: Callable[[str, object], None]
) -> None:
    seen: Counter[str] = Counter()
    entered: Counter[str] = Counter()
    acked = failed = waits = 0
    for seed in range(first, first + BLOCK):
        report = Simulation(seed).run()
        seen.update(report.faults)
        entered.update(report.entered)
        waits += report.waits
        acked += report.acked
        failed += report.failed
    for kind, times in {**seen, "acked": acked, "failed": failed}.items():
        record_property(kind, times)
    assert {kind for kind, least in LEAST.items() if seen[kind] < least} == set()
    assert {what for what, least in ENTERED.items() if entered[what] < least} == set()
    assert waits > WAITS
    assert acked > 2000
    assert failed > 100
