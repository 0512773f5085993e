"""The judge of the kill oracle: it must see what is missing, doubled or foreign."""

from __future__ import annotations

from pathlib import Path

from benchmarks.oracle import WORDS, judge, write_text

LINES = 4


def rows(folder: Path) -> list[str]:
    """What sinks write when all goes well."""
    write_text(folder, LINES)
    return [
        f"text\t{number}\t{word}\tw{number}.{word}\t5\t1\t1700"
        for number in range(1, LINES + 1)
        for word in range(WORDS)
    ]


def verdict(folder: Path, found: list[str]) -> tuple[int, int, int]:
    (folder / "rows").write_text("".join(f"{row}\n" for row in found))
    result = judge(folder)
    assert (result.expected, result.rows) == (LINES * WORDS, len(found))
    return result.lost, result.duplicates, result.strange


def test_all_is_well(tmp_path: Path) -> None:
    assert verdict(tmp_path, rows(tmp_path)) == (0, 0, 0)


def test_a_missing_word_is_lost(tmp_path: Path) -> None:
    assert verdict(tmp_path, rows(tmp_path)[:-2]) == (2, 0, 0)


def test_a_word_that_came_thrice_is_two_duplicates_whoever_wrote_it(tmp_path: Path) -> None:
    good = rows(tmp_path)
    assert verdict(tmp_path, [*good, good[0], good[0].replace("\t1700", "\t1800")]) == (0, 2, 0)


def test_duplicates_do_not_make_up_for_what_is_lost(tmp_path: Path) -> None:
    good = rows(tmp_path)
    assert verdict(tmp_path, [good[0], *good[:-1]]) == (1, 1, 0)


def test_a_word_in_a_wrong_place_is_strange(tmp_path: Path) -> None:
    good = rows(tmp_path)
    assert verdict(tmp_path, [good[0].replace("w1.0", "w1.1"), *good[1:]]) == (1, 0, 1)
