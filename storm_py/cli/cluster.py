"""`storm-py cluster`: ZooKeeper, nimbus and supervisors of one machine, in this terminal.

Reads the command line; the cluster itself is `storm_py.one_machine`.
"""

from __future__ import annotations

import json

import click

from storm_py.config import configuration

from .exits import INTERRUPTED
from .settings import Settings, config_option, home, settings_option, storm_yaml

__all__ = ["cluster"]


@click.command()
@click.option(
    "--supervisors",
    type=click.IntRange(1, 100),
    default=1,
    metavar="N",
    help="Run so many supervisors, each as if it were a machine of its own; by default 1.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 1000),
    default=4,
    metavar="N",
    help="Workers that each supervisor may run, by default 4. Their ports are in a row from the "
    "first one of supervisor.slots.ports.",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="Begin without the topologies and the data of the cluster that ran here before; its logs "
    "stay.",
)
@config_option()
@settings_option()
@click.pass_context
def cluster(
    ctx: click.Context,
    supervisors: int,
    slots: int,
    fresh: bool,
    config: str | None,
    settings: Settings,
) -> None:
    """Run a whole cluster on this machine, until Ctrl-C.

    That is ZooKeeper, nimbus and supervisors, with all that they say in this terminal. What they
    store is below storm.local.dir and is kept: topologies run on at the next start. Ctrl-C ends
    workers and daemons in order; a second one kills them.

    Exit code: 1 it could not be started or a daemon kept dying, 2 wrong usage, 130 interrupted.
    """
    from storm_py.one_machine.output import MergedLog, StdoutConsole
    from storm_py.one_machine.plan import ONE_MACHINE, plan
    from storm_py.one_machine.run import ClusterRun

    conf = configuration(None, dict(settings), {**ONE_MACHINE, **storm_yaml(config)})
    inherited = [] if config is None else ["--config", config]
    for key, value in settings:
        inherited += ["-c", f"{key}={json.dumps(value)}"]
    planned = plan(conf, inherited, home(), supervisors, slots)
    log = MergedLog(StdoutConsole(), [daemon.name for daemon in planned.daemons])
    log.say(f"starting; data is in {planned.local_dir}, logs of workers in supervisor-*/logs there")
    ClusterRun(planned, log).run(fresh)
    ctx.exit(INTERRUPTED)
