"""Sampling: which part a line belongs to, and that a run's processes leave notes of their loops."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import storm_py
from benchmarks import chart, sampling
from benchmarks.report import charts
from benchmarks.sampling import Notes, part_of, read

SOURCES = Path(storm_py.__file__).parent


@pytest.mark.parametrize(
    ("file", "text", "part"),
    [
        ("<storm-py emit split>", "        row = pack(values)", "packing and unpacking"),
        ("<storm-py emit split>", "        root = anchors.root", "tracking"),
        ("<storm-py emit split>", "    rows.append(row)", "emit and grouping"),
        ("/somewhere/benchmarks/sentences.py", "for word in words:", "your code"),
        ("/x/storm_py/runtime/instance.py", "socket.send(message, zmq.NOBLOCK)", "sockets"),
        ("/x/storm_py/runtime/instance.py", "now = time.monotonic()", "the rest"),
        ("/x/storm_py/wire/values.py", "return unpackb(data)", "packing and unpacking"),
        ("/x/storm_py/wire/frames.py", 'return array("Q", values).tobytes()', "tracking"),
        ("/x/storm_py/wire/frames.py", "payload = offset + header_len", "frames and routing"),
        ("/x/storm_py/core/pressure.py", "self._done_rows += new_rows", "flow control"),
        ("/usr/lib/site-packages/zmq/sugar/poll.py", "return zmq_poll(sockets)", "sockets"),
        ("/usr/lib/site-packages/msgpack/__init__.py", "return 1", "packing and unpacking"),
        ("/usr/lib/python3/threading.py", "pass", "the rest"),
    ],
)
def test_what_a_line_is_for(file: str, text: str, part: str) -> None:
    assert part_of(file, text) == part
    assert part in sampling.PARTS


def test_the_files_that_are_sorted_are_there() -> None:
    assert {file for file in sampling._PART_OF_FILE if not (SOURCES / file).exists()} == set()
    assert set(sampling._PART_OF_FILE.values()) < set(sampling.PARTS)


def test_the_loops_are_where_they_are_looked_for() -> None:
    for file in sampling._LOOPS:
        tree = ast.parse((SOURCES.parent / file).read_text())
        assert "run" in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_only_what_runs_in_a_loop_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_SAMPLES_PER_WRITING", 2)
    notes = Notes(tmp_path / "12.json")
    notes.sample(0, None)
    namespace = {"notes": notes, "sys": __import__("sys")}
    source = "def run():\n    for _ in range(4): notes.sample(0, sys._getframe())\n"
    exec(compile(source, "/elsewhere.py", "exec"), namespace)
    namespace["run"]()  # type: ignore[operator]
    assert list(read(tmp_path)) == []
    exec(compile(source, "/x/storm_py/runtime/instance.py", "exec"), namespace)
    namespace["run"]()  # type: ignore[operator]
    (noted,) = read(tmp_path)
    assert noted.pid == 12
    assert set(noted.secs) == {"the rest", sampling.OTHER_THREADS}
    assert all(secs >= 0 for secs in noted.secs.values())


def test_a_stacked_bar_has_its_parts_and_their_sum() -> None:
    found = {"split": {"sockets": 1.0, "tracking": 0.5}, "count": {"sockets": 0.25}}
    drawing = chart.stacked("where", "us", found, ["tracking", "sockets", "never"])
    assert drawing.count('height="22"') == 4
    assert "1.50 us" in drawing
    assert "0.25 us" in drawing
    assert "never" not in drawing


def test_the_suite_draws_it() -> None:
    parts = {"where": {"acks on": {"split": {"sockets": 1.0}}, "acks off": {"split": {}}}}
    drawing = charts(parts)["where.svg"]
    assert "split, acks on" in drawing
    assert "split, acks off" in drawing


def test_the_lines_that_are_looked_for_are_there() -> None:
    sources = "\n".join(path.read_text() for path in SOURCES.rglob("*.py"))
    assert [text for text in sampling._TRACKING_TEXTS if text not in sources] == []
