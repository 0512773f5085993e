"""Fused chains over real processes: fewer of them, and every promise as before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from storm_py import TopologyBuilder
from storm_py.config import Config
from storm_py.core.plan import make_plan
from tests.integration.harness import Outcome, Recorder, local_run, run_local
from tests.integration.test_acking import check_nothing_lost, run_oracle
from tests.integration.topologies_for_tests.failing import FailingBolt, HangingBolt, around, onto
from tests.integration.topologies_for_tests.flows import NumberSpout, Relay, Sink
from tests.integration.topologies_for_tests.shapes import chain
from tests.integration.topologies_for_tests.things import locks
from tests.variants import VARIANTS, chosen

pytestmark = pytest.mark.variants

FUSED = VARIANTS["fused"]
TOTAL = 20_000


def test_the_variant_of_this_test_run_is_what_it_says() -> None:
    plan = make_plan("t-1", chosen().applied(chain(3).create_topology()), {**FUSED_CONF}, 1)
    fused = len(plan.instances) < len(plan.executors)
    assert fused == chosen().fused


FUSED_CONF = {Config.STORM_PY_FUSE: True}


def numbers() -> TopologyBuilder:
    """Two tasks of each, from numbers to relay to sink."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL), 2)
    builder.set_bolt("relay", Relay(), 2).local_or_shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink(), 2).local_or_shuffle_grouping("relay")
    return builder


@pytest.mark.parametrize("workers", [1, 2])
def test_a_chain_is_one_process_and_each_component_has_its_figures(workers: int) -> None:
    outcome = run_local(numbers(), workers, FUSED_CONF)
    outcome.check_clean()
    assert [
        (figures.component_id, figures.executors, figures.executed, figures.emitted)
        for figures in outcome.result.final.components
    ] == [
        ("numbers", 2, 0, 2 * TOTAL),
        ("relay", 2, 2 * TOTAL, 2 * TOTAL),
        ("sink", 2, 2 * TOTAL, 0),
    ]
    pids = {(r["component"], r["task"]): r["pid"] for r in outcome.reports("opened")}
    assert len(set(pids.values())) == 2
    assert pids["relay", 3] == pids["sink", 5]
    for report in outcome.reports("sink"):
        assert (report["count"], report["disorder"]) == (TOTAL, 0)


def test_unfused_each_executor_is_a_process() -> None:
    outcome = run_local(numbers(), 1, {Config.STORM_PY_FUSE: False})
    outcome.check_clean()
    assert len({report["pid"] for report in outcome.reports("opened")}) == 4


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("victim", ["instance", "stream_manager"])
def test_nothing_is_lost_when_a_fused_run_is_hit(tmp_path: Path, victim: str, workers: int) -> None:
    """source and split are one process; whatever is killed, each word reaches the disk."""
    outcome = run_oracle(tmp_path, workers, [victim, victim], variant=FUSED)
    outcome.check_ended_by_itself()
    assert outcome.seen.unmet == 0
    assert outcome.result.final.restarts > 0
    check_nothing_lost(tmp_path)


def check_error(outcome: Outcome) -> None:
    [error] = outcome.seen.errors
    assert (error.component, error.where) == ("middle", "execute")


def test_an_exception_is_told_of_its_component_and_restarts_the_whole_chain(tmp_path: Path) -> None:
    outcome = run_local(around(FailingBolt("execute", str(tmp_path / "flag"))), variant=FUSED)
    check_error(outcome)
    [sentence] = outcome.result.lost
    pattern = (
        r"numbers \+ middle \+ sink \(tasks \d, \d, \d\) was restarted \(.*\); its memory and "
    )
    assert re.match(pattern, sentence)


def test_a_death_is_told_of_the_component_in_whose_code_it_was(tmp_path: Path) -> None:
    bolt = FailingBolt("execute", str(tmp_path / "flag"), "crash")
    [sentence] = run_local(around(bolt), variant=FUSED).result.lost
    assert re.search(
        r" in execute of middle \(task \d\), rows? \d+.* from numbers \(task", sentence
    )


def test_a_bolt_that_hangs_is_named(tmp_path: Path) -> None:
    sign = tmp_path / "hang"
    sign.touch()
    seen = Recorder()
    conf = {Config.STORM_PY_STUCK_SECS: 0.2}
    run = local_run(onto(HangingBolt(str(sign))), 1, conf, seen, variant=FUSED)
    seen.when(lambda: warnings(seen), sign.unlink)
    assert not run.run(None).failed
    assert re.match(
        r"last \(task 1\) has been in execute, rows? .* from numbers \(task 2\)", warnings(seen)[0]
    )


def warnings(seen: Recorder) -> list[str]:
    return [text for _, source, text in seen.logs if source.startswith("worker ")]


def test_values_that_could_not_travel_are_handed_over() -> None:
    outcome = run_local(locks(100), conf=FUSED_CONF)
    outcome.check_clean()
    assert outcome.reports("locks") == [{"report": "locks", "taken": 100}]


@pytest.mark.parametrize(
    "conf",
    [{Config.STORM_PY_FUSE: False}, {Config.TOPOLOGY_TESTING_ALWAYS_TRY_SERIALIZE: True}],
)
def test_unless_they_are_packed(conf: dict[str, object]) -> None:
    outcome = run_local(locks(100), conf={**conf, Config.STORM_PY_LOCAL_MAX_FAILURES: 1})
    assert outcome.result.failed
    text = outcome.seen.errors[0].message
    assert text.startswith("EmitError: component 'lock', stream 'default': field 'lock': value[1]")
