"""`storm-py local`: run a topology on this machine until its input ends or somebody stops it.

Checks everything that can be checked before anything starts, then hands over to
`storm_py.local.LocalRun` (real processes) or `storm_py.inline.InlineRun` (this thread). It starts
nothing itself; what is shown meanwhile is in `storm_py.cli.display`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from storm_py.config import Config, configuration

from .arguments import ARGS, TopologyCommand, command_line, seconds, workers_option
from .exits import DONE, FAILED, INTERRUPTED, Failed, Refused
from .settings import Settings, settings_option

if TYPE_CHECKING:  # slow to import, and `storm-py --help` needs none of it
    from storm_py.api.spec import StormTopology
    from storm_py.loader import LoadedTopology
    from storm_py.run import RunResult

    from .display import Display

__all__ = ["local"]


@click.command(cls=TopologyCommand)
@click.argument("topology")
@settings_option()
@workers_option()
@click.option("--ttl", callback=seconds, metavar="SECS", help="Stop after this time, and drain.")
@click.option("--json", "json_file", metavar="FILE", help="Write the result as JSON; - is stdout.")
@click.option("--log-dir", metavar="DIR", help="Write the logs of all processes to this folder.")
@click.option(
    "--inline", is_flag=True, help="Run in one thread of this process: breakpoint() works."
)
@click.pass_context
def local(
    ctx: click.Context,
    topology: str,
    settings: Settings,
    workers: int | None,
    ttl: float | None,
    json_file: str | None,
    log_dir: str | None,
    inline: bool,
) -> None:
    """Run TOPOLOGY on this machine, in processes of its own.

    TOPOLOGY is path/file.py[:name] or package.module[:name]; name, by default "topology", is a
    function that gets ARGS and returns a TopologyBuilder, or a pair of that and a configuration.
    Ctrl-C stops the spouts and lets the rest finish; a second one stops at once.

    Exit code: 0 done, 1 the run failed, 2 wrong usage, 130 interrupted.
    """
    from_command_line = command_line(settings, workers)
    if json_file is not None:
        _check_json_file(json_file)
    if log_dir is not None:
        _check_log_dir(log_dir)

    from storm_py.api.registered import check_registered
    from storm_py.api.spec import apply_limits
    from storm_py.loader import load

    loaded = load(topology, ctx.meta[ARGS])
    conf = configuration(loaded.conf, from_command_line)
    conf[Config.TOPOLOGY_NAME] = conf[Config.TOPOLOGY_NAME] or loaded.name
    limited = apply_limits(loaded.topology, conf)
    check_registered(conf)

    from .display import choose

    display = choose(inline)
    if inline:
        result = _run_inline(display, limited, conf, ttl, log_dir)
    else:
        result = _run_processes(display, loaded, limited, conf, ttl, log_dir)
    display.finish(result)
    if json_file is not None:
        _write_json(json_file, result)
    ctx.exit(_exit_code(result))


def _run_inline(
    display: Display,
    topology: StormTopology,
    conf: Mapping[str, object],
    ttl: float | None,
    log_dir: str | None,
) -> RunResult:
    from storm_py.inline import InlineRun

    if conf[Config.TOPOLOGY_WORKERS] != 1:
        display.event("--inline is one thread: the number of workers has no effect")
    if log_dir is not None:
        display.event("--inline writes no logs: --log-dir has no effect")
    with display:
        return InlineRun(_topology_id(conf), topology, conf, display).run(ttl)


def _run_processes(
    display: Display,
    loaded: LoadedTopology,
    topology: StormTopology,
    conf: Mapping[str, Any],
    ttl: float | None,
    log_dir: str | None,
) -> RunResult:
    from storm_py.local import LocalRun

    executors = sum(spec.parallelism for spec in topology.components.values())
    workers = min(conf[Config.TOPOLOGY_WORKERS], executors)
    if workers < conf[Config.TOPOLOGY_WORKERS]:
        display.event(
            f"{conf[Config.TOPOLOGY_WORKERS]} workers for {executors} executors: "
            f"starting {workers}, one for each"
        )
    folder = None if log_dir is None else _made_log_dir(log_dir)
    with display:
        return LocalRun(
            topology_id=_topology_id(conf),
            topology=topology,
            conf=conf,
            sys_path=loaded.sys_path,
            module=loaded.module,
            workers=workers,
            log_dir=folder,
            observer=display,
            quiet_secs=display.quiet_secs,
        ).run(ttl)


def _topology_id(conf: Mapping[str, object]) -> str:
    """Return name-number-time, as Storm's nimbus forms it; each run of `local` is the first."""
    return f"{conf[Config.TOPOLOGY_NAME]}-1-{int(time.time())}"


def _exit_code(result: RunResult) -> int:
    if result.interrupted:
        return INTERRUPTED
    return FAILED if result.failed or result.forced else DONE


# ---- places to write to ------------------------------------------------------------------------


def _check_json_file(name: str) -> None:
    """Refuse what could not be written at the end, without touching it now."""
    path = Path(name)
    if name == "-":
        return
    if path.is_dir():
        raise Refused(f"--json {name}: is a folder; expected a file to write")
    if not path.exists() and not path.parent.is_dir():
        raise Refused(f"--json {name}: there is no folder {path.parent}; create it")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise Refused(f"--json {name}: no permission to write there")


def _write_json(name: str, result: RunResult) -> None:
    text = json.dumps(result.to_dict(), indent=2)
    if name == "-":
        click.echo(text)
        return
    try:
        Path(name).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise Failed(f"--json {name}: {error.strerror}; the result is not written") from error


def _check_log_dir(name: str) -> None:
    """Refuse what is no folder and cannot become one, without creating it yet."""
    path = Path(name).absolute()
    nearest = next(folder for folder in (path, *path.parents) if os.path.lexists(folder))
    if not nearest.is_dir():
        raise Refused(f"--log-dir {name}: {nearest} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise Refused(f"--log-dir {name}: no permission to write in {nearest}")


def _made_log_dir(name: str) -> Path:
    path = Path(name).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"--log-dir {name}: {error.strerror}") from error
    return path
