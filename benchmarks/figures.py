"""What is made of figures: spreads, ratios within pairs, percentiles of histograms. Pure.

The machine's speed drifts by a factor of two within an hour, so a ratio is only taken between runs
of the same round, and what is quoted is the median of these ratios - not the ratio of two medians.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

PERCENTILES = (50, 90, 99, 99.9)
MICROS = 10
"""Microseconds per step of a histogram of latencies."""
WARM_UP = 1 / 2
"""Share of the words that counts as warm-up where a contender has one; PyFlink's speed still grows
behind a third of half a million words."""

Marks = Sequence[tuple[float, int]]
"""When a task had counted how many words in all, in order; seconds since the Unix epoch."""


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


def confidence(figures: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Where the median of what the figures are drawn from lies, with at least this confidence.

    Two of the figures themselves, by the ranks between which a median lies so often whatever the
    distribution; the outermost if there are too few figures for that level.
    """
    ordered, n = sorted(figures), len(figures)
    outside, rank = 0.0, 0
    while rank < n // 2:
        outside += math.comb(n, rank) / 2**n
        if 2 * outside > 1 - level:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[n - rank]


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


def warm_rate(tasks: Sequence[Marks], words: int) -> tuple[float, float, float]:
    """Words per second behind the warm-up, of all tasks together, and from when to when."""
    steps = []
    for marks in tasks:
        before = 0
        for at, done in marks:
            if done > before:  # a task's last mark may be of the end of its input, with no words
                steps.append((at, done - before))
            before = done
    steps.sort()
    began, total = steps[0]
    skipped = total
    for at, some in steps[1:]:
        total += some
        if total <= words * WARM_UP:
            began, skipped = at, total
    ended = steps[-1][0]
    return (words - skipped) / (ended - began), began, ended
