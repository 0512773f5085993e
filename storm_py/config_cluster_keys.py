"""The configuration keys of a cluster: ZooKeeper, and where things live on a machine.

A part of the table that ``storm_py.config_keys`` is; nobody else imports it.
"""

from __future__ import annotations

from typing import Final

from .config_checks import Key, folder, hosts, integer, or_none, znode

__all__ = ["CLUSTER_KEYS"]

CLUSTER_KEYS: Final = (
    Key(
        "storm.local.dir",
        "~/.local/state/storm-py",
        folder(),
        "",
        "Folder for all that the daemons of this machine keep, and for their logs.",
        "storm-local, below the folder of Storm",
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
        "storm.zookeeper.port",
        2181,
        integer(1, 65535),
        "",
        "Port on which each of them listens.",
        "2181",
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
        "storm.zookeeper.session.timeout",
        20_000,
        integer(1),
        "milliseconds",
        "Time without a sign of life after which ZooKeeper ends a session: others then know that "
        "a daemon is gone. ZooKeeper has limits of its own.",
        "20000",
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
        "storm.zookeeper.retry.times",
        5,
        integer(0),
        "attempts",
        "How often an operation that lost its connection is repeated.",
        "5",
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
        "dev.zookeeper.path",
        None,
        or_none(folder()),
        "",
        "Folder in which the ZooKeeper that storm-py starts itself keeps its data; null for "
        "zookeeper below storm.local.dir.",
        "/tmp/dev-storm-zookeeper, which is gone when the machine starts anew",
    ),
)
"""In the order of the documentation."""
