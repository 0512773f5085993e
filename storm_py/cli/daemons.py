"""`storm-py nimbus` and `storm-py supervisor`: the daemons of a cluster, in the foreground.

They run until a signal ends them, and are made to fail fast: something has to start them again, as
systemd or `storm-py cluster` does. The daemons are `storm_py.nimbus.main` and
`storm_py.supervisor.main`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from .exits import INTERRUPTED, Failed
from .settings import cluster_options

__all__ = ["nimbus", "supervisor"]


@click.command()
@cluster_options
@click.pass_context
def nimbus(ctx: click.Context, conf: Mapping[str, Any]) -> None:
    """Run nimbus, which takes topologies and assigns their work, until Ctrl-C.

    Several may run, on several machines: one of them leads.

    Exit code: 1 it could not be started or died, 2 wrong usage, 130 interrupted.
    """
    from storm_py.nimbus.main import run

    with _failures():
        run(conf)
    ctx.exit(INTERRUPTED)


@click.command()
@cluster_options
@click.option("--end-workers-on-stop", is_flag=True, hidden=True)
@click.pass_context
def supervisor(ctx: click.Context, conf: Mapping[str, Any], end_workers_on_stop: bool) -> None:
    """Run the supervisor of this machine, which starts workers, until Ctrl-C.

    Its workers go on without it; the next supervisor takes them over.

    Exit code: 1 it could not be started or died, 2 wrong usage, 130 interrupted.
    """
    from storm_py.supervisor.main import run

    with _failures():
        run(conf, end_workers_on_stop=end_workers_on_stop)
    ctx.exit(INTERRUPTED)


@contextmanager
def _failures() -> Iterator[None]:
    """A disk that is full, or a folder that is another's, is no bug: it takes no traceback."""
    try:
        yield
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise Failed(
            f"{place}{error.strerror or error}; storm.local.dir has to name a folder that this "
            "user may make and write to, on a disk with room"
        ) from error
