"""Every example runs: the files in `topologies/`, the program in README.md, the benchmark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = "the cow jumped over the moon\n\nthe end\n"


def local(*args: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run `storm-py local` as a user would."""
    command = [sys.executable, "-m", "storm_py", "local", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_word_count_counts_a_text_and_verifies_it(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    options = ["--input", str(text), "--repeat", "3", "--verify"]
    sizes = ["--spouts", "2", "--splits", "2", "--counts", "2"]
    done = local("topologies/word_count.py", "--workers", "2", "--", *options, *sizes)
    assert done.returncode == 0, done.stderr
    assert "24 words, 6 distinct; the top 20:" in done.stdout
    assert re.search(r"^ +9  the$", done.stdout, re.MULTILINE)
    assert "verified: all 24 words equal a plain single-process count" in done.stdout


def test_word_count_has_storms_parallelism_by_default(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    result = tmp_path / "result.json"
    done = local(
        "topologies/word_count.py", "--inline", "--json", str(result), "--", "--input", str(text)
    )
    assert done.returncode == 0, done.stderr
    components = json.loads(result.read_text())["components"]
    executors = {name: component["executors"] for name, component in components.items()}
    assert executors == {"line": 5, "split": 8, "count": 12, "report": 1}


def test_word_count_repeats_its_input_to_reach_a_number_of_words(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    options = ["--input", str(text), "--at-least", "20", "--verify"]
    done = local("topologies/word_count.py", "--inline", "--", *options)
    assert done.returncode == 0, done.stderr
    assert "1 files hold 8 words; reading them 3 time(s)" in done.stdout
    assert "verified: all 24 words" in done.stdout


def test_word_count_verify_finds_a_wrong_count(tmp_path: Path) -> None:
    """The text changes between the reading and the check: verify must notice and fail the run."""
    program = tmp_path / "tampered.py"
    program.write_text(
        "from pathlib import Path\n"
        "from storm_py.topologies import word_count\n"
        "class Liar(word_count.ReportBolt):\n"
        "    def end_of_input(self):\n"
        "        self.counts['cow'] += 1\n"
        "        super().end_of_input()\n"
        "word_count.ReportBolt = Liar\n"
        "topology = word_count.topology\n"
    )
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    done = local(str(program), "--inline", "--", "--input", str(text), "--verify")
    assert done.returncode == 1
    assert "verification failed: 1 of 6 words differ" in done.stderr
    assert "'cow' 2 instead of 1" in done.stderr


def test_rolling_top_words_ranks_by_ticks_and_verifies_the_whole_text(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(TEXT * 100)
    (tmp_path / "two.txt").write_text(TEXT * 100)
    options = ["--input", str(tmp_path), "--window", "2", "--emit", "1", "--rate", "200"]
    program = "topologies/rolling_top_words.py"
    done = local(program, "--workers", "2", "--", *options, "--top", "2", "--verify")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^just now: the \d+ \w+ \d+$", done.stdout, re.MULTILINE)
    assert "1,600 words; the top 2 of all:\n         600  the\n         200  cow" in done.stdout
    assert "verified: the top 2 equal those of a plain single-process count" in done.stdout


def test_rolling_top_words_verify_finds_a_wrong_count(tmp_path: Path) -> None:
    program = tmp_path / "tampered.py"
    program.write_text(
        "from storm_py.topologies import rolling_top_words\n"
        "class Liar(rolling_top_words.TotalRankingsBolt):\n"
        "    def end_of_input(self, collector):\n"
        "        self.totals['the'] += 1\n"
        "        super().end_of_input(collector)\n"
        "rolling_top_words.TotalRankingsBolt = Liar\n"
        "topology = rolling_top_words.topology\n"
    )
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    done = local(str(program), "--inline", "--", "--input", str(text), "--verify")
    assert done.returncode == 1
    assert "verification failed: the top of 8 words is [('the', 3)" in done.stderr
    assert "8 were counted: [('the', 4)" in done.stderr


def test_exclamation_runs_to_its_end(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    done = local("topologies/exclamation.py", "--json", str(result), "--", "--words", "1000")
    assert done.returncode == 0, done.stderr
    components = json.loads(result.read_text())["components"]
    assert components["word"]["emitted"] == 1000
    assert components["exclaim1"]["executed"] == components["exclaim2"]["executed"] == 1000
    executors = [components[name]["executors"] for name in ("word", "exclaim1", "exclaim2")]
    assert executors == [10, 3, 2]


def test_the_program_in_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert program is not None
    (tmp_path / "hello.py").write_text(program[1])
    for mode in ([], ["--inline"]):
        done = local("hello.py", *mode, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "the total is 499500" in done.stdout


@pytest.mark.parametrize("options", [[], ["--acked"], ["--rate", "10000"]])
def test_the_benchmark_topology_checks_its_counts(options: list[str]) -> None:
    done = local("benchmarks.sentences", "--", "1000", *options)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["words"] == 7500
    assert ("lat_ms" in figures) == ("--rate" in options)


@pytest.mark.parametrize("options", [[], ["--acked"]])
def test_the_benchmark_with_batch_bolts_checks_its_counts(options: list[str]) -> None:
    done = local("benchmarks.sentences_batch", "--", "1000", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["words"] == 7500
