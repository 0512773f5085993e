"""ZeroMQ sockets as the data plane uses them: moves bytes, knows no tuple.

Data and control travel on PUSH/PULL pairs of their own: one shared PULL inwards per process and
kind (`Inlet`), one PUSH outwards per peer, incarnation and kind (`Outlet`). A worker's control
channel is ROUTER to DEALER (`ChannelServer`, `ChannelClient`). Closing an outlet drops what it
still holds (linger 0): a session that ended must not reach the next one, and nothing that matters
is ever left to linger - whoever drains waits for a message that confirms it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import zmq

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"

#: Messages that may wait on the way from an instance to its stream manager, and between two stream
#: managers, on each side of the socket. When they are used up the sender waits or keeps the rest.
#: A frame may hold tens of kilobytes: at 32, rows of 10 kB made a stream manager grow by megabytes
#: in bursts; 8 is as fast.
UPSTREAM_HWM = 8
#: Towards instances the window of `storm_py.core.pressure` is the bound, so ZeroMQ has none.
UNBOUNDED = 0


def ipc(folder: Path, name: str) -> str:
    """An ipc address; too long a path is an error that says which."""
    path = str(folder / name)
    if len(path.encode()) > 107:
        raise ValueError(f"socket path {path} is longer than the 107 bytes that Linux allows")
    return f"ipc://{path}"


def _socket(context: Context, kind: int, hwm: int) -> zmq.Socket[bytes]:
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, hwm)
    socket.setsockopt(zmq.RCVHWM, hwm)
    return socket


class Inlet:
    """The PULL sockets of one process: `data` and `control`, each bound to every address given."""

    def __init__(
        self,
        context: Context,
        data: list[str],
        control: list[str],
        hwm: int,
    ) -> None:
        self.data = _socket(context, zmq.PULL, hwm)
        self.control = _socket(context, zmq.PULL, UNBOUNDED)
        self.data_addresses = [_bind(self.data, address) for address in data]
        self.control_addresses = [_bind(self.control, address) for address in control]

    def close(self) -> None:
        """Close both sockets; what waits in them is dropped."""
        self.data.close(0)
        self.control.close(0)


def _bind(socket: zmq.Socket[bytes], address: str) -> str:
    socket.bind(address)
    bound = socket.getsockopt(zmq.LAST_ENDPOINT)
    if not isinstance(bound, bytes):
        raise TypeError(f"LAST_ENDPOINT is {bound!r}")
    return bound.rstrip(b"\0").decode()


class Outlet:
    """The PUSH sockets to one incarnation of one peer."""

    def __init__(self, context: Context, data: str, control: str, hwm: int) -> None:
        self.data = _socket(context, zmq.PUSH, hwm)
        self.control = _socket(context, zmq.PUSH, UNBOUNDED)
        self.data.connect(data)
        self.control.connect(control)

    def close(self) -> None:
        """Close both sockets; what they hold is dropped."""
        self.data.close(0)
        self.control.close(0)


class ChannelServer:
    """The ROUTER end of a control channel: clients are known by their identity."""

    def __init__(self, context: Context, address: str) -> None:
        self.socket = _socket(context, zmq.ROUTER, UNBOUNDED)
        self.socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self.socket.bind(address)

    def send(self, identity: str, message: bytes) -> None:
        """Send to a client; dropped if it is gone, as its death will be noticed elsewhere."""
        self.socket.send_multipart([identity.encode(), message])

    def receive(self) -> tuple[str, bytes] | None:
        """The next message and its sender, None if there is none now."""
        try:
            identity, message = self.socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None
        return identity.decode(), message

    def close(self) -> None:
        """Close the socket."""
        self.socket.close(0)


class ChannelClient:
    """The DEALER end of a control channel."""

    def __init__(self, context: Context, address: str, identity: str) -> None:
        self.socket = _socket(context, zmq.DEALER, UNBOUNDED)
        self.socket.setsockopt(zmq.IDENTITY, identity.encode())
        self.socket.connect(address)

    def send(self, message: bytes) -> None:
        """Send to the server; waits in the socket until it is reached."""
        self.socket.send(message)

    def receive(self) -> bytes | None:
        """The next message, None if there is none now."""
        try:
            return self.socket.recv(zmq.NOBLOCK)
        except zmq.Again:
            return None

    def close(self, linger_secs: float) -> None:
        """Close the socket; last reports get this long to leave."""
        self.socket.close(int(linger_secs * 1000))
