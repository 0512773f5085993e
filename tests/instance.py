"""An instance core in the hands of a test, and components that do what a test tells them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any
from unittest.mock import patch

from storm_py import BaseBasicBolt, BaseRichBolt, BaseRichSpout, Tuple
from storm_py.core.plan import PhysicalPlan
from storm_py.engine.instance_core import InstanceCore
from storm_py.engine.links import Beats
from storm_py.wire.control import Control, Pressure, Welcome
from tests.builders import (
    Data,
    End,
    FakeClock,
    FakePort,
    FakeWatch,
    Numbers,
    Recorder,
    Rows,
    Said,
    control_message,
    data_message,
    hello,
    settings_of,
)

#: What a scripted component does: called with itself and, for a bolt, the tuple.
Act = Callable[..., object]


def nothing(*_: object) -> None:
    """The default act."""


class ScriptedSpout(BaseRichSpout):
    """Calls `act(self)` for next_tuple; records its life."""

    def __init__(self, recorder: Recorder, act: Act = nothing, on_open: Act = nothing) -> None:
        self.recorder = recorder
        self.act = act
        self.on_open = on_open
        self.count = 0

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.conf, self.context, self.collector = conf, context, collector
        self.recorder.add("open", context.this_task_id)
        self.on_open(self)

    def next_tuple(self) -> None:
        self.count += 1
        self.act(self)

    def ack(self, msg_id: object) -> None:
        self.recorder.add("ack", msg_id)

    def fail(self, msg_id: object) -> None:
        self.recorder.add("fail", msg_id)

    def activate(self) -> None:
        self.recorder.add("activate", self.context.this_task_id)

    def deactivate(self) -> None:
        self.recorder.add("deactivate", self.context.this_task_id)

    def close(self) -> None:
        self.recorder.add("close", self.context.this_task_id)


class ScriptedBolt(BaseRichBolt):
    """Records every tuple and calls `act(self, tup)`; at the end of input, `on_end(self)`."""

    def __init__(self, recorder: Recorder, act: Act = nothing, on_end: Act = nothing) -> None:
        self.recorder = recorder
        self.act = act
        self.on_end = on_end

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.conf, self.context, self.collector = conf, context, collector
        self.task = context.this_task_id

    def execute(self, tup: Tuple) -> None:
        self.recorder.add(self.task, tup.source_task, tup.source_stream_id, *tup.values)
        self.act(self, tup)

    def end_of_input(self) -> None:
        self.recorder.add(self.task, "end of input")
        self.on_end(self)

    def cleanup(self) -> None:
        self.recorder.add(self.task, "cleanup")


class ScriptedBasicBolt(BaseBasicBolt):
    """The same with the collector as an argument."""

    def __init__(self, recorder: Recorder, act: Act = nothing, on_end: Act = nothing) -> None:
        self.recorder = recorder
        self.act = act
        self.on_end = on_end

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        self.context = context
        self.task = context.this_task_id

    def execute(self, tup: Tuple, collector: Any) -> None:
        self.collector = collector
        self.recorder.add(self.task, tup.source_task, tup.source_stream_id, *tup.values)
        self.act(self, tup)

    def end_of_input(self, collector: Any) -> None:
        self.collector = collector
        self.recorder.add(self.task, "end of input")
        self.on_end(self)

    def cleanup(self) -> None:
        self.recorder.add(self.task, "cleanup")


class Instance:
    """One instance's core: its sessions are 501, 502, ...; its stream manager's one is 11.

    `make` makes the objects of all its tasks, or says by component what makes them.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        instance: int,
        make: Callable[[Recorder], object] | Mapping[str, Callable[[Recorder], object]],
        clock: FakeClock | None = None,
    ) -> None:
        self.recorder = Recorder()
        self.clock = clock or FakeClock()
        self.port = FakePort(self.clock)
        self.watch = FakeWatch()
        self.components = {
            task: (make if callable(make) else make[member.component_id])(self.recorder)
            for member in plan.instances[instance]
            for task in member.tasks
        }
        self.core = InstanceCore(
            plan,
            instance,
            1,
            self.components,
            settings_of(plan),
            self.port,
            Numbers(500),
            self.watch,
        )
        members = plan.instances[instance]
        self._downstream = {task for member in members for task in plan.receivers(member)}
        self.me = hello(f"i{instance}", tasks=list(self.components))

    def open(self) -> Instance:
        """Open the components and the link both ways, activate spouts."""
        self.core.open()
        self.connect()
        self.hears(11, hello("s0"))
        self.hears(11, Welcome(501))
        assert self.core.linked
        self.may_send()
        self.core.activate()
        self.recorder.take()
        return self

    def may_send(self, session: int = 11) -> None:
        """The stream manager lifts the limits that a session begins with."""
        for task in self._downstream:
            self.hears(session, Pressure(task, False, 256))

    def _does(self, call: Callable[[], object], beats: bool = False) -> list[Data | Said]:
        """What it sends, without the empty messages if these are not the matter."""
        call()
        self.core.check()
        return [sent for sent in self.port.take() if beats or isinstance(sent, Said) or sent.frames]

    def connect(self) -> list[Data | Said]:
        return self._does(self.core.connect)

    def disconnect(self) -> list[Data | Said]:
        return self._does(self.core.disconnect)

    def hears(self, session: int, record: Control) -> list[Data | Said]:
        return self._does(lambda: self.core.on_control(control_message(session, record)))

    def gets(self, session: int, seq: int, *content: Rows | End) -> list[Data | Said]:
        return self._does(lambda: self.core.on_data(data_message(session, seq, *content)))

    def works(self) -> list[Data | Said]:
        return self._does(self.core.work)

    def spins(self) -> list[Data | Said]:
        return self._does(self.core.spin)

    def flushes(self) -> list[Data | Said]:
        return self._does(self.core.flush)

    def idles(self) -> list[Data | Said]:
        return self._does(self.core.idle)

    def ticks(self, now: float) -> list[Data | Said]:
        return self._does(lambda: self.core.tick(now), beats=True)

    def on_wave(self, wave: int, drain: bool = False) -> list[Data | Said]:
        return self._does(lambda: self.core.on_wave(wave, drain))

    def done(self) -> list[tuple[object, ...]]:
        """What the components did since the last call."""
        return list(self.recorder.take())

    @property
    def due(self) -> float | None:
        """When the core wants a tick, None for never; that of a beat is not the matter."""
        with patch.object(Beats, "next", return_value=inf):
            due = self.core.next_timeout()
        return None if due == inf else due

    @property
    def only(self) -> Any:
        """The only component."""
        (component,) = self.components.values()
        return component
