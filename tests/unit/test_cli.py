"""The command line: what reaches a run, what comes of its result, and exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import storm_py
import storm_py.local
from storm_py import StormTopology
from storm_py.cli import main
from storm_py.cli.display import LiveDisplay, PlainDisplay
from storm_py.errors import TopologyFailed
from storm_py.run import ComponentFigures, Observer, RunResult, Snapshot

FLOW = """\
import sys
from storm_py import *

class Args(BaseRichSpout):
    def __init__(self, args):
        self.args = args

    def declare_output_fields(self, declarer):
        declarer.declare("arg")

    def open(self, conf, context, collector):
        self.collector = collector

    def next_tuple(self):
        for arg in self.args:
            self.collector.emit([arg])
        self.collector.end_of_input()

class Print(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.conf = conf
        self.tasks = len(context.component_tasks("print"))

    def execute(self, tup):
        arg = tup["arg"]
        if arg == "fail":
            raise ValueError("told to")
        print(self.conf.get(arg, arg))

    def end_of_input(self):
        print("tasks", self.tasks, flush=True)

def built(args, parallelism):
    builder = TopologyBuilder()
    builder.set_spout("args", Args(args), 1)
    builder.set_bolt("print", Print(), parallelism).global_grouping("args")
    return builder

def topology(args):
    return built(args, 1)

def wide(args):
    return built(args, 4)

def interrupted(args):
    raise KeyboardInterrupt

def leaves(args):
    sys.exit(int(args[0]))
"""

FINAL = Snapshot(
    topology_id="flow-1-1700000000",
    phase="done",
    secs=2.0,
    workers=1,
    components=(ComponentFigures("args", "spout", 1, 1, 0, 3, 0),),
    restarts=0,
    errors=0,
)
DONE = RunResult(
    final=FINAL,
    start_secs=0.5,
    failed=False,
    interrupted=False,
    forced=False,
    lost=(),
    log_dir=None,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own with a topology in it, whose module is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.py").write_text(FLOW, encoding="utf-8")
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("flow", None)


def storm_py_local(*args: str) -> Result:
    return CliRunner().invoke(main, ["local", *args])


def inline(*args: str) -> Result:
    return storm_py_local("flow.py", "--inline", *args)


class FakeRun:
    """Stands in for LocalRun: remembers how it was made and returns what it was told to."""

    made: list[FakeRun]
    outcome: RunResult | BaseException

    def __init__(
        self,
        topology_id: str,
        topology: StormTopology,
        conf: Mapping[str, Any],
        sys_path: str,
        module: str,
        workers: int,
        log_dir: Path | None,
        observer: Observer,
        quiet_secs: float,
    ) -> None:
        self.topology_id = topology_id
        self.topology = topology
        self.conf = conf
        self.sys_path = sys_path
        self.module = module
        self.workers = workers
        self.log_dir = log_dir
        self.observer = observer
        self.quiet_secs = quiet_secs
        self.ttl_secs: float | None = None
        FakeRun.made.append(self)

    def run(self, ttl_secs: float | None) -> RunResult:
        self.ttl_secs = ttl_secs
        self.observer.snapshot(FINAL)
        if isinstance(FakeRun.outcome, BaseException):
            raise FakeRun.outcome
        return FakeRun.outcome


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[], FakeRun]:
    """Replaces LocalRun; call it for the one that the command made."""
    FakeRun.made = []
    FakeRun.outcome = DONE
    monkeypatch.setattr(storm_py.local, "LocalRun", FakeRun)

    def only() -> FakeRun:
        [made] = FakeRun.made
        return made

    return only


class TestProgram:
    def test_version(self) -> None:
        result = CliRunner().invoke(main, ["--version"])
        expected = f"storm-py, version {storm_py.__version__}\n"
        assert (result.exit_code, result.stdout) == (0, expected)

    @pytest.mark.parametrize("args", [["--help"], ["-h"], ["local", "--help"], ["local", "-h"]])
    def test_help(self, args: list[str]) -> None:
        result = CliRunner().invoke(main, args)
        assert result.exit_code == 0
        assert result.stdout.startswith("Usage: storm-py ")

    def test_name_is_always_storm_py(self) -> None:
        result = CliRunner().invoke(main, ["local"], prog_name="__main__.py")
        assert result.stderr.startswith("Usage: storm-py local [OPTIONS] TOPOLOGY [-- ARGS]...\n")

    def test_every_option_of_local_is_explained(self) -> None:
        local = main.commands["local"]
        options = [param for param in local.params if isinstance(param, click.Option)]
        names = {option.opts[0] for option in options}
        assert names == {"-c", "--workers", "--ttl", "--json", "--log-dir", "--inline"}
        assert all(option.help for option in options)


class TestInline:
    def test_stdout_is_what_user_code_printed(self) -> None:
        result = inline("--", "a", "b")
        assert (result.exit_code, result.stdout) == (0, "a\nb\ntasks 1\n")
        assert "done after" in result.stderr
        assert [line.split()[0] for line in result.stderr.splitlines()[1:3]] == ["args", "print"]

    @pytest.mark.parametrize(
        "args",
        [
            ["flow.py", "--inline", "--", "--inline", "--", "-c", "x"],
            ["--inline", "flow.py", "--", "--inline", "--", "-c", "x"],
        ],
    )
    def test_everything_behind_the_dashes_is_the_topologys(self, args: list[str]) -> None:
        assert storm_py_local(*args).stdout.splitlines()[:4] == ["--inline", "--", "-c", "x"]

    def test_configuration_is_layered(self) -> None:
        result = inline(
            *("-c", "mine=[1, 2]", "-c", "storm_py.batch.rows=7", "-c", "storm_py.batch.rows=8"),
            *("--", "mine", "storm_py.batch.rows", "storm_py.key.groups", "topology.name"),
        )
        assert result.stdout.splitlines()[:4] == ["[1, 2]", "8", "1024", "flow"]

    def test_the_files_configuration_is_below_the_command_line(self) -> None:
        with Path("flow.py").open("a", encoding="utf-8") as file:
            file.write(
                "conf = {'mine': 'file', 'storm_py.batch.rows': 6, 'topology.name': 'named'}\n"
                "def configured(args): return built(args, 1), conf\n"
            )
        keys = ["mine", "storm_py.batch.rows", "storm_py.key.groups", "topology.name"]
        options = ["--inline", "-c", "storm_py.batch.rows=7"]
        result = storm_py_local("flow.py:configured", *options, "--", *keys)
        assert result.stdout.splitlines()[:4] == ["file", "7", "1024", "named"]
        result = storm_py_local("flow.py:configured", "--inline", "--", *keys)
        assert result.stdout.splitlines()[:4] == ["file", "6", "1024", "named"]

    def test_parallelism_is_capped(self) -> None:
        result = storm_py_local("flow.py:wide", "--inline", "-c", "topology.max.task.parallelism=2")
        assert result.stdout == "tasks 2\n" * 2

    def test_json_to_stdout(self) -> None:
        result = inline("--json", "-", "-c", "topology.name=words", "--", "x")
        printed, brace, text = result.stdout.partition("{")
        assert printed == "x\ntasks 1\n"
        found = json.loads(brace + text)
        assert found["topology"].startswith("words-1-")
        assert found["topology"].removeprefix("words-1-").isdecimal()
        assert found["components"]["print"]["executed"] == 1
        assert (found["failed"], found["interrupted"], found["lost"]) == (False, False, [])

    def test_json_to_a_file_replaces_it(self, folder: Path) -> None:
        (folder / "run.json").write_text("old" * 10_000, encoding="utf-8")
        assert inline("--json", "run.json").exit_code == 0
        found = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        assert found["components"]["args"] == {
            "kind": "spout",
            "executors": 1,
            "tasks": 1,
            "executed": 0,
            "emitted": 0,
            "queued": 0,
            "acked": 0,
            "failed": 0,
        }

    def test_a_bad_json_path_is_refused_before_anything_runs(self, folder: Path) -> None:
        result = inline("--json", "no/run.json", "--", "x")
        assert (result.exit_code, result.stdout) == (2, "")
        assert list(folder.iterdir()) == [folder / "flow.py"]

    def test_a_failure_is_exit_code_1(self) -> None:
        result = inline("--json", "-", "--", "a", "fail", "b")
        assert result.exit_code == 1
        assert result.stdout.startswith("a\n{")
        assert "ERROR print (task 2), execute: ValueError: told to" in result.stderr
        assert "raise ValueError" in result.stderr
        assert "failed after" in result.stderr

    def test_what_has_no_effect_inline_is_said(self, folder: Path) -> None:
        result = inline("--workers", "2", "--log-dir", "logs")
        assert "storm-py: --inline is one thread: the number of workers" in result.stderr
        assert "storm-py: --inline writes no logs: --log-dir has no effect" in result.stderr
        assert not (folder / "logs").exists()

    @pytest.mark.parametrize("code", [0, 3])
    def test_the_topologys_own_exit(self, code: int) -> None:
        result = storm_py_local("flow.py:leaves", "--inline", "--", str(code))
        assert (result.exit_code, result.output) == (code, "")

    def test_interrupted_while_building(self) -> None:
        result = storm_py_local("flow.py:interrupted", "--inline")
        assert (result.exit_code, result.output) == (130, "Error: interrupted\n")


class TestProcesses:
    def test_what_a_run_is_given(self, run: Callable[[], FakeRun], folder: Path) -> None:
        result = storm_py_local("flow.py", "--ttl", "1.5", "-c", "storm_py.batch.rows=9")
        made = run()
        assert (result.exit_code, result.stdout) == (0, "")
        assert made.topology_id.startswith("flow-1-")
        assert list(made.topology.components) == ["args", "print"]
        assert made.conf["storm_py.batch.rows"] == 9
        assert made.conf["topology.name"] == "flow"
        assert (made.sys_path, made.module) == (str(folder.resolve()), "flow")
        assert (made.workers, made.log_dir, made.ttl_secs) == (1, None, 1.5)
        assert made.quiet_secs == PlainDisplay.quiet_secs > LiveDisplay.quiet_secs

    def test_named_function_names_the_topology(self, run: Callable[[], FakeRun]) -> None:
        with Path("flow.py").open("a", encoding="utf-8") as file:
            file.write("other = topology\n")
        storm_py_local("flow.py:other")
        assert run().topology_id.startswith("other-1-")

    def test_workers_by_configuration(self, run: Callable[[], FakeRun]) -> None:
        storm_py_local("flow.py:wide", "-c", "topology.workers=3")
        assert run().workers == 3

    def test_the_option_overrides_the_configuration(self, run: Callable[[], FakeRun]) -> None:
        result = storm_py_local("flow.py:wide", "-c", "topology.workers=3", "--workers", "2")
        assert (run().workers, run().conf["topology.workers"]) == (2, 2)
        assert "workers for" not in result.stderr

    def test_the_option_overrides_the_file(self, run: Callable[[], FakeRun]) -> None:
        with Path("flow.py").open("a", encoding="utf-8") as file:
            file.write("configured = (built([], 4), Config({'topology.workers': 3}))\n")
        storm_py_local("flow.py:configured", "--workers", "2")
        assert (run().workers, run().conf["topology.workers"]) == (2, 2)

    def test_workers_by_the_file(self, run: Callable[[], FakeRun]) -> None:
        with Path("flow.py").open("a", encoding="utf-8") as file:
            file.write("configured = (built([], 4), Config({'topology.workers': 3}))\n")
        storm_py_local("flow.py:configured")
        assert run().workers == 3

    def test_no_more_workers_than_executors(self, run: Callable[[], FakeRun]) -> None:
        result = storm_py_local("flow.py:wide", "--workers", "9")
        assert run().workers == 5
        assert "storm-py: 9 workers for 5 executors: starting 5, one for each" in result.stderr

    def test_too_many_workers_even_to_ask_for(self) -> None:
        result = storm_py_local("flow.py", "--workers", "65536")
        assert result.exit_code == 2
        assert "topology.workers is 65536" in result.stderr

    def test_log_dir_is_made(self, run: Callable[[], FakeRun], folder: Path) -> None:
        storm_py_local("flow.py", "--log-dir", "logs/today")
        assert run().log_dir == folder / "logs" / "today"
        assert (folder / "logs" / "today").is_dir()

    def test_no_log_dir_is_left_by_a_mistake(self, folder: Path) -> None:
        assert storm_py_local("flaw.py", "--log-dir", "logs").exit_code == 2
        assert not (folder / "logs").exists()

    def test_log_dir_below_a_file(self, run: Callable[[], FakeRun]) -> None:
        result = storm_py_local("flow.py", "--log-dir", "flow.py/logs")
        assert result.exit_code == 2
        assert "flow.py is not a folder" in result.stderr
        assert FakeRun.made == []

    @pytest.mark.parametrize(
        ("outcome", "code"),
        [
            (DONE, 0),
            (replace(DONE, lost=("task 3 was killed",)), 0),
            (replace(DONE, failed=True), 1),
            (replace(DONE, forced=True), 1),
            (replace(DONE, interrupted=True), 130),
            (replace(DONE, interrupted=True, forced=True), 130),
            (replace(DONE, interrupted=True, failed=True), 130),
        ],
    )
    def test_exit_code(self, run: Callable[[], FakeRun], outcome: RunResult, code: int) -> None:
        FakeRun.outcome = outcome
        result = storm_py_local("flow.py")
        assert result.exit_code == code
        assert "flow-1-1700000000: " in result.stderr
        assert all(f"note: {sentence}\n" in result.stderr for sentence in outcome.lost)

    def test_a_run_that_raises(self, run: Callable[[], FakeRun]) -> None:
        FakeRun.outcome = TopologyFailed("worker 0 died 5 times")
        result = storm_py_local("flow.py")
        assert (result.exit_code, result.stderr) == (1, "Error: worker 0 died 5 times\n")

    def test_a_result_that_cannot_be_written_any_more(
        self, run: Callable[[], FakeRun], folder: Path
    ) -> None:
        (folder / "gone").mkdir()
        with Path("flow.py").open("a", encoding="utf-8") as file:
            file.write("import os\nos.rmdir('gone')\n")
        result = storm_py_local("flow.py", "--json", "gone/run.json")
        assert result.exit_code == 1
        assert "done after" in result.stderr
        assert (
            "Error: --json gone/run.json: No such file or directory; the result is not written"
            in result.stderr
        )
