"""run: a supervisor as a process of its own: its log, its signals, its ZooKeeper.

The command is `storm-py supervisor`, in `storm_py.cli`, which reads the configuration.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

from storm_py.cluster.zookeeper import ZooKeeperSettings, ZooKeeperStorage
from storm_py.config import local_dir

from .folders import LocalFolder
from .service import Supervisor
from .settings import WORKER_COMMAND, SupervisorSettings

_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run(
    conf: Mapping[str, Any],
    end_workers_on_stop: bool = False,
    command: Sequence[str] = WORKER_COMMAND,
) -> None:
    """Run a supervisor until SIGTERM or SIGINT; `conf` is a checked configuration, with defaults.

    Its workers live on, unless `end_workers_on_stop`: then they are ended before this returns, and
    the next supervisor starts them again. `command` is what runs a worker. To be called by the main
    thread. Raises LocalStateError if another supervisor has storm.local.dir, ConnectionLost if
    there is no ZooKeeper within storm.zookeeper.connection.timeout and no worker that it has to
    look after, OSError for a disk that cannot be written.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=_FORMAT)
    # It says each second that there is no connection; what that means to us is said by us, once.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    supervisor = Supervisor(
        LocalFolder(local_dir(conf, Path.home()).absolute()),
        SupervisorSettings.from_conf(conf, os.environ, command),
        lambda: ZooKeeperStorage(ZooKeeperSettings.from_conf(conf)),
    )
    with _stopped_by_signals(supervisor, end_workers_on_stop):
        supervisor.run()


@contextlib.contextmanager
def _stopped_by_signals(supervisor: Supervisor, end_workers: bool) -> Iterator[None]:
    """Have the first signal stop it in order; another one ends it at once, if no worker suffers."""
    before = {}

    def stop(number: int, frame: FrameType | None) -> None:
        supervisor.stop(end_workers)
        if not end_workers:
            for each in _SIGNALS:
                signal.signal(each, signal.SIG_DFL)

    for number in _SIGNALS:
        before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
