"""complete_topology in real processes: the same test, the same results, and an end in any case."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import cloudpickle
import pytest

from storm_py import (
    BaseBasicBolt,
    BasicOutputCollector,
    OutputFieldsDeclarer,
    TopologyBuilder,
    TopologyFailed,
    Tuple,
)
from storm_py.testing import CapturingBolt, HoldingBolt, Outcome, complete_topology
from tests.driven import Sentences, word_count

SENTENCES = [["a b a"], ["b a"], ["c"]]

GENEROUS_SECS = 60.0
"""For runs that complete unless something is broken."""


class Pid(BaseBasicBolt):
    """Emits the process it runs in, and prints it."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("pid")

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        print("in", os.getpid())  # noqa: T201 - what a component prints is shown
        collector.emit([os.getpid()])


@dataclass
class RaisesOnce(Pid):
    """Raises at the first tuple of all of its lives."""

    flag: Path

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        if not self.flag.exists():
            self.flag.touch()
            raise OSError("only once")
        super().execute(tup, collector)


def with_bolt(bolt: BaseBasicBolt | HoldingBolt | CapturingBolt) -> TopologyBuilder:
    """Sentences -> the bolt."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences())
    builder.set_bolt("bolt", bolt).shuffle_grouping("sentences")
    return builder


def seen(outcome: Outcome) -> object:
    """What must not depend on where the topology runs."""
    found = [Counter(map(repr, outcome.outputs(c))) for c in ("sentences", "split", "count")]
    totals = Counter[str]()
    for [counts] in outcome.outputs("count", "totals"):
        totals.update(counts)
    return found, totals, sorted(outcome.acked(), key=repr), outcome.failed(), outcome.errors


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_results_as_in_one_thread(workers: int) -> None:
    here = complete_topology(word_count(), {"sentences": SENTENCES})
    there = complete_topology(
        word_count(),
        {"sentences": SENTENCES},
        {"topology.workers": workers},
        timeout_secs=GENEROUS_SECS,
        processes=True,
    )
    assert seen(there) == seen(here)
    received = {word for [word] in there.received("count")}
    assert received == {"a", "b", "c"}


def test_components_run_in_processes_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    before = os.environ.get("PYTHONPATH")
    outcome = complete_topology(
        with_bolt(Pid()), {"sentences": [["a"]]}, timeout_secs=GENEROUS_SECS, processes=True
    )
    [[pid]] = outcome.outputs("bolt")
    assert pid != os.getpid()
    assert f"in {pid}" in capsys.readouterr().out
    assert os.environ.get("PYTHONPATH") == before


def test_classes_that_nobody_can_import_travel_along(tmp_path: Path) -> None:
    """As those of a test module that a test runner has loaded by its path."""
    file = tmp_path / "hidden.py"
    file.write_text(
        "from storm_py import BaseBasicBolt\n"
        "ANSWER = 42\n"
        "class Answer(BaseBasicBolt):\n"
        "    def declare_output_fields(self, declarer):\n"
        "        declarer.declare('answer')\n"
        "    def execute(self, tup, collector):\n"
        "        collector.emit([ANSWER])\n"
    )
    spec = importlib.util.spec_from_file_location("nowhere.hidden", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["nowhere.hidden"] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        outcome = complete_topology(
            with_bolt(module.Answer()),
            {"sentences": [["a"]]},
            timeout_secs=GENEROUS_SECS,
            processes=True,
        )
    finally:
        del sys.modules["nowhere.hidden"]
    assert outcome.outputs("bolt") == [[42]]
    assert "nowhere.hidden" not in cloudpickle.list_registry_pickle_by_value()


def test_an_exception_fails_the_run_and_is_shown_once(tmp_path: Path) -> None:
    with pytest.raises(TopologyFailed) as raised:
        complete_topology(
            with_bolt(RaisesOnce(tmp_path / "flag")),
            {"sentences": [["a"]]},
            timeout_secs=GENEROUS_SECS,
            processes=True,
        )
    text = str(raised.value)
    assert text.startswith("the topology failed (timeout_secs=60, processes=True)\n- bolt (task 1)")
    assert text.count("OSError: only once") == 1
    assert "not acked" not in text


def test_what_does_not_complete_in_time_is_named() -> None:
    with pytest.raises(TopologyFailed) as raised:
        complete_topology(
            with_bolt(HoldingBolt()), {"sentences": [["a"]]}, timeout_secs=0.5, processes=True
        )
    assert str(raised.value).splitlines() == [
        "the topology is not complete (timeout_secs=0.5, processes=True)",
        "- the run was stopped before it was drained; tuples in flight are lost",
        "- spout 'sentences': ['a'] not acked",
    ]


def test_a_capturing_bolt_says_why_it_cannot_work_there() -> None:
    with pytest.raises(TopologyFailed, match="this CapturingBolt belongs to the process of the te"):
        complete_topology(
            with_bolt(CapturingBolt()), {"sentences": [["a"]]}, timeout_secs=1, processes=True
        )


def test_on_another_thread_it_is_refused() -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            complete_topology(with_bolt(Pid()), {"sentences": []}, processes=True)
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert "call it on the main thread" in str(raised[0])
