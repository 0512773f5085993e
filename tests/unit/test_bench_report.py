"""What the benchmark suite makes of its results: rounds, tables, charts, the command line."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks import chart
from benchmarks.bench import Contender, Figures, Part, Table, in_turn, number, spread_table, spreads
from benchmarks.environments import find_java, java_version, last_line
from benchmarks.measuring import RunFailed, Sampler
from benchmarks.report import charts, rendered, write
from benchmarks.suite import PARTS, arguments

BAR = {"median": 100.0, "min": 50.0, "max": 200.0}


@dataclass(frozen=True, slots=True)
class Scripted(Contender):
    """Gives what a test says, then fails."""

    script: Iterator[float] = field(default_factory=lambda: iter(()))

    def run(self, sampler: Sampler | None = None) -> Figures:
        for words_s in self.script:
            return {"words_s": words_s}
        raise RunFailed(f"{self.name} has nothing more to say")


class TestRounds:
    def test_contenders_take_turns_in_every_round(self) -> None:
        both = iter([1.0, 2.0, 3.0, 4.0])
        found, failed = in_turn([Scripted("a", script=both), Scripted("b", script=both)], 2)
        assert found == {
            "a": [{"words_s": 1.0}, {"words_s": 3.0}],
            "b": [{"words_s": 2.0}, {"words_s": 4.0}],
        }
        assert failed == {}

    def test_who_fails_once_is_out_with_the_reason(self) -> None:
        one, two = iter([1.0]), iter([2.0, 3.0])
        found, failed = in_turn([Scripted("a", script=one), Scripted("b", script=two)], 2)
        assert found == {"b": [{"words_s": 2.0}, {"words_s": 3.0}]}
        assert failed == {"a": "a has nothing more to say"}

    def test_the_plain_loop_is_a_contender_without_a_command(self) -> None:
        assert Contender("loop", sentences=10).run()["words"] == 75


class TestFigures:
    """What a contender must print; the command is replaced by what it would print."""

    def given(self, figures: Figures, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("benchmarks.bench.run", lambda *args, **more: dict(figures))

    def test_a_file_about_the_run_is_taken_in(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "result").write_text('{"start_secs": 1.5}')
        self.given({"words_s": 5}, monkeypatch)
        figures = Contender("a", ["command"], result=tmp_path / "result").run()
        assert figures == {"words_s": 5, "run": {"start_secs": 1.5}}

    @pytest.mark.parametrize(
        ("figures", "missing"), [({}, "words_s, lat_ms"), ({"words_s": 5}, "lat_ms")]
    )
    def test_missing_figures_are_a_failure_that_names_them(
        self, figures: Figures, missing: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.given(figures, monkeypatch)
        with pytest.raises(RunFailed) as raised:
            Contender("a", ["command"], prints=("lat_ms",)).run()
        assert str(raised.value) == f"a printed no {missing}, only {figures}"


class TestTables:
    @pytest.mark.parametrize(
        ("figure", "shown"), [(1234567, "1,234,567"), (999.9, "999.9"), (0.54321, "0.5432")]
    )
    def test_figures_are_short(self, figure: float, shown: str) -> None:
        assert number(figure) == shown

    def test_a_table_of_spreads_leaves_out_what_has_no_figures(self) -> None:
        table = spread_table("words/s", {"a": [1.0, 2.0, 4.0], "b": []})
        assert table == Table("words/s", ("", "median", "min", "max"), [["a", "2", "1", "4"]])

    def test_data_keeps_every_figure(self) -> None:
        assert spreads({"a": [3, 1, 2]}) == {
            "a": {"median": 2, "min": 1, "max": 3, "all": [3, 1, 2]}
        }

    def test_tables_are_rendered_with_title_rows_and_note(self) -> None:
        text = rendered([Table("a title", ("", "x"), [["row [1]", "5"]], "a note")])
        for words in ("a title", "row [1]", "5", "a note"):
            assert words in text

    def test_long_names_and_reasons_are_not_cut(self) -> None:
        reason = "no matching distribution found for this peer on this Python " * 3
        text = rendered(
            [Table("t", ("", "median", "min", "max"), [["peer", "not run", "", reason]])]
        )
        assert [text.count(word) for word in ("matching", "distribution")] == [3, 3]


def texts(svg: str) -> list[str]:
    """The words of a picture, in order; it must be XML."""
    root = ET.fromstring(svg)
    return [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]


class TestCharts:
    def test_bars_are_sorted_by_median_and_labelled(self) -> None:
        found = {"slow": {**BAR, "median": 60.0}, "fast & well": BAR}
        assert texts(chart.bars("words <s>", found, "fast")) == [
            *("words <s>", "fast & well", "100", "slow", "60")
        ]

    def test_a_bar_is_as_long_as_its_median_and_its_range_a_line(self) -> None:
        svg = chart.bars("t", {"a": BAR}, "a")
        full = chart.WIDTH - chart.LEFT - chart.RIGHT
        assert f'width="{full / 2:.1f}" height="{chart.BAR}" fill="{chart.OURS}"' in svg
        assert f'x1="{chart.LEFT + full / 4:.1f}"' in svg
        assert f'x2="{chart.LEFT + full:.1f}"' in svg

    def test_lines_have_a_point_per_label_and_skip_what_is_missing(self) -> None:
        svg = chart.lines(
            "t", "rows", ["1", "8", "64"], {"off": [10, 100, 1000], "on": [10, 0, 100]}
        )
        points = [found.split() for found in re.findall(r'points="([^"]*)"', svg)]
        assert [len(found) for found in points] == [3, 2]
        assert texts(svg)[-5:] == ["8", "64", "rows", "off", "on"]

    @pytest.mark.parametrize(
        ("figures", "found"),
        [([10, 1000], (1, 3)), ([5], (0, 1)), ([], (0, 1)), ([0.2, 3], (-1, 1))],
    )
    def test_the_scale_is_whole_powers_of_ten(
        self, figures: list[float], found: tuple[int, int]
    ) -> None:
        assert chart.decades(figures) == found

    def test_each_part_gives_its_charts(self) -> None:
        knob = {"8 rows: words/s": BAR, "8 rows: p99 ms at 5/s": BAR, "not_run": {}}
        found = charts(
            {"throughput": {"words_s": {"storm-py": BAR}}, "curve": {"storm_py.batch.rows": knob}}
        )
        assert set(found) == {"throughput.svg", "throughput-rows.svg", "latency-rows.svg"}
        assert charts({"idle": {}}) == {}


def test_results_are_left_as_json_tables_and_charts(tmp_path: Path) -> None:
    part = Part({"words_s": {"storm-py": BAR}}, [Table("a title", ("", "x"), [["row", "5"]])])
    write(tmp_path / "new", {"pairs": 3}, {"throughput": part})
    assert json.loads((tmp_path / "new" / "results.json").read_text()) == {
        "pairs": 3,
        "parts": {"throughput": part.data},
    }
    assert "a title" in (tmp_path / "new" / "tables.txt").read_text()
    assert (tmp_path / "new" / "throughput.svg").exists()


class TestEnvironments:
    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', 17),
            ('java version "1.8.0_392"', 8),
            ('openjdk version "25" 2025-09-16', 25),
            ("command not found", 0),
        ],
    )
    def test_a_java_says_its_version(self, text: str, version: int) -> None:
        assert java_version(text) == version

    def java_at(self, tmp_path: Path, name: str) -> Path:
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.touch(mode=0o755)
        return program

    def test_java_home_wins_over_the_path_if_it_is_new_enough(self, tmp_path: Path) -> None:
        home, path = (self.java_at(tmp_path, name) for name in ("home", "path"))
        variables = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
        versions = {str(home): 21, str(path): 17}
        assert find_java(variables, versions.__getitem__) == str(tmp_path / "home")
        versions[str(home)] = 11
        assert find_java(variables, versions.__getitem__) == str(tmp_path / "path")
        versions[str(path)] = 16
        assert find_java(variables, versions.__getitem__) is None

    def test_without_any_java_there_is_none(self) -> None:
        assert find_java({"PATH": ""}, lambda _: 99) is None

    def test_the_reason_is_the_last_line(self) -> None:
        assert last_line("Collecting x\nERROR: No matching distribution\n\n") == (
            "No matching distribution"
        )
        assert last_line("") == "no reason given"


class TestCommandLine:
    def test_everything_is_measured_unless_parts_are_named(self) -> None:
        assert arguments().parse_args([]).parts == list(PARTS)
        assert arguments().parse_args(["--parts", "idle, micro"]).parts == ["idle", "micro"]

    def test_peers_may_be_left_out(self) -> None:
        assert arguments().parse_args([]).peers == ["bytewax", "pystorm", "flink"]
        assert arguments().parse_args(["--peers", ""]).peers == []

    def test_an_unknown_part_is_refused_with_the_known(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            arguments().parse_args(["--parts", "idle,sprint"])
        known = "throughput, latency, idle, hundred, curve, where, micro"
        assert f"sprint: expected some of {known}" in capsys.readouterr().err
