"""Another version of the plan under load: what need not move goes on, and nothing is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.oracle import TEXT, WORDS, records, rows_of, write_text
from storm_py.api.topology import StormTopology
from storm_py.config import Config, defaults
from storm_py.core.plan import ExecutorPlan, PhysicalPlan, split_evenly
from storm_py.local import LocalRun
from storm_py.wire import control
from tests.integration.harness import ROOT, Outcome, Recorder
from tests.integration.test_acking import PENDING, check_nothing_lost, kill_one
from tests.integration.topologies_for_tests import replanning

LINES = 6_000
RATE = 1500
"""Lines a second of each spout."""


class Replanned(LocalRun):
    """A run whose workers can be told to go on under another version of its plan."""

    def replan(self, change: Callable[[PhysicalPlan], PhysicalPlan]) -> None:
        self._plan = self._core._plan = plan = change(self._plan)
        self._folder.write_plan(plan)
        for worker, incarnation in self._core.incarnations.items():
            order = control.encode(control.Replan(plan.version, 0))
            self._channel.send(f"w{worker}.{incarnation}", order)


def relaid(plan: PhysicalPlan, parallelism: Mapping[str, int]) -> PhysicalPlan:
    """The next version, with so many executors of these components; ids are never used twice."""
    workers = plan.workers
    kept = [e for e in plan.executors if e.component_id not in parallelism]
    newest = max(e.id for e in plan.executors)
    for component, executors in parallelism.items():
        for tasks in split_evenly(plan.tasks_of(component), executors):
            newest += 1
            worker = workers[(newest + 1) % len(workers)]  # not the one that it was on
            kept.append(ExecutorPlan(newest, component, tuple(tasks), worker, newest))
    topology = StormTopology(plan.topology.components)
    return replace(plan, version=plan.version + 1, topology=topology, executors=tuple(kept))


def replanned(folder: Path, workers: int, seen: Recorder) -> Replanned:
    """A run of the oracle."""
    write_text(folder, LINES)
    return Replanned(
        topology_id="test-1-1",
        topology=replanning.build(folder, RATE).create_topology(),
        # A tree that nobody is told of may not pass by its timeout.
        conf={
            **defaults(),
            Config.TOPOLOGY_MAX_SPOUT_PENDING: PENDING,
            Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 600,
        },
        sys_path=str(ROOT),
        module=replanning.__name__,
        workers=workers,
        log_dir=None,
        observer=seen,
    )


def rows_written(folder: Path) -> int:
    """How many words have arrived so far."""
    path = folder / "rows"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def run_replanned(
    folder: Path, workers: int, steps: list[Mapping[str, int]], victim: str | None = None
) -> Outcome:
    """Run the oracle; after each part of its rows lay it out anew, and kill somebody then."""
    seen = Recorder()
    run = replanned(folder, workers, seen)

    def at(rows: int, parallelism: Mapping[str, int]) -> None:
        def act() -> None:
            run.replan(lambda plan: relaid(plan, parallelism))
            if victim is not None:
                seen.when(lambda: kill_one(victim), lambda: None)

        seen.when(lambda: rows_written(folder) >= rows, act)

    for i, parallelism in enumerate(steps, 1):
        at(LINES * WORDS * i // (len(steps) + 1), parallelism)
    return Outcome(run.run(None), seen)


def births(folder: Path) -> dict[tuple[str, int], list[int]]:
    """The processes in which each task has lived, by component and task."""
    found: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for component, task, pid, *_ in records(folder, "births"):
        found[component, int(task)].append(int(pid))
    return dict(found)


def check_keys(folder: Path) -> None:
    """Assert that every key stayed on its task."""
    owners: defaultdict[int, set[int]] = defaultdict(set)
    for row in rows_of(folder):
        assert row.key.file == TEXT
        owners[row.key.line_number].add(row.sink)
    assert {len(tasks) for tasks in owners.values()} == {1}
    assert len(set.union(*owners.values())) == replanning.TASKS


@pytest.mark.parametrize("workers", [1, 2])
def test_more_executors_and_fewer(tmp_path: Path, workers: int) -> None:
    outcome = run_replanned(tmp_path, workers, [{"split": 2, "sink": 4}, {"sink": 1}])
    outcome.check_ended_by_itself()
    assert outcome.seen.errors == []
    assert outcome.seen.unmet == 0
    assert outcome.result.final.restarts == 0
    check_nothing_lost(tmp_path)
    check_keys(tmp_path)
    lives = births(tmp_path)
    for (component, task), pids in lives.items():
        assert len(pids) == {"source": 1, "split": 2, "sink": 3}[component], (component, task)
    last = [pids[-1] for (component, _), pids in lives.items() if component == "sink"]
    assert len(set(last)) == 1


def test_processes_that_hang_before_they_are_up_do_not_hold_up_the_next_plan(
    tmp_path: Path,
) -> None:
    seen = Recorder()
    run = replanned(tmp_path, 1, seen)

    def hang() -> None:
        (tmp_path / "hang").touch()
        run.replan(lambda plan: relaid(plan, {"split": 2}))

    def go_on() -> None:
        (tmp_path / "hang").unlink()
        run.replan(lambda plan: relaid(plan, {"split": 4}))

    seen.when(lambda: rows_written(tmp_path) > LINES, hang)
    seen.when(lambda: len(list(tmp_path.glob("hanging-*"))) == 2, go_on)
    outcome = Outcome(run.run(None), seen)
    outcome.check_ended_by_itself()
    assert seen.unmet == 0
    assert outcome.result.final.restarts == 0
    check_nothing_lost(tmp_path)
    check_keys(tmp_path)


def test_spouts_that_move_to_another_worker_hear_of_their_trees_there(tmp_path: Path) -> None:
    outcome = run_replanned(tmp_path, 2, [{"source": 2}])
    outcome.check_ended_by_itself()
    assert outcome.seen.errors == []
    check_nothing_lost(tmp_path)
    moved = [key for key, pids in births(tmp_path).items() if len(pids) > 1]
    assert sorted(moved) == [("source", 5), ("source", 6)]
    ports = {(row[1], row[3]) for row in records(tmp_path, "births") if row[0] == "source"}
    assert ports == {(task, port) for task in "56" for port in ("6700", "6701")}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("victim", ["instance", "stream_manager", "worker"])
def test_nothing_is_lost_when_somebody_dies_meanwhile(
    tmp_path: Path, victim: str, workers: int
) -> None:
    steps: list[Mapping[str, int]] = [{"sink": 4}, {"sink": 2, "split": 4}]
    outcome = run_replanned(tmp_path, workers, steps, victim)
    outcome.check_ended_by_itself()
    assert outcome.seen.unmet == 0
    assert outcome.result.final.restarts > 0
    check_nothing_lost(tmp_path)
    check_keys(tmp_path)
