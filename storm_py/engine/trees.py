"""Trees: the tuple trees that a stream manager tracks, and who has to hear of their ends.

The stream manager that hosts a spout tracks the trees of that spout. Records of what happened to a
tree go to that one; what became of it goes to the spout task, in one `AckResults` for each task.
Pure: `storm_py.engine.stream_manager_core` owns the links and makes frames of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from storm_py.core.acker import AckStatistics, AckTracker
from storm_py.core.plan import PhysicalPlan
from storm_py.core.roots import spout_task
from storm_py.wire import frames
from storm_py.wire.acks import AckRecords, AckResults

#: What became of trees, for each spout task of this worker.
Results: TypeAlias = Mapping[int, AckResults]


class Trees:
    """The trees of the spouts of one worker of a plan."""

    def __init__(self, plan: PhysicalPlan, worker: int) -> None:
        self._tracker = AckTracker()
        spouts = [task for spout in plan.topology.spouts for task in plan.tasks_of(spout)]
        self._workers = {task: plan.worker_of(task) for task in spouts}
        self._worker = worker
        self._lost_rows = 0
        self._stray = 0

    def track(self, records: AckRecords) -> Results:
        """Records about trees of ours: what ended or was renewed by them."""
        tracker = self._tracker
        complete, failed = tracker.inits(records.init_roots, records.init_values)
        complete += tracker.acks(records.ack_roots, records.ack_values)
        failed += tracker.fails(records.fail_roots)
        return self._by_task(complete, failed, tracker.resets(records.reset_roots))

    def fail_all(self) -> Sequence[int]:
        """Nobody knows what became of the open trees: the spout tasks to fail all they wait for."""
        self._tracker.fail_all()
        return [task for task, worker in self._workers.items() if worker == self._worker]

    def lost(self, lost: Sequence[bytes]) -> tuple[Results, Mapping[int, AckRecords]]:
        """Frames died with the process they were for: results, and records for other workers.

        Those are keyed by a spout task on the worker that tracks them.
        """
        roots: dict[int, None] = {}
        for data in lost:
            for frame in frames.frames(data, 0):
                self._lost_rows += frame.rows
                tracking, _ = frames.read_tracking(data, frame)
                if tracking is not None:
                    roots.update(dict.fromkeys(tracking.roots))
        by_worker: dict[int, list[int]] = {}
        for root in roots:
            worker = self._workers.get(spout_task(root))  # None for root 0, of untracked rows
            if worker is not None:
                by_worker.setdefault(worker, []).append(root)
        ours = self.track(AckRecords(fail_roots=by_worker.pop(self._worker, [])))
        elsewhere = {
            spout_task(failed[0]): AckRecords(fail_roots=failed) for failed in by_worker.values()
        }
        return ours, elsewhere

    def rotate(self) -> None:
        """A message timeout has passed: forget trees that nobody will finish."""
        self._tracker.rotate()

    def _by_task(self, complete: list[int], failed: list[int], renewed: list[int]) -> Results:
        tasks = {spout_task(root) for roots in (complete, failed, renewed) for root in roots}
        if len(tasks) == 1 and self._workers.get(*tasks) == self._worker:  # as a rule
            return {tasks.pop(): AckResults(complete, failed, renewed)}
        by_task: dict[int, tuple[list[int], list[int], list[int]]] = {}
        for i, roots in enumerate((complete, failed, renewed)):
            for root in roots:
                task = spout_task(root)
                if self._workers.get(task) != self._worker:
                    self._stray += 1  # no spout of ours has drawn this root: nobody waits for it
                    continue
                if task not in by_task:
                    by_task[task] = ([], [], [])
                by_task[task][i].append(root)
        return {task: AckResults(*columns) for task, columns in by_task.items()}

    @property
    def lost_rows(self) -> int:
        """Rows that died with the process they were for."""
        return self._lost_rows

    @property
    def stray(self) -> int:
        """Results for tasks that are no spouts of this worker, dropped."""
        return self._stray

    def statistics(self) -> AckStatistics:
        """Counters of the tracker."""
        return self._tracker.statistics()

    def check(self) -> None:
        """Assert the tracker's invariants."""
        self._tracker.check()
