"""The driver of a stream manager that keeps what another one does not take: what it says meanwhile.

It runs in a thread; the test plays its worker, the instance that sends, and the other manager.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest
import zmq

from storm_py.core.pressure import START_FRAME_ROWS, START_ROWS
from storm_py.runtime.folder import RunFolder, UserCode
from storm_py.runtime.stream_manager import StreamManager
from storm_py.transport.zeromq import ChannelServer, Context, Inlet, Outlet, ipc
from storm_py.wire import control
from tests.builders import Rows, Said, control_message, data_message, hello, in_words, rows
from tests.integration.harness import GENEROUS_SECS
from tests.manager import TWO_WORKERS

pytestmark = pytest.mark.variants

#: Of `TWO_WORKERS`: the task that is on worker 0, the one on worker 1, and who sends to both.
HERE, THERE, SOURCE = 1, 2, 3
FRAMES, ROW_BYTES = 40, 100_000
"""Far more than the sockets take, by more than the mark above which senders have to pause."""


def received(socket: zmq.Socket[bytes]) -> list[bytes]:
    """The parts of the next message."""
    assert socket.poll(int(GENEROUS_SECS * 1000)), "nothing came"
    return socket.recv_multipart()


class Peer:
    """A peer of the stream manager; it reads nothing but what the test wants to hear."""

    def __init__(self, folder: RunFolder, name: str, session: int) -> None:
        self.name = name
        self._session = session
        self._seq = 0
        context: Context = zmq.Context.instance()
        data, control_ = (ipc(folder.path / "s", f"{name}.{kind}") for kind in "dc")
        self._inlet = Inlet(context, [data], [control_], hwm=1)
        data, control_ = folder.inlet_addresses("s0", 1, 1)
        self._outlet = Outlet(context, data, control_, hwm=0)

    @property
    def address(self) -> control.Connect:
        """The order to connect to it."""
        data, control_ = self._inlet.data_addresses[0], self._inlet.control_addresses[0]
        return control.Connect(self.name, 1, data, control_)

    def greets(self) -> None:
        """Open the link both ways."""
        self.says(hello(self.name))
        self.says(control.Welcome(self.hears().session))

    def hears(self) -> Said:
        """What the stream manager says next."""
        said = in_words(False, *received(self._inlet.control))
        assert isinstance(said, Said)
        return said

    def says(self, record: control.Control) -> None:
        """Tell the stream manager something."""
        self._outlet.control.send(control_message(self._session, record))

    def sends(self, *content: Rows) -> None:
        """Send it the next message."""
        self._seq += 1
        self._outlet.data.send(data_message(self._session, self._seq, *content))


class Worker:
    """The worker of the stream manager, which runs in a thread."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._channel = ChannelServer(zmq.Context.instance(), folder.worker_address(0, 1))
        self._manager = StreamManager(folder, "127.0.0.1", 0, 1, 1, 1)
        self._thread = threading.Thread(target=self._manager.run)
        self._thread.start()
        assert isinstance(self.hears(), control.Register)

    def hears(self) -> control.Control:
        """What the stream manager says next."""
        return control.decode(received(self._channel.socket)[1])

    def order(self, order: control.Control) -> None:
        """Give an order."""
        self._channel.send("sm.1", control.encode(order))

    def stop(self) -> None:
        """Wait for the end."""
        self.order(control.Stop())
        self._thread.join()


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A worker; whatever uses the folder of its run is closed behind the test."""
    folder = RunFolder.create()
    folder.write_run(TWO_WORKERS, UserCode(__name__, ""), {})
    playing = Worker(folder)
    yield playing
    playing.stop()
    zmq.Context.instance().destroy(linger=0)
    folder.remove()
    gc.unfreeze()


@pytest.fixture
def source(worker: Worker) -> Peer:
    """The instance that sends, linked."""
    peer = Peer(worker.folder, "i3", session=33)
    worker.order(peer.address)
    peer.greets()
    return peer


@pytest.fixture
def other(worker: Worker) -> Peer:
    """The other stream manager, not linked yet."""
    return Peer(worker.folder, "s1", session=44)


def test_the_last_word_about_a_peer_that_takes_no_more_is_to_pause(
    worker: Worker, source: Peer, other: Peer
) -> None:
    large = [rows(SOURCE, THERE, ["x" * ROW_BYTES])] * FRAMES
    source.sends(*large, rows(SOURCE, HERE, ["x"]))
    while worker.hears() != control.QueueStats([HERE, SOURCE], [1, 0]):
        pass  # it reports again and again: now all has arrived, and waits for the other one
    worker.order(other.address)
    other.greets()
    about: list[control.Control] = []
    while len(about) < 3:
        record = source.hears().record
        if isinstance(record, (control.Pressure, control.Grant)) and record.task == THERE:
            about.append(record)
    pause = control.Pressure(THERE, True, START_FRAME_ROWS)
    assert about == [pause, control.Grant(THERE, START_ROWS, START_FRAME_ROWS), pause]


def test_the_worker_hears_of_traffic_that_leaves_the_queues_as_long_as_they_were(
    worker: Worker, source: Peer
) -> None:
    """It looks at its instances rarely while it hears nothing."""
    queues = control.QueueStats([HERE, SOURCE], [1, 0])
    source.sends(rows(SOURCE, HERE, ["x"]))
    while worker.hears() != queues:
        pass
    source.sends(rows(SOURCE, THERE, ["x"]))
    assert worker.hears() == queues
