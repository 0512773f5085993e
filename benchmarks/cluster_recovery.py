"""Recovery on a cluster: kill -9 of everything that it consists of, under load, and what it cost.

Each round is a new cluster of two supervisors. The oracle (`oracle.py`, eight tasks of each bolt)
is submitted to one worker, and rebalanced to two workers and from two to four executors of each
bolt. Then die in turn: an instance, a stream manager, a worker, a supervisor (started again),
nimbus (started again), ZooKeeper (away for a while), and at last a supervisor with all its workers,
which never comes back. Prints a table on standard error and one line of JSON on standard output;
exits with 1 if a word was lost. Seconds, per event:

- *up*: until the last of the killed tasks had been opened again in a new process;
- *gap*: the longest silence of the rows that went through tasks of what was killed, of all rows
  where no task died with it;
- *delay*: the longest time from the first emission of a line to its ack;
- *back*: until the cluster could be commanded again, from the restart of what was killed.

After a worker's death its gap is the time to the first tuple again. `storm-py cluster` is started
on its own for the time until it is up. Run it as::

    python -m benchmarks.cluster_recovery --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks import oracle
from benchmarks.daemons import SETTINGS, Cluster, Daemon, Failed, WorkerProcess, wait_for
from benchmarks.flowing import NAME, OracleRun
from benchmarks.recovery import Kill, Times

COLUMNS = ("up", "gap", "delay", "back")
KINDS = (
    *("no kill", "rebalance", "instance", "stream manager", "worker", "supervisor", "nimbus"),
    *("zookeeper", "node"),
)


@dataclass(frozen=True, slots=True)
class Event:
    """What was done, when, and how long commands had to wait; None where they did not."""

    kill: Kill
    back: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What an event cost; seconds."""

    kind: str
    up: float | None
    gap: float
    delay: float
    back: float | None
    duplicates: int


@dataclass(frozen=True, slots=True)
class Round:
    """What a round has found; seconds."""

    cluster_up: float
    submit_to_first_tuple: float
    costs: list[Cost]
    verdict: oracle.Verdict


class Scenario:
    """One event after the other, on a topology that runs."""

    def __init__(self, run: OracleRun, step_rows: int, zookeeper_secs: float) -> None:
        self._run = run
        self._cluster = run.cluster
        self._step_rows = step_rows
        self._zookeeper_secs = zookeeper_secs
        self.events: list[Event] = []

    def play(self) -> None:
        """All of them; each gets time for itself."""
        steps: list[Callable[[], Event]] = [
            *(self._rebalance, self._instance, self._stream_manager, self._worker),
            *(self._supervisor, self._nimbus, self._zookeeper, self._node),
        ]
        self._run.wait_flowing(self._step_rows)
        for step in steps:
            event = step()
            self.events.append(event)
            self._wait_born(event.kill)
            self._run.wait_recovered()
            self._run.wait_flowing(self._step_rows)

    def _wait_born(self, kill: Kill) -> None:
        """Wait until the tasks that died live again."""
        if kill.kind == "stream manager":
            return  # theirs did not
        dead = kill.tasks if kill.kind in ("instance", "worker", "node") else frozenset()
        wait_for(
            lambda: all(self._run.tasks()[task].at_ns > kill.at_ns for task in dead),
            f"all tasks live again after {kill.kind}",
        )

    # ---- whom it hits --------------------------------------------------------------------------

    def _every_task(self) -> frozenset[int]:
        return frozenset(self._run.tasks())

    def _tasks_in(self, pids: set[int]) -> frozenset[int]:
        return frozenset(task for task, birth in self._run.tasks().items() if birth.pid in pids)

    def _tasks_of(self, worker: WorkerProcess) -> frozenset[int]:
        return self._tasks_in({p.pid for p in psutil.Process(worker.pid).children(recursive=True)})

    def _kill(self, kind: str, pid: int, tasks: frozenset[int]) -> Event:
        at_ns = time.time_ns()
        os.kill(pid, signal.SIGKILL)
        return Event(Kill(kind, tasks, at_ns))

    # ---- the events ----------------------------------------------------------------------------

    def _rebalance(self) -> Event:
        tasks, at_ns = self._every_task(), time.time_ns()
        self._cluster.run("rebalance", NAME, "-w", "0", "-n", "2", "-e", "split=4", "-e", "sink=4")
        wait_for(lambda: len(self._run.workers()) == 2, "two workers")
        wait_for(lambda: self._executors_of_sinks() == 4, "four executors of sinks")
        return Event(Kill("rebalance", tasks, at_ns))

    def _executors_of_sinks(self) -> int:
        tasks = self._run.tasks().values()
        return len({birth.pid for birth in tasks if birth.component == "sink"})

    def _instance(self) -> Event:
        pid = next(b.pid for b in self._run.tasks().values() if b.component == "sink")
        return self._kill("instance", pid, self._tasks_in({pid}))

    def _stream_manager(self) -> Event:
        worker = self._run.workers()[0]
        [pid] = worker.children()["stream_manager"]
        return self._kill("stream manager", pid, self._tasks_of(worker))

    def _worker(self) -> Event:
        worker = self._run.workers()[-1]
        return self._kill("worker", worker.pid, self._tasks_of(worker))

    def _supervisor(self) -> Event:
        tasks, at_ns = self._every_task(), time.time_ns()
        supervisor = self._cluster.supervisors[0]
        supervisor.kill()
        began = time.monotonic()
        supervisor.start()
        supervisor.wait_said(" is up")
        return Event(Kill("supervisor", tasks, at_ns), time.monotonic() - began)

    def _nimbus(self) -> Event:
        tasks, at_ns = self._every_task(), time.time_ns()
        self._cluster.nimbus.kill()
        began = time.monotonic()
        self._cluster.nimbus.start()
        self._cluster.wait_led(2)
        return Event(Kill("nimbus", tasks, at_ns), time.monotonic() - began)

    def _zookeeper(self) -> Event:
        tasks, at_ns = self._every_task(), time.time_ns()
        self._cluster.zookeeper.kill()
        time.sleep(self._zookeeper_secs)
        began = time.monotonic()
        self._cluster.zookeeper.start()
        wait_for(self._is_commanded, "nimbus leads again")
        return Event(Kill("zookeeper", tasks, at_ns), time.monotonic() - began)

    def _is_commanded(self) -> bool:
        try:
            self._cluster.run("activate", NAME)  # as it is; only a leader takes it
        except Failed:
            return False
        return True

    def _node(self) -> Event:
        lost = self._run.workers()[-1]
        self._cluster.supervisors[lost.supervisor].kill()
        return self._kill("node", lost.pid, self._tasks_of(lost))


# ---- what it cost ------------------------------------------------------------------------------


def costs(folder: Path, events: list[Event]) -> list[Cost]:
    """What each event cost, behind what there was before the first."""
    times = Times(folder)
    ends = [*(event.kill.at_ns for event in events), times.rows[-1].at_ns]
    before = times.before(ends[0])
    found = [Cost("no kill", None, before.gap, before.delay, None, before.duplicates)]
    for event, end in zip(events, ends[1:], strict=True):
        cost = times.cost(event.kill, end)
        found.append(Cost(cost.kind, cost.up, cost.gap, cost.delay, event.back, cost.duplicates))
    return found


def measure_up(folder: Path) -> float:
    """Seconds that `storm-py cluster` takes to be up."""
    folder.mkdir()
    with Cluster(folder) as ports:  # for its ports only
        settings = json.loads(ports.config.read_text())
        keys = ("nimbus.thrift.port", "storm.zookeeper.port")
        options = [text for key in keys for text in ("-c", f"{key}={settings[key]}")]
        options += ["--supervisors", "2", "-c", f"storm.local.dir={folder}"]
        cluster = Daemon("cluster", ["cluster", *options], folder / "cluster.log")
        began = time.monotonic()
        cluster.start()
        try:
            cluster.wait_said("Ctrl-C stops everything")
            return time.monotonic() - began
        finally:
            cluster.stop()


def play(folder: Path, options: argparse.Namespace) -> Round:
    """One round."""
    up = measure_up(folder / "up")
    settings: Mapping[str, object] = {} if options.defaults else SETTINGS
    with Cluster(folder, settings=settings) as cluster:
        cluster.start()
        run = OracleRun(cluster, folder, options.rate)
        began_ns = time.time_ns()
        run.submit(1, 2)
        run.wait_flowing()
        rows = round(options.rate * oracle.TASKS * oracle.WORDS * options.step_secs)
        scenario = Scenario(run, rows, options.zookeeper_secs)
        scenario.play()
        verdict = run.finish()
        first = min(row.at_ns for row in oracle.rows_of(folder))
        return Round(up, (first - began_ns) / 1e9, costs(folder, scenario.events), verdict)


def show(rounds: list[Round]) -> None:
    """A table: median and maximum per kind."""
    expected, lost = (
        sum(getattr(r.verdict, what) for r in rounds) for what in ("expected", "lost")
    )
    title = f"medians and maxima in seconds; {expected:,} words: {lost} lost"
    table = Table("", *COLUMNS, "duplicates", title=title)
    for kind in KINDS:
        these = [cost for each in rounds for cost in each.costs if cost.kind == kind]
        cells = [_cell([getattr(cost, column) for cost in these]) for column in COLUMNS]
        table.add_row(kind, *cells, str(sum(cost.duplicates for cost in these)))
    console = Console(stderr=True)
    console.print(table)
    console.print(f"cluster up: {_cell([each.cluster_up for each in rounds])}")
    console.print(
        f"submit to first tuple: {_cell([each.submit_to_first_tuple for each in rounds])}"
    )


def _cell(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.2f} {max(known):.2f}" if known else "-"


def main() -> None:
    """Run it and print what it cost."""
    parser = argparse.ArgumentParser(description="What deaths on a cluster cost.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=200.0, help="lines/s of each spout")
    parser.add_argument("--step-secs", type=float, default=3.0, help="between two kills, at least")
    parser.add_argument("--zookeeper-secs", type=float, default=20.0, help="that it is away")
    parser.add_argument("--defaults", action="store_true", help="timeouts as they are by default")
    options = parser.parse_args()
    rounds = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="storm-py-") as folder:
            rounds.append(play(Path(folder), options))
    show(rounds)
    figures = {
        "settings": {} if options.defaults else dict(SETTINGS),
        "rounds": [asdict(each) for each in rounds],
        "lost": sum(each.verdict.lost for each in rounds),
    }
    print(json.dumps(figures))
    sys.exit(any(each.verdict.lost or each.verdict.strange for each in rounds))


if __name__ == "__main__":
    main()
