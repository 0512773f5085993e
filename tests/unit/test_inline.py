"""Inline runs: the same results as anywhere, and an orderly end however it comes."""

from __future__ import annotations

import bdb
import logging
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from storm_py import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BasicOutputCollector,
    FailedException,
    InvalidTopologyException,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from storm_py.cli import main
from storm_py.config import defaults, merge
from storm_py.inline import InlineRun
from storm_py.run import RunResult, Snapshot
from storm_py.wire.control import ErrorReport

TEXT = "the cow jumped over the moon\n\nan apple a day  keeps the doctor away\nthe end\n"

CALLS: list[str] = []
"""What the components below were asked to do: they run in this very thread."""

ACTIONS: dict[str, Callable[..., object]] = {}
"""What they do beyond that, by hook; functions are not copied for each task."""


def call(hook: str, *args: object) -> None:
    CALLS.append(hook)
    if hook in ACTIONS:
        ACTIONS[hook](*args)


class Numbers(BaseRichSpout):
    """Counts up, to `limit` or for ever."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.number = 0

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("number")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        call("open", collector)

    def next_tuple(self) -> None:
        if self.number == self.limit:
            self.collector.end_of_input()
        else:
            self.number += 1
            self.collector.emit([self.number])

    def close(self) -> None:
        call("close")


class Sum(BaseRichBolt):
    """Adds up, and hands the sum on at the end."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("sum")

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self.collector = collector
        self.sum = 0
        call("prepare", collector)

    def execute(self, tup: Tuple) -> None:
        self.sum += tup.values[0]
        if f"execute {tup.values[0]}" in ACTIONS:
            call(f"execute {tup.values[0]}", self.collector)

    def end_of_input(self) -> None:
        call("end_of_input")
        self.collector.emit([self.sum])

    def cleanup(self) -> None:
        call("cleanup")


class Print(BaseBasicBolt):
    """Notes what it gets."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        call(f"sum {tup.values[0]}")


@dataclass
class Recorder:
    """An observer that keeps everything."""

    snapshots: list[Snapshot] = field(default_factory=list)
    errors: list[ErrorReport] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def snapshot(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)

    def error(self, error: ErrorReport) -> None:
        self.errors.append(error)

    def log(self, level: int, source: str, text: str) -> None:
        raise AssertionError("an inline run leaves logging to the user")

    def output(self, source: str, line: str) -> None:
        raise AssertionError("an inline run leaves stdout to the user")

    def event(self, text: str) -> None:
        self.events.append(text)


@pytest.fixture(autouse=True)
def clean_slate() -> None:
    CALLS.clear()
    ACTIONS.clear()


def run(
    limit: int | None = 10,
    ttl_secs: float | None = None,
    parallelism: int = 1,
    recorder: Recorder | None = None,
    **conf: object,
) -> tuple[RunResult, Recorder]:
    """Run Numbers -> Sum -> Print."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(limit), 1)
    builder.set_bolt("sum", Sum(), parallelism).fields_grouping("numbers", "number")
    builder.set_bolt("print", Print(), 1).global_grouping("sum")
    recorder = recorder or Recorder()
    keys = {key.replace("__", "."): value for key, value in conf.items()}
    inline = InlineRun(
        "sums-1-1700000000", builder.create_topology(), merge(defaults(), keys), recorder
    )
    return inline.run(ttl_secs), recorder


def raising(error: BaseException) -> Callable[..., object]:
    def action(*args: object) -> None:
        raise error

    return action


def interrupt(*args: object) -> None:
    signal.raise_signal(signal.SIGINT)


def terminate(*args: object) -> None:
    signal.raise_signal(signal.SIGTERM)


class TestToTheEnd:
    def test_every_hook_is_called_in_order(self) -> None:
        result, recorder = run(10)
        assert CALLS == ["open", "prepare", "end_of_input", "sum 55", "close", "cleanup"]
        assert (result.failed, result.interrupted, result.forced, result.lost) == (
            *(False, False, False),
            (),
        )
        assert (recorder.errors, recorder.events) == ([], [])

    def test_figures(self) -> None:
        result, recorder = run(1000, parallelism=3)
        numbers, sums, printed = result.final.components
        assert (numbers.kind, numbers.executed, numbers.emitted) == ("spout", 0, 1000)
        assert (sums.kind, sums.executed, sums.emitted) == ("bolt", 1000, 3)
        assert (sums.executors, sums.tasks, sums.queued) == (3, 3, 0)
        assert printed.executed == 3
        assert (result.final.phase, result.final.workers, result.final.restarts) == ("done", 1, 0)
        assert (result.log_dir, result.final.topology_id) == (None, "sums-1-1700000000")
        assert result.start_secs >= 0
        assert result.final.secs > 0
        assert recorder.snapshots[0].phase == "starting"

    def test_a_run_on_another_thread(self) -> None:
        found: list[RunResult] = []
        thread = threading.Thread(target=lambda: found.append(run(10)[0]))
        thread.start()
        thread.join()
        assert found[0].final.components[2].executed == 1

    def test_handlers_of_signals_are_put_back(self) -> None:
        before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
        run(10)
        assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before

    def test_an_object_that_cannot_be_copied(self) -> None:
        builder = TopologyBuilder()
        spout = Numbers(1)
        spout.lock = threading.Lock()  # type: ignore[attr-defined]
        builder.set_spout("numbers", spout)
        with pytest.raises(
            InvalidTopologyException,
            match=r"spout 'numbers': a Numbers cannot be copied for its tasks, because of its "
            r"attribute 'lock': cannot pickle '_thread.lock' object; .* in open\(\)",
        ):
            InlineRun("x-1-1", builder.create_topology(), defaults(), Recorder())

    def test_word_count_of_the_examples(self, tmp_path: Path) -> None:
        text = tmp_path / "text.txt"
        text.write_text(TEXT, encoding="utf-8")
        example = Path(__file__).parents[2] / "topologies" / "word_count.py"
        path = list(sys.path)
        try:
            args = ["local", str(example), "--inline", "--", "--input", str(text), "--verify"]
            result = CliRunner().invoke(main, args)
        finally:
            sys.path[:] = path
            sys.modules.pop("word_count", None)
        assert result.exit_code == 0, result.output
        head, *lines, verified = result.stdout.splitlines()
        expected = Counter(TEXT.split())
        assert head == f"{expected.total()} words, {len(expected)} distinct; the top 20:"
        assert {word: int(count) for count, word in map(str.split, lines)} == expected
        assert verified.startswith(f"verified: all {expected.total()} words equal")


class TestErrors:
    @pytest.mark.parametrize(
        ("hook", "component", "where"),
        [
            ("open", "numbers", "open"),
            ("prepare", "sum", "prepare"),
            ("execute 5", "sum", "execute"),
        ],
    )
    def test_a_component_that_raises_ends_the_run(
        self, hook: str, component: str, where: str
    ) -> None:
        ACTIONS[hook] = raising(ValueError("boom"))
        result, recorder = run(10)
        [error] = recorder.errors
        assert (error.component, error.where, error.fatal) == (component, where, True)
        assert error.message == "ValueError: boom"
        assert "in action" in error.traceback
        assert (result.failed, result.interrupted, result.forced) == (True, False, False)
        assert result.final.errors == 1
        [lost] = result.lost
        assert lost.startswith(f"{component} (task {error.task}) failed, which ended the run early")
        assert "sum 55" not in CALLS

    def test_what_was_opened_is_closed_after_a_failure(self) -> None:
        ACTIONS["execute 5"] = raising(ValueError("boom"))
        run(10)
        assert {"close", "cleanup"} <= set(CALLS)

    def test_what_failed_to_open_is_not_closed(self) -> None:
        ACTIONS["prepare"] = raising(ValueError("boom"))
        run(10)
        assert "cleanup" not in CALLS

    def test_a_failure_at_the_end_of_input_still_drains(self) -> None:
        ACTIONS["end_of_input"] = raising(FailedException("3 words differ"))
        result, recorder = run(10)
        assert [(e.message, e.traceback) for e in recorder.errors] == [("3 words differ", "")]
        assert (result.failed, result.lost) == (True, ())
        assert {"close", "cleanup"} <= set(CALLS)

    def test_a_reported_error_is_shown_and_fails_nothing(self) -> None:
        ACTIONS["execute 5"] = lambda collector: collector.report_error(ValueError("odd"))
        result, recorder = run(10)
        assert [error.message for error in recorder.errors] == ["ValueError: odd"]
        assert (result.failed, result.final.errors) == (False, 1)
        assert "sum 55" in CALLS

    def test_an_error_in_cleanup_is_shown_and_fails_nothing(self) -> None:
        ACTIONS["cleanup"] = raising(OSError("gone"))
        result, recorder = run(10)
        assert [error.where for error in recorder.errors] == ["cleanup"]
        assert not result.failed

    def test_sys_exit_in_a_component_is_an_error(self) -> None:
        ACTIONS["execute 5"] = raising(SystemExit(3))
        result, recorder = run(10)
        [error] = recorder.errors
        assert (error.component, error.message) == ("sum", "SystemExit: 3")
        assert result.failed


class TestStuck:
    def test_user_code_that_does_not_come_back_is_named(self) -> None:
        named = threading.Event()
        logs: list[tuple[int, str, str]] = []

        class Logs(Recorder):
            def log(self, level: int, source: str, text: str) -> None:
                logs.append((level, source, text))
                named.set()

        ACTIONS["execute 5"] = lambda *args: named.wait(60)
        result, _ = run(10, recorder=Logs(), storm_py__stuck__secs=0.01)
        assert (result.failed, result.lost) == (False, ())
        level, source, text = logs[0]
        assert (level, source) == (logging.WARNING, "")
        assert re.fullmatch(
            r"sum \(task \d\) has been in execute, rows? \d+(\.\.\d+)? of a frame from numbers "
            r"\(task \d\) for 0 s \(storm_py\.stuck\.secs: 0\.01\)",
            text,
        )

    def test_nobody_looks_on_behind_the_end(self) -> None:
        before = threading.enumerate()
        run(10)
        assert threading.enumerate() == before


class TestStopping:
    @pytest.mark.parametrize("stop", [interrupt, terminate])
    def test_the_first_signal_drains(self, stop: Callable[..., object]) -> None:
        ACTIONS["execute 100"] = stop
        result, recorder = run(None)
        emitted = result.final.components[0].emitted
        assert result.final.components[1].executed == emitted >= 100
        assert f"sum {emitted * (emitted + 1) // 2}" in CALLS
        assert {"close", "cleanup"} <= set(CALLS)
        assert recorder.events == ["interrupted: draining (interrupt again to stop at once)"]
        assert (result.interrupted, result.forced, result.failed, result.lost) == (
            *(True, False, False),
            (),
        )

    def test_the_second_signal_stops_user_code_at_once(self) -> None:
        def interrupt_twice(*args: object) -> None:
            interrupt()
            interrupt()
            call("not reached")

        ACTIONS["execute 100"] = interrupt_twice
        result, _ = run(None)
        assert result.final.components[1].executed == 100
        assert (result.interrupted, result.forced, result.failed) == (True, True, False)
        [lost] = result.lost
        where = (
            r"execute of sum \(task \d\), rows? \d+(\.\.\d+)? of a frame from numbers \(task \d\)"
        )
        assert re.match(f"stopped at once in {where}", lost)
        assert not {"not reached", "end_of_input", "close", "cleanup"} & set(CALLS)

    def test_signals_while_components_open(self) -> None:
        ACTIONS["open"] = interrupt
        result, _ = run(None)
        assert result.interrupted
        assert not result.forced
        assert "end_of_input" in CALLS

    def test_a_second_signal_while_cleaning_up(self) -> None:
        ACTIONS["execute 100"] = interrupt
        ACTIONS["cleanup"] = interrupt
        result, _ = run(None)
        assert (result.interrupted, result.forced) == (True, True)
        assert "end_of_input" in CALLS

    def test_ttl_drains_and_is_no_interruption(self) -> None:
        result, recorder = run(None, ttl_secs=0.001)
        emitted = result.final.components[0].emitted
        assert f"sum {emitted * (emitted + 1) // 2}" in CALLS
        assert recorder.events == ["0.001 s are over: draining"]
        assert (result.interrupted, result.forced, result.failed) == (False, False, False)

    def test_what_does_not_drain_in_time_is_dropped(self) -> None:
        result, _ = run(None, ttl_secs=0.001, storm_py__drain__timeout__secs=0)
        assert (result.interrupted, result.forced, result.failed) == (False, True, False)
        assert result.lost[0].startswith("not drained within 0 s (storm_py.drain.timeout.secs)")
        assert "end_of_input" not in CALLS

    @pytest.mark.parametrize("hook", ["prepare", "execute 5", "end_of_input", "cleanup"])
    def test_leaving_the_debugger_ends_the_run_and_is_no_error(self, hook: str) -> None:
        ACTIONS[hook] = raising(bdb.BdbQuit())
        result, recorder = run(10)
        assert recorder.errors == []
        assert (result.interrupted, result.forced, result.failed) == (True, True, False)
