"""`storm-py get-errors`: what went wrong in the components of a topology, as nimbus knows it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from .arguments import json_option, name_argument
from .calls import nimbus_of
from .settings import cluster_options

if TYPE_CHECKING:  # slow to import
    from storm_py.rpc.summaries import ErrorInfo, TopologyInfo

__all__ = ["get_errors"]


@click.command("get-errors")
@name_argument()
@json_option()
@cluster_options
def get_errors(name: str, as_json: bool, conf: dict[str, Any]) -> None:
    """Show the last errors of each component of the topology NAME, the newest first.

    Exit code: 1 the cluster cannot be reached, 2 wrong usage, 3 refused by the cluster.
    """
    from storm_py.rpc.definitions import GetInfoOptions, NumErrorsChoice

    options = GetInfoOptions(num_err_choice=NumErrorsChoice.ALL)
    with nimbus_of(conf, name) as nimbus:
        info = nimbus.getTopologyInfoByNameWithOpts(name, options)
    errors = {
        component: sorted(found, key=lambda error: -error.error_time_secs)
        for component, found in sorted(info.errors.items())
        if found
    }
    if as_json:
        click.echo(json.dumps(_plain(info, errors), indent=2))
    elif not errors:
        click.echo(f"no errors of {name}")
    for component, found in {} if as_json else errors.items():
        for error in found:
            click.echo(_words(component, error))


def _plain(info: TopologyInfo, errors: dict[str, list[ErrorInfo]]) -> dict[str, object]:
    """As Storm's command prints it, with the newest of each component; and all of them besides."""
    return {
        "Topology Name": info.name,
        "Comp-Errors": {component: found[0].error for component, found in errors.items()},
        "errors": [
            {
                "component": component,
                "time_secs": error.error_time_secs,
                "host": error.host,
                "port": error.port,
                "error": error.error,
            }
            for component, found in errors.items()
            for error in found
        ],
    }


def _words(component: str, error: ErrorInfo) -> str:
    when = datetime.fromtimestamp(error.error_time_secs).isoformat(" ")
    where = "" if error.host is None else f"  {error.host}:{error.port}"
    text = "\n".join(f"  {line}" for line in error.error.rstrip().splitlines())
    return f"{component}  {when}{where}\n{text}"
