"""What is made of figures: spreads, ratios within pairs, percentiles of histograms. Pure.

The machine's speed drifts by a factor of two within an hour, so a ratio is only taken between runs
of the same round, and what is quoted is the median of these ratios - not the ratio of two medians.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

PERCENTILES = (50, 90, 99, 99.9)
MICROS = 10
"""Microseconds per step of a histogram of latencies."""


def spread(figures: Sequence[float]) -> dict[str, float]:
    """Median, minimum and maximum, of at least one figure."""
    return {
        "median": rounded(statistics.median(figures)),
        "min": rounded(min(figures)),
        "max": rounded(max(figures)),
    }


def rounded(figure: float) -> float:
    """Four digits that count; whole numbers from a thousand on."""
    return round(figure) if abs(figure) >= 1000 else float(f"{figure:.4g}")


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """The spread of ours divided by theirs, round by round."""
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def histogram(secs: Iterable[float]) -> dict[int, int]:
    """How many latencies lie in each step of `MICROS` microseconds."""
    return dict(Counter(round(each * 1e6 / MICROS) for each in secs))


def percentiles(found: Mapping[int, int]) -> dict[str, float]:
    """The latencies in milliseconds that so many percent do not exceed."""
    total = sum(found.values())
    wanted = [(f"{percent:g}", total * percent / 100) for percent in PERCENTILES]
    result: dict[str, float] = {}
    seen = 0
    for step in sorted(found):
        seen += found[step]
        while wanted and seen >= wanted[0][1]:
            result[wanted.pop(0)[0]] = round(step * MICROS / 1000, 3)
    return result
