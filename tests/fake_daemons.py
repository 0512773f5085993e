"""Nimbus and supervisors that only register, for tests of what keeps daemons alive.

A program with the arguments of storm-py: `python tests/fake_daemons.py nimbus -c KEY=VALUE`...
ZooKeeper is the real one. A file `<daemon>.dies` in FAKE_DAEMONS, a folder, lets a daemon die.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import click

from storm_py.cli import main
from storm_py.cluster.records import NimbusSummary, SupervisorInfo
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.cluster.zookeeper import ZooKeeperSettings, ZooKeeperStorage
from storm_py.config import Config, configuration, parse_assignment

FOLDER_VARIABLE = "FAKE_DAEMONS"


def run(kind: str, conf: dict[str, Any]) -> None:
    """Register, and stay until a signal comes."""
    local_dir = Path(conf[Config.STORM_LOCAL_DIR])
    name = kind if kind == "nimbus" else local_dir.name
    if Path(os.environ[FOLDER_VARIABLE], f"{name}.dies").exists():
        click.echo(f"the last words of {name}")
        sys.exit(1)
    numbers = {signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    storage = ZooKeeperStorage(ZooKeeperSettings.from_conf(conf))
    storage.start()
    state = ClusterState(storage)
    now = int(time.time())
    if kind == "nimbus":
        port = conf[Config.NIMBUS_THRIFT_PORT]
        state.set_leader_info(NimbusSummary("localhost", port, now, "1"))
    else:
        ports = tuple(conf[Config.SUPERVISOR_SLOTS_PORTS])
        info = SupervisorInfo(now, "localhost", name, (), ports, 0, "1")
        state.supervisor_heartbeat(name, info)
    click.echo(f"{kind} has registered, as WARNING says")
    signal.sigwait(numbers)
    click.echo(f"{name} ends in order")
    storage.close()


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "dev-zookeeper":
        main([command, *arguments])
    pairs = itertools.pairwise(arguments)
    settings = [parse_assignment(value) for flag, value in pairs if flag == "-c"]
    run(command, configuration(None, dict(settings)))
