"""What spies share: the log of what they see, and how they stand in for a component.

The spies themselves are in `storm_py.testing.spies`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

from storm_py.api.component import BaseRichSpout, Bolt
from storm_py.api.context import TopologyContext
from storm_py.api.tuples import Tuple

__all__ = ["Answer", "Emitted", "Log", "Received", "Spying"]


@dataclass(frozen=True, slots=True)
class Emitted:
    """One emit of a component: where from, what, and which tasks it went to."""

    component: str
    task: int
    stream: str
    values: list[Any]
    #: A spout's message id; None for an emit that is not tracked, and for bolts.
    msg_id: object
    #: What a bolt anchored it to; a basic bolt's own input tuple.
    anchors: tuple[Tuple, ...]
    #: The tasks it went to; empty if nobody subscribes to the stream.
    tasks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Received:
    """One tuple that a bolt was given, with its values as they were then."""

    component: str
    task: int
    values: list[Any]
    tuple: Tuple


@dataclass(frozen=True, slots=True)
class Answer:
    """A message id that a spout was told about."""

    component: str
    task: int
    msg_id: object


@dataclass(slots=True)
class Log:
    """Everything that was seen, in order."""

    emitted: list[Emitted] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    acked: list[Answer] = field(default_factory=list)
    failed: list[Answer] = field(default_factory=list)
    #: what left a hook whose errors the engine only reports
    raised: list[tuple[str, BaseException]] = field(default_factory=list)

    def clear(self) -> None:
        """Forget everything."""
        for seen in (self.emitted, self.received, self.acked, self.failed, self.raised):
            seen.clear()


def _call(component: object, hook: str, *args: object) -> object:
    return getattr(component, hook)(*args)


class Spying:
    """What spies on components of all kinds have in common."""

    component_id = ""
    task = 0

    def __init__(self, component: Any, log: Log) -> None:
        self.component = component
        self.log = log
        base = next(b for b in (BaseRichSpout, *get_args(Bolt)) if isinstance(self, b))
        for name, hook in inspect.getmembers(base, inspect.isfunction):
            if not name.startswith("_") and getattr(type(self), name) is hook:
                # Looked up at each call, so that a test may replace a hook of its object.
                setattr(self, name, partial(_call, component, name))

    def begin(self, context: TopologyContext) -> None:
        self.component_id = context.this_component_id
        self.task = context.this_task_id

    def emitted(
        self,
        values: Sequence[object],
        stream: str,
        tasks: Sequence[int],
        msg_id: object = None,
        anchors: Any = None,
    ) -> None:
        found = () if anchors is None else anchors
        found = (found,) if isinstance(found, Tuple) else tuple(found)
        row = copy.deepcopy(list(values))
        self.log.emitted.append(
            Emitted(self.component_id, self.task, stream, row, msg_id, found, tuple(tasks))
        )

    def received(self, tup: Tuple) -> None:
        row = copy.deepcopy(list(tup.values))
        self.log.received.append(Received(self.component_id, self.task, row, tup))

    def watch(self, hook: str, *args: object) -> None:
        """Call a hook of the component whose errors the engine only reports, and note them."""
        try:
            getattr(self.component, hook)(*args)
        except (Exception, SystemExit) as error:
            self.log.raised.append((f"{self.component_id!r} (task {self.task}), {hook}", error))
            raise
