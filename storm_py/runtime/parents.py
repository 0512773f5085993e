"""Parent: whoever runs a worker, as `storm_py.runtime.worker` sees it.

In local mode that is the process of the run, at the other end of a channel; on a cluster it is
ZooKeeper and the worker itself (`storm_py.runtime.cluster_parent`).
"""

from __future__ import annotations

from typing import Protocol

import zmq

from storm_py.transport.zeromq import ChannelClient, Context
from storm_py.wire import control

from .folder import RunFolder
from .slot import Slot


class Parent(Protocol):
    """Gives orders and gets reports; for the worker's thread, whose sleep it ends."""

    @property
    def source(self) -> zmq.Socket[bytes] | int:
        """What to poll: readable if there may be orders."""
        ...

    def send(self, record: control.Control) -> None:
        """Take a report; does not block."""
        ...

    def receive(self) -> control.Control | None:
        """The next order, None if there is none now."""
        ...

    def next_timeout(self) -> float | None:
        """When `tick` should be called next, None for never."""
        ...

    def tick(self, now: float) -> None:
        """Do what is due."""
        ...

    def close(self) -> None:
        """Take leave; what was sent last still gets through, if that does not take long."""
        ...


class ChannelParent:
    """The process that runs a topology in local mode."""

    def __init__(self, context: Context, folder: RunFolder, slot: Slot) -> None:
        identity = f"w{slot.worker}.{slot.incarnation}"
        self._channel = ChannelClient(context, folder.parent_address, identity)

    @property
    def source(self) -> zmq.Socket[bytes] | int:
        """The socket."""
        return self._channel.socket

    def send(self, record: control.Control) -> None:
        """Send it."""
        self._channel.send(control.encode(record))

    def receive(self) -> control.Control | None:
        """Take what has come."""
        order = self._channel.receive()
        return None if order is None else control.decode(order)

    def next_timeout(self) -> float | None:
        """Nothing is ever due."""
        return None

    def tick(self, now: float) -> None:
        """Nothing is ever due."""

    def close(self) -> None:
        """Close the socket."""
        self._channel.close(linger_secs=2.0)
