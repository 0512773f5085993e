"""RunningTask: one user object, its collector and its outputs; what spouts and bolts share.

The two kinds are in `storm_py.engine.tasks`. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, NoReturn

from storm_py.api.context import TopologyContext
from storm_py.api.registered import hook_class
from storm_py.api.tuples import Tuple
from storm_py.config import Config
from storm_py.constants import RESERVED_PREFIX
from storm_py.core.batching import Batcher, OpenBatch
from storm_py.core.pending import PendingTuples
from storm_py.core.plan import NO_CUSTOM, CustomGroupings, PhysicalPlan
from storm_py.core.roots import Roots

from .acking import Acks
from .calls import Calls
from .custom import preparations
from .emitters import TaskOutput
from .hooked import Hooks
from .reports import Reports
from .services import TaskServices
from .settings import Settings
from .system import users_part
from .task_metrics import TaskMetrics
from .user_code import UserError, call_user

NOT_A_SPOUT: Final = (
    "spouts end their input; a bolt defines a method end_of_input, called behind its last tuple"
)


class Collector:
    """The object that user code emits with; its methods are those built for the task."""

    def __init__(self, output: TaskOutput, report_error: Callable[[BaseException], None]) -> None:
        self.emit: Callable[..., tuple[int, ...]] = output.emit
        self.emit_direct: Callable[..., None] = output.emit_direct
        self.report_error = report_error


class NotHere:
    """A method that other collectors have: to ask for it says what to do instead.

    An attribute of the class, so that nothing is paid for the methods that are there; `hasattr`
    says no.
    """

    __slots__ = ("_instead", "_name")

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, collector: Collector, owner: type) -> NoReturn:
        raise AttributeError(f"this collector has no {self._name}: {self._instead}")


class SpoutCollector(Collector):
    """A spout's."""

    ack = NotHere("bolts ack tuples; the spout is told by a call of its own method ack(msg_id)")
    fail = NotHere("bolts fail tuples; the spout is told by a call of its own method fail(msg_id)")

    def __init__(
        self,
        output: TaskOutput,
        report_error: Callable[[BaseException], None],
        end_of_input: Callable[[], None],
    ) -> None:
        super().__init__(output, report_error)
        self.end_of_input = end_of_input


class BasicCollector(Collector):
    """A basic bolt's, without ack and fail: its task acks behind execute, once."""

    ack = NotHere(
        "a BaseBasicBolt acks its tuple by itself, behind execute; extend BaseRichBolt to ack"
    )
    fail = NotHere(
        "a BaseBasicBolt fails its tuple by raising FailedException; extend BaseRichBolt to fail"
    )
    reset_timeout = NotHere("extend BaseRichBolt to hold tuples for longer than execute takes")
    end_of_input = NotHere(NOT_A_SPOUT)


class BoltCollector(Collector):
    """A rich bolt's."""

    end_of_input = NotHere(NOT_A_SPOUT)

    def __init__(
        self,
        output: TaskOutput,
        report_error: Callable[[BaseException], None],
        acks: Acks | None,
    ) -> None:
        super().__init__(output, report_error)
        self.ack: Callable[[Tuple], None] = nobody_to_tell if acks is None else acks.ack
        self.fail: Callable[[Tuple], None] = nobody_to_tell if acks is None else acks.fail
        self.reset_timeout = nobody_to_tell if acks is None else acks.reset_timeout


def nobody_to_tell(tup: Tuple) -> None:
    """Without acking nothing is tracked."""


class RunningTask:
    """What spout and bolt tasks have in common."""

    output_class: ClassVar[type[TaskOutput]] = TaskOutput
    output: TaskOutput
    _collector: Collector

    def __init__(
        self,
        plan: PhysicalPlan,
        task: int,
        component: object,
        settings: Settings,
        due: Callable[[OpenBatch, int], None],
        reports: Reports,
        acks: Acks | None,
        clock: Callable[[], float],
        calls: Calls,
        groupings: CustomGroupings = NO_CUSTOM,
        log: Callable[[str], None] | None = None,
    ) -> None:
        component_id = plan.task_to_component[task]
        executor = plan.executor_of(task)
        spec = plan.topology.components[component_id]
        self._is_system = component_id.startswith(RESERVED_PREFIX)
        topology = plan.topology if self._is_system else users_part(plan.topology)
        users = topology.components[component_id]
        self.task = task
        self.executor = executor.id
        self.wave = 0
        self.ended = False
        self.failed = False
        #: Rows executed, and rows sent or handed over, once for each receiving task.
        self.executed = self.transferred = 0
        self._reports = reports
        self._report = reports.send
        self.acks = acks
        self.conf = {**settings.conf, **spec.config}
        self.pending = PendingTuples(
            self.conf[Config.TOPOLOGY_MAX_SPOUT_PENDING],
            self.conf[Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS],
            clock(),
        )
        batcher = Batcher(
            plan.downstream_tasks(component_id),
            settings.batch_rows,
            min(settings.batch_bytes, settings.max_frame_bytes),
            plan.handed(executor),
        )
        self._style = self._style_of(component)
        self._targets = plan.targets(component_id, executor, groupings)
        self.output = self.output_class(
            component_id,
            task,
            self._style,
            users.streams,
            self._targets,
            batcher,
            settings.key_groups,
            settings.max_frame_bytes,
            lambda batch: due(batch, task),
            acks,
            None if acks is None or spec.kind == "bolt" else Roots(task, acks.rng),
            self.pending,
            settings.codec,
            log if self.conf[Config.TOPOLOGY_DEBUG] else None,
            self.conf[Config.TOPOLOGY_TESTING_ALWAYS_TRY_SERIALIZE],
        )
        self.component_id = component_id
        self.hooks = Hooks(component_id, task, clock)
        self.metrics = TaskMetrics(
            plan,
            task,
            settings.worker_port,
            batcher,
            lambda batch: due(batch, task),
            settings.max_frame_bytes,
            settings.codec,
        )
        self._hooked = False
        self._services = TaskServices(
            self.conf, calls, self.hooks, self.metrics, self._install_hooks
        )
        self.context = TopologyContext(
            plan.topology_id,
            topology,
            plan.task_to_component,
            task,
            settings.worker_port,
            tuple(t for e in plan.on_worker(executor.worker) for t in e.tasks),
            self.conf,
            self._services,
        )

    def _style_of(self, component: object) -> str:
        return "spout"

    def open(self) -> None:
        """Call open or prepare; custom groupings and the configuration's hooks are ready before."""
        for where, prepare in preparations(self.component_id, self._targets, self.context):
            self._call(where, prepare)
        if not self._is_system:
            for path in self.conf[Config.TOPOLOGY_AUTO_TASK_HOOKS] or ():
                self._call(Config.TOPOLOGY_AUTO_TASK_HOOKS, self._add_auto_hook, path)
        self._open()
        self._services.opened = True

    def _open(self) -> None:
        raise NotImplementedError

    def _add_auto_hook(self, path: str) -> None:
        self._services.add_task_hook(self.context, hook_class(path)())

    def _install_hooks(self) -> None:
        """There is a hook: from now on the collector's methods are those that call hooks."""
        if not self._hooked:
            self._hooked = True
            made, hooks = self._collector, self.hooks
            made.emit, made.emit_direct = hooks.emits(self._style, made.emit, made.emit_direct)
            if isinstance(made, BoltCollector):
                made.ack, made.fail = hooks.ack(made.ack), hooks.fail(made.fail)

    def close(self) -> None:
        """Call close or cleanup, then the cleanup of hooks; best effort, as in Storm."""
        self._close()
        self.hooks.cleanup(self._report)

    def _close(self) -> None:
        raise NotImplementedError

    def report_error(self, error: BaseException) -> None:
        """Show an error of user code without ending anything."""
        found = UserError(self.component_id, self.task, "report_error", error)
        self._reports.throttled(found.report(fatal=False))

    def _call(self, where: str, function: Callable[..., object], *args: object) -> None:
        call_user(self.component_id, self.task, where, function, *args)

    def _call_quietly(self, where: str, function: Callable[..., object], *args: object) -> bool:
        """Call and report instead of raising; False if it raised."""
        try:
            self._call(where, function, *args)
        except UserError as error:
            self._report(error.report(fatal=False))
            return False
        return True
