"""The driver of an instance that has nothing to do: it sleeps until something is for it.

In this process: a thread of the test plays the worker. Nothing but what is tested ends the sleep,
as an instance without a link sends no beats.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Iterator

import pytest
import zmq

from storm_py import BaseRichBolt, TopologyBuilder, Tuple
from storm_py.components import pack
from storm_py.config import defaults
from storm_py.core.plan import make_plan
from storm_py.runtime.folder import RunFolder, UserCode
from storm_py.runtime.instance import Instance
from storm_py.runtime.instance_spec import InstanceSpec
from storm_py.runtime.logs import RecordQueue
from storm_py.transport.zeromq import ChannelClient, ChannelServer, Context
from storm_py.wire import control
from tests.builders import TOPOLOGY_ID
from tests.integration.topologies_for_tests.idle import IdleSpout

#: The executor of the bolt, and its end of the worker's channel.
EXECUTOR, CLIENT = 1, "i1.1"


class Nothing(BaseRichBolt):
    """Gets nothing to do."""

    def execute(self, tup: Tuple) -> None:
        raise AssertionError("nobody is linked to it")


class Worker(threading.Thread):
    """Logs when the instance is up, and stops it once it has heard of that from it."""

    def __init__(self, folder: RunFolder, logger: logging.Logger) -> None:
        super().__init__(daemon=True)
        self.heard: list[control.Control] = []
        self._logger = logger
        context: Context = zmq.Context.instance()
        self._channel = ChannelServer(context, folder.worker_address(0, 1))

    def run(self) -> None:
        while not any(isinstance(record, control.LogRecord) for record in self.heard):
            self._channel.socket.poll()
            received = self._channel.receive()
            assert received is not None
            self.heard.append(control.decode(received[1]))
            if isinstance(self.heard[-1], control.Register):
                self._logger.warning("from another thread")
        self._channel.send(CLIENT, control.encode(control.Stop()))
        self._channel.close()


@pytest.fixture
def folder() -> Iterator[RunFolder]:
    """A run's folder; whatever uses it is closed behind the test."""
    builder = TopologyBuilder()
    builder.set_spout("words", IdleSpout())
    builder.set_bolt("count", Nothing()).shuffle_grouping("words")
    topology = builder.create_topology()
    made = RunFolder.create()
    packed = pack(topology)
    made.write_run(make_plan(TOPOLOGY_ID, topology, defaults(), 1), UserCode(__name__, ""), packed)
    yield made
    zmq.Context.instance().destroy(linger=0)
    made.remove()
    gc.unfreeze()


def test_a_record_that_another_thread_logs_is_not_left_until_it_wakes(folder: RunFolder) -> None:
    records = RecordQueue("count (task 1)")
    logger = logging.Logger("users")
    logger.addHandler(records)
    worker = Worker(folder, logger)
    worker.start()
    channel = ChannelClient(zmq.Context.instance(), folder.worker_address(0, 1), CLIENT)
    spec = InstanceSpec(str(folder.path), 0, 1, EXECUTOR, 1, 1, 6700)
    Instance(spec, folder, folder.read_plan(1), channel, records).run()
    worker.join()
    said = control.LogRecord(logging.WARNING, "count (task 1)", "from another thread")
    assert worker.heard[-1] == said
