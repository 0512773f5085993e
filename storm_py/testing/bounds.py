"""Bounds: what must hold of queues and of pressure between any two steps.

What is sent to a task and not finished stays within its window; what waits for it presses, all that
send to it heed that, and nobody pauses without a cause. Only public statistics of the cores are
read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from storm_py.constants import RESERVED_PREFIX
from storm_py.core.plan import PhysicalPlan
from storm_py.core.pressure import INITIAL_ROWS, QueueStatistics

from .instances import Instance
from .managers import Manager
from .network import Kind, Network


class Bounds:
    """The queues of one run; each check gives what is wrong, if anything is."""

    def __init__(self, plan: PhysicalPlan, network: Network) -> None:
        self._plan = plan
        self._network = network
        #: per task: the fastest that it has ever finished rows, and the most that waited for it
        self._fastest: dict[int, float] = defaultdict(float)
        self.most_rows: dict[int, int] = defaultdict(int)

    def queues(self, manager: Manager) -> Iterator[str]:
        """What exceeds the window waits, and what waits presses."""
        limits = manager.limits
        for task, queue in manager.core.statistics().queues.items():
            waiting = queue.backlog_rows + queue.outstanding_rows
            self.most_rows[task] = max(self.most_rows[task], waiting)
            self._fastest[task] = max(self._fastest[task], queue.rows_per_sec)
            window = max(INITIAL_ROWS, self._fastest[task] * limits.window_secs)
            if queue.outstanding_rows > max(window, limits.frame_rows):
                yield f"{queue.outstanding_rows} rows were sent to task {task}, over its window"
            if queue.outstanding_bytes > max(limits.high_bytes, self._network.largest_message):
                yield f"{queue.outstanding_bytes} bytes were sent to task {task}, over its window"
            if not queue.pressured and (
                queue.backlog_bytes > limits.high_bytes or queue.backlog_rows > window
            ):
                yield f"{queue} waits for task {task}, and nobody is told"

    def pressure(self) -> Iterator[str]:
        """All who send to a congested task pause, and those alone; judged when all are linked."""
        processes = self._network.processes.values()
        instances = {p.executor: p for p in processes if isinstance(p, Instance)}
        managers = [p for p in processes if isinstance(p, Manager)]
        if (
            len(instances) < len(self._plan.instances)
            or len(managers) < len(self._plan.workers)
            or self._network.busy(Kind.CONTROL)
            or not all(instance.core.linked for instance in instances.values())
            or not all(self._linked(manager) for manager in managers)
        ):
            return
        queues = {
            task: queue
            for manager in managers
            for task, queue in manager.core.statistics().queues.items()
        }
        out_of_reach = {
            (manager.worker.number, task)
            for manager in managers
            for task in queues
            if f"s{self._plan.worker_of(task)}" in manager.congested
        }
        for number, instance in instances.items():
            me, worker = self._plan.label(number), self._plan.executor(number).worker
            heeded = self._heeded(number)
            congested = sorted(
                task for task in heeded if queues[task].pressured or (worker, task) in out_of_reach
            )
            if congested and not instance.core.paused:
                yield f"{instance} of {me} goes on; the congested tasks it sends to: {congested}"
            limited = any(queues[task].limited for task in heeded)
            if instance.core.paused and not congested and not limited:
                yield f"{instance} of {me} is paused, though nothing it sends to is congested"

    def _heeded(self, instance: int) -> set[int]:
        """The tasks whose pressure an instance heeds."""
        return {
            task
            for executor in self._plan.instances[instance]
            for task in self._plan.receivers(executor)
            if not (consumer := self._plan.task_to_component[task]).startswith(RESERVED_PREFIX)
            and not self._plan.in_cycle(executor.component_id, consumer)
        }

    def _linked(self, manager: Manager) -> bool:
        others = [f"s{worker}" for worker in self._plan.workers if worker != manager.worker.number]
        mine = [f"i{id_}" for id_ in self._plan.instances_on(manager.worker.number)]
        return manager.core.linked([*others, *mine])

    def rest(self) -> Iterator[str]:
        """The run is over: nothing waits, and nobody does.

        A stream manager that came up behind the end is not linked to the others any more.
        """
        processes = self._network.processes.values()
        linked = all(self._linked(each) for each in processes if isinstance(each, Manager))
        for process in processes:
            if isinstance(process, Manager):
                for peer, kept in process.kept.items():
                    yield f"{process} has kept {len(kept)} messages to {peer}"
                for task, queue in process.core.statistics().queues.items():
                    if _holds(queue):
                        yield f"the queue of task {task} did not drain: {queue}"
            elif isinstance(process, Instance):
                if process.core.statistics().queued:
                    yield f"{process} has rows left that it does not execute"
                if linked and process.core.paused:
                    yield f"{process} is paused, though nothing is congested"


def _holds(queue: QueueStatistics) -> bool:
    return bool(queue.backlog_rows or queue.outstanding_bytes or queue.pressured)
