"""Simulation: a whole topology under failure, in one thread, on a virtual clock.

The composed cores that real processes run - `InstanceCore`, `StreamManagerCore`, `WorkerCore`,
`RunCore` - on an in-memory network (`network`, `processes`), with faults (`faults`) and a checker
that knows every tuple tree (`checker`). All that is random comes from the seed, so a seed is a
whole run: one that fails is a bug report that reproduces itself.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from storm_py.api.spec import StormTopology, apply_limits
from storm_py.api.topology import TopologyBuilder
from storm_py.config import Config, defaults, merge, validate
from storm_py.core.plan import CustomGroupings, make_plan
from storm_py.core.pressure import FREE_ROWS, START_ROWS, Limits
from storm_py.engine.settings import limits
from storm_py.engine.system import system_topology
from storm_py.errors import a_type

from .arguments import (
    ErrorClasses,
    checked_errors,
    checked_int,
    checked_mapping,
    checked_number,
    checked_row_secs,
    shown,
)
from .bounds import Bounds
from .checker import Checker, Life, SimulationError
from .faults import Faults, Injector
from .instances import Instance
from .managers import Manager
from .network import START, STEP_SECS, Kind, Network, Over, Process
from .parents import Run
from .random_components import Mistake
from .random_topology import random_topology
from .report import SimulationReport, state_of
from .user_errors import UserErrors
from .watch import Watch
from .watching import (
    WatchedBasicBolt,
    WatchedBolt,
    WatchedSpout,
    numbered,
    watched,
    watched_grouping,
)

__all__ = ["Faults", "Simulation", "SimulationError", "SimulationReport"]

#: How many message timeouts, and seconds more, everything may take once the faults have stopped.
SETTLE_TIMEOUTS: Final = 12
SETTLE_SECS: Final = 60.0
#: Steps after which a run is called endless.
MAX_STEPS: Final = 2_000_000
#: Every so many steps the invariants of the core that has just run are asserted.
CHECK_STEPS: Final = 8
#: Every so many steps, a multiple of those, pressure and pauses are compared.
PRESSURE_STEPS: Final = 32
#: Seconds that a tuple takes a component that nothing is said of.
ROW_SECS: Final = 0.00001


#: Data messages that a link to a stream manager holds: that of real sockets, or less.
HWM: Final = (16, 16, 4, 1)
#: Processes that wait for room at a time: each does so inside of the one before.
MAX_WAITING: Final = 20


class Simulation:
    """One run of a topology under failure; `Simulation(seed).run()`.

    `topology` is a builder or a built topology, each task of which runs a deep copy of the object
    that was given for it; without one the seed makes a topology. `workers` is the number of workers
    (2, or as the seed says for a topology that it makes), `conf` the topology's configuration,
    `faults` what goes wrong (else the seed says it), `row_secs` the seconds that one call of
    `execute` or `next_tuple` takes, by component. A topology that does not end by itself needs
    `drain_after`: so many seconds after the last fault every spout is ended. An exception of user
    code breaks off the run, unless its class is one of `expected_errors`: then the process that it
    ends starts again, as in a real run.

    `run` raises SimulationError when a promise is broken or user code raises. The error names the
    seed and the step, and shows the last events; the same arguments give the same run. Arguments
    that cannot be are a TypeError or ValueError.
    """

    def __init__(
        self,
        seed: int,
        topology: TopologyBuilder | StormTopology | None = None,
        workers: int | None = None,
        conf: Mapping[str, object] | None = None,
        faults: Faults | None = None,
        row_secs: Mapping[str, float] | None = None,
        drain_after: float | None = None,
        expected_errors: ErrorClasses = (),
    ) -> None:
        self.seed = checked_int("seed", seed, 0, "each of which is a run of its own")
        if workers is not None:
            checked_int("workers", workers, 1, "or leave it out for 2")
        if not isinstance(faults, Faults | None):
            raise TypeError(
                f"faults is {shown(faults)}; expected Faults(...), as in Faults(count=0) for a "
                "calm run, or None to let the seed say it"
            )
        self._drain_after = (
            None
            if drain_after is None
            else checked_number("drain_after", drain_after, "in seconds")
        )
        conf = checked_mapping("conf", conf, "configuration key to value")
        self._errors = UserErrors(checked_errors("expected_errors", expected_errors))
        self._rng = random.Random(seed)
        secs: Mapping[str, float] = {}
        if topology is None:
            topology, drawn, secs = random_topology(
                self._rng, lambda secs, call: self.network.after(secs, self._run, call)
            )
            conf = {**drawn, **conf}
            workers = workers or self._rng.randint(1, 3)
            self._errors.expect(Mistake)
        endless = {Config.STORM_PY_LOCAL_MAX_FAILURES: None}  # faults come as often as they like
        self._conf: dict[str, Any] = merge(defaults(), endless, conf)
        validate(self._conf)
        if isinstance(topology, TopologyBuilder):
            topology = topology.create_topology()
        if not isinstance(topology, StormTopology):
            raise TypeError(
                f"got {a_type(topology)} as topology; expected a TopologyBuilder or StormTopology "
                "(its configuration goes into conf=)"
            )
        self._topology = system_topology(apply_limits(topology, self._conf), self._conf)
        self.hwm = self._rng.choice(HWM)
        self._waiting = 0
        self._row_secs = {**secs, **checked_row_secs(row_secs, topology.components)}
        self.plan = make_plan(
            f"simulation-{seed}", numbered(self._topology), self._conf, workers or 2
        )
        # A topology here is small: few of its tasks would ever cease to live on grants.
        free_rows = self._rng.choice([START_ROWS, 10, 100, FREE_ROWS])
        self._limits = replace(limits(self._conf), free_rows=free_rows)
        self.network = Network(self._rng)
        acking = self._conf[Config.TOPOLOGY_ACKER_EXECUTORS] != 0
        self._checker = Checker(self.plan, acking)
        self._faults = Faults.drawn(self._rng) if faults is None else faults
        self._injector = Injector(self._faults, self.network)
        self.steps = 0
        self._bounds = Bounds(self.plan, self.network)
        self._cause: BaseException | None = None
        self._lives: dict[Instance, list[Life]] = {}
        self._deadline: float | None = None
        self._run = Run(self)

    # ---- what processes ask --------------------------------------------------------------------

    def component(self, task: int, process: Instance) -> object:
        """A watched copy of the user's object for an instance that starts."""
        life = self._checker.born(task, process.address)
        self._lives.setdefault(process, []).append(life)
        spec = self._topology.components[life.component]
        secs = self._row_secs.get(life.component, ROW_SECS)

        def spend() -> None:
            self.network.now += secs

        watch = Watch(self._checker, life, process, spend)
        return watched(copy.deepcopy(spec.component), watch)

    def groupings(self, task: int) -> CustomGroupings:
        """Copies of the user's groupings of what a task emits."""
        component = self.plan.task_to_component[task]
        return {
            (edge.stream_id, edge.consumer): watched_grouping(
                copy.deepcopy(edge.grouping.custom), self._checker, edge.consumer
            )
            for edge in self._topology.edges
            if edge.producer == component and edge.grouping.custom is not None
        }

    def limits(self) -> Limits:
        """The bounds of the queues of a stream manager."""
        return self._limits

    def complain(self, text: str) -> None:
        """A process has found something wrong."""
        self._checker.complain(text)

    def user_error(self, process: Instance, error: BaseException) -> None:
        """User code has raised; that breaks off the run, unless it may."""
        text = self._errors.happened(error, process.objects, self._run.core.phase)
        if text:
            self._wrong(text, error.__cause__ or error)

    def wait(self, ready: Callable[[], bool]) -> None:
        """A send of a process waits, in the middle of user code maybe: the others go on."""
        if self._waiting == MAX_WAITING:
            return
        self._waiting += 1
        while not ready():
            self._note(self._advance)
            if self._checker.problem:
                raise Over
        self._waiting -= 1

    # ---- the run -------------------------------------------------------------------------------

    def run(self) -> SimulationReport:
        """Run to the end of the input; raises SimulationError when a promise is broken."""
        while self._run.core.phase != "stopping":
            self.step()
        self._injector.stop()
        self._settle()
        self._let(self._end)
        return self.report()

    def step(self) -> None:
        """Deliver one message, let one process run, or let time pass until either is possible.

        Raises SimulationError for what is wrong behind that.
        """
        self._let(self._advance)

    def _let(self, act: Callable[[], None]) -> None:
        self._note(act)
        if self._checker.problem:
            raise SimulationError(self._described(self._checker.problem)) from self._cause

    def _note(self, act: Callable[[], None]) -> None:
        """Do it; what is wrong is kept, as all this may happen in the middle of user code."""
        try:
            act()
        except Over:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the run is to say where
            self._wrong(f"{type(error).__name__} in a core: {error}", error)

    def _wrong(self, text: str, cause: BaseException | None = None) -> None:
        if not self._checker.problem:
            self._cause = cause
        self.complain(text)

    def _advance(self) -> None:
        self.steps += 1
        network = self.network
        network.now += STEP_SECS
        self._step()
        if self._deadline is None and self._injector.over:
            self._faults_are_over()
        if self._deadline is not None and network.now > self._deadline:
            self._wrong(f"the run has not ended {network.now - START:.0f} s into it: it is stuck")
        if self.steps > MAX_STEPS:
            self._wrong(f"the run has not ended after {MAX_STEPS:,} steps")

    def _step(self) -> None:
        network = self.network
        self._injector.step()
        network.run_timers()
        self._checker.now = network.now
        links, processes = network.ready(), network.runnable()
        if not links and not processes:
            network.now = max(network.now, network.next_event())
            return
        chosen = self._rng.randrange(len(links) + len(processes))
        if chosen < len(links):
            link = links[chosen]
            process: Process | None = network.receiver(link)
            network.deliver(link)
        else:
            process = processes[chosen - len(links)]
            process.run()
            if process.wake_at <= network.now:  # it has done something and will go on
                network.tell("ran", process)
        self._bury()
        if isinstance(process, Manager):
            self._complain_of(self._bounds.queues(process))
        if self.steps % CHECK_STEPS == 0:
            self._check_cores(process)

    def _bury(self) -> None:
        for instance in [each for each in self._lives if not each.alive]:
            for life in self._lives.pop(instance):
                life.dead = True

    def _faults_are_over(self) -> None:
        timeout = self._conf[Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS]
        wait = self._drain_after or 0.0
        self._deadline = self.network.now + wait + SETTLE_SECS + SETTLE_TIMEOUTS * timeout
        self.network.tell("no more faults")
        if self._drain_after is not None:
            self.network.after(wait, self._run, self._run.drain)

    def _settle(self) -> None:
        """The END wave came through: let what is on its way arrive, then look at what is left."""
        until = self.network.now + SETTLE_SECS
        while self._is_busy():
            self.step()
            if self.network.now > until:
                self._wrong("messages go round for ever")
        self._let(self._check_rest)

    def _end(self) -> None:
        self._checker.check_end(not self.network.faults)
        for process in self._instances():
            process.core.close()

    def _is_busy(self) -> bool:
        """Whether something is on its way, or somebody will come up."""
        network, instances = self.network, self._instances()
        managers = [each for each in network.processes.values() if isinstance(each, Manager)]
        gone = self._run.core.gone  # it died just when all had ended
        return (
            bool(network.busy(*Kind) or network.runnable())
            or any(manager.kept for manager in managers)
            or len(instances)
            < sum(members[0].worker not in gone for members in self.plan.instances.values())
            or not all(instance.core.linked for instance in instances)
        )

    # ---- what must hold ------------------------------------------------------------------------

    def _check_cores(self, process: Process | None) -> None:
        if isinstance(process, (Instance, Manager)) and process.blocked is None:
            process.check()
        if self.steps % PRESSURE_STEPS == 0:
            self._complain_of(self._bounds.pressure())

    def _complain_of(self, problems: Iterable[str]) -> None:
        for problem in problems:
            self.complain(problem)

    def _check_rest(self) -> None:
        for process in self.network.processes.values():
            if isinstance(process, (Instance, Manager)):
                process.check()
        self._complain_of(self._bounds.rest())

    def _described(self, text: str) -> str:
        network = self.network
        pending = sum(len(life.pending) for life in self._checker.lives if not life.dead)
        lines = [
            f"seed {self.seed}, step {self.steps}, {network.now - START:.5f} s: {text}",
            f"  again: Simulation({self.seed}, ...).run() with the same arguments",
            f"  {self._faults}",
            f"  faults so far: {dict(network.faults)}",
            *state_of(network),
            *self._errors.described(),
            f"  {pending} messages unanswered, phase {self._run.core.phase}",
            "  the last events:",
            *network.shown_story(),
        ]
        return "\n".join(lines)

    # ---- looking in ----------------------------------------------------------------------------

    def _instances(self) -> list[Instance]:
        return [p for p in self.network.processes.values() if isinstance(p, Instance)]

    def components(self, component_id: str) -> list[Any]:
        """The living objects of a component, by task."""
        found = {
            task: watching.it
            for instance in self._instances()
            for task, watching in instance.objects.items()
            if isinstance(watching, (WatchedSpout, WatchedBolt, WatchedBasicBolt))
        }
        return [found[task] for task in self.plan.tasks_of(component_id) if task in found]

    def report(self) -> SimulationReport:
        """How much has happened so far."""
        most: dict[str, int] = {}
        for task, rows in self._bounds.most_rows.items():
            component = self.plan.task_to_component[task]
            most[component] = max(most.get(component, 0), rows)
        return SimulationReport(
            seed=self.seed,
            steps=self.steps,
            secs=self.network.now - START,
            faults=dict(self.network.faults),
            restarts=self._run.core.restarts,
            most_rows=most,
            entered=dict(self.network.entered),
            waits=self.network.waits,
            **self._checker.statistics(),
        )
