"""The command line: `main` is the program `storm-py`, one module per command.

It reads arguments and environment, calls the rest of storm_py and turns what that raises into one
message and an exit code: 0 done, 1 the run failed, 2 wrong usage, 3 refused by the cluster, 130
interrupted. A mistake of a user never shows a traceback of storm_py. `storm-py --help` has to be
quick: what is slow to import is imported inside the commands. What a run looks like is in
`storm_py.cli.display`.
"""

from __future__ import annotations

import json
import platform
from typing import Any

import click

from storm_py import __version__
from storm_py.errors import (
    ConfigError,
    InvalidTopologyException,
    PackingError,
    StormPyError,
    TopologyLoadError,
)

from .cluster import cluster
from .daemons import nimbus, supervisor
from .dev_zookeeper import dev_zookeeper
from .exits import Failed, Interrupted, Refused
from .get_errors import get_errors
from .local import local
from .log_levels import set_log_level
from .logs import logs
from .monitor import monitor
from .submit import submit
from .topologies import activate, deactivate, kill, list_topologies, rebalance

__all__ = ["main"]


class _Program(click.Group):
    """The group of all commands, and the only place where errors become exit codes."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, under the name storm-py also as `python -m storm_py`."""
        return super().main(*args, **{**extra, "prog_name": "storm-py"})

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (ConfigError, InvalidTopologyException, PackingError, TopologyLoadError) as error:
            raise Refused(str(error)) from error
        except StormPyError as error:
            raise Failed(str(error)) from error
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None


@click.group(
    cls=_Program, name="storm-py", context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="storm-py")
def main() -> None:
    """Run topologies of spouts and bolts over unbounded streams."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def version(as_json: bool) -> None:
    """Show the versions of storm-py and of the Python that runs it."""
    versions = {"storm-py": __version__, "python": platform.python_version()}
    if as_json:
        click.echo(json.dumps(versions))
    else:
        for name, number in versions.items():
            click.echo(f"{name} {number}")


for command in (
    local,
    submit,
    list_topologies,
    kill,
    activate,
    deactivate,
    rebalance,
    get_errors,
    monitor,
    logs,
    set_log_level,
    cluster,
    nimbus,
    supervisor,
    dev_zookeeper,
    version,
):
    main.add_command(command)
