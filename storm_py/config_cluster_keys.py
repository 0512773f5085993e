"""The configuration keys of a cluster: its daemons, ZooKeeper, and where things live on a machine.

A part of the table that ``storm_py.config_keys`` is, by name; only `storm_py.config` imports it
besides. Clients and daemons go by these: they stand in storm.yaml and on command lines, and a
topology that sets one changes nothing. Defaults are Storm's, or it is said why not.
"""

from __future__ import annotations

from typing import Final

from .config_checks import Key, folder, host, hosts, integer, or_none, ports, znode

__all__ = ["CLUSTER_KEYS"]

_PORTS: Final = 65535
_DAY_SECS: Final = 86_400

CLUSTER_KEYS: Final = (
    Key(
        "dev.zookeeper.path",
        None,
        or_none(folder()),
        "",
        "Folder in which the ZooKeeper that storm-py starts itself keeps its data; null for "
        "zookeeper below storm.local.dir.",
        "/tmp/dev-storm-zookeeper, which is gone when the machine starts anew",
    ),
    Key(
        "nimbus.cleanup.inbox.freq.secs",
        600,
        integer(1, _DAY_SECS),
        "seconds",
        "Time between two looks of nimbus for uploads that no topology was made of.",
        "600",
    ),
    Key(
        "nimbus.inbox.jar.expiration.secs",
        3600,
        integer(1),
        "seconds",
        "Age at which an upload is removed that no topology was made of.",
        "3600",
    ),
    Key(
        "nimbus.monitor.freq.secs",
        10,
        integer(1, _DAY_SECS),
        "seconds",
        "Time between two looks of nimbus for what has died and has to be assigned anew.",
        "10",
    ),
    Key(
        "nimbus.seeds",
        ["localhost"],
        hosts(),
        "",
        "Hosts where a nimbus may run; clients ask one after the other which of them leads.",
        '["localhost"]',
    ),
    Key(
        "nimbus.supervisor.timeout.secs",
        60,
        integer(1),
        "seconds",
        "Time without a sign of life after which a supervisor counts as dead.",
        "60",
    ),
    Key(
        "nimbus.task.launch.secs",
        120,
        integer(1),
        "seconds",
        "Time that an executor may take from its assignment to its first sign of life.",
        "120",
    ),
    Key(
        "nimbus.task.timeout.secs",
        30,
        integer(1),
        "seconds",
        "Time without a sign of life after which an executor counts as dead and is assigned anew.",
        "30",
    ),
    Key(
        "nimbus.thrift.port",
        6627,
        integer(1, _PORTS),
        "",
        "Port of nimbus.",
        "6627",
    ),
    Key(
        "nimbus.topology.blobstore.deletion.delay.ms",
        300_000,
        integer(0),
        "milliseconds",
        "Time that the blobs of a topology are kept when it is gone.",
        "300000",
    ),
    Key(
        "storm.local.dir",
        "~/.local/state/storm-py",
        folder(),
        "",
        "Folder for all that the daemons of this machine keep, and for their logs.",
        "storm-local, below the folder of Storm",
    ),
    Key(
        "storm.local.hostname",
        "localhost",
        host(),
        "",
        "What others call this machine, and the address on which its daemons and workers listen. "
        "With the default nobody else can reach them.",
        "null, for the name that the system gives",
    ),
    Key(
        "storm.zookeeper.connection.timeout",
        15_000,
        integer(1),
        "milliseconds",
        "How long a daemon or command that starts waits for ZooKeeper before it gives up.",
        "15000",
    ),
    Key(
        "storm.zookeeper.port",
        2181,
        integer(1, _PORTS),
        "",
        "Port on which each of them listens.",
        "2181",
    ),
    Key(
        "storm.zookeeper.retry.interval",
        1000,
        integer(1),
        "milliseconds",
        "Wait before it is repeated for the first time; each further wait is twice as long.",
        "1000",
    ),
    Key(
        "storm.zookeeper.retry.intervalceiling.millis",
        30_000,
        integer(1),
        "milliseconds",
        "The longest of these waits.",
        "30000",
    ),
    Key(
        "storm.zookeeper.retry.times",
        5,
        integer(0),
        "attempts",
        "How often an operation that lost its connection is repeated.",
        "5",
    ),
    Key(
        "storm.zookeeper.root",
        "/storm",
        znode(),
        "",
        "Node below which everything of this cluster is; another one for each cluster that shares "
        "a ZooKeeper.",
        "/storm",
    ),
    Key(
        "storm.zookeeper.servers",
        ["localhost"],
        hosts(),
        "",
        "Hosts on which ZooKeeper runs.",
        '["localhost"]',
    ),
    Key(
        "storm.zookeeper.session.timeout",
        20_000,
        integer(1),
        "milliseconds",
        "Time without a sign of life after which ZooKeeper ends a session: others then know that "
        "a daemon is gone. ZooKeeper has limits of its own.",
        "20000",
    ),
    Key(
        "supervisor.heartbeat.frequency.secs",
        5,
        integer(1, _DAY_SECS),
        "seconds",
        "Time between two signs of life of a supervisor.",
        "5",
    ),
    Key(
        "supervisor.monitor.frequency.secs",
        3,
        integer(1, _DAY_SECS),
        "seconds",
        "Time between two looks of a supervisor at its workers.",
        "3",
    ),
    Key(
        "supervisor.slots.ports",
        [6700, 6701, 6702, 6703],
        ports(),
        "",
        "A slot for one worker each, which listens there. An empty list: this machine runs none.",
        "[6700, 6701, 6702, 6703]",
    ),
    Key(
        "supervisor.worker.shutdown.sleep.secs",
        3,
        integer(0, _DAY_SECS),
        "seconds",
        "Time that a worker that is to stop gets before it is killed.",
        "3",
    ),
    Key(
        "supervisor.worker.start.timeout.secs",
        120,
        integer(1),
        "seconds",
        "Time that a worker may take from its start to its first sign of life.",
        "120",
    ),
    Key(
        "supervisor.worker.timeout.secs",
        30,
        integer(1),
        "seconds",
        "Time without a sign of life after which a supervisor starts a worker anew.",
        "30",
    ),
    Key(
        "worker.heartbeat.frequency.secs",
        1,
        integer(1, _DAY_SECS),
        "seconds",
        "Time between two signs of life of a worker, which carry the counts that nimbus knows.",
        "1",
    ),
    Key(
        "worker.log.level.reset.poll.secs",
        30,
        integer(1, _DAY_SECS),
        "seconds",
        "Time between two looks of a worker for log levels whose time is over.",
        "30",
    ),
)
"""In the order of the documentation."""
