"""The daemon nimbus: `run` is what the command calls, and returns when it is told to end.

It connects to ZooKeeper, listens, takes part in the election, and ends in order on SIGTERM and
SIGINT. Of its address only one can be: whoever finds the port taken is told so.
"""

from __future__ import annotations

import fcntl
import logging
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from storm_py import __version__
from storm_py.cluster.records import NimbusSummary
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.cluster.zookeeper import ZooKeeperSettings, ZooKeeperStorage
from storm_py.config import Config, local_dir
from storm_py.errors import RpcError, StormPyError
from storm_py.rpc.limits import TOLD_CONNECTIONS, Limits
from storm_py.rpc.server import ThriftServer

from .data import NimbusData
from .downloads import MOST
from .handler import NimbusHandler
from .service import NimbusService

__all__ = ["run"]

_LOG = logging.getLogger("storm_py.nimbus")

_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"
_LOCK: Final = "lock"
#: How soon somebody who waits for ZooKeeper notices that he is told to end.
_LOOK_SECS: Final = 0.1
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
#: What calls that run get to end when nimbus is told to.
_STOP_SECS: Final = 5.0
#: Files that may be open besides those of the connections that are served.
_OTHER_FILES: Final = TOLD_CONNECTIONS + MOST + 128


def run(conf: Mapping[str, Any]) -> None:
    """Be a nimbus until SIGTERM or SIGINT; on the main thread.

    `conf` is checked, with all defaults. Raises StormPyError if it cannot start: the port is taken,
    no ZooKeeper answers, the disk refuses. Logs to stderr unless logging has been set up.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=_FORMAT)
    logging.getLogger("kazoo").setLevel(logging.ERROR)  # it tells of each attempt to connect
    storage = ZooKeeperStorage(ZooKeeperSettings.from_conf(conf))
    host, port = conf[Config.STORM_LOCAL_HOSTNAME], conf[Config.NIMBUS_THRIFT_PORT]
    me = NimbusSummary(host, port, int(time.time()), __version__)
    folder = local_dir(conf, Path.home()) / "nimbus"
    data = NimbusData.make(conf, me, ClusterState(storage), folder, time.monotonic, time.time)
    service = NimbusService(data, storage)
    handler = NimbusHandler(data, service, service.complaint)
    server = ThriftServer(handler, host, port, limits=_limits(conf), name="nimbus")
    with _until_told(service.stop), _alone(folder), ExitStack() as stack:
        data.inbox.clean()
        data.blobs.check()
        stack.callback(data.downloads.close)
        stack.callback(server.stop, _STOP_SECS)
        _listen(server)
        _LOG.info("nimbus listens at %s, and looks for ZooKeeper at %s", me.nimbus_id, _zk(conf))
        if _connected(storage, service):
            stack.callback(storage.close)
            stack.callback(server.stop, _STOP_SECS)  # calls that run have use for the connection
            service.run()
    _LOG.info("nimbus at %s has ended", me.nimbus_id)


def _limits(conf: Mapping[str, Any]) -> Limits:
    """What clients may do; idle ones must not take the files that nimbus itself has to open."""
    limits = Limits.of(conf)
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + _OTHER_FILES
    if files < wanted:
        files = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    if files >= wanted:
        return limits
    connections = max(files - _OTHER_FILES, files // 4)
    _LOG.warning("at most %d files may be open: %d connections are served", files, connections)
    return replace(limits, connections=connections)


def _listen(server: ThriftServer) -> None:
    try:
        server.start()
    except RpcError as error:
        raise RpcError(
            f"{error}; the address is storm.local.hostname, the port nimbus.thrift.port"
        ) from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder as the only nimbus that uses it."""
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StormPyError(
                f"another nimbus uses {folder}: stop it, or have storm.local.dir name another "
                "folder for this one"
            ) from None
        yield


def _connected(storage: ZooKeeperStorage, service: NimbusService) -> bool:
    """Wait for ZooKeeper; False if nimbus is told to end before. ConnectionLost if none answers.

    An attempt cannot be interrupted: it is left to a thread that the process does not wait for.
    """
    outcome: Future[None] = Future()

    def connect() -> None:
        try:
            storage.start()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised below
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=connect, name="zookeeper-connect", daemon=True).start()
    while not service.stopping:
        if wait([outcome], _LOOK_SECS).done:
            outcome.result()
            return True
    return False


def _zk(conf: Mapping[str, Any]) -> str:
    return ZooKeeperSettings.from_conf(conf).hosts


@contextmanager
def _until_told(stop: Callable[[], None]) -> Iterator[None]:
    """Have the signals that end a daemon call this."""
    before = {number: signal.signal(number, lambda *_: stop()) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
