"""The driver of an instance whose socket is full: it hears of a death, and its user code ends.

In this process: the spout itself plays the worker and the stream manager, from inside of its calls.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
import zmq

from storm_py import BaseRichSpout, TopologyBuilder
from storm_py.components import pack
from storm_py.config import defaults
from storm_py.core.plan import PhysicalPlan, make_plan
from storm_py.runtime.folder import RunFolder, UserCode
from storm_py.runtime.instance import Instance
from storm_py.runtime.instance_spec import InstanceSpec
from storm_py.runtime.logs import RecordQueue
from storm_py.testing import CapturingBolt
from storm_py.transport.zeromq import ChannelClient, ChannelServer, Context, Inlet, Outlet, ipc
from storm_py.wire import control
from tests.builders import TOPOLOGY_ID, Said, control_message, hello, in_words

#: The executor of the spout, task 2, and its end of the worker's channel.
EXECUTOR, CLIENT = 2, "i2.1"
ROW_BYTES, ROWS = 100_000, 40


class Around:
    """What is around the instance: a worker, and a stream manager that reads no data."""

    def __init__(self, folder: RunFolder, plan: PhysicalPlan) -> None:
        context: Context = zmq.Context.instance()
        self.worker = ChannelServer(context, folder.worker_address(0, 1))
        self.channel = ChannelClient(context, folder.worker_address(0, 1), CLIENT)
        self.channel.send(b"")
        self.worker.socket.poll()  # now it is known by its name
        self.inlet = Inlet(
            context, [ipc(folder.path / "s", "data")], [ipc(folder.path / "s", "control")], 1
        )
        data, control_ = folder.inlet_addresses(f"i{EXECUTOR}", 1, 1)
        self.outlet = Outlet(context, data, control_, 0)

    def order(self, *orders: control.Control) -> None:
        """The worker gives these orders."""
        for order in orders:
            self.worker.send(CLIENT, control.encode(order))

    def connect(self) -> None:
        """The worker orders to connect to the stream manager, and to go."""
        addresses = (self.inlet.data_addresses[0], self.inlet.control_addresses[0])
        self.order(control.Connect("stmgr", 1, *addresses), control.Activate())

    def welcome(self) -> None:
        """The stream manager answers a Hello and lets the spout send."""
        said = in_words(False, self.inlet.control.recv())
        assert isinstance(said, Said)
        for record in (
            hello("s0"),
            control.Welcome(said.session),
            control.Pressure(1, False, 256),
        ):
            self.outlet.control.send(control_message(77, record))

    def die(self) -> None:
        """The stream manager dies."""
        self.order(control.Disconnect("stmgr", 1))


class Flooding(BaseRichSpout):
    """Emits a row at a time, until it emits more than there is room for."""

    around: ClassVar[Around]
    events: ClassVar[list[object]]

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("text")

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.calls = 0

    def activate(self) -> None:
        self.around.welcome()

    def next_tuple(self) -> None:
        self.calls += 1
        if self.calls == 4:  # the first call of a burst of four
            self.around.die()
            for n in range(ROWS):
                self.collector.emit(["x" * ROW_BYTES], n)
        else:
            self.collector.emit(["x"], f"row {self.calls}")
        self.events.append(f"call {self.calls} returns")

    def fail(self, msg_id: object) -> None:
        self.events.append(msg_id)
        self.around.order(control.Stop())


@pytest.fixture
def folder() -> Iterator[RunFolder]:
    """A run's folder; whatever uses it is closed behind the test."""
    made = RunFolder.create()
    yield made
    zmq.Context.instance().destroy(linger=0)
    made.remove()
    gc.unfreeze()


def test_a_death_that_it_hears_of_ends_its_burst_and_then_all_that_is_pending_fails(
    folder: RunFolder,
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("flooding", Flooding())
    builder.set_bolt("end", CapturingBolt()).shuffle_grouping("flooding")
    topology = builder.create_topology()
    plan = make_plan(TOPOLOGY_ID, topology, {**defaults(), "storm_py.batch.rows": 1}, workers=1)
    folder.write_run(plan, UserCode(__name__, ""), pack(topology))
    events: list[object] = []
    Flooding.events = events
    Flooding.around = around = Around(folder, plan)
    spec = InstanceSpec(str(folder.path), 0, 1, EXECUTOR, 1, 1, 6700)
    instance = Instance(spec, folder, plan, around.channel, RecordQueue("flooding"))
    around.connect()
    instance.run()
    assert events == [
        *(f"call {n} returns" for n in range(1, 5)),
        *(f"row {n}" for n in range(1, 4)),
        *range(ROWS),
    ]
