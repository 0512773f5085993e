"""The commands of the benchmarks, and what is read from their output."""

from __future__ import annotations

import sys

import pytest

from benchmarks.commands import WordCount, storm_py, yardstick
from benchmarks.measuring import RunFailed, figures_of, last_object

LOCAL = [sys.executable, "-m", "storm_py", "local", "benchmarks.sentences"]


class TestCommands:
    def test_acks_off(self) -> None:
        assert storm_py(WordCount(1000)) == [
            *LOCAL,
            *("--workers", "1", "-c", "storm_py.batch.rows=1024"),
            *("-c", "topology.acker.executors=0", "--", "1000", "--splits", "1", "--counts", "2"),
        ]

    def test_acks_on_two_workers_paced(self) -> None:
        count = WordCount(1000, True, 2, 500.0, 100, 50, ("storm_py.batch.delay.ms=5",))
        assert storm_py(count, "--json", "x") == [
            *LOCAL,
            *("--workers", "2", "-c", "storm_py.batch.rows=100"),
            *("-c", "topology.max.spout.pending=50", "-c", "storm_py.batch.delay.ms=5"),
            *("--json", "x"),
            *("--", "1000", "--splits", "1", "--counts", "2", "--acked", "--rate", "500"),
        ]

    def test_with_batch_bolts(self) -> None:
        assert storm_py(WordCount(1000, batched=True)) == [
            *(*LOCAL[:-1], "benchmarks.sentences_batch"),
            *storm_py(WordCount(1000))[len(LOCAL) :],
        ]

    def test_a_yardstick_is_filled_in(self) -> None:
        template = "other 'a b' n={sentences} {acks} {rows} {pending} {rate}"
        count = WordCount(1000, True, rate=0.5)
        assert yardstick(template, count) == [
            *("other", "a b", "n=1000", "1", "1024", "20000", "0.5")
        ]

    def test_a_yardstick_without_places_stays_as_it_is(self) -> None:
        assert yardstick("other.py batch=256", WordCount()) == ["other.py", "batch=256"]

    @pytest.mark.parametrize("template", ["x {words}", "x {}", "x {rows"])
    def test_an_unknown_place_is_an_error_that_names_the_known(self, template: str) -> None:
        known = "it may hold {sentences}, {acks}, {rows}, {pending}, {rate}"
        with pytest.raises(ValueError, match=known) as raised:
            yardstick(template, WordCount())
        assert repr(template) in str(raised.value)


class TestOutput:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ('{"words_s": 1}', {"words_s": 1}),
            ('{"words_s": 1}\n{"words_s": 2}\nbye\n', {"words_s": 2}),
            ('a=1 {"words_s": 3, "lat_ms": {"50": 1}}', {"words_s": 3, "lat_ms": {"50": 1}}),
            ('{"a": 1}\n{not json', {"a": 1}),
            (
                '{\n  "start_secs": 1.5,\n  "components": {}\n}\n',
                {"start_secs": 1.5, "components": {}},
            ),
            ("", None),
            ("no result", None),
        ],
    )
    def test_the_last_object_counts(self, text: str, found: dict[str, object] | None) -> None:
        assert last_object(text) == found

    def test_a_result_is_handed_on(self) -> None:
        assert figures_of("x", 0, '{"ok": true, "words_s": 5}', "") == {"ok": True, "words_s": 5}

    @pytest.mark.parametrize(
        ("returncode", "output", "why"),
        [
            (3, '{"words_s": 5}', "x y exited with 3"),
            (0, "nothing", "x y printed no result"),
            (0, '{"ok": false, "words_s": 5}', "x y says that its counts are wrong"),
        ],
    )
    def test_anything_else_is_an_error_with_what_was_said(
        self, returncode: int, output: str, why: str
    ) -> None:
        with pytest.raises(RunFailed) as raised:
            figures_of("x y", returncode, output, "its complaint")
        assert str(raised.value) == f"{why}:\n{output}\nits complaint"
