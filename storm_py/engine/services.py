"""TaskServices: what a running task offers user code through its `TopologyContext`.

User code sees `storm_py.api.context` alone; here is who does what that one promises. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from storm_py.api.context import TopologyContext
from storm_py.api.hooks import BaseTaskHook
from storm_py.api.metrics import Metric
from storm_py.errors import a_type

from .calls import Calls
from .hooked import Hooks
from .task_metrics import TaskMetrics


class TaskServices:
    """Those of one task; `hooked` is called once a hook was added."""

    def __init__(
        self,
        conf: Mapping[str, Any],
        calls: Calls,
        hooks: Hooks,
        metrics: TaskMetrics,
        hooked: Callable[[], None],
    ) -> None:
        self._conf = conf
        self._calls = calls
        self._hooks = hooks
        self._metrics = metrics
        self._hooked = hooked
        #: Whether open or prepare has returned.
        self.opened = False

    def call_soon(
        self,
        context: TopologyContext,
        function: Callable[..., object],
        args: tuple[object, ...],
    ) -> bool:
        """Queue a call; from any thread."""
        if not callable(function):
            raise TypeError(f"call_soon got {a_type(function)}; expected a function to call")
        return self._calls.add(context.this_component_id, context.this_task_id, function, args)

    def add_task_hook(self, context: TopologyContext, hook: BaseTaskHook) -> None:
        """Prepare a hook and call it from now on."""
        self._hooks.add(hook, self._conf, context)
        self._hooked()

    def register_metric(
        self, context: TopologyContext, name: str, metric: Metric, secs: float
    ) -> None:
        """Read a metric once per bucket."""
        if self.opened:
            raise RuntimeError(
                f"{context.this_component_id!r} registers metric {name!r} too late: metrics are "
                "registered in open or prepare"
            )
        self._metrics.register(name, metric, secs)
