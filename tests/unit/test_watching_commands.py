"""monitor, get-errors, set_log_level, version, and what shells complete."""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

import storm_py
from storm_py.cli.completion import topology_names
from storm_py.cli.monitor import Figures, Sample
from storm_py.rpc.definitions import LogConfig, LogLevel, LogLevelAction
from storm_py.rpc.summaries import ErrorInfo, TopologyInfo
from tests.fake_nimbus import HOST, Cluster, executor
from tests.rpc import TIMEOUT_SECS

UPDATE, REMOVE = LogLevelAction.UPDATE, LogLevelAction.REMOVE


def figures(emitted: int, transferred: int) -> Figures:
    return Figures("words-1-1700000000", "ACTIVE", 2, 5, 4, emitted, transferred)


class TestFigures:
    def info(self, *executors: object) -> TopologyInfo:
        return TopologyInfo(
            id="words-1-17",
            name="words",
            uptime_secs=1,
            executors=list(executors),  # type: ignore[arg-type]
            status="ACTIVE",
            errors={},
        )

    def test_all_components(self) -> None:
        starting = executor("count", 3, 6701, uptime_secs=0)
        starting.stats = None
        info = self.info(executor("lines", 1, 6700, 5), executor("count", 2, 6701, 7), starting)
        assert Figures.of(info, None) == Figures("words-1-17", "ACTIVE", 2, 3, 2, 12, 24)

    def test_one_component(self) -> None:
        info = self.info(executor("lines", 1, 6700, 5), executor("count", 2, 6701, 7))
        assert Figures.of(info, "count") == Figures("words-1-17", "ACTIVE", 1, 1, 1, 7, 14)

    def test_one_port_of_two_hosts_is_two_slots(self) -> None:
        info = self.info(executor("a", 1, 6700), executor("a", 2, 6700, host="beta"))
        assert Figures.of(info, None).slots == 2

    def test_a_topology_that_is_not_assigned(self) -> None:
        assert Figures.of(self.info(), "count") == Figures("words-1-17", "ACTIVE", 0, 0, 0, 0, 0)


class TestSamples:
    def test_rates(self) -> None:
        sample = Sample.after(figures(10, 20), figures(30, 100), 4.0, 0.0)
        assert (sample.secs, sample.emitted_per_sec, sample.transferred_per_sec) == (4.0, 5.0, 20.0)

    def test_counts_that_begin_anew_are_no_rate_below_zero(self) -> None:
        sample = Sample.after(figures(10, 20), figures(3, 24), 2.0, 0.0)
        assert (sample.emitted_per_sec, sample.transferred_per_sec) == (0.0, 2.0)


class TestMonitor:
    def test_lines(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.nimbus.executors = [executor("lines", 1, 6700, 1_000_000)]
        head, first, second = cluster.done("monitor", "words", "-n", "2", "-i", "0.01").splitlines()
        assert head == (
            "time      status       slots  executors     up       emitted   transferred    secs   "
            "emitted/s  transferred/s"
        )
        assert re.sub(r"\d\d:\d\d:\d\d", "12:00:00", first) == (
            "12:00:00  ACTIVE           1          1      1       1000000       2000000       -   "
            "        -              -"
        )
        assert re.fullmatch(r".{60} +2000000 +\d+\.\d +0 +0", second)

    def test_json(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.nimbus.executors = [executor("lines", 1, 6700, 3), executor("count", 2, 6700, 4)]
        found = json.loads(cluster.done("monitor", "words", "--once", "--json", "-m", "count"))
        assert found.pop("time_secs") > 0
        assert found == {
            "topology": "words",
            "id": "words-1-1700000000",
            "component": "count",
            "status": "ACTIVE",
            "slots": 1,
            "executors": 1,
            "executors_up": 1,
            "emitted": 4,
            "transferred": 8,
            "secs": None,
            "emitted_per_sec": None,
            "transferred_per_sec": None,
        }

    def at_the_second_call(self, cluster: Cluster, do: Callable[[], object]) -> None:
        calls = itertools.count(1)
        cluster.nimbus.before["getTopologyInfoByNameWithOpts"] = lambda: (
            do() if next(calls) == 2 else None
        )

    def test_it_ends_with_the_topology(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        self.at_the_second_call(cluster, cluster.nimbus.topologies.clear)
        result = cluster.run("monitor", "words", "--json", "-i", "0.01")
        assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)
        assert result.stderr == "storm-py: words runs no more\n"

    def test_what_may_pass_does_not_end_it(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")

        def fail() -> None:
            raise ValueError("not a leader")

        self.at_the_second_call(cluster, fail)
        result = cluster.run("monitor", "words", "--json", "-i", "0.01", "-n", "3")
        assert (result.exit_code, len(result.stdout.splitlines())) == (0, 2)
        assert result.stderr == (
            f"storm-py: {HOST}:{cluster.port} could not answer getTopologyInfoByNameWithOpts: "
            "getTopologyInfoByNameWithOpts failed: ValueError: not a leader; trying again\n"
        )

    def test_ctrl_c(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        self.at_the_second_call(cluster, lambda: os.kill(os.getpid(), signal.SIGINT))
        result = cluster.run("monitor", "words", "--json", "-i", "0.01")
        assert (result.exit_code, result.stderr) == (130, "")
        assert len(result.stdout.splitlines()) == 1

    def test_mistakes(self, cluster: Cluster) -> None:
        assert cluster.error(3, "monitor", "words") == (
            "Error: no topology 'words' runs, nor does any other; see `storm-py submit --help`\n"
        )
        cluster.nimbus.running("words")
        cluster.nimbus.executors = [executor("lines", 1, 6700), executor("count", 2, 6700)]
        assert cluster.error(3, "monitor", "words", "-m", "cuont") == (
            "Error: topology 'words' has no component 'cuont', but count, lines; did you mean "
            "'count'?\n"
        )
        assert cluster.error(2, "monitor", "words", "-i", "0").endswith(
            "Error: Invalid value for '-i' / '--interval': '0'; expected seconds, a number above "
            "0\n"
        )


class TestGetErrors:
    def errors(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.nimbus.errors = {
            "split": [],
            "count": [
                ErrorInfo(error="ValueError: old", error_time_secs=100, host=HOST, port=6700),
                ErrorInfo(error="Traceback:\n  x\nValueError: new\n", error_time_secs=200),
            ],
        }

    def test_text(self, cluster: Cluster) -> None:
        self.errors(cluster)
        old, new = (datetime.fromtimestamp(secs).isoformat(" ") for secs in (100, 200))
        assert cluster.done("get-errors", "words") == (
            f"count  {new}\n  Traceback:\n    x\n  ValueError: new\n"
            f"count  {old}  {HOST}:6700\n  ValueError: old\n"
        )

    def test_json_is_storms_and_more(self, cluster: Cluster) -> None:
        self.errors(cluster)
        found = json.loads(cluster.done("get-errors", "words", "--json"))
        assert found["Topology Name"] == "words"
        assert found["Comp-Errors"] == {"count": "Traceback:\n  x\nValueError: new\n"}
        assert found["errors"][1] == {
            "component": "count",
            "time_secs": 100,
            "host": HOST,
            "port": 6700,
            "error": "ValueError: old",
        }

    def test_none(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        assert cluster.done("get-errors", "words") == "no errors of words\n"
        assert json.loads(cluster.done("get-errors", "words", "--json")) == {
            "Topology Name": "words",
            "Comp-Errors": {},
            "errors": [],
        }

    def test_no_such_topology(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        assert cluster.error(3, "get-errors", "word") == (
            "Error: no topology 'word' runs, but words; did you mean 'words'?\n"
        )


class TestSetLogLevel:
    def test_set_and_removed(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.done(
            *("set_log_level", "words", "-l", "ROOT=DEBUG:30", "-l", "a=b=WARN", "-r", "mine.own")
        )
        expected = {
            "ROOT": LogLevel(
                action=UPDATE, target_log_level="DEBUG", reset_log_level_timeout_secs=30
            ),
            "a=b": LogLevel(action=UPDATE, target_log_level="WARN", reset_log_level_timeout_secs=0),
            "mine.own": LogLevel(action=REMOVE),
        }
        [call] = cluster.nimbus.calls
        assert call == (
            "setLogConfig",
            "words-1-1700000000",
            LogConfig(named_logger_level=expected),
        )

    def test_what_is_set_is_shown(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        assert cluster.done("set_log_level", "words") == "no levels are set for words\n"
        cluster.nimbus.log_config = LogConfig(
            named_logger_level={
                "ROOT": LogLevel(
                    action=UPDATE,
                    target_log_level="DEBUG",
                    reset_log_level_timeout_secs=30,
                    reset_log_level_timeout_epoch=1700000030,
                    reset_log_level="INFO",
                ),
                "mine": LogLevel(action=UPDATE, target_log_level="ERROR"),
            }
        )
        assert cluster.done("set_log_level", "words").splitlines() == [
            "Logger  Level  Secs",
            "------  -----  ----",
            "ROOT    DEBUG    30",
            "mine    ERROR     -",
        ]
        assert json.loads(cluster.done("set_log_level", "words", "--json"))[0] == {
            "logger": "ROOT",
            "level": "DEBUG",
            "secs": 30,
            "until_secs": 1700000030,
            "before": "INFO",
        }
        assert cluster.nimbus.calls == []

    @pytest.mark.parametrize("text", ["ROOT", "ROOT=LOUD", "=INFO", "ROOT=INFO:soon", "a=INFO:-1"])
    def test_a_level_that_is_none(self, cluster: Cluster, text: str) -> None:
        assert cluster.error(2, "set_log_level", "words", "-l", text).endswith(
            f"Error: Invalid value for '-l': {text!r}; expected LOGGER=LEVEL[:SECS], as in "
            "ROOT=DEBUG:30; LEVEL is one of ALL, TRACE, DEBUG, INFO, WARN, ERROR, FATAL, OFF\n"
        )

    def test_one_logger_twice(self, cluster: Cluster) -> None:
        assert cluster.error(2, "set_log_level", "words", "-l", "a=INFO", "-l", "a=WARN").endswith(
            "Error: Invalid value for '-l': 'a' is there twice\n"
        )
        assert cluster.error(2, "set_log_level", "words", "-l", "a=INFO", "-r", "a") == (
            "Error: logger 'a' is to be set and removed; say one of both\n"
        )

    def test_no_such_topology(self, cluster: Cluster) -> None:
        assert cluster.error(3, "set_log_level", "words", "-l", "a=INFO") == (
            "Error: no topology 'words' runs, nor does any other; see `storm-py submit --help`\n"
        )


def test_version(cluster: Cluster) -> None:
    python = platform.python_version()
    assert cluster.done("version") == f"storm-py {storm_py.__version__}\npython {python}\n"
    assert json.loads(cluster.done("version", "--json")) == {
        "storm-py": storm_py.__version__,
        "python": python,
    }


@contextmanager
def silent() -> Iterator[int]:
    """A port where somebody listens and never answers."""
    with socket.create_server((HOST, 0)) as listener:
        yield listener.getsockname()[1]


class TestCompletion:
    def test_a_shell_gets_the_names_that_fit(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words", "wide", "lines")
        environ = {
            **os.environ,
            "_STORM_PY_COMPLETE": "bash_complete",
            "COMP_WORDS": "storm-py kill w",
            "COMP_CWORD": "2",
        }
        code = "from storm_py.cli import main; main()"
        process = subprocess.run(
            [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
        )
        assert (process.stdout, process.stderr) == ("plain,wide\nplain,words\n", "")

    def test_settings_count(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.storm_yaml.unlink()
        settings = {"nimbus.thrift.port": cluster.port, "nimbus.seeds": [HOST]}
        assert topology_names(None, settings) == ["words"]

    def test_no_error_is_shown(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        assert topology_names("/nowhere/storm.yaml", {}) == []
        assert topology_names(None, {"nimbus.thrift.port": "high"}) == []
        cluster.nimbus.failing("getTopologySummaries", ValueError("broken"))
        assert topology_names(None, {}) == []

    def test_who_does_not_answer_is_not_waited_for(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("storm_py.cli.completion.PATIENCE_SECS", 0.1)
        with silent() as port:
            assert topology_names(None, {"nimbus.thrift.port": port}) == []
        for thread in threading.enumerate():
            if thread.name == "completion":
                thread.join(TIMEOUT_SECS)
