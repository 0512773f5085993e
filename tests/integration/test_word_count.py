"""Word count over real processes: exact, whatever the number of workers, and as in one thread."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.harness import reports_in, run_inline, run_local
from tests.integration.topologies_for_tests.words import word_count

pytestmark = pytest.mark.variants

REPEAT = 3


@pytest.fixture
def text(tmp_path: Path) -> list[Path]:
    """Five files with words of very different frequency, some of them beyond ASCII."""
    rng = random.Random(7)
    words = [f"{stem}{i}" for stem in ("word", "größe", "слово", "字") for i in range(60)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    files = []
    for n in range(5):
        lines = [" ".join(rng.choices(words, weights, k=rng.randrange(0, 12))) for _ in range(400)]
        files.append(tmp_path / f"text{n}")
        files[-1].write_text("\n".join(lines), encoding="utf-8")
    return files


def counted_plainly(files: list[Path]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for file in files:
        counts.update(file.read_text(encoding="utf-8").split())
    return {word: REPEAT * count for word, count in counts.items()}


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_counts_are_exact(text: list[Path], workers: int) -> None:
    outcome = run_local(word_count(text, REPEAT), workers)
    outcome.check_clean()
    expected = counted_plainly(text)
    [report] = outcome.reports("words")
    assert report["counts"] == expected
    assert outcome.figures("split").emitted == sum(expected.values())
    assert outcome.figures("count").executed == sum(expected.values())
    assert outcome.figures("report").executed == len(expected)
    assert outcome.result.final.workers == workers


def test_inline_gives_the_same(text: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run_inline(word_count(text, REPEAT))
    outcome.check_clean()
    [report] = reports_in(iter(capsys.readouterr().out.splitlines()), "words")
    assert report["counts"] == counted_plainly(text)
    for component, executed in (("split", 3), ("count", 3), ("report", 1)):
        assert outcome.figures(component).executors == executed
