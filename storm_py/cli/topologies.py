"""The commands that act on topologies of a cluster: list, kill, activate, deactivate, rebalance.

Names and options are Storm's. What they do is nimbus' (`storm_py.nimbus`), which also judges all
that is more than a matter of form.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from storm_py.config import configuration

from .arguments import json_option, name_argument, parse_whole, whole_number
from .calls import nimbus_of, note
from .exits import Refused
from .settings import Settings, cluster_options, config_option, settings_option, storm_yaml
from .tables import table

if TYPE_CHECKING:  # slow to import
    from storm_py.rpc.interface import Nimbus

__all__ = ["activate", "deactivate", "kill", "list_topologies", "rebalance"]

#: As Storm's `list` has them, which scripts read.
_COLUMNS = (
    "Topology_name",
    "Status",
    "Num_tasks",
    "Num_workers",
    "Uptime_secs",
    "Topology_Id",
    "Owner",
)


@click.command("list")
@json_option()
@cluster_options
def list_topologies(as_json: bool, conf: dict[str, Any]) -> None:
    """List the topologies of the cluster.

    Exit code: 1 the cluster cannot be reached, 2 wrong usage, 3 refused by the cluster.
    """
    with nimbus_of(conf) as nimbus:
        summaries = sorted(nimbus.getTopologySummaries(), key=lambda summary: summary.name)
    if as_json:
        rows = [
            {
                "name": summary.name,
                "id": summary.id,
                "status": summary.status,
                "tasks": summary.num_tasks,
                "executors": summary.num_executors,
                "workers": summary.num_workers,
                "uptime_secs": summary.uptime_secs,
                "owner": summary.owner,
            }
            for summary in summaries
        ]
        click.echo(json.dumps(rows, indent=2))
    elif not summaries:
        click.echo("No topologies running.")
    else:
        cells = [
            (s.name, s.status, s.num_tasks, s.num_workers, s.uptime_secs, s.id, s.owner)
            for s in summaries
        ]
        click.echo(table(_COLUMNS, cells))
        for summary in summaries:
            if summary.sched_status:
                note(summary.sched_status)


@click.command()
@name_argument()
@click.option(
    "-w",
    "--wait-time-secs",
    "wait",
    callback=whole_number(0),
    metavar="SECS",
    help="Let tuples in flight finish for so long; by default topology.message.timeout.secs.",
)
@cluster_options
def kill(name: str, wait: int | None, conf: dict[str, Any]) -> None:
    """End the topology NAME for good.

    Its spouts emit no more; after a time its workers are stopped, and its name is free again.

    Exit code: 1 the cluster cannot be reached, 2 wrong usage, 3 refused by the cluster.
    """
    from storm_py.rpc.definitions import KillOptions

    with nimbus_of(conf, name) as nimbus:
        nimbus.killTopologyWithOpts(name, KillOptions(wait_secs=wait))
    click.echo(f"{name} is killed; its workers stop {_after(wait)}")


@click.command()
@name_argument()
@cluster_options
def activate(name: str, conf: dict[str, Any]) -> None:
    """Let the spouts of the topology NAME emit again.

    Exit code: 1 the cluster cannot be reached, 2 wrong usage, 3 refused by the cluster.
    """
    with nimbus_of(conf, name) as nimbus:
        nimbus.activate(name)
    click.echo(f"{name} is activated")


@click.command()
@name_argument()
@cluster_options
def deactivate(name: str, conf: dict[str, Any]) -> None:
    """Let the spouts of the topology NAME emit no more; what is in flight goes on.

    Exit code: 1 the cluster cannot be reached, 2 wrong usage, 3 refused by the cluster.
    """
    with nimbus_of(conf, name) as nimbus:
        nimbus.deactivate(name)
    click.echo(f"{name} is deactivated")


def _executors(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> dict[str, int]:
    asked: dict[str, int] = {}
    for text in value:
        component, equals, number = text.rpartition("=")
        executors = parse_whole(number, 1)
        if not equals or not component or executors is None:
            expected = "COMPONENT=N with a whole number of at least 1, as in count=4"
            raise click.BadParameter(f"{text!r}; expected {expected}", ctx, param)
        if component in asked:
            raise click.BadParameter(f"{component!r} is there twice", ctx, param)
        asked[component] = executors
    return asked


@click.command()
@name_argument()
@click.option(
    "-w",
    "--wait-time-secs",
    "wait",
    callback=whole_number(0),
    metavar="SECS",
    help="Let tuples in flight finish for so long; by default topology.message.timeout.secs.",
)
@click.option(
    "-n",
    "--num-workers",
    "workers",
    callback=whole_number(1),
    metavar="WORKERS",
    help="Spread it over so many workers.",
)
@click.option(
    "-e",
    "--executor",
    "executors",
    multiple=True,
    callback=_executors,
    metavar="COMPONENT=N",
    help="Run this component in N executors, at most one for each of its tasks. May be repeated.",
)
@config_option()
@settings_option()
def rebalance(
    name: str,
    wait: int | None,
    workers: int | None,
    executors: dict[str, int],
    config: str | None,
    settings: Settings,
) -> None:
    """Spread the topology NAME over the cluster anew, with other numbers of workers or executors.

    Tasks stay as they are, and so does the task of each key. Spouts pause for the time of -w.

    Exit code: 1 the cluster cannot be reached, 2 wrong usage, 3 refused by the cluster.
    """
    from storm_py.rpc.definitions import RebalanceOptions

    conf = configuration(None, dict(settings), storm_yaml(config))
    _check_settings(settings)
    options = RebalanceOptions(wait_secs=wait, num_workers=workers, num_executors=executors or None)
    with nimbus_of(conf, name) as nimbus:
        tasks = _tasks(nimbus, name) if executors else {}
        nimbus.rebalance(name, options)
    click.echo(f"{name} is rebalanced {_after(wait)}")
    for component, asked in executors.items():
        if asked > tasks.get(component, asked):
            note(
                f"{component!r} has {tasks[component]} tasks and gets an executor for each, not "
                f"{asked}; the number of tasks is chosen when a topology is submitted"
            )


def _tasks(nimbus: Nimbus, name: str) -> dict[str, int]:
    """How many tasks each component has, as far as executors are assigned."""
    from storm_py.rpc.definitions import GetInfoOptions, NumErrorsChoice

    no_errors = GetInfoOptions(num_err_choice=NumErrorsChoice.NONE)
    tasks: dict[str, int] = {}
    for executor in nimbus.getTopologyInfoByNameWithOpts(name, no_errors).executors:
        found = executor.executor_info
        number = found.task_end - found.task_start + 1
        tasks[executor.component_id] = tasks.get(executor.component_id, 0) + number
    return tasks


def _check_settings(settings: Settings) -> None:
    """Refuse what Storm would change of a topology here, and what has no effect."""
    for key, _ in settings:
        if key.startswith(("topology.", "storm_py.")):
            raise Refused(
                f"-c {key}: rebalance changes workers (-n) and executors (-e) only; for another "
                "configuration, kill the topology and submit it again"
            )


def _after(wait: int | None) -> str:
    if wait is None:
        return "after its topology.message.timeout.secs"
    return "now" if wait == 0 else f"after {wait} s"
