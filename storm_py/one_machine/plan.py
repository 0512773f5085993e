"""What a cluster of one machine consists of: the daemons, their arguments, ports and folders.

::

    <storm.local.dir>/cluster.lock      held while the cluster runs
    <storm.local.dir>/zookeeper/        or where dev.zookeeper.path says
    <storm.local.dir>/                  nimbus, as on a machine of its own
    <storm.local.dir>/supervisor-1/     a storm.local.dir for each supervisor: it is like a node

Pure: it makes no folder and asks no port.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from storm_py.config import Config, defaults, local_dir
from storm_py.errors import ConfigError

__all__ = ["HOST", "NIMBUS", "ONE_MACHINE", "ZOOKEEPER", "ClusterPlan", "Daemon", "Port", "plan"]

ZOOKEEPER: Final = "zookeeper"
NIMBUS: Final = "nimbus"
#: Where ZooKeeper listens: nobody but this machine has to reach it.
HOST: Final = "127.0.0.1"
_LAST_PORT: Final = 65535

ONE_MACHINE: Final[Mapping[str, object]] = {
    # No network loses a sign of life here: a daemon that was killed is noticed soon, and a nimbus
    # that was started again leads as soon as the session of the one before has ended. Not shorter:
    # on a machine that is merely busy a daemon must not seem dead.
    Config.STORM_ZOOKEEPER_SESSION_TIMEOUT: 5000,
}
"""Defaults of a cluster of one machine, which storm.yaml and command line override."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """One daemon: its name in messages, and the arguments of storm-py that start it."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Port:
    """A port that has to be free, and the key that chooses another one."""

    owner: str
    host: str
    number: int
    key: str


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The whole cluster."""

    local_dir: Path
    zookeeper_data: Path
    conf: Mapping[str, Any]
    zookeeper: Daemon
    nimbus: Daemon
    supervisors: tuple[Daemon, ...]
    slots: int

    @property
    def daemons(self) -> tuple[Daemon, ...]:
        """All of them, in the order of their start."""
        return (self.zookeeper, self.nimbus, *self.supervisors)

    @property
    def ports(self) -> tuple[Port, ...]:
        """All ports that have to be free. Those of slots are names: nothing listens there."""
        zookeeper, nimbus = Config.STORM_ZOOKEEPER_PORT, Config.NIMBUS_THRIFT_PORT
        return (
            Port("ZooKeeper", HOST, self.conf[zookeeper], zookeeper),
            Port("nimbus", self.conf[Config.STORM_LOCAL_HOSTNAME], self.conf[nimbus], nimbus),
        )

    @property
    def supervisor_dirs(self) -> tuple[Path, ...]:
        """The storm.local.dir of each supervisor."""
        return tuple(self.local_dir / daemon.name for daemon in self.supervisors)

    @property
    def client_options(self) -> str:
        """What other commands need on their command line to find this cluster, if anything."""
        known = defaults()
        host, port = self.conf[Config.STORM_LOCAL_HOSTNAME], self.conf[Config.NIMBUS_THRIFT_PORT]
        options = ""
        if port != known[Config.NIMBUS_THRIFT_PORT]:
            options += f" -c {Config.NIMBUS_THRIFT_PORT}={port}"
        if [host] != known[Config.NIMBUS_SEEDS]:
            options += f" -c '{Config.NIMBUS_SEEDS}={json.dumps([host])}'"
        return options


def plan(
    conf: Mapping[str, Any], inherited: Sequence[str], home: Path, supervisors: int, slots: int
) -> ClusterPlan:
    """Plan a cluster of so many supervisors with so many slots each.

    `conf` is checked; `inherited` is what of the own command line says how it came to be, and goes
    to nimbus and supervisors; `home` is what `~` stands for. ConfigError if there are not as many
    ports as slots.
    """
    folder = local_dir(conf, home)
    data = conf[Config.DEV_ZOOKEEPER_PATH]
    data_dir = folder / "zookeeper" if data is None else _expanded(str(data), home)
    port = conf[Config.STORM_ZOOKEEPER_PORT]
    arguments = ("--host", HOST, "--port", str(port), "--data", str(data_dir))
    session = Config.STORM_ZOOKEEPER_SESSION_TIMEOUT
    common = (
        *inherited,
        *_setting(Config.STORM_ZOOKEEPER_SERVERS, [HOST]),
        *_setting(session, conf[session]),
    )
    names = [f"supervisor-{number}" for number in range(1, supervisors + 1)]
    ports = _ports(conf, supervisors, slots)
    return ClusterPlan(
        folder,
        data_dir,
        conf,
        Daemon(ZOOKEEPER, ("dev-zookeeper", *arguments)),
        Daemon(NIMBUS, ("nimbus", *common, *_setting(Config.STORM_LOCAL_DIR, str(folder)))),
        tuple(
            Daemon(
                name,
                (
                    *("supervisor", "--end-workers-on-stop", *common),
                    *_setting(Config.STORM_LOCAL_DIR, str(folder / name)),
                    *_setting(Config.SUPERVISOR_SLOTS_PORTS, own),
                ),
            )
            for name, own in zip(names, ports, strict=True)
        ),
        slots,
    )


def _ports(conf: Mapping[str, Any], supervisors: int, slots: int) -> list[list[int]]:
    """The ports of each supervisor, in a row from the first of supervisor.slots.ports."""
    first = min(conf[Config.SUPERVISOR_SLOTS_PORTS], default=6700)
    last = first + supervisors * slots - 1
    if last > _LAST_PORT:
        raise ConfigError(
            f"{supervisors} supervisors with {slots} slots each would have the ports {first} to "
            f"{last}, and the last port is {_LAST_PORT}: set {Config.SUPERVISOR_SLOTS_PORTS} to "
            "begin lower, or ask for fewer"
        )
    starts = range(first, last + 1, slots)
    return [list(range(start, start + slots)) for start in starts]


def _setting(key: str, value: object) -> tuple[str, str]:
    return ("-c", f"{key}={json.dumps(value)}")


def _expanded(text: str, home: Path) -> Path:
    return home / text[2:] if text.startswith("~/") else Path(text)
